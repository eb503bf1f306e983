//! A case as it is written, its variables, and the comparison of a result with the expected one.

use std::collections::BTreeMap;

use heeler_tests::{binary, daemon::SERVICE};
use prost_reflect::{DescriptorPool, MethodDescriptor};
use serde_json::{Map, Value};

/// One case.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) serve: Vec<String>,
    pub(crate) steps: Vec<Value>,
}

/// The expected end of a step.
#[derive(Debug)]
pub(crate) enum Expected {
    Result(Value),
    /// A refusal: code, reason, field, metadata.
    Error(Value),
}

impl Case {
    /// Every case of cases.json.
    pub(crate) fn all() -> Vec<Self> {
        let path = binary::workspace().join("tests/conformance/cases.json");
        let text = std::fs::read_to_string(path).expect("cases.json");
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

/// The values that steps have stored, by name.
#[derive(Debug, Default, Clone)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    pub(crate) fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// The value with every `$name` in its strings replaced, except in the steps of `during`: those are
    /// filled in when they run.
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

    /// A `$` that no stored name follows stays as it is.
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

/// The result of `followOutput`.
#[derive(Debug, Default)]
pub(crate) struct Followed(Vec<FollowedTask>);

#[derive(Debug)]
struct FollowedTask {
    id: String,
    text: String,
    ended: Value,
}

impl Followed {
    pub(crate) fn begin(&mut self, id: &str) {
        self.0.push(FollowedTask {
            id: id.to_owned(),
            text: String::new(),
            ended: Value::Null,
        });
    }

    pub(crate) fn write(&mut self, id: &str, text: &str) {
        self.task(id).text.push_str(text);
    }

    pub(crate) fn end(&mut self, id: &str, task: Value) {
        self.task(id).ended = task;
    }

    fn task(&mut self, id: &str) -> &mut FollowedTask {
        let task = self.0.iter_mut().find(|task| task.id == id);
        task.expect("a task that has begun")
    }
}

impl From<Followed> for Value {
    fn from(followed: Followed) -> Self {
        let task = |FollowedTask { id, text, ended }: FollowedTask| serde_json::json!({"id": id, "text": text, "ended": ended});
        let tasks: Vec<Self> = followed.0.into_iter().map(task).collect();
        serde_json::json!({ "tasks": tasks })
    }
}

/// The fields of an object, each taken once. A field that is left at the end is unknown.
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

    /// The number of events to wait for.
    pub(crate) fn count(&mut self) -> usize {
        let count = self.take("count").and_then(|count| count.as_u64());
        usize::try_from(count.expect("a count")).expect("a small number")
    }

    /// The fields that are left, as a message.
    pub(crate) fn rest(self) -> Value {
        Value::Object(self.0)
    }

    pub(crate) fn none_left(self) {
        assert!(self.0.is_empty(), "unknown fields: {:?}", self.0);
    }
}

/// The first difference between a result and the expected one, if there is any.
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
                // The mapping leaves out a field that is empty.
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

/// The RPC that a step is named after, if it is one.
pub(crate) fn rpc(contract: &DescriptorPool, step: &str) -> Option<MethodDescriptor> {
    let service = contract.get_service_by_name(SERVICE).expect("the service");
    let same = |rpc: &MethodDescriptor| {
        let (first, rest) = rpc.name().split_at(1);
        step.strip_prefix(&first.to_lowercase()) == Some(rest)
    };
    service.methods().find(same)
}

/// The value of a step's result that `as` stores.
pub(crate) fn stored(step: &str, result: &Value) -> Option<String> {
    let value = match step {
        "spawn" => result.pointer("/task/id"),
        "work" => result.pointer("/joined/task/id"),
        "run" => result.pointer("/ended/task/id"),
        // The mapping leaves out an offset of 0.
        "readOutput" => return Some(result["nextOffset"].as_str().unwrap_or("0").to_owned()),
        "watchEvents" => {
            let events = result["events"].as_array()?;
            events.last()?.get("revision")
        }
        _ => None,
    };
    value.and_then(scalar)
}

/// A response of ReadOutput with the text of its chunks in their place.
pub(crate) fn with_text(mut response: Value) -> Value {
    let fields = response.as_object_mut().expect("a message");
    let chunks = fields.remove("chunks").unwrap_or_default();
    fields.insert("text".to_owned(), text_if(&chunks, |_| true).into());
    response
}

/// The bytes of the chunks for which this is true, as text.
pub(crate) fn text_if(chunks: &Value, is_wanted: impl Fn(&Value) -> bool) -> String {
    let chunks = chunks.as_array().into_iter().flatten();
    let data = chunks.filter(|chunk| is_wanted(chunk));
    let bytes: Vec<u8> = data
        .flat_map(|chunk| match chunk["text"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => base64(chunk["data"].as_str().unwrap_or_default()),
        })
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Decodes bytes of protobuf's JSON mapping.
fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = LETTERS.iter().position(|known| *known == letter);
        bits = bits << 6 | value.expect("base64") as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// The responses of a `work` step, by kind.
#[derive(Debug, Default)]
pub(crate) struct Worked {
    joined: Value,
    cancels: Vec<Value>,
    messages: Vec<Value>,
    acknowledged: Value,
    ended: Value,
}

impl Worked {
    /// Takes one response.
    pub(crate) fn take(&mut self, mut response: Value) {
        let mut item = |name: &str| response.get_mut(name).map(Value::take);
        if let Some(joined) = item("joined") {
            self.joined = joined;
        }
        self.cancels.extend(item("cancel"));
        self.messages.extend(item("message"));
        if let Some(acknowledged) = item("acknowledged") {
            self.acknowledged = acknowledged["sequence"].clone();
        }
        if let Some(ended) = item("ended") {
            self.ended = ended;
        }
    }
}

impl From<Worked> for Value {
    fn from(worked: Worked) -> Self {
        let Worked {
            joined,
            cancels,
            messages,
            acknowledged,
            ended,
        } = worked;
        serde_json::json!({
            "joined": joined,
            "cancels": cancels,
            "messages": messages,
            "acknowledged": acknowledged,
            "ended": ended,
        })
    }
}
