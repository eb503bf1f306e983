//! The report of `heeler doctor`, as text and as JSON.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use heeler_client::{
    paths,
    v1::{Containment, ServerInfo},
};
use nix::sys::statvfs::statvfs;
use serde_json::{Value, json};

use super::{Found, is_absence};
use crate::{
    daemon::orphans::{Cause, Orphan, Process, is_served},
    failure::Failure,
    render::{text, units},
};

/// With less space left, tasks are about to lose output.
const LEAST_SPACE: u64 = 256 << 20;

#[derive(Debug, Default)]
pub(super) struct Report {
    /// Names and values, in the order of the report.
    facts: Vec<(&'static str, String)>,
    /// The problems of the daemon.
    pub(super) problems: Vec<String>,
    orphans: Vec<(String, Value)>,
}

impl Report {
    pub(super) fn daemon(&mut self, found: &Result<Found, Failure>) {
        self.fact("command", concat!("heeler ", env!("CARGO_PKG_VERSION")));
        match found {
            Ok(found) => self.running(found),
            Err(failure) => self.missing(failure),
        }
    }

    fn running(&mut self, found: &Found) {
        let pid = found.peer.map(|peer| format!(", pid {}", peer.pid));
        self.fact("daemon", &format!("running{}", pid.unwrap_or_default()));
        self.fact("address", &found.address);
        if let Some(server) = &found.server {
            self.server(server);
        }
        match found.peer.and_then(|peer| peer.state_dir()) {
            Some(state) => self.state(&state),
            None if found.peer.is_none() => {
                self.fact("state", "unknown: the daemon is not on this machine");
            }
            None => self.fact(
                "state",
                "unknown: the daemon's journal is not found in /proc",
            ),
        }
        if let Some(peer) = found.peer {
            let log = peer.log().map(|path| path.display().to_string());
            self.fact(
                "log",
                &log.unwrap_or_else(|| "no file: see the daemon's terminal or unit".to_owned()),
            );
        }
    }

    fn missing(&mut self, failure: &Failure) {
        let reason = failure.message().unwrap_or_default();
        match is_absence(failure) {
            true => self.fact("daemon", "not running; the next command starts it"),
            false => {
                self.fact("daemon", "not reachable");
                self.problems.push(reason);
            }
        }
        match paths::default_socket() {
            Ok(path) => self.fact("address", &format!("unix:{}", path.display())),
            Err(error) => self.problems.push(error.to_string()),
        }
        match paths::state_dir() {
            Ok(path) => {
                self.state(&path);
                self.fact("log", &path.join("serve.log").display().to_string());
                if is_served(&path) == Ok(true) {
                    self.problems.push(format!(
                        "a daemon serves {} and does not listen at the usual address: see HEELER_ADDR",
                        path.display()
                    ));
                }
            }
            Err(error) => self.problems.push(error.to_string()),
        }
    }

    fn server(&mut self, server: &ServerInfo) {
        let since = server.start_time.map(units::timestamp).unwrap_or_default();
        self.fact("version", &format!("{}, since {since}", server.version));
        if server.version != env!("CARGO_PKG_VERSION") {
            self.problems.push(format!(
                "the daemon has version {}: `heeler shutdown` and the next command upgrade it",
                server.version
            ));
        }
        let containment = match server.containment() {
            Containment::Cgroup => "cgroup: a cgroup for each task",
            Containment::Subreaper => "subreaper: the shim of each task",
            Containment::Unspecified => "unknown to this version of heeler",
        };
        self.fact("containment", containment);
        match (server.containment(), server.containment_detail.as_str()) {
            (Containment::Subreaper, "") => {
                self.fact("no cgroup", "--containment subreaper was given")
            }
            (_, detail) => self.fact("no cgroup", detail),
        }
        let (live, max) = (server.live_tasks, server.max_live_tasks);
        self.fact(
            "tasks",
            &format!("{live} running, at most {max} (serve --max-tasks)"),
        );
        if live >= max {
            self.problems
                .push(format!("task limit reached: {live} of {max} are running"));
        }
    }

    fn state(&mut self, state: &Path) {
        let Ok(found) = fs::metadata(state) else {
            self.fact("state", &format!("{}, not created yet", state.display()));
            return;
        };
        let free = statvfs(state).map(|disk| disk.blocks_available() * disk.fragment_size());
        let shown = free.map(|free| format!(", {} free", units::size(free)));
        self.fact(
            "state",
            &format!("{}{}", state.display(), shown.unwrap_or_default()),
        );
        if free.is_ok_and(|free| free < LEAST_SPACE) {
            self.problems.push(format!(
                "the disk of {} is almost full: output will be lost",
                state.display()
            ));
        }
        if found.mode() & 0o077 != 0 {
            self.problems.push(format!(
                "other users can enter {}: chmod 700 it",
                state.display()
            ));
        }
    }

    pub(super) fn orphans(&mut self, orphans: &[Orphan]) {
        let described = orphans.iter().map(|one| (problem(one), described(one)));
        self.orphans.extend(described);
    }

    fn fact(&mut self, name: &'static str, value: &str) {
        if !value.is_empty() {
            self.facts.push((name, value.to_owned()));
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let facts = self
            .facts
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let problems = self.all_problems().map(|text| ("PROBLEM", text));
        let none = self.all_problems().next().is_none();
        let none = none.then_some(("problems", "none"));
        let lines = facts.chain(problems).chain(none);
        lines
            .map(|(name, value)| format!("{name:<12} {}", text::visible(value)))
            .collect()
    }

    pub(super) fn json(&self) -> Value {
        let facts = self.facts.iter();
        let facts = facts.map(|(name, value)| (name.replace(' ', "_"), json!(value)));
        let mut report: serde_json::Map<String, Value> = facts.collect();
        let problems: Vec<&str> = self.all_problems().collect();
        let orphans: Vec<&Value> = self.orphans.iter().map(|(_, orphan)| orphan).collect();
        report.insert("problems".to_owned(), json!(problems));
        report.insert("orphans".to_owned(), json!(orphans));
        Value::Object(report)
    }

    fn all_problems(&self) -> impl Iterator<Item = &str> {
        let orphans = self.orphans.iter().map(|(problem, _)| problem);
        self.problems.iter().chain(orphans).map(String::as_str)
    }
}

/// The task of an orphan and its first process.
pub(super) fn name(orphan: &Orphan) -> String {
    let task = orphan.root.task_id().filter(|_| !is_shimless(orphan));
    match task {
        Some(id) => format!("{id} (shim {})", orphan.root.pid),
        None => process(&orphan.root),
    }
}

pub(super) fn process(process: &Process) -> String {
    format!("{} {}", process.pid, process.command())
}

fn is_shimless(orphan: &Orphan) -> bool {
    matches!(orphan.cause, Cause::NoShim(_))
}

fn problem(orphan: &Orphan) -> String {
    let name = name(orphan);
    let others: Vec<String> = orphan.tree.iter().map(process).collect();
    let tree = match others.as_slice() {
        [] => String::new(),
        others => format!(": {}", others.join("; ")),
    };
    match &orphan.cause {
        Cause::Deleted(state) => format!(
            "{name} runs, but its state directory {} is deleted; --end-orphans with the directory ends it{tree}",
            state.display()
        ),
        Cause::NotServed(state) => format!(
            "{name} runs, but no daemon serves {}; `heeler serve --state-dir` takes it over, --end-orphans with the directory ends it{tree}",
            state.display()
        ),
        Cause::NoShim(address) => format!(
            "{name} belongs to a task without a shim, and no daemon answers at {address}; it may have been abandoned on purpose{tree}"
        ),
    }
}

fn described(orphan: &Orphan) -> Value {
    let (cause, place) = match &orphan.cause {
        Cause::Deleted(state) => ("DELETED", state.display().to_string()),
        Cause::NotServed(state) => ("NOT_SERVED", state.display().to_string()),
        Cause::NoShim(address) => ("NO_SHIM", address.clone()),
    };
    let processes = std::iter::once(&orphan.root).chain(&orphan.tree);
    let processes = processes.map(|one| json!({ "pid": one.pid, "command": one.command() }));
    json!({
        "cause": cause,
        "place": place,
        "task": orphan.root.task_id().filter(|_| !is_shimless(orphan)),
        "processes": processes.collect::<Vec<Value>>(),
    })
}
