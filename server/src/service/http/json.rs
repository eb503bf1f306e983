//! Messages in protobuf's JSON mapping.
//!
//! Fields at their default are written out, as by `heeler --json`. A request with a field that the contract
//! does not have is refused: a misspelt option must not be ignored.

mod writer;

pub(super) use writer::{WriteError, Writer};

use heeler_proto::v1::ErrorReason;
use prost::{Message, bytes::Bytes};
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_path_to_error::{Path, Segment};
use tonic::Code;

use crate::service::wire::refusal::Refusal;

/// Writes the messages of WatchEvents.
#[derive(Debug)]
pub(in crate::service) struct EventWriter(Writer);

impl EventWriter {
    pub(in crate::service) fn new() -> Self {
        let pool = DescriptorPool::decode(heeler_proto::FILE_DESCRIPTOR_SET)
            .expect("the build generates the descriptor set");
        let message = pool
            .get_message_by_name("heeler.v1.WatchEventsResponse")
            .expect("the contract has the message");
        Self(Writer::new(&message))
    }

    /// Writes an encoded message.
    pub(in crate::service) fn write(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        self.0.write(message).map_err(|error| error.to_string())
    }
}

/// Encodes a request. A refusal names the bad field as the contract does.
pub(super) fn encode(input: &MessageDescriptor, json: &[u8]) -> Result<Bytes, Refusal> {
    let mut from = serde_json::Deserializer::from_slice(json);
    let mut track = serde_path_to_error::Track::new();
    let read = DynamicMessage::deserialize(
        input.clone(),
        serde_path_to_error::Deserializer::new(&mut from, &mut track),
    );
    let message = read.map_err(|error| unreadable(input, &track.path(), &error))?;
    from.end().map_err(|error| malformed(&error))?;
    Ok(message.encode_to_vec().into())
}

fn unreadable(input: &MessageDescriptor, path: &Path, error: &serde_json::Error) -> Refusal {
    if !error.is_data() {
        return malformed(error);
    }
    let text = error.to_string();
    // The position says nothing to a caller that has built its request with a library.
    let problem = text.split(" at line ").next().unwrap_or(&text);
    let mut field = contract_path(input, path);
    if let Some(name) = problem
        .strip_prefix("unrecognized field name '")
        .and_then(|rest| rest.strip_suffix('\''))
    {
        let name = Refusal::shown(name);
        join(&mut field, &name);
        return Refusal::field(field, "is not a field of the contract");
    }
    match field.is_empty() {
        true => malformed(error),
        false => Refusal::field(field, format_args!("has a bad value: {problem}")),
    }
}

fn malformed(error: &serde_json::Error) -> Refusal {
    let message = format!("the request is not valid JSON for its message: {error}");
    let reason = ErrorReason::RequestUnreadable;
    Refusal::new(Code::InvalidArgument, reason, message)
}

/// The path of a field in the contract's names, which JSON writes in camelCase.
fn contract_path(input: &MessageDescriptor, path: &Path) -> String {
    let mut message = Some(input.clone());
    let mut named = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => named.push_str(&format!("[{index}]")),
            Segment::Map { key } => {
                let field = message.as_ref().and_then(|of| field(of, key));
                match &field {
                    Some(field) => join(&mut named, field.name()),
                    // The key of a map.
                    None => named.push_str(&format!("[{}]", Refusal::shown(key))),
                }
                if let Some(field) = field {
                    message = value_message(&field);
                }
            }
            Segment::Enum { variant } => join(&mut named, variant),
            Segment::Unknown => {}
        }
    }
    named
}

fn join(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn field(message: &MessageDescriptor, key: &str) -> Option<FieldDescriptor> {
    message
        .get_field_by_json_name(key)
        .or_else(|| message.get_field_by_name(key))
}

/// The message that a field, or a value of a map, contains.
fn value_message(field: &FieldDescriptor) -> Option<MessageDescriptor> {
    let Kind::Message(message) = field.kind() else {
        return None;
    };
    match message.is_map_entry() {
        true => value_message(&message.map_entry_value_field()),
        false => Some(message),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::service::http::contract::Contract;

    fn refused(method: &str, json: &str) -> String {
        let contract = Contract::new();
        let path = format!("/{}/{method}", crate::service::NAME);
        let method = contract.method(&path).unwrap();
        let refusal = encode(&method.input, json.as_bytes()).unwrap_err();
        refusal.message().to_owned()
    }

    /// H1
    #[test]
    fn a_bad_value_is_named_by_the_path_of_its_field() {
        for (json, field) in [
            (
                r#"{"spec": {"shell": {"script": 7}}}"#,
                "spec.shell.script ",
            ),
            (
                r#"{"spec": {"workingDirectory": 7}}"#,
                "spec.working_directory ",
            ),
            (
                r#"{"spec": {"argv": {"args": ["a", 7]}}}"#,
                "spec.argv.args[1] ",
            ),
            (r#"{"spec": {"labels": {"a": 7}}}"#, "spec.labels[a] "),
            (r#"{"spec": {"kind": "NONE"}}"#, "spec.kind "),
            (r#"{"spec": {"timeout": "soon"}}"#, "spec.timeout "),
            (r#"{"spec": {"wrong": 1}}"#, "spec.wrong is not a field"),
            (r#"{"wrong": 1}"#, "wrong is not a field"),
        ] {
            let message = refused("Spawn", json);
            assert!(message.starts_with(field), "{json}: {message}");
        }
    }

    /// H1
    #[test]
    fn text_that_is_no_json_or_no_object_is_refused() {
        for json in ["", "{", "[]", "7", "null", "{} {}", "{\"filter\"", "\u{0}"] {
            let message = refused("List", json);
            assert!(message.contains("not valid JSON"), "{json}: {message}");
        }
        let deep = "[".repeat(100_000);
        refused("List", &deep);
    }
}
