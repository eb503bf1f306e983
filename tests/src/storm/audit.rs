//! The audit of a storm: every task exists once, every end is true, every byte is there, every event was
//! delivered once, and nothing is left behind.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
};

use heeler_proto::v1::{BackgroundTask, ListRequest, TaskEvent, TaskEventType, TaskState, outcome};

use super::{
    Aftermath, Done, Ending, Storm, descriptors,
    evidence::{Evidence, Failure, Loss},
    is_lost,
    job::Captured,
    never_ran,
};
use crate::{
    Api, Daemon, TaskSpecExt as _, eventually,
    request::live,
    sessions,
    waiting::{STEP, eventually_or_not},
    watch::types,
};

/// The number of discrepancies that are printed.
const SHOWN: usize = 20;
/// The exit code of a fixture that could not do a step of its script.
const FIXTURE_FAILED: i32 = 98;

/// The result of an audit.
#[derive(Debug)]
pub struct Figures {
    pub storm: Storm,
    counts: Vec<(&'static str, u64)>,
    points: BTreeMap<String, usize>,
    hardships: BTreeMap<&'static str, u64>,
    pub discrepancies: Vec<String>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:", self.storm)?;
        for (what, count) in &self.counts {
            write!(f, " {what} {count},")?;
        }
        write!(f, " discrepancies {}", self.discrepancies.len())?;
        if !self.points.is_empty() {
            write!(f, "\ndeaths at points: {:?}", self.points)?;
        }
        if !self.hardships.is_empty() {
            write!(f, "\nhardships: {:?}", self.hardships)?;
        }
        for discrepancy in self.discrepancies.iter().take(SHOWN) {
            write!(f, "\n- {discrepancy}")?;
        }
        Ok(())
    }
}

/// Waits until no task is live.
pub(super) async fn nothing_lives(api: &Api) {
    let end = tokio::time::Instant::now() + crate::DEADLINE;
    loop {
        let filter = Some(live());
        let request = ListRequest {
            filter,
            ..Default::default()
        };
        let tasks = api.list(request).await.expect("a list").tasks;
        if tasks.is_empty() {
            return;
        }
        assert!(tokio::time::Instant::now() < end, "still live: {tasks:#?}");
        tokio::time::sleep(STEP).await;
    }
}

/// Audits a storm.
pub(super) async fn of(daemon: &Daemon, storm: Storm, aftermath: Aftermath) -> Figures {
    let api = daemon.api().await;
    let mut audit = Audit {
        evidence: Evidence::of(
            daemon,
            &aftermath.ran,
            &aftermath.victims,
            &aftermath.hardships,
        ),
        tasks: everything(&api).await,
        history: api.history().await,
        bytes: 0,
        never_ran: 0,
        lost: 0,
        removed: 0,
        without_output: 0,
        with_failures: 0,
        wrong: aftermath.faults.clone(),
        aftermath,
    };
    let records = std::mem::take(&mut audit.aftermath.records);
    for record in &records {
        audit.wrong.extend(record.faults.iter().cloned());
        for done in &record.done {
            audit.job(&api, done).await;
        }
    }
    let jobs: Vec<&Done> = records.iter().flat_map(|record| &record.done).collect();
    audit.nothing_else(&jobs);
    audit.events(&jobs);
    audit.leftovers(daemon).await;
    let sum = |of: fn(&super::Record) -> u64| records.iter().map(of).sum::<u64>();
    Figures {
        storm,
        counts: vec![
            ("server deaths", audit.aftermath.kills),
            ("shims killed", audit.aftermath.shims_killed),
            ("tasks", jobs.len() as u64),
            ("of them never started", audit.never_ran),
            ("lost", audit.lost),
            ("removed", audit.removed),
            ("without room for output", audit.without_output),
            ("with a step that failed", audit.with_failures),
            ("unanswered calls", sum(|record| record.broken)),
            ("repeated calls", sum(|record| record.replays)),
            ("events", audit.aftermath.seen.events.len() as u64),
            ("idle sessions", sessions::idle(&audit.history).len() as u64),
            (
                "watcher connections",
                audit.aftermath.seen.connections as u64,
            ),
            ("bytes of output", audit.bytes),
            ("descriptors left", descriptors(daemon) as u64),
        ],
        points: audit.aftermath.points,
        hardships: audit.aftermath.hardships,
        discrepancies: audit.wrong,
    }
}

struct Audit {
    aftermath: Aftermath,
    tasks: BTreeMap<String, BackgroundTask>,
    history: Vec<TaskEvent>,
    evidence: Evidence,
    bytes: u64,
    never_ran: u64,
    lost: u64,
    removed: u64,
    /// Tasks whose output could not be written.
    without_output: u64,
    /// Tasks whose command could not do one of its steps.
    with_failures: u64,
    wrong: Vec<String>,
}

/// A task that ran, and the evidence about it.
struct Ran<'a> {
    task: &'a BackgroundTask,
    leader: Option<i32>,
    /// Its output, without the messages of steps that failed.
    output: &'a [u8],
    failures: &'a [Failure],
}

impl Audit {
    /// Checks that a job is one task that ran once, with the expected end and output.
    async fn job(&mut self, api: &Api, done: &Done) {
        let known = self.tasks.get(&done.task_id).cloned();
        let (task, output) = match (&done.removed, known) {
            (Some(removed), None) => {
                self.removed += 1;
                (removed.task.clone(), removed.output.clone())
            }
            (None, Some(task)) => (task, api.output(&done.task_id).await),
            (Some(_), Some(task)) => return self.wrong(done, format!("not removed: {task:?}")),
            (None, None) => return self.wrong(done, "no such task".to_owned()),
        };
        self.bytes += output.len() as u64;
        let lost = match self.evidence.loss(&task) {
            Loss::Bytes(bytes) => bytes,
            Loss::None | Loss::Unexplained => 0,
        };
        // Lost bytes have a place in the output if something was kept.
        let kept = output.len() as u64;
        if task.name() != done.job.name || !(kept..=kept + lost).contains(&task.output_bytes) {
            self.wrong(done, format!("{} bytes of {task:?}", output.len()));
        }
        let leaders = self.evidence.take_ran(&done.job.name);
        let may_not_run = matches!(done.job.ending, Ending::Cancelled | Ending::TimesOut);
        let runs = match (never_ran(&task), is_lost(&task) || may_not_run) {
            (true, _) => 0..=0,
            (false, true) => 0..=1,
            (false, false) => 1..=1,
        };
        if !runs.contains(&leaders.len()) {
            self.wrong(done, format!("ran {} times: {task:?}", leaders.len()));
        }
        if never_ran(&task) {
            return self.undone(done, &task, &output);
        }
        let failures = self.evidence.failures(&done.job.name).to_vec();
        self.failures(done, &failures);
        let ran = Ran {
            task: &task,
            leader: leaders.first().copied(),
            output: &without(&output, &failures),
            failures: &failures,
        };
        match is_lost(&task) {
            true => self.lost(done, &ran),
            false => {
                self.end(done, &ran);
                self.output(done, &ran);
            }
        }
    }

    /// Checks a task that says that its leader never ran.
    fn undone(&mut self, done: &Done, task: &BackgroundTask, output: &[u8]) {
        self.never_ran += 1;
        if !output.is_empty() {
            self.wrong(done, format!("has output: {task:?}"));
        }
        if !self.evidence.explains_failed_start(task) {
            self.wrong(done, format!("no reason not to start: {task:?}"));
        }
    }

    /// Checks that the steps that a job could not do are ones that the storm has prevented.
    fn failures(&mut self, done: &Done, failures: &[Failure]) {
        self.with_failures += u64::from(!failures.is_empty());
        for failure in failures {
            if !self.evidence.explains_failure(&done.task_id, failure) {
                self.wrong(done, format!("{failure:?}"));
            }
        }
    }

    /// Checks a task that says that its end is not known.
    fn lost(&mut self, done: &Done, ran: &Ran<'_>) {
        let task = ran.task;
        self.lost += 1;
        if !self.evidence.is_shim_killed(&task.id) {
            self.wrong(done, format!("lost, and its shim was not killed: {task:?}"));
        }
        let stopped = matches!(task.state(), TaskState::Cancelled | TaskState::TimedOut);
        if task.state() != TaskState::Lost && !stopped {
            self.wrong(done, format!("lost, but in another state: {task:?}"));
        }
        // Its shim alone knew how much output a full disk had refused.
        let wrong = match self.evidence.had_a_full_disk() {
            true => done.job.check_order(ran.output),
            false => done.job.check_part(ran.output),
        };
        self.wrong.extend(wrong);
    }

    /// Checks the end of a task. A leader that could not do a step has another end.
    fn end(&mut self, done: &Done, ran: &Ran<'_>) {
        let is_leader = |failure: &Failure| Some(failure.pid) == ran.leader;
        if !ran.failures.iter().any(is_leader) {
            self.wrong.extend(done.job.check_end(ran.task));
        } else if !exited_with(ran.task, FIXTURE_FAILED) {
            self.wrong(done, format!("its leader failed: {:?}", ran.task));
        }
    }

    /// Checks the output of a task whose end is known: it is whole, or the task says how much is missing,
    /// or its last writers were left without a shim or could not be started.
    fn output(&mut self, done: &Done, ran: &Ran<'_>) {
        let (job, task) = (&done.job, ran.task);
        let is_cut = !ran.failures.is_empty();
        let is_killed = self.evidence.is_shim_killed(&task.id);
        let wrong = match self.evidence.loss(task) {
            Loss::Unexplained => Some(format!("{}: output was lost: {task:?}", job.name)),
            Loss::Bytes(lost) => {
                self.without_output += 1;
                let messages = ran.failures.iter().map(|failure| failure.message().len());
                let besides = messages.sum::<usize>() as u64;
                let captured = match is_cut || is_killed {
                    true => Captured::Part,
                    false => Captured::Whole,
                };
                job.check_gaps(ran.output, lost, besides, captured)
            }
            Loss::None if is_killed && self.evidence.had_a_full_disk() => {
                job.check_order(ran.output)
            }
            Loss::None if is_killed => job.check_orphaned(ran.output),
            Loss::None if is_cut => job.check_part(ran.output),
            Loss::None => job.check_output(ran.output),
        };
        self.wrong.extend(wrong);
    }

    fn wrong(&mut self, done: &Done, what: String) {
        let logged = self.evidence.logged(&done.task_id);
        self.wrong.push(format!(
            "{} ({}): {what}{logged}",
            done.job.name, done.task_id
        ));
    }

    /// Checks that there is no task and was no start beyond the jobs.
    fn nothing_else(&mut self, jobs: &[&Done]) {
        let asked: BTreeSet<&str> = jobs.iter().map(|done| &*done.task_id).collect();
        if asked.len() < jobs.len() {
            self.wrong.push("two jobs have one task".to_owned());
        }
        for id in self.tasks.keys().filter(|id| !asked.contains(&***id)) {
            self.wrong.push(format!("{id} belongs to no job"));
        }
        let other = self.evidence.other_runs();
        let other = other.map(|(name, ran)| format!("{name} ran {ran} times without a job"));
        self.wrong.extend(other);
    }

    /// Checks that the watcher received every event, that every task has one start and one end, and
    /// that the session activity matches.
    fn events(&mut self, jobs: &[&Done]) {
        let seen = &self.aftermath.seen;
        self.wrong.extend(seen.faults.iter().cloned());
        if seen.events_now() != self.history {
            let (seen, kept) = (seen.events.len(), self.history.len());
            self.wrong.push(format!(
                "the {seen} events of the watcher differ from the {kept} of the journal"
            ));
        }
        self.wrong.extend(sessions::faults(&self.history));
        let mut of: BTreeMap<&str, Vec<TaskEvent>> = BTreeMap::new();
        for event in &self.history {
            let task = event.task.as_ref();
            of.entry(task.map_or("", |task| &task.id))
                .or_default()
                .push(event.clone());
        }
        for done in jobs {
            let kinds = types(&of.remove(&*done.task_id).unwrap_or_default());
            if !is_one_run(&kinds, done.removed.is_some()) {
                self.wrong.push(format!("{}: {kinds:?}", done.job.name));
            }
        }
    }

    /// Checks that every process, file and cgroup belongs to a task.
    async fn leftovers(&mut self, daemon: &Daemon) {
        eventually_or_not(|| daemon.processes().is_empty()).await;
        for process in daemon.processes() {
            let (command, stat) = (process.command(), process.stat());
            let events = self.history.iter().filter(|event| {
                let name = event.task.as_ref().map(BackgroundTask::name);
                name.is_some_and(|name| command.contains(&format!(" {name} ")))
            });
            let events: Vec<String> = events.map(|event| format!("\n    {event:?}")).collect();
            self.wrong.push(format!(
                "left behind: {} {command} {stat:?}{}",
                process.pid,
                events.concat()
            ));
        }
        let files = || files(daemon);
        let known = |id: &String| self.tasks.contains_key(id);
        eventually("no file without a task", || files().iter().all(known)).await;
        let ours = [
            "lock",
            "journal.db",
            "journal.db-wal",
            "journal.db-shm",
            "tasks",
            "waiting",
        ];
        for name in names(&daemon.state_dir()) {
            if !ours.contains(&&*name) {
                self.wrong.push(format!("{name} in the state directory"));
            }
        }
        if let Some(root) = daemon.cgroup_root() {
            let leaves = || {
                names(&root)
                    .into_iter()
                    .filter(|leaf| root.join(leaf).is_dir())
            };
            eventually("no cgroup of a task", || leaves().next().is_none()).await;
        }
    }
}

/// The output without the messages of steps that failed.
fn without(output: &[u8], failures: &[Failure]) -> Vec<u8> {
    let mut rest = output.to_vec();
    for message in failures.iter().map(Failure::message) {
        let message = message.as_bytes();
        let parts = &mut rest.windows(message.len());
        if let Some(at) = parts.position(|part| part == message) {
            rest.drain(at..at + message.len());
        }
    }
    rest
}

fn exited_with(task: &BackgroundTask, code: i32) -> bool {
    let outcome = task.outcome.as_ref().and_then(|one| one.result.as_ref());
    outcome == Some(&outcome::Result::ExitCode(code))
}

fn is_one_run(kinds: &[TaskEventType], removed: bool) -> bool {
    use TaskEventType::{Created, Ended, Removed, Started};
    let count = |wanted| kinds.iter().filter(|kind| **kind == wanted).count();
    let end: &[TaskEventType] = match removed {
        true => &[Ended, Removed],
        false => &[Ended],
    };
    kinds.first() == Some(&Created)
        && kinds.ends_with(end)
        && (count(Created), count(Ended)) == (1, 1)
        && count(Started) <= 1
        && count(Removed) == usize::from(removed)
}

/// Every task, page by page.
async fn everything(api: &Api) -> BTreeMap<String, BackgroundTask> {
    let mut all = BTreeMap::new();
    let mut page_token = String::new();
    loop {
        let request = ListRequest {
            include_finished: true,
            include_finished_foreground: true,
            page_size: 500,
            page_token,
            ..Default::default()
        };
        let page = api.list(request).await.expect("a list");
        all.extend(page.tasks.into_iter().map(|task| (task.id.clone(), task)));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return all;
        }
    }
}

fn files(daemon: &Daemon) -> Vec<String> {
    let tasks = daemon.path("state/tasks");
    let parts = names(&tasks).into_iter();
    let on_disk = parts.flat_map(|part| names(&tasks.join(part)));
    let in_memory = names(&daemon.memory_dir()).into_iter();
    // The link to the state directory is not a task's.
    let in_memory = in_memory.filter(|name| name != "state-dir");
    on_disk.chain(in_memory).collect()
}

fn names(dir: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(name).collect()
}
