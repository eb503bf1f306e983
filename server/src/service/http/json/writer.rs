//! Writes encoded messages as JSON, directly from their bytes.
//!
//! A message in memory between the two, which describes itself, takes several times as long. Types that the
//! contract does not use (floating point, `Any` and the like) still go that way.

mod shape;

use base64::{Engine, engine::general_purpose::STANDARD};
use prost::{
    DecodeError, Message,
    encoding::{WireType, decode_key, decode_varint},
};
use prost_reflect::{DynamicMessage, MessageDescriptor, SerializeOptions};

use self::shape::{Field, Form, Rule, Shape, Shapes};

/// The deepest message in a message, as in prost.
const DEEPEST: usize = 100;

pub(super) const OPTIONS: SerializeOptions = SerializeOptions::new().skip_default_fields(false);

/// The reason why bytes cannot be written as JSON.
#[derive(Debug, thiserror::Error)]
pub(in crate::service::http) enum WriteError {
    #[error("it is no valid encoding of its message")]
    Malformed,
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Writes messages of one type, and of those in it.
#[derive(Debug)]
pub(in crate::service::http) struct Writer {
    /// The first is the message itself.
    shapes: Vec<Shape>,
}

/// A value as it is encoded.
#[derive(Debug, Clone, Copy)]
enum Raw<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Values with the places of their fields.
type Values<'a> = Vec<(usize, Raw<'a>)>;

impl Writer {
    pub(in crate::service::http) fn new(message: &MessageDescriptor) -> Self {
        let mut shapes = Shapes::default();
        shapes.place_of(message);
        Self {
            shapes: shapes.shapes,
        }
    }

    pub(in crate::service::http) fn write(&self, message: &[u8]) -> Result<Vec<u8>, WriteError> {
        let mut out = Vec::with_capacity(3 * message.len() + 64);
        self.message(&mut out, 0, message, 0)?;
        Ok(out)
    }

    fn message(
        &self,
        out: &mut Vec<u8>,
        place: usize,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(), WriteError> {
        if depth > DEEPEST {
            return Err(WriteError::Malformed);
        }
        let fields = match &self.shapes[place] {
            Shape::Fields(fields) => fields,
            Shape::Timestamp => {
                let time = prost_types::Timestamp::decode(bytes)?;
                return Ok(serde_json::to_writer(out, &time.to_string())?);
            }
            Shape::Duration => {
                let time = prost_types::Duration::decode(bytes)?;
                return Ok(serde_json::to_writer(out, &time.to_string())?);
            }
            Shape::Dynamic(descriptor) => {
                let message = DynamicMessage::decode(descriptor.clone(), bytes)?;
                let mut serializer = serde_json::Serializer::new(out);
                return Ok(message.serialize_with_options(&mut serializer, &OPTIONS)?);
            }
        };
        let values = scan(fields, bytes)?;
        let mut rest = values.as_slice();
        let mut separator = b'{';
        for (place, field) in fields.iter().enumerate() {
            let count = rest.iter().take_while(|(of, _)| *of == place).count();
            let (given, after) = rest.split_at(count);
            rest = after;
            if given.is_empty() && field.rule == Rule::Explicit {
                continue;
            }
            out.push(separator);
            separator = b',';
            out.extend_from_slice(field.name.as_bytes());
            match field.rule {
                Rule::Implicit | Rule::Explicit => self.single(out, field, given, depth)?,
                Rule::Repeated => self.repeated(out, field, given, depth)?,
                Rule::Map => self.map(out, field, given, depth)?,
            }
        }
        if separator == b'{' {
            out.push(b'{');
        }
        out.push(b'}');
        Ok(())
    }

    /// Of a field that is given twice the last value counts; a message is then merged.
    fn single(
        &self,
        out: &mut Vec<u8>,
        field: &Field,
        given: &[(usize, Raw)],
        depth: usize,
    ) -> Result<(), WriteError> {
        match (&field.form, given) {
            (Form::Message(_), [_, _, ..]) => {
                let mut merged = Vec::new();
                for (_, value) in given {
                    merged.extend_from_slice(value.bytes()?);
                }
                self.value(out, &field.form, Raw::Bytes(&merged), depth)
            }
            (_, [.., (_, value)]) => self.value(out, &field.form, *value, depth),
            (_, []) => self.value(out, &field.form, default_of(&field.form), depth),
        }
    }

    fn repeated(
        &self,
        out: &mut Vec<u8>,
        field: &Field,
        given: &[(usize, Raw)],
        depth: usize,
    ) -> Result<(), WriteError> {
        let mut separator = b'[';
        let mut separate = |out: &mut Vec<u8>| {
            out.push(separator);
            separator = b',';
        };
        for &(_, value) in given {
            match value {
                Raw::Bytes(mut packed) if field.form.is_number() => {
                    while !packed.is_empty() {
                        separate(out);
                        let number = Raw::Number(decode_varint(&mut packed)?);
                        self.value(out, &field.form, number, depth)?;
                    }
                }
                Raw::Bytes(_) | Raw::Number(_) => {
                    separate(out);
                    self.value(out, &field.form, value, depth)?;
                }
            }
        }
        if separator == b'[' {
            out.push(b'[');
        }
        out.push(b']');
        Ok(())
    }

    fn map(
        &self,
        out: &mut Vec<u8>,
        field: &Field,
        given: &[(usize, Raw)],
        depth: usize,
    ) -> Result<(), WriteError> {
        let Form::Message(entry) = field.form else {
            return Err(WriteError::Malformed);
        };
        let Shape::Fields(parts) = &self.shapes[entry] else {
            return Err(WriteError::Malformed);
        };
        let [key_field, value_field] = parts.as_slice() else {
            return Err(WriteError::Malformed);
        };
        let mut separator = b'{';
        for (_, value) in given {
            let values = scan(parts, value.bytes()?)?;
            let part = |place| values.iter().rfind(|(of, _)| *of == place);
            out.push(separator);
            separator = b',';
            // An empty key, and a value at its default, are left out by encoders.
            let key = part(0).map_or(default_of(&key_field.form), |(_, key)| *key);
            self.key(out, &key_field.form, key, depth)?;
            out.push(b':');
            let value = part(1).map_or(default_of(&value_field.form), |(_, value)| *value);
            self.value(out, &value_field.form, value, depth)?;
        }
        if separator == b'{' {
            out.push(b'{');
        }
        out.push(b'}');
        Ok(())
    }

    /// A key is a string in JSON, whatever its type.
    fn key(
        &self,
        out: &mut Vec<u8>,
        form: &Form,
        key: Raw,
        depth: usize,
    ) -> Result<(), WriteError> {
        match form {
            Form::Bool | Form::Int32 | Form::Uint32 => {
                out.push(b'"');
                self.value(out, form, key, depth)?;
                out.push(b'"');
                Ok(())
            }
            Form::String
            | Form::Int64
            | Form::Uint64
            | Form::Bytes
            | Form::Enum(_)
            | Form::Message(_) => self.value(out, form, key, depth),
        }
    }

    fn value(
        &self,
        out: &mut Vec<u8>,
        form: &Form,
        value: Raw,
        depth: usize,
    ) -> Result<(), WriteError> {
        match form {
            Form::Bool => out.extend_from_slice(match value.number()? {
                0 => b"false",
                _ => b"true",
            }),
            Form::Int32 => serde_json::to_writer(out, &(value.number()? as i32))?,
            Form::Uint32 => serde_json::to_writer(out, &(value.number()? as u32))?,
            Form::Int64 => quoted(out, &(value.number()? as i64))?,
            Form::Uint64 => quoted(out, &value.number()?)?,
            Form::String => {
                let text = std::str::from_utf8(value.bytes()?);
                serde_json::to_writer(out, text.map_err(|_| WriteError::Malformed)?)?;
            }
            Form::Bytes => base64(out, value.bytes()?),
            Form::Enum(names) => {
                let number = value.number()? as i32;
                match names.get(&number) {
                    Some(name) => out.extend_from_slice(name.as_bytes()),
                    None => serde_json::to_writer(out, &number)?,
                }
            }
            Form::Message(place) => self.message(out, *place, value.bytes()?, depth + 1)?,
        }
        Ok(())
    }
}

fn quoted(out: &mut Vec<u8>, number: &impl serde::Serialize) -> Result<(), WriteError> {
    out.push(b'"');
    serde_json::to_writer(&mut *out, number)?;
    out.push(b'"');
    Ok(())
}

fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let begin = out.len();
    out.resize(begin + bytes.len().div_ceil(3) * 4, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[begin..]);
    out.truncate(begin + written.expect("four bytes for each three"));
    out.push(b'"');
}

/// The values of a message, in the order of the fields. Unknown fields are left out.
fn scan<'a>(fields: &[Field], mut bytes: &'a [u8]) -> Result<Values<'a>, WriteError> {
    let mut values = Values::with_capacity(fields.len());
    let mut is_sorted = true;
    let mut latest = 0;
    while !bytes.is_empty() {
        let (number, wire_type) = decode_key(&mut bytes)?;
        let value = take(&mut bytes, wire_type)?;
        // Fields come in the order of their numbers: the next is the same or close behind.
        let is_next = fields.get(latest).is_some_and(|one| one.number == number);
        if !is_next {
            match fields.binary_search_by_key(&number, |field| field.number) {
                Ok(place) => {
                    is_sorted &= place >= latest;
                    latest = place;
                }
                Err(_) => continue,
            }
        }
        if let Some(value) = value {
            values.push((latest, value));
        }
    }
    if !is_sorted {
        values.sort_by_key(|(place, _)| *place);
    }
    Ok(values)
}

/// Takes a value; `None` for one of a type that the contract does not use.
fn take<'a>(bytes: &mut &'a [u8], wire_type: WireType) -> Result<Option<Raw<'a>>, WriteError> {
    let length = match wire_type {
        WireType::Varint => return Ok(Some(Raw::Number(decode_varint(bytes)?))),
        WireType::LengthDelimited => decode_varint(bytes)? as usize,
        WireType::ThirtyTwoBit => 4,
        WireType::SixtyFourBit => 8,
        WireType::StartGroup | WireType::EndGroup => return Err(WriteError::Malformed),
    };
    let (value, rest) = bytes
        .split_at_checked(length)
        .ok_or(WriteError::Malformed)?;
    *bytes = rest;
    Ok(match wire_type {
        WireType::LengthDelimited => Some(Raw::Bytes(value)),
        WireType::Varint
        | WireType::ThirtyTwoBit
        | WireType::SixtyFourBit
        | WireType::StartGroup
        | WireType::EndGroup => None,
    })
}

impl<'a> Raw<'a> {
    fn number(self) -> Result<u64, WriteError> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(_) => Err(WriteError::Malformed),
        }
    }

    fn bytes(self) -> Result<&'a [u8], WriteError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) => Err(WriteError::Malformed),
        }
    }
}

/// The default of a form.
fn default_of(form: &Form) -> Raw<'static> {
    match form.is_number() {
        true => Raw::Number(0),
        false => Raw::Bytes(&[]),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
