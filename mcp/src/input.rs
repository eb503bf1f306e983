//! The arguments of the tools: the schemas that clients see, and the check of arguments against them.

mod check;
mod schema;
mod start;

use rmcp::{model::JsonObject, schemars::JsonSchema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::Problem;

pub(crate) use schema::{input_schema, output_schema};
pub(crate) use start::{ReadyArgs, StartArgs};

/// Text of this size may be refused for its length.
const LONG: usize = 64 * 1024;

/// The argument with the most text, if that is long.
pub(crate) fn longest(arguments: &JsonObject) -> Option<String> {
    let sizes = arguments.iter().map(|(name, value)| (size(value), name));
    let (size, name) = sizes.max()?;
    (size >= LONG).then(|| name.clone())
}

/// The bytes of text in a value.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| key.len() + size(value))
            .sum(),
    }
}

/// Reads the arguments of a tool. Every fault names its argument.
pub(crate) fn parse<T: DeserializeOwned + JsonSchema>(
    mut arguments: JsonObject,
) -> Result<T, Problem> {
    let schema = input_schema::<T>();
    check::whole_numbers(&mut arguments, &schema);
    let faults = check::faults(&arguments, &schema);
    if !faults.is_empty() {
        return Err(Problem::Arguments(faults));
    }
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Problem::Arguments(vec![error.to_string()]))
}
