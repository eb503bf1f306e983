//! The check of arguments against a schema of `schema.rs`. It finds every fault, each with the name of the
//! argument, where a parser would stop at the first and name none.

use rmcp::model::JsonObject;
use serde_json::Value;

/// The longest value that a message repeats.
const LONGEST_SHOWN: usize = 60;

/// Integers up to this one are exact as a floating-point number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Turns numbers such as 5.0 into integers, where integers are expected: JSON Schema does not tell them apart.
pub(super) fn whole_numbers(arguments: &mut JsonObject, schema: &JsonObject) {
    let Some(known) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, value) in arguments {
        let kind = known.get(name).and_then(|rule| rule.get("type"));
        if kind.and_then(Value::as_str) == Some("integer")
            && let Some(whole) = whole(value)
        {
            *value = whole.into();
        }
    }
}

fn whole(value: &Value) -> Option<i64> {
    let number = value.as_f64().filter(|_| value.is_f64())?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole, and small enough"
    )]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

pub(super) fn faults(arguments: &JsonObject, schema: &JsonObject) -> Vec<String> {
    let none = JsonObject::new();
    let known = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let mut faults = Vec::new();
    for (name, value) in arguments {
        match known.get(name) {
            Some(rule) => {
                faults.extend(fault(value, rule).map(|fault| format!("`{name}` {fault}")))
            }
            None => faults.push(unknown(name, known)),
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !arguments.contains_key(name) {
            faults.push(format!("`{name}` is required"));
        }
    }
    faults
}

fn unknown(name: &str, known: &JsonObject) -> String {
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    let name: String = name.chars().take(LONGEST_SHOWN).collect();
    match names.is_empty() {
        true => format!("`{name}` is unknown: this tool takes no arguments"),
        false => format!(
            "`{name}` is unknown: the arguments are {}",
            names.join(", ")
        ),
    }
}

fn fault(value: &Value, rule: &Value) -> Option<String> {
    let kind = rule.get("type").and_then(Value::as_str).unwrap_or_default();
    if !has_kind(value, kind) {
        return Some(format!("must be {}, not {}", a(kind), shown(value)));
    }
    if let Some(choices) = rule.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
        return Some(format!(
            "must be one of {}, not {}",
            choices.join(", "),
            shown(value)
        ));
    }
    out_of_range(value, rule).or_else(|| bad_item(value, rule))
}

fn has_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn a(kind: &str) -> String {
    match kind {
        "integer" | "array" | "object" => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

fn out_of_range(value: &Value, rule: &Value) -> Option<String> {
    let number = value.as_f64()?;
    let bound = |name: &str| rule.get(name).and_then(Value::as_f64);
    match (bound("minimum"), bound("maximum")) {
        (Some(least), _) if number < least => {
            Some(format!("must be {least} or more, not {number}"))
        }
        (_, Some(most)) if number > most => Some(format!("must be {most} or less, not {number}")),
        (_, _) => None,
    }
}

/// The first item of an array, or value of an object, that has the wrong type.
fn bad_item(value: &Value, rule: &Value) -> Option<String> {
    if let (Some(items), Some(rule)) = (value.as_array(), rule.get("items")) {
        let bad = |(index, item)| Some(format!("has an item {index} that {}", fault(item, rule)?));
        return items.iter().enumerate().find_map(bad);
    }
    let (Some(entries), Some(rule)) = (value.as_object(), rule.get("additionalProperties")) else {
        return None;
    };
    let bad = |(name, item)| Some(format!("has an entry {name:?} that {}", fault(item, rule)?));
    entries.iter().find_map(bad)
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(arguments: Value) -> Vec<String> {
        let schema = json!({
            "properties": {
                "command": { "type": "string" },
                "env": { "type": "object", "additionalProperties": { "type": "string" } },
                "ids": { "type": "array", "items": { "type": "string" } },
                "seconds": { "type": "integer", "minimum": 1, "maximum": 50 },
                "until": { "type": "string", "enum": ["finished", "ready"] },
            },
            "required": ["command"],
        });
        faults(arguments.as_object().unwrap(), schema.as_object().unwrap())
    }

    /// M5
    #[test]
    fn good_arguments_have_no_fault() {
        let good = json!({ "command": "x", "env": { "A": "b" }, "ids": ["a"], "seconds": 50, "until": "ready" });
        assert_eq!(of(good), Vec::<String>::new());
    }

    /// M5
    #[test]
    fn a_whole_number_is_an_integer_however_it_is_written() {
        let schema = json!({ "properties": {
            "seconds": { "type": "integer" }, "share": { "type": "number" },
        } });
        let mut arguments = json!({ "seconds": 5.0, "share": 5.0 });
        let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (written, read) in [
            ("5.0", "5"),
            ("3e1", "30"),
            ("-0.0", "0"),
            ("5.5", "5.5"),
            ("1e300", "1e300"),
        ] {
            arguments["seconds"] = number(written);
            whole_numbers(
                arguments.as_object_mut().unwrap(),
                schema.as_object().unwrap(),
            );
            assert_eq!(arguments["seconds"], number(read), "{written}");
        }
        assert!(arguments["share"].is_f64());
    }

    /// M5
    #[test]
    fn every_fault_names_its_argument() {
        let faults = of(json!({
            "env": { "A": 1 }, "ids": ["a", 2], "seconds": "30", "until": "never", "comand": "x",
        }));
        let text = faults.join("\n");
        for part in [
            "`command` is required",
            "`env` has an entry \"A\" that must be a string, not 1",
            "`ids` has an item 1 that must be a string, not 2",
            "`seconds` must be an integer, not \"30\"",
            "`until` must be one of finished, ready, not \"never\"",
            "`comand` is unknown: the arguments are command, env",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(
            of(json!({ "command": "x", "seconds": 51 })),
            ["`seconds` must be 50 or less, not 51"]
        );
    }

    /// M5
    #[test]
    fn a_large_value_is_not_repeated() {
        let faults = of(json!({ "command": [ "x".repeat(1_000_000) ] }));
        assert!(faults[0].len() < 200, "{}", faults[0].len());
    }
}
