//! The readiness of a task: the rule, and the state that is read off a task's facts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::task::Task;

/// The time between two looks, unless the request sets one.
pub(crate) const DEFAULT_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The rule by which a task is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    pub probe: Probe,
    /// The longest time between two looks; the first ones follow faster. A pattern needs no looks.
    pub interval: Duration,
    /// Maximum time from the start; `None` sets no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    pub on_timeout: OnReadyTimeout,
}

/// The condition that makes a task ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// A process of the tree listens on this TCP port, or on any.
    Port(Option<u16>),
    /// A GET of this URL is answered with success or a redirect.
    HttpUrl(String),
    /// This program, with its arguments, exits with 0.
    Command(Vec<String>),
    /// A line of the output matches this regular expression.
    Pattern(String),
}

/// Action when a task is not ready in time, besides the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnReadyTimeout {
    Notify,
    Cancel,
}

/// The readiness of a task that has a rule for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Pending,
    Ready,
    /// Not in time, or stopped or ended before.
    NotReady,
}

impl Ready {
    /// The regular expression for a line, where one decides.
    pub(crate) fn pattern(&self) -> Option<&str> {
        match &self.probe {
            Probe::Pattern(pattern) => Some(pattern),
            Probe::Port(_) | Probe::HttpUrl(_) | Probe::Command(_) => None,
        }
    }
}

impl Task {
    /// The readiness; `None` without a rule.
    pub fn readiness(&self) -> Option<Readiness> {
        self.spec.ready.as_ref()?;
        let is_over = self.not_ready.is_some() || self.stop.is_some() || !self.is_live();
        Some(match self.ready {
            Some(_) => Readiness::Ready,
            None if is_over => Readiness::NotReady,
            None => Readiness::Pending,
        })
    }

    /// True once it is known whether the task is ready; without a rule, once its leader runs.
    pub fn is_readiness_decided(&self) -> bool {
        match self.readiness() {
            Some(Readiness::Ready | Readiness::NotReady) => true,
            Some(Readiness::Pending) => false,
            None => self.started.is_some() || !self.is_live(),
        }
    }
}
