//! What a refused call says: its status, its reason and the field that it names.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::StatusExt;

/// The parts of a refusal.
#[derive(Debug)]
pub struct Refusal {
    /// The status.
    pub code: Code,
    /// The reason, without a prefix.
    pub reason: String,
    /// The values.
    pub metadata: HashMap<String, String>,
    /// The fields that `BadRequest` names.
    pub fields: Vec<String>,
    /// For people.
    pub message: String,
}

impl Refusal {
    /// What the status carries; it must be of this domain.
    #[track_caller]
    pub fn of(status: &Status) -> Self {
        let details = status.get_error_details();
        let info = details
            .error_info()
            .unwrap_or_else(|| panic!("no ErrorInfo: {status:?}"));
        assert_eq!(info.domain, "heeler.dev", "{status:?}");
        assert!(
            !status.message().is_empty(),
            "nothing for people: {status:?}"
        );
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

    /// That the call was refused for this reason.
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

    /// A value of its metadata, which must be there.
    #[track_caller]
    pub fn value(&self, key: &str) -> &str {
        self.metadata
            .get(key)
            .unwrap_or_else(|| panic!("no {key} in {self:?}"))
    }
}
