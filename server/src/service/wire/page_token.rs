//! The opaque token of a page: where the next one begins, and for which request.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::refusal::Refusal;
use crate::journal::Position;

/// What a token holds. The request's fingerprint keeps it from being used with another one.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    request: u64,
    position: Position,
}

/// What a page is for: the request without its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) fn of(encoded_request: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        encoded_request.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// As text of hexadecimal digits.
pub(crate) fn write(position: Position, request: Fingerprint) -> String {
    let token = Token {
        request: request.0,
        position,
    };
    let json = serde_json::to_vec(&token).expect("a token is numbers only");
    json.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// From its text; `None` for the first page.
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
    let digits = text.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> = digits
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    serde_json::from_slice(&bytes?).ok()
}
