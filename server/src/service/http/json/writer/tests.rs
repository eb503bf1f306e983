//! Against the library, which goes by descriptors alone.

use prost_reflect::{DescriptorPool, Kind, MapKey, Value};
use serde_json::Value as Json;

use super::*;

fn pool() -> DescriptorPool {
    DescriptorPool::decode(heeler_proto::FILE_DESCRIPTOR_SET).unwrap()
}

fn by_reflection(descriptor: &MessageDescriptor, bytes: &[u8]) -> Json {
    let message = DynamicMessage::decode(descriptor.clone(), bytes).unwrap();
    let mut json = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut json);
    message
        .serialize_with_options(&mut serializer, &OPTIONS)
        .unwrap();
    serde_json::from_slice(&json).unwrap()
}

fn check(descriptor: &MessageDescriptor, bytes: &[u8]) {
    let written = Writer::new(descriptor).write(bytes).unwrap();
    let written: Json = serde_json::from_slice(&written)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&written)));
    let name = descriptor.full_name();
    assert_eq!(written, by_reflection(descriptor, bytes), "{name}");
}

/// A value that is not the default. Several values of a field differ.
fn value(kind: &Kind, seed: u32, depth: u32) -> Value {
    #[allow(clippy::wildcard_enum_match_arm, reason = "not in the contract")]
    match kind {
        Kind::Bool => Value::Bool(true),
        Kind::Int32 => Value::I32(-7 - seed as i32),
        Kind::Int64 => Value::I64(i64::MIN + i64::from(seed)),
        Kind::Uint32 => Value::U32(u32::MAX - seed),
        Kind::Uint64 => Value::U64(u64::MAX - u64::from(seed)),
        Kind::String => Value::String(format!("\"\\\u{1}\u{2028}é{seed}</script>")),
        Kind::Bytes => Value::Bytes(vec![0xff; 1 + seed as usize].into()),
        // One that has no name, too.
        Kind::Enum(_) => Value::EnumNumber(1 + 998 * (seed as i32 % 2)),
        Kind::Message(message) => Value::Message(filled(message, seed, depth)),
        other => panic!("{other:?}"),
    }
}

fn filled(message: &MessageDescriptor, seed: u32, depth: u32) -> DynamicMessage {
    let mut filled = DynamicMessage::new(message.clone());
    if let "google.protobuf.Timestamp" | "google.protobuf.Duration" = message.full_name() {
        filled.set_field_by_name("seconds", Value::I64(1_700_000_000 + i64::from(seed)));
        let nanos = [0, 500_000_000, 1_000, 1][seed as usize % 4];
        filled.set_field_by_name("nanos", Value::I32(nanos));
        return filled;
    }
    for (seed, field) in (seed..).zip(message.fields()) {
        let is_message = matches!(field.kind(), Kind::Message(_));
        if depth == 0 && is_message && !field.is_map() {
            continue;
        }
        let one = |seed| value(&field.kind(), seed, depth.saturating_sub(1));
        let content = match () {
            () if field.is_map() => {
                let Kind::Message(entry) = field.kind() else {
                    unreachable!("a map has entries");
                };
                let of = |seed| value(&entry.map_entry_value_field().kind(), seed, 0);
                let key = |text: &str| MapKey::String(text.to_owned());
                // Encoders leave out an empty key, and a value at its default.
                let zero = Value::default_value(&entry.map_entry_value_field().kind());
                Value::Map([(key("a\""), of(1)), (key(""), of(2)), (key("0"), zero)].into())
            }
            () if field.is_list() => Value::List(vec![one(seed), one(seed + 1)]),
            () => one(seed),
        };
        filled.set_field(&field, content);
    }
    filled
}

/// H1
#[test]
fn every_message_of_the_contract_is_written_as_by_reflection() {
    let mut count = 0;
    for message in pool().all_messages().filter(|one| !one.is_map_entry()) {
        if !message.full_name().starts_with("heeler.v1.") {
            continue;
        }
        count += 1;
        check(&message, &[]);
        for seed in 0..4 {
            check(&message, &filled(&message, seed, 4).encode_to_vec());
        }
    }
    assert!(count > 50);
}

/// H1
#[test]
fn fields_in_any_order_twice_and_unknown_are_as_by_reflection() {
    let list = pool()
        .get_message_by_name("heeler.v1.ListResponse")
        .unwrap();
    let parts: Vec<Vec<u8>> = (0..3)
        .map(|seed| filled(&list, seed, 4).encode_to_vec())
        .collect();
    check(&list, &parts.concat());
    let task = pool()
        .get_message_by_name("heeler.v1.BackgroundTask")
        .unwrap();
    // A field of each wire type, with numbers that the contract does not have.
    let unknown = b"\xf8\xff\x07\x01\xfa\xff\x07\x01x\xfd\xff\x07abcd\xf9\xff\x07abcdefgh";
    check(&task, unknown);
}

#[test]
fn bytes_that_are_no_message_are_an_error() {
    let task = pool()
        .get_message_by_name("heeler.v1.BackgroundTask")
        .unwrap();
    let writer = Writer::new(&task);
    let whole = filled(&task, 1, 3).encode_to_vec();
    for end in 0..whole.len() {
        // Some prefixes are messages.
        let _ = writer.write(&whole[..end]);
    }
    for bad in [
        b"\x08".as_slice(),
        b"\x0a\x05a",
        b"\x0b",
        b"\x0a\x01\xff",
        b"\xff",
    ] {
        assert!(writer.write(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn the_contract_needs_no_detour() {
    for message in pool().all_messages() {
        if message.full_name().starts_with("heeler.v1.") {
            let shapes = Writer::new(&message).shapes;
            let detours = shapes.iter().filter(|one| matches!(one, Shape::Dynamic(_)));
            assert_eq!(detours.count(), 0, "{}", message.full_name());
        }
    }
}
