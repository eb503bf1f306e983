//! The opaque token of a page: the position of the next page, and the request it belongs to.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::refusal::Refusal;
use crate::journal::Position;

/// The content of a token. The fingerprint ties it to its request.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    request: u64,
    position: Position,
}

/// A hash of the request without its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) fn of(encoded_request: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        encoded_request.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Encodes a token as hexadecimal digits.
pub(crate) fn write(position: Position, request: Fingerprint) -> String {
    let token = Token {
        request: request.0,
        position,
    };
    let json = serde_json::to_vec(&token).expect("a token consists of numbers");
    json.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Encodes the text after which the next page begins.
pub(crate) fn write_text(last: &str) -> String {
    last.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes the text after which a page begins; empty for the first page.
pub(crate) fn read_text(token: &str) -> Result<String, Refusal> {
    let text = bytes(token).and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(Refusal::page_token)
}

/// Decodes a token; `None` for the first page.
pub(crate) fn read(text: &str, request: Fingerprint) -> Result<Option<Position>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    let token = decode(text).ok_or_else(Refusal::page_token)?;
    match token.request == request.0 {
        true => Ok(Some(token.position)),
        false => Err(Refusal::page_token()),
    }
}

fn decode(text: &str) -> Option<Token> {
    serde_json::from_slice(&bytes(text)?).ok()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
