//! The evidence for what a storm and its hardships have done to single tasks. The audit takes nothing as
//! explained by a hardship alone: the storm did it to this task, or the task, its command or the server's
//! log says so.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use heeler_proto::v1::{BackgroundTask, SpawnError, outcome};
use nix::errno::Errno;

use super::Ingredient;
use crate::Daemon;

/// The log's line about a shim that the server has ended, because it did not answer.
const ENDED_BY_SERVER: &str = "ending the shim";
/// The message of a start that was interrupted before its shim had begun.
const INTERRUPTED: &str = "the shim exited before it started the leader";

/// The evidence of one storm.
#[derive(Debug)]
pub(super) struct Evidence {
    /// The hardships that the storm has had.
    hardships: BTreeSet<&'static str>,
    /// The tasks whose shim has been killed, by the storm or by a server.
    killed: BTreeSet<String>,
    /// The leaders that ran, by job.
    ran: BTreeMap<String, Vec<i32>>,
    /// The steps that a process of a job could not do, by job.
    failures: BTreeMap<String, Vec<Failure>>,
    log: String,
}

/// A step that a fixture could not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) pid: i32,
    error: String,
}

impl Failure {
    /// The line that the fixture also writes to its stderr.
    pub(super) fn message(&self) -> String {
        format!("heeler-fixture: {}\n", self.error)
    }
}

/// The output that a task says was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    None,
    Bytes(u64),
    /// No hardship of the storm explains it.
    Unexplained,
}

impl Evidence {
    /// Collects it after a storm, from the file to which the fixtures write and from the log.
    pub(super) fn of(
        daemon: &Daemon,
        ran: &str,
        killed: &BTreeSet<String>,
        hardships: &BTreeMap<&'static str, u64>,
    ) -> Self {
        let mut evidence = Self {
            hardships: hardships.keys().copied().collect(),
            killed: killed.clone(),
            ran: BTreeMap::new(),
            failures: BTreeMap::new(),
            log: daemon.log(),
        };
        let ended = evidence.log.lines();
        let ended = ended.filter(|line| line.contains(ENDED_BY_SERVER));
        evidence.killed.extend(ended.filter_map(task_of_line));
        for line in fs::read_to_string(ran).unwrap_or_default().lines() {
            evidence.add_line(line);
        }
        evidence
    }

    /// Adds `NAME PID …` of a leader, or `failed NAME PID ERROR`.
    fn add_line(&mut self, line: &str) {
        let (failed, line) = match line.strip_prefix("failed ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let mut words = line.splitn(3, ' ');
        let name = words.next().unwrap_or_default().to_owned();
        let pid = words.next().and_then(|pid| pid.parse().ok()).unwrap_or(0);
        match failed {
            true => self.failures.entry(name).or_default().push(Failure {
                pid,
                error: words.next().unwrap_or_default().to_owned(),
            }),
            false => self.ran.entry(name).or_default().push(pid),
        }
    }

    /// The lines of the log about a task, for a report.
    pub(super) fn logged(&self, task: &str) -> String {
        let lines = self.log.lines().filter(|line| line.contains(task));
        lines.map(|line| format!("\n    {line}")).collect()
    }

    /// Takes the leaders that ran for a job.
    pub(super) fn take_ran(&mut self, job: &str) -> Vec<i32> {
        self.ran.remove(job).unwrap_or_default()
    }

    /// The leaders that ran for no job that was taken.
    pub(super) fn other_runs(&self) -> impl Iterator<Item = (&String, usize)> {
        self.ran.iter().map(|(name, pids)| (name, pids.len()))
    }

    pub(super) fn failures(&self, job: &str) -> &[Failure] {
        self.failures.get(job).map_or(&[], Vec::as_slice)
    }

    /// True if the storm has prevented the step: by its limit of processes, or by the kill of the shim, which
    /// was the reader of the output.
    pub(super) fn explains_failure(&self, task: &str, failure: &Failure) -> bool {
        let is = |errno: Errno| failure.error.contains(&format!(": {errno}"));
        (is(Errno::EAGAIN) && self.has(Ingredient::ProcessLimit))
            || (is(Errno::EPIPE) && self.is_shim_killed(task))
    }

    /// True if the shim of this task has been killed.
    pub(super) fn is_shim_killed(&self, task: &str) -> bool {
        self.killed.contains(task)
    }

    /// True if the error of a start is one that the storm can cause.
    pub(super) fn explains_failed_start(&self, task: &BackgroundTask) -> bool {
        let outcome = task.outcome.as_ref().and_then(|one| one.result.as_ref());
        let Some(outcome::Result::SpawnError(SpawnError { message, errno, .. })) = outcome else {
            return false;
        };
        let is = |wanted: Errno| *errno == wanted as i32;
        (*errno == 0 && message == INTERRUPTED)
            || (is(Errno::EAGAIN) && self.has(Ingredient::ProcessLimit))
            || (is(Errno::ENOSPC) && self.has(Ingredient::FullDisk))
    }

    /// The output that a task says was not kept.
    pub(super) fn loss(&self, task: &BackgroundTask) -> Loss {
        if task.capture_error.is_empty() {
            return Loss::None;
        }
        let full = format!("{}: ", Errno::ENOSPC.desc());
        let bytes = task.capture_error.strip_prefix(&full);
        let bytes = bytes.and_then(|rest| rest.strip_suffix(" bytes were not kept"));
        match bytes.and_then(|bytes| bytes.parse().ok()) {
            Some(bytes) if self.has(Ingredient::FullDisk) => Loss::Bytes(bytes),
            Some(_) | None => Loss::Unexplained,
        }
    }

    /// True if the disk was full at times.
    pub(super) fn had_a_full_disk(&self) -> bool {
        self.has(Ingredient::FullDisk)
    }

    fn has(&self, ingredient: Ingredient) -> bool {
        self.hardships.contains(ingredient.name())
    }
}

/// The task that a line of the log is about.
fn task_of_line(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("task=")?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}
