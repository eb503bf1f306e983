//! What flags may say, beyond numbers and durations.

use clap::ValueEnum;
use heeler_client::{
    Filter,
    v1::{TaskEventType, TaskKind},
};
use nix::sys::signal::Signal;

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

/// The events that can be named.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum EventType {
    /// The intent is durable.
    Created,
    /// The leader runs.
    Started,
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
            EventType::Started => Self::Started,
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
    fn ids_are_taken_once_in_their_order() {
        let ids = ["b", "a", "b"].map(str::to_owned);
        assert_eq!(distinct(&ids), ["b", "a"]);
    }
}
