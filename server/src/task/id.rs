//! The ids of tasks.
//!
//! A [`TaskId`] is a task's sequence number under a keyed permutation of 50 bits, written as ten
//! characters. The journal never assigns a sequence number twice, so no id is ever reused and no lookup
//! is needed to ensure it. The ids look random, so that a mistyped id does not match another task.

use std::{borrow::Borrow, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Kind;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const DIGITS: usize = 10;
const HALF_BITS: u32 = 25;
const HALF_MASK: u32 = (1 << HALF_BITS) - 1;
const ROUNDS: u32 = 6;

/// A task's number in the order of creation. Never assigned twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// The key of the permutation, one per state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdKey(pub u64);

/// The id of a task for people and programs: `shell-`, `agent-` or `hosted-` and ten characters of base32.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(Box<str>);

/// The beginning of an id, or of its part after the dash. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdPrefix(Box<str>);

/// A globally unique id of a task: a UUIDv7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskUid(pub Uuid);

/// The error of parsing a text that is not a task id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a task id is shell-, agent- or hosted- and ten characters of a-z and 2-7")]
pub struct ParseTaskIdError;

/// The error of parsing a text with which no task id begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not the beginning of a task id: such as shell-4k, or 4k alone")]
pub(crate) struct ParseIdPrefixError;

impl IdKey {
    /// Returns the id of the task with this number.
    pub fn task_id(self, kind: Kind, seq: Seq) -> TaskId {
        let mut bits = self.permute(seq.0 & ((1 << (2 * HALF_BITS)) - 1));
        let mut digits = [0; DIGITS];
        for digit in digits.iter_mut().rev() {
            *digit = ALPHABET[(bits & 31) as usize];
            bits >>= 5;
        }
        let prefix = match kind {
            Kind::Shell => "shell",
            Kind::Agent => "agent",
            Kind::Hosted => "hosted",
        };
        let digits = str::from_utf8(&digits).expect("the alphabet is ASCII");
        TaskId(format!("{prefix}-{digits}").into())
    }

    /// Returns the number of the task that has this id, or would have it.
    pub fn seq(self, id: &TaskId) -> Seq {
        let digits = id.as_str().bytes().rev().take(DIGITS);
        let bits = digits.enumerate().fold(0, |bits, (place, digit)| {
            let value = ALPHABET.iter().position(|known| *known == digit);
            bits | (value.unwrap_or_default() as u64) << (5 * place)
        });
        Seq(self.invert(bits))
    }

    /// A Feistel network, which is a bijection for any round function.
    fn permute(self, value: u64) -> u64 {
        let mut left = (value >> HALF_BITS) as u32;
        let mut right = value as u32 & HALF_MASK;
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.round(round, right));
        }
        u64::from(left) << HALF_BITS | u64::from(right)
    }

    /// The inverse of `permute`.
    fn invert(self, value: u64) -> u64 {
        let mut left = (value >> HALF_BITS) as u32;
        let mut right = value as u32 & HALF_MASK;
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.round(round, left), left);
        }
        u64::from(left) << HALF_BITS | u64::from(right)
    }

    /// SplitMix64's finaliser over key, round and half.
    fn round(self, round: u32, half: u32) -> u32 {
        let mut x =
            self.0 ^ (u64::from(round) << 32 | u64::from(half)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) as u32 & HALF_MASK
    }
}

impl TaskId {
    /// Maximum length.
    pub const LONGEST: usize = "hosted-".len() + DIGITS;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TaskId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl IdPrefix {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn matches(&self, id: &TaskId) -> bool {
        let digits = id.as_str().split_once('-').map(|(_, digits)| digits);
        let begins = |text: &str| text.starts_with(&*self.0);
        begins(id.as_str()) || digits.is_some_and(begins)
    }
}

impl FromStr for IdPrefix {
    type Err = ParseIdPrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_known = |byte: u8| byte == b'-' || ALPHABET.contains(&byte);
        let is_short = (1..=TaskId::LONGEST).contains(&text.len());
        (is_short && text.bytes().all(is_known))
            .then(|| Self(text.into()))
            .ok_or(ParseIdPrefixError)
    }
}

impl FromStr for TaskId {
    type Err = ParseTaskIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (prefix, digits) = text.split_once('-').ok_or(ParseTaskIdError)?;
        let known = matches!(prefix, "shell" | "agent" | "hosted");
        let well_formed = digits.len() == DIGITS && digits.bytes().all(|b| ALPHABET.contains(&b));
        (known && well_formed)
            .then(|| Self(text.into()))
            .ok_or(ParseTaskIdError)
    }
}

impl TryFrom<String> for TaskId {
    type Error = ParseTaskIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0.into()
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TaskUid {
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl Default for TaskUid {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for TaskUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// S12
    #[test]
    fn a_hundred_thousand_ids_are_all_distinct() {
        let key = IdKey(0x5eed);
        let ids: HashSet<TaskId> = (0..100_000)
            .map(|seq| key.task_id(Kind::Shell, Seq(seq)))
            .collect();
        assert_eq!(ids.len(), 100_000);
    }

    #[test]
    fn the_number_of_an_id_is_recovered_with_the_key() {
        for seq in [0, 1, 2, 77, 1 << 20, (1 << 50) - 1] {
            let id = IdKey(0x5eed).task_id(Kind::Agent, Seq(seq));
            assert_eq!(IdKey(0x5eed).seq(&id), Seq(seq));
        }
    }

    /// U1
    #[test]
    fn a_prefix_begins_with_the_kind_or_after_the_dash() {
        let prefix = |text: &str| text.parse::<IdPrefix>();
        let id: TaskId = "shell-4k2mzq7xda".parse().expect("an id");
        let matches = |text: &str| prefix(text).expect("a prefix").matches(&id);
        for text in ["s", "shell", "shell-4k", "4k2m", "shell-4k2mzq7xda", "4"] {
            assert!(matches(text), "{text}");
        }
        for text in ["agent", "k2", "hell-", "shell-4k2mzq7xdaa", "-4k"] {
            assert!(!matches(text), "{text}");
        }
        for text in [
            "",
            "Shell",
            "4k*",
            "[a]",
            "dev server",
            "shell-4k2mzq7xdaaa",
        ] {
            assert!(prefix(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_id_parses_from_its_own_text() {
        let id = IdKey(7).task_id(Kind::Agent, Seq(123));
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        assert_eq!(id.as_str().len(), "agent-".len() + DIGITS);
    }

    #[test]
    fn other_text_does_not_parse_as_an_id() {
        for text in [
            "",
            "shell-",
            "shell-abc",
            "shell-ABCDEFGHIJ",
            "job-aaaaaaaaaa",
            "../shell-aaaaaaaaaa",
        ] {
            assert_eq!(text.parse::<TaskId>(), Err(ParseTaskIdError), "{text:?}");
        }
    }
}
