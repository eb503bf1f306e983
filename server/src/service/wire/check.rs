//! Checks of single values: each function takes a field's path and its value, and returns the server's
//! own type or a refusal that names the field.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use tonic::Request;

use super::refusal::Refusal;
use crate::{
    service::transport::caller,
    supervisor::signal_number,
    task::{Actor, Signal, TaskId},
};

/// Maximum length of a session id, a label's key, a queue, an exclusive key or an actor.
pub(crate) const SHORT_TEXT: usize = 256;
/// Maximum length of a reason.
pub(crate) const REASON: usize = 4 * 1024;
/// Maximum length of a name or a label's value.
pub(crate) const LONG_TEXT: usize = 16 * 1024;
/// Maximum length of a path.
const PATH: usize = 4095;
/// The longest span that protobuf's Duration may have. Longer spans are shortened to it.
const LONGEST_DURATION: Duration = Duration::from_secs(315_576_000_000);
/// Maximum number of labels.
const LABELS: usize = 64;

/// Text of bounded length.
pub(crate) fn text(field: &str, value: String, limit: usize) -> Result<String, Refusal> {
    if value.len() > limit {
        return Err(Refusal::field(
            field,
            format_args!("is longer than {limit} bytes"),
        ));
    }
    Ok(value)
}

/// Text for the operating system.
pub(crate) fn os_text(field: &str, value: String, limit: usize) -> Result<String, Refusal> {
    if value.contains('\0') {
        return Err(Refusal::field(field, "contains a NUL"));
    }
    text(field, value, limit)
}

/// Text of bounded length; `None` if it is empty.
pub(crate) fn optional_text(
    field: &str,
    value: String,
    limit: usize,
) -> Result<Option<String>, Refusal> {
    let value = text(field, value, limit)?;
    Ok((!value.is_empty()).then_some(value))
}

/// The requester's reason; `None` if it is blank.
pub(crate) fn reason(value: String) -> Result<Option<String>, Refusal> {
    note("reason", value, REASON)
}

/// The requester: the name in the request, beside the uid and pid of the connection.
pub(crate) fn actor<T>(
    request: &Request<T>,
    name: impl FnOnce(&T) -> &String,
) -> Result<Actor, Refusal> {
    let name = note("actor", name(request.get_ref()).clone(), SHORT_TEXT)?;
    Ok(Actor {
        name,
        ..caller(request)
    })
}

fn note(field: &str, value: String, limit: usize) -> Result<Option<String>, Refusal> {
    let value = text(field, value, limit)?;
    Ok((!value.trim().is_empty()).then_some(value))
}

/// A duration that is not negative.
pub(crate) fn duration(field: &str, value: prost_types::Duration) -> Result<Duration, Refusal> {
    let nanos = u32::try_from(value.nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000);
    match (u64::try_from(value.seconds), nanos) {
        (Ok(seconds), Some(nanos)) => Ok(Duration::new(seconds, nanos).min(LONGEST_DURATION)),
        (Err(_), _) | (_, None) => Err(Refusal::field(field, "is negative or malformed")),
    }
}

/// A duration that may be absent or zero.
pub(crate) fn optional_duration(
    field: &str,
    value: Option<prost_types::Duration>,
) -> Result<Option<Duration>, Refusal> {
    value.map(|value| duration(field, value)).transpose()
}

/// A duration that may be absent, and must not be zero.
pub(crate) fn timeout(
    field: &str,
    value: Option<prost_types::Duration>,
) -> Result<Option<Duration>, Refusal> {
    match optional_duration(field, value)? {
        Some(Duration::ZERO) => Err(Refusal::field(field, "is zero: it would expire at once")),
        span => Ok(span),
    }
}

pub(crate) fn absolute_path(field: &str, value: String) -> Result<PathBuf, Refusal> {
    let path = PathBuf::from(os_text(field, value, PATH)?);
    match path.is_absolute() {
        true => Ok(path),
        false => Err(Refusal::field(field, "is not an absolute path")),
    }
}

/// An absolute path; `None` if it is empty.
pub(crate) fn optional_path(field: &str, value: String) -> Result<Option<PathBuf>, Refusal> {
    match value.is_empty() {
        true => Ok(None),
        false => absolute_path(field, value).map(Some),
    }
}

/// A signal by name; `None` if it is empty.
pub(crate) fn signal(field: &str, value: &str) -> Result<Option<Signal>, Refusal> {
    if value.is_empty() {
        return Ok(None);
    }
    match signal_number(value) {
        Some(number) => Ok(Some(Signal(number))),
        None => Err(Refusal::field(
            field,
            "is not the name of a signal, such as SIGINT",
        )),
    }
}

pub(crate) fn port(field: &str, value: u32) -> Result<u16, Refusal> {
    u16::try_from(value).map_err(|_| Refusal::field(field, "is not a port: it is above 65535"))
}

/// The id of a task that must be named. A malformed id is treated as unknown.
pub(crate) fn task_id(field: &str, value: &str) -> Result<TaskId, Refusal> {
    if value.is_empty() {
        return Err(Refusal::field(field, "is required"));
    }
    value.parse().map_err(|_| Refusal::task_not_found(value))
}

/// A number that is one of an enum's values.
pub(crate) fn enumerated<E: TryFrom<i32>>(field: &str, value: i32) -> Result<E, Refusal> {
    E::try_from(value).map_err(|_| Refusal::field(field, format_args!("has no value {value}")))
}

pub(crate) fn labels(
    field: &str,
    labels: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Refusal> {
    if labels.len() > LABELS {
        return Err(Refusal::field(
            field,
            format_args!("has more than {LABELS} labels"),
        ));
    }
    for (key, value) in &labels {
        let entry = entry(field, key);
        if key.is_empty() {
            return Err(Refusal::field(entry, "has an empty key"));
        }
        text(&entry, key.clone(), SHORT_TEXT)?;
        text(&entry, value.clone(), LONG_TEXT)?;
    }
    Ok(labels)
}

/// The path of a map's entry, such as `spec.labels["repo"]`.
pub(crate) fn entry(field: &str, key: &str) -> String {
    let shown: String = key.chars().take(64).collect();
    format!("{field}[{shown:?}]")
}
