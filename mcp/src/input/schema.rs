//! JSON schemas from the types of inputs and outputs, in the plain form that every host accepts: no
//! references, no `null` beside a type, no formats.

use rmcp::{
    model::JsonObject,
    schemars::{JsonSchema, generate::SchemaSettings},
};
use serde_json::{Value, json};

/// The schema of a tool's arguments. Unknown arguments are not allowed.
pub(crate) fn input_schema<T: JsonSchema>() -> JsonObject {
    let mut schema = plain_schema::<T>(SchemaSettings::draft2020_12());
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

/// The schema of a tool's structured result. A later version may add fields.
pub(crate) fn output_schema<T: JsonSchema>() -> JsonObject {
    plain_schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn plain_schema<T: JsonSchema>(mut settings: SchemaSettings) -> JsonObject {
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut value = schema.to_value();
    simplify(&mut value);
    let mut object = match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    };
    for noise in ["$schema", "title", "description"] {
        object.remove(noise);
    }
    object
}

/// Removes what says only that a value may be absent, and how wide a number is.
fn simplify(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("format");
            if object.get("default") == Some(&Value::Null) {
                object.remove("default");
            }
            if let Some(kinds) = object.get_mut("type") {
                without_null(kinds);
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type") != Some(&json!("null")));
                if let [Value::Object(only)] = &choices[..] {
                    let only = only.clone();
                    object.remove("anyOf");
                    for (key, part) in only {
                        object.entry(key).or_insert(part);
                    }
                }
            }
            object.values_mut().for_each(simplify);
        }
        Value::Array(parts) => parts.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn without_null(kinds: &mut Value) {
    if let Value::Array(list) = kinds {
        list.retain(|kind| kind != "null");
        if let [only] = &list[..] {
            *kinds = only.clone();
        }
    }
}
