//! The shapes of messages, from their descriptors.

use std::collections::HashMap;

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

/// The form of a message.
#[derive(Debug)]
pub(super) enum Shape {
    /// In the order of their numbers.
    Fields(Vec<Field>),
    Timestamp,
    Duration,
    /// Written by way of a message that describes itself.
    Dynamic(MessageDescriptor),
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// The name, with quotes and colon.
    pub(super) name: String,
    pub(super) rule: Rule,
    pub(super) form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Written at its default too.
    Implicit,
    /// Written if it is there.
    Explicit,
    Repeated,
    Map,
}

/// The form of a value.
#[derive(Debug)]
pub(super) enum Form {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    String,
    Bytes,
    /// The names by number.
    Enum(HashMap<i32, String>),
    /// The place of the message's shape.
    Message(usize),
}

impl Form {
    pub(super) fn is_number(&self) -> bool {
        match self {
            Self::Bool
            | Self::Int32
            | Self::Int64
            | Self::Uint32
            | Self::Uint64
            | Self::Enum(_) => true,
            Self::String | Self::Bytes | Self::Message(_) => false,
        }
    }
}

/// The shapes of a message and of those in it.
#[derive(Default)]
pub(super) struct Shapes {
    pub(super) shapes: Vec<Shape>,
    places: HashMap<String, usize>,
}

impl Shapes {
    pub(super) fn place_of(&mut self, message: &MessageDescriptor) -> usize {
        if let Some(place) = self.places.get(message.full_name()) {
            return *place;
        }
        let place = self.shapes.len();
        self.places.insert(message.full_name().to_owned(), place);
        // Replaced below: a message may contain itself.
        self.shapes.push(Shape::Dynamic(message.clone()));
        self.shapes[place] = match message.full_name() {
            "google.protobuf.Timestamp" => Shape::Timestamp,
            "google.protobuf.Duration" => Shape::Duration,
            name if name.starts_with("google.protobuf.") => Shape::Dynamic(message.clone()),
            _ => {
                let mut fields: Vec<FieldDescriptor> = message.fields().collect();
                fields.sort_by_key(FieldDescriptor::number);
                let fields: Option<Vec<Field>> =
                    fields.iter().map(|field| self.field(field)).collect();
                match fields {
                    Some(fields) => Shape::Fields(fields),
                    None => Shape::Dynamic(message.clone()),
                }
            }
        };
        place
    }

    /// `None` for a type that the contract does not use.
    fn field(&mut self, field: &FieldDescriptor) -> Option<Field> {
        let rule = match () {
            () if field.is_map() => Rule::Map,
            () if field.is_list() => Rule::Repeated,
            () if field.supports_presence() => Rule::Explicit,
            () => Rule::Implicit,
        };
        #[allow(clippy::wildcard_enum_match_arm, reason = "an enum that may grow")]
        let form = match field.kind() {
            Kind::Bool => Form::Bool,
            Kind::Int32 => Form::Int32,
            Kind::Int64 => Form::Int64,
            Kind::Uint32 => Form::Uint32,
            Kind::Uint64 => Form::Uint64,
            Kind::String => Form::String,
            Kind::Bytes => Form::Bytes,
            Kind::Enum(names) => {
                let names = names.values().map(|value| {
                    let name = format!("\"{}\"", value.name());
                    (value.number(), name)
                });
                Form::Enum(names.collect())
            }
            Kind::Message(message) => Form::Message(self.place_of(&message)),
            _ => return None,
        };
        Some(Field {
            number: field.number(),
            name: format!("\"{}\":", field.json_name()),
            rule,
            form,
        })
    }
}
