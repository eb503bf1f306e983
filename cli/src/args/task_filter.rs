//! `--filter KEY=VALUE` of `ps`, in the manner of docker.

use clap::ValueEnum;
use heeler_client::{Filter, v1::Placement};

use super::{
    value::choices::{AnyKind, State},
    value::key_value::{self, KeyValue},
};

const KEYS: &str = "expected KEY=VALUE with one of the keys session, name, label, state, kind, queue, parent, \
                    dir, stale, placement and port, e.g. state=failed or label=team=red";

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    Session(String),
    Name(String),
    Label(KeyValue),
    State(State),
    Kind(AnyKind),
    Queue(String),
    Parent(String),
    Directory(String),
    Stale(bool),
    Placement(Placed),
    Port(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Placed {
    Foreground,
    Background,
}

pub(crate) fn parse(text: &str) -> Result<Condition, String> {
    let KeyValue { key, value } = key_value::parse(text).map_err(|_| KEYS.to_owned())?;
    if value.is_empty() {
        return Err("the value is empty".to_owned());
    }
    match key.as_str() {
        "session" => Ok(Condition::Session(value)),
        "name" => Ok(Condition::Name(value)),
        "label" => key_value::parse(&value)
            .map(Condition::Label)
            .map_err(|_| "expected label=KEY=VALUE".to_owned()),
        "state" | "status" => choice(&value).map(Condition::State),
        "kind" => choice(&value).map(Condition::Kind),
        "queue" => Ok(Condition::Queue(value)),
        "parent" => Ok(Condition::Parent(value)),
        "dir" | "directory" => Ok(Condition::Directory(value)),
        "stale" => match value.as_str() {
            "true" => Ok(Condition::Stale(true)),
            "false" => Ok(Condition::Stale(false)),
            _ => Err("expected stale=true or stale=false".to_owned()),
        },
        "placement" => choice(&value).map(Condition::Placement),
        "port" => port(&value).map(Condition::Port),
        _ => Err(KEYS.to_owned()),
    }
}

/// Parses the number of a port.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "expected a port from 1 to 65535".to_owned())
}

fn choice<T: ValueEnum>(value: &str) -> Result<T, String> {
    T::from_str(&value.replace('_', "-"), true).map_err(|_| {
        let values = T::value_variants().iter().filter_map(T::to_possible_value);
        let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

impl Condition {
    /// Adds the condition to the filter of a call.
    pub(crate) fn add_to(&self, filter: Filter) -> Filter {
        match self {
            Self::Session(id) => filter.session(id),
            Self::Name(name) => filter.name(name),
            Self::Label(label) => filter.label(&label.key, &label.value),
            Self::State(state) => filter.state((*state).into()),
            Self::Kind(kind) => filter.kind((*kind).into()),
            Self::Queue(name) => filter.queue(name),
            Self::Parent(id) => filter.parent(id),
            Self::Directory(path) => filter.directory(path),
            Self::Stale(stale) => filter.stale(*stale),
            Self::Placement(Placed::Foreground) => filter.placement(Placement::Foreground),
            Self::Placement(Placed::Background) => filter.placement(Placement::Background),
            Self::Port(port) => filter.port(*port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// U3
    #[test]
    fn every_documented_key_is_accepted_and_others_are_named() {
        for text in [
            "session=s",
            "name=dev",
            "label=team=red",
            "state=timed_out",
            "status=RUNNING",
            "kind=agent",
            "queue=q",
            "parent=shell-4k2mzq7xda",
            "dir=/srv",
            "stale=true",
            "placement=foreground",
            "port=3000",
        ] {
            assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
        }
        for text in [
            "",
            "x",
            "x=y",
            "label=team",
            "state=gone",
            "stale=1",
            "session=",
            "port=0",
            "port=65536",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
