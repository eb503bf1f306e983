//! The details of a refused call: status, reason, metadata and the fields it names.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::StatusExt;

/// A refusal, taken apart.
#[derive(Debug)]
pub struct Refusal {
    pub code: Code,
    /// The reason of `ErrorInfo`.
    pub reason: String,
    pub metadata: HashMap<String, String>,
    /// The fields of `BadRequest`.
    pub fields: Vec<String>,
    pub message: String,
}

impl Refusal {
    /// Takes a status apart, which must carry `ErrorInfo` of this service's domain.
    #[track_caller]
    pub fn of(status: &Status) -> Self {
        let details = status.get_error_details();
        let info = details
            .error_info()
            .unwrap_or_else(|| panic!("no ErrorInfo: {status:?}"));
        assert_eq!(info.domain, "heeler.dev", "{status:?}");
        assert!(!status.message().is_empty(), "no message: {status:?}");
        let violations = details
            .bad_request()
            .map(|bad| bad.field_violations.as_slice());
        Self {
            code: status.code(),
            reason: info.reason.clone(),
            metadata: info.metadata.clone(),
            fields: violations
                .unwrap_or_default()
                .iter()
                .map(|bad| bad.field.clone())
                .collect(),
            message: status.message().to_owned(),
        }
    }

    /// Asserts that a call was refused for this reason.
    #[track_caller]
    pub fn expect<T: std::fmt::Debug>(result: Result<T, Status>, code: Code, reason: &str) -> Self {
        let refusal = Self::of(&result.expect_err("a refusal"));
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (code, reason),
            "{refusal:?}"
        );
        refusal
    }

    /// A value of the metadata, which must be present.
    #[track_caller]
    pub fn value(&self, key: &str) -> &str {
        self.metadata
            .get(key)
            .unwrap_or_else(|| panic!("no {key} in {self:?}"))
    }
}
