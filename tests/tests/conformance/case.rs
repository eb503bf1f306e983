//! A case as it is written, its variables, and whether a result is what it expects.

use std::collections::BTreeMap;

use heeler_tests::binary;
use serde_json::{Map, Value};

/// One case.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) serve: Vec<String>,
    pub(crate) steps: Vec<Value>,
}

/// What a step is to lead to.
#[derive(Debug)]
pub(crate) enum Expected {
    /// This.
    Result(Value),
    /// A refusal like this.
    Error(Value),
}

impl Case {
    /// Every case there is.
    pub(crate) fn all() -> Vec<Self> {
        let path = binary::workspace().join("tests/conformance/cases.json");
        let text = std::fs::read_to_string(path).expect("the cases are there");
        let cases: Vec<Value> = serde_json::from_str(&text).expect("the cases are JSON");
        cases.into_iter().map(Self::read).collect()
    }

    fn read(case: Value) -> Self {
        let known = ["name", "shows", "serve", "steps"];
        for field in case.as_object().expect("an object").keys() {
            assert!(known.contains(&&**field), "a case has no {field}");
        }
        let texts = |field: &str| {
            let list = case[field].as_array().into_iter().flatten();
            list.map(|text| text.as_str().expect("a text").to_owned())
                .collect()
        };
        Self {
            name: case["name"].as_str().expect("a name").to_owned(),
            serve: texts("serve"),
            steps: case["steps"].as_array().expect("steps").clone(),
        }
    }
}

/// The names that steps have given to what they got.
#[derive(Debug, Default, Clone)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    pub(crate) fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// The value with every `$name` in its texts replaced, but for the steps in it, whose turn comes
    /// later.
    pub(crate) fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill_text(text)),
            Value::Array(list) => list.iter().map(|value| self.fill(value)).collect(),
            Value::Object(fields) => {
                let fill = |(field, value): (&String, &Value)| {
                    let value = match field.as_str() {
                        "during" => value.clone(),
                        _ => self.fill(value),
                    };
                    (field.clone(), value)
                };
                Value::Object(fields.iter().map(fill).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// A `$` that no name follows is the text's own.
    fn fill_text(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, after) = rest.split_at(at);
            filled.push_str(before);
            let end = |c: char| !c.is_ascii_alphanumeric();
            let name = &after[1..];
            let name = &name[..name.find(end).unwrap_or(name.len())];
            match self.0.get(name) {
                Some(value) => filled.push_str(value),
                None => filled.push_str(&after[..1 + name.len()]),
            }
            rest = &after[1 + name.len()..];
        }
        filled + rest
    }
}

/// The fields of an object, each taken once: what is left at the end was not understood.
#[derive(Debug)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    pub(crate) fn of(value: Value) -> Self {
        match value {
            Value::Null => Self(Map::new()),
            Value::Object(fields) => Self(fields),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                panic!("not an object: {value}")
            }
        }
    }

    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field)
    }

    pub(crate) fn text(&mut self, field: &str) -> String {
        match self.take(field) {
            Some(Value::String(text)) => text,
            other => panic!("{field} is {other:?}"),
        }
    }

    /// What nobody has taken, as a message.
    pub(crate) fn rest(self) -> Value {
        Value::Object(self.0)
    }

    pub(crate) fn none_left(self) {
        assert!(self.0.is_empty(), "not understood: {:?}", self.0);
    }
}

/// What is wrong with a result; nothing, if it is as expected.
pub(crate) fn mismatch(expected: &Value, found: &Value, path: &str) -> Option<String> {
    let wrong = || Some(format!("{path}: {found}, not {expected}"));
    match (expected, found) {
        (Value::Null, Value::Null) => None,
        (Value::Null, _) => wrong(),
        (Value::Object(fields), found) => fields.iter().find_map(|(field, expected)| {
            let found = found.get(field).unwrap_or(&Value::Null);
            mismatch(expected, found, &format!("{path}.{field}"))
        }),
        (Value::Array(list), Value::Array(found)) if list.len() == found.len() => list
            .iter()
            .zip(found)
            .enumerate()
            .find_map(|(at, (expected, found))| {
                mismatch(expected, found, &format!("{path}[{at}]"))
            }),
        (Value::Array(_), _) => wrong(),
        (Value::String(text), found) if text.starts_with('~') => {
            let pattern = regex::Regex::new(&format!("(?s)^(?:{})$", &text[1..]));
            let pattern = pattern.expect("a regular expression");
            match pattern.is_match(&scalar(found)?) {
                true => None,
                false => wrong(),
            }
        }
        (Value::Bool(_) | Value::Number(_) | Value::String(_), found) => {
            match Some(scalar(expected)?) == scalar(found) {
                true => None,
                // An empty text is a field at its default, which is left out.
                false if expected == "" && found.is_null() => None,
                false => wrong(),
            }
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null => Some(String::new()),
        Value::Array(_) | Value::Object(_) => None,
    }
}
