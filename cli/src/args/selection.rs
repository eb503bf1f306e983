//! Selecting tasks: by id, by session, by labels, by port.

use clap::builder::NonEmptyStringValueParser;
use heeler_client::{Filter, v1::TaskState};

use super::value::key_value::KeyValue;

/// Parses a word that is not empty: an unset variable in a script must select nothing.
pub(crate) fn not_empty() -> NonEmptyStringValueParser {
    NonEmptyStringValueParser::new()
}

/// The longest session that the daemon accepts, in bytes.
const LONGEST_SESSION: usize = 256;

/// Parses the session of a server, which must be one that the daemon accepts with every call.
pub(crate) fn session(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("the session is empty".to_owned()),
        1..=LONGEST_SESSION => Ok(text.to_owned()),
        _ => Err(format!(
            "the session is longer than {LONGEST_SESSION} bytes"
        )),
    }
}

/// The filter of `--session` and `--label` together.
pub(crate) fn filter(session: Option<&str>, labels: &[KeyValue]) -> Filter {
    let filter = session
        .into_iter()
        .fold(Filter::all(), |filter, id| filter.session(id));
    labels.iter().fold(filter, |filter, label| {
        filter.label(&label.key, &label.value)
    })
}

/// The filter of all live tasks. An empty filter would be refused by the calls that stop tasks.
pub(crate) fn live() -> Filter {
    let states = [
        TaskState::Queued,
        TaskState::Starting,
        TaskState::Running,
        TaskState::Stopping,
    ];
    states.into_iter().fold(Filter::all(), Filter::state)
}
