//! What flags may say, beyond numbers and durations.

use clap::{ValueEnum, builder::NonEmptyStringValueParser};
use heeler_client::{
    Filter,
    v1::{DisconnectAction, ForegroundTimeoutAction, OrphanPolicy, TaskEventType, TaskKind},
};
use nix::sys::signal::Signal;

/// A name that must be one: an unset variable in a script must not mean "all".
pub(crate) fn not_empty() -> NonEmptyStringValueParser {
    NonEmptyStringValueParser::new()
}

/// A `K=V` argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// Reads `K=V`; the value may be empty and may hold more `=`.
pub(crate) fn pair(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok(Pair {
            key: key.to_owned(),
            value: value.to_owned(),
        }),
        Some(_) | None => Err("write KEY=VALUE".to_owned()),
    }
}

/// Reads `K=V`, or `K` for the value that the caller's environment has.
pub(crate) fn env_pair(text: &str) -> Result<Pair, String> {
    if text.contains('=') {
        return pair(text);
    }
    match std::env::var(text) {
        Ok(value) => Ok(Pair {
            key: text.to_owned(),
            value,
        }),
        Err(std::env::VarError::NotPresent) => {
            Err("it is not set here: write KEY=VALUE".to_owned())
        }
        Err(std::env::VarError::NotUnicode(_)) => Err("its value is not valid UTF-8".to_owned()),
    }
}

/// Reads a signal by name, with or without `SIG`, or by number; gives its full name.
pub(crate) fn signal(text: &str) -> Result<String, String> {
    let unknown = || format!("`{text}` is no signal: write a name such as SIGINT, or a number");
    if let Ok(number) = text.parse::<i32>() {
        return Signal::try_from(number)
            .map(|it| it.as_str().to_owned())
            .map_err(|_| unknown());
    }
    let name = text.to_ascii_uppercase();
    let name = if name.starts_with("SIG") {
        name
    } else {
        format!("SIG{name}")
    };
    name.parse::<Signal>()
        .map(|it| it.as_str().to_owned())
        .map_err(|_| unknown())
}

/// The kinds of tasks that can be named.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    /// A process tree.
    Shell,
    /// A process tree that is a subagent.
    Agent,
}

impl From<Kind> for TaskKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Shell => Self::Shell,
            Kind::Agent => Self::Agent,
        }
    }
}

/// What may become of processes that outlive the leader.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Orphans {
    /// The task goes on until they are gone.
    Track,
    /// They are killed.
    Kill,
    /// They are left to themselves.
    Abandon,
}

impl From<Orphans> for OrphanPolicy {
    fn from(policy: Orphans) -> Self {
        match policy {
            Orphans::Track => Self::Track,
            Orphans::Kill => Self::Kill,
            Orphans::Abandon => Self::Abandon,
        }
    }
}

/// What may happen to a task that has been in the foreground for too long.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnForegroundTimeout {
    /// It goes on in the background.
    Detach,
    /// It is stopped.
    Cancel,
}

impl From<OnForegroundTimeout> for ForegroundTimeoutAction {
    fn from(action: OnForegroundTimeout) -> Self {
        match action {
            OnForegroundTimeout::Detach => Self::Detach,
            OnForegroundTimeout::Cancel => Self::Cancel,
        }
    }
}

/// What may happen to a foreground task that nobody holds.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnDisconnect {
    /// It is stopped.
    Cancel,
    /// It goes on in the background.
    Detach,
    /// Nothing, until somebody attaches to it.
    Keep,
}

impl From<OnDisconnect> for DisconnectAction {
    fn from(action: OnDisconnect) -> Self {
        match action {
            OnDisconnect::Cancel => Self::Cancel,
            OnDisconnect::Detach => Self::Detach,
            OnDisconnect::Keep => Self::Keep,
        }
    }
}

/// The key that puts a task into the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetachKey {
    /// What the terminal sends for it.
    Byte(u8),
    /// There is none: no key is read.
    None,
}

/// Reads `ctrl-b` and the like, or `none`.
pub(crate) fn detach_key(text: &str) -> Result<DetachKey, String> {
    let lower = text.to_ascii_lowercase();
    match lower.strip_prefix("ctrl-").map(str::as_bytes) {
        // These are signals, the end of a line or the terminal's own.
        Some([b'c' | b'z' | b'm' | b'j' | b's' | b'q']) => {
            Err("the terminal keeps this key for itself".to_owned())
        }
        Some([letter @ b'a'..=b'z']) => Ok(DetachKey::Byte(letter & 0x1f)),
        Some(_) => Err("write ctrl- and a letter, or none".to_owned()),
        None if lower == "none" => Ok(DetachKey::None),
        None => Err("write ctrl- and a letter, or none".to_owned()),
    }
}

/// The events that can be named.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum EventType {
    /// The intent is durable.
    Created,
    /// Its turn has come.
    Admitted,
    /// The leader runs.
    Started,
    /// It holds nobody in the foreground any more.
    Detached,
    /// It has been silent for too long.
    Stale,
    /// It was stale, and has written output again.
    Active,
    /// Somebody, or a deadline, has asked it to stop.
    Stopping,
    /// The leader is gone and others of its tree are not.
    LeaderExited,
    /// The tree did not end within the time that a kill may take.
    KillOverdue,
    /// It is over.
    Ended,
    /// It is forgotten.
    Removed,
    /// No task of its session is live any more.
    SessionIdle,
}

impl From<EventType> for TaskEventType {
    fn from(kind: EventType) -> Self {
        match kind {
            EventType::Created => Self::Created,
            EventType::Admitted => Self::Admitted,
            EventType::Started => Self::Started,
            EventType::Detached => Self::Detached,
            EventType::Stale => Self::Stale,
            EventType::Active => Self::Active,
            EventType::Stopping => Self::Stopping,
            EventType::LeaderExited => Self::LeaderExited,
            EventType::KillOverdue => Self::KillOverdue,
            EventType::Ended => Self::Ended,
            EventType::Removed => Self::Removed,
            EventType::SessionIdle => Self::SessionIdle,
        }
    }
}

/// The filter that `--session` and `--label` make together.
pub(crate) fn filter(session: Option<&str>, labels: &[Pair]) -> Filter {
    let filter = session
        .into_iter()
        .fold(Filter::all(), |filter, id| filter.session(id));
    labels.iter().fold(filter, |filter, label| {
        filter.label(&label.key, &label.value)
    })
}

/// Each id once, in the order of their first mention.
pub(crate) fn distinct(ids: &[String]) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    ids.iter()
        .filter(|id| seen.insert(id.as_str()))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_split_at_the_first_equals_sign() {
        let found = pair("a=b=c").unwrap();
        assert_eq!((found.key.as_str(), found.value.as_str()), ("a", "b=c"));
        assert_eq!(pair("a=").unwrap().value, "");
        assert!(pair("a").is_err() && pair("=b").is_err());
    }

    #[test]
    fn a_variable_without_a_value_takes_the_callers() {
        assert_eq!(
            env_pair("PATH").unwrap().value,
            std::env::var("PATH").unwrap()
        );
        assert!(env_pair("HEELER_TEST_NEVER_SET").is_err());
    }

    #[test]
    fn signals_are_read_in_every_common_spelling() {
        for text in ["SIGINT", "INT", "int", "sigint", "2"] {
            assert_eq!(signal(text).unwrap(), "SIGINT", "{text}");
        }
        for text in ["", "SIG", "99", "-2", "NOPE"] {
            assert!(signal(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_detach_key_is_what_the_terminal_sends() {
        assert_eq!(detach_key("ctrl-b"), Ok(DetachKey::Byte(2)));
        assert_eq!(detach_key("Ctrl-P"), Ok(DetachKey::Byte(16)));
        assert_eq!(detach_key("none"), Ok(DetachKey::None));
        for text in ["", "b", "ctrl-", "ctrl-c", "ctrl-bb", "ctrl-1"] {
            assert!(detach_key(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn ids_are_taken_once_in_their_order() {
        let ids = ["b", "a", "b"].map(str::to_owned);
        assert_eq!(distinct(&ids), ["b", "a"]);
    }
}
