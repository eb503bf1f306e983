//! The result of a worker.

use serde::{Deserialize, Serialize};

use crate::task::Moment;

/// The result of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerResult {
    pub status: WorkerStatus,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Never interpreted.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "hex")]
    pub data: Vec<u8>,
    /// The time at which it was delivered.
    pub at: Moment,
}

/// The status of a worker's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerStatus {
    /// The work is done.
    Ok,
    Failed,
    /// The work was stopped before it was done.
    Cancelled,
}

impl WorkerResult {
    /// Reports whether another delivery is the same result, as after a reconnect.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self {
            status, text, data, ..
        } = self;
        (status, text, data) == (&other.status, &other.text, &other.data)
    }
}

/// Bytes as text in a record.
mod hex {
    use std::fmt::Write as _;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        to.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        let whole = bytes.filter(|_| rest.is_empty());
        whole.ok_or_else(|| D::Error::custom("not a text of hexadecimal bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P7
    #[test]
    fn every_byte_of_a_result_is_read_back_from_its_record() {
        let result = WorkerResult {
            status: WorkerStatus::Ok,
            text: "done".to_owned(),
            data: (0..=255).collect(),
            at: Moment::default(),
        };
        let record = serde_json::to_string(&result).expect("it is encoded");
        let read: WorkerResult = serde_json::from_str(&record).expect("it is decoded");
        assert_eq!(read, result);
        let damaged = record.replace("00010203", "0001020g");
        assert!(serde_json::from_str::<WorkerResult>(&damaged).is_err());
    }
}
