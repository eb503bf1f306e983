//! One attempt, judged by the kernel: the threads of every process that the trick named, and a number
//! in shared memory that grows while an escapee lives.

use std::{
    fmt, fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use heeler_tests::{
    Api, DEADLINE, Daemon, Fixture, Process, Setting, containment, eventually_some,
    process::{Stat, kill_all},
    request::{cancel, force},
    secs,
    v1::{BackgroundTask, CancelRequest, StopPolicy, cancel_request::How, proof},
    waiting::STEP,
};
use nix::sys::signal::Signal;

use crate::trick::Trick;

/// The time in which a living escapee adds to its number many times over.
const OBSERVED: Duration = Duration::from_millis(150);
/// Survivors are named after 10 s; a sweep after a killed shim may take as long again.
const ANSWER_WITHIN: Duration = Duration::from_secs(40);

/// The state of the shim when the tree is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shim {
    Alive,
    Killed,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The task has a proof, and no process lives.
    Proven,
    /// The task names the processes that live.
    Named,
    /// A process lives, and the task claims nothing.
    Unknown,
    /// No process lives, and the task claims nothing.
    Unclaimed,
    /// The setting or the kernel does not allow the trick.
    Impossible,
    /// A false claim, or none in time.
    Fault(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Proven => "gone, proven",
            Self::Named => "named",
            Self::Unknown => "not known",
            Self::Unclaimed => "gone, not claimed",
            Self::Impossible => "–",
            Self::Fault(_) => "FALSE",
        })
    }
}

/// The daemon on which tricks are tried, and the things outside of it that they use.
pub(crate) struct Ground<'a> {
    daemon: &'a Daemon,
    api: Api,
    setting: Setting,
    /// A PID namespace that no task has made.
    foreign: Foreign,
}

/// The parent of the first process of a PID namespace.
struct Foreign {
    maker: Child,
    init: Process,
}

impl<'a> Ground<'a> {
    pub(crate) async fn new(daemon: &'a Daemon, setting: Setting) -> Self {
        Self {
            daemon,
            api: daemon.api().await,
            setting,
            foreign: Foreign::new(daemon).await,
        }
    }

    /// Runs the trick, cancels its task by force, and judges.
    pub(crate) async fn attempt(&self, trick: &Trick, shim: Shim) -> Verdict {
        if !trick.can_be_tried(self.setting) {
            return Verdict::Impossible;
        }
        let counter = self.counter(&format!("{}-{shim:?}", trick.name));
        let outside = containment::own_cgroup().unwrap_or_default();
        let script = trick
            .script
            .replace("COUNTER", &counter)
            .replace("FOREIGN", &self.foreign.init.pid.to_string())
            .replace("OUTSIDE", outside.to_str().unwrap());
        // A shim that is held before it has told of the start would be another case.
        let go = format!("{counter}-go");
        let script = format!("await {go} {script}");
        let fixture = self.daemon.run(&self.api, &script).await;
        fs::write(go, "").unwrap();
        let escapee = match self.escapee(&fixture).await {
            Ok(escapee) => escapee,
            Err(verdict) => {
                self.api.kill(&fixture.id).await;
                return verdict;
            }
        };
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.kill(&fixture, shim)).await;
        let alive = alive(&fixture, &counter).await;
        let verdict = match answer {
            Ok(task) => judge(&task, &alive),
            Err(_) => Verdict::Fault(format!("no answer in {ANSWER_WITHIN:?}; alive: {alive:?}")),
        };
        // The leash ends lineages, whose processes have no pid for long.
        drop(fixture);
        kill_all(&alive).await;
        kill_all(&[escapee]).await;
        verdict
    }

    /// The process that escapes, or the reason why there is none: the kernel may refuse a step.
    async fn escapee(&self, fixture: &Fixture) -> Result<Process, Verdict> {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(escapee) = fixture.find("escapee") {
                return Ok(escapee);
            }
            let output = self.api.output(&fixture.id).await;
            let output = String::from_utf8_lossy(&output);
            if output.contains("heeler-fixture:") {
                let refused = [
                    "EPERM",
                    "EACCES",
                    "EINVAL",
                    "Permission denied",
                    "not permitted",
                ];
                return Err(match refused.iter().any(|error| output.contains(error)) {
                    true => Verdict::Impossible,
                    false => Verdict::Fault(format!("the trick failed: {output}")),
                });
            }
            if Instant::now() > end {
                return Err(Verdict::Fault(format!("no escapee: {output}")));
            }
            tokio::time::sleep(STEP).await;
        }
    }

    /// Cancels by force. A shim that is to be killed dies while the stop is recorded and nothing is killed
    /// yet: the rest is the server's.
    async fn kill(&self, fixture: &Fixture, shim: Shim) -> BackgroundTask {
        match shim {
            Shim::Alive => {}
            Shim::Killed => {
                let process = self.shim_of(fixture).await;
                // A signal that has no effect, and a grace that does not end.
                let harmless = StopPolicy {
                    grace: Some(secs(3600)),
                    signal: "SIGURG".to_owned(),
                    ..StopPolicy::default()
                };
                let request = CancelRequest {
                    how: Some(How::Graceful(harmless)),
                    ..cancel(&fixture.id)
                };
                self.api.cancel_one(request).await;
                process.signal(Signal::SIGKILL);
            }
        }
        let request = CancelRequest {
            how: force(),
            wait: true,
            ..cancel(&fixture.id)
        };
        self.api.cancel_one(request).await.task.unwrap()
    }

    async fn shim_of(&self, fixture: &Fixture) -> Process {
        let task = &fixture.id;
        let of_task = |process: &Process| {
            let command = process.command();
            command.starts_with("heeler-shim") && command.contains(task.as_str())
        };
        let find = || self.daemon.processes().into_iter().find(of_task);
        eventually_some("the task's shim", find).await
    }

    fn counter(&self, name: &str) -> String {
        let file = self.daemon.file(&name.replace([' ', ',', '\''], "-"));
        fs::write(&file, [0; 8]).unwrap();
        file
    }
}

impl Foreign {
    async fn new(daemon: &Daemon) -> Self {
        let pids = daemon.path("foreign");
        let maker = Command::new(daemon.fixture_program())
            .arg("pids")
            .arg(&pids)
            .args("pid-namespace [ pid init forever ]".split(' '))
            .env_clear()
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let find = || {
            let text = fs::read_to_string(&pids).ok()?;
            let pid = text.split(' ').nth(1)?.parse().ok()?;
            text.ends_with('\n').then(|| Process::now(pid))?
        };
        let init = eventually_some("a process in another PID namespace", find).await;
        Self { maker, init }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.init.signal(Signal::SIGKILL);
        let _ = self.maker.kill();
        let _ = self.maker.wait();
    }
}

/// Every named process with a live thread; the first named one if the number still grows.
async fn alive(fixture: &Fixture, counter: &str) -> Vec<Process> {
    let number = || fs::read(counter).unwrap();
    let mut alive = fixture.named();
    alive.retain(has_live_thread);
    if alive.is_empty() {
        let before = number();
        tokio::time::sleep(OBSERVED).await;
        if number() != before {
            alive.extend(fixture.named().first().cloned());
        }
    }
    alive
}

fn has_live_thread(process: &Process) -> bool {
    if process.is_gone() {
        return false;
    }
    let threads = fs::read_dir(
        Path::new("/proc")
            .join(process.pid.to_string())
            .join("task"),
    );
    let state = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("stat")).ok()?;
        Stat::parse(&text).map(|stat| stat.state)
    };
    let mut states = threads.into_iter().flatten().flatten().filter_map(state);
    states.any(|state| !matches!(state, 'Z' | 'X'))
}

fn judge(task: &BackgroundTask, alive: &[Process]) -> Verdict {
    let proof = task.stop.as_ref().and_then(|stop| stop.proof.as_ref());
    let pids: Vec<i32> = alive.iter().map(|process| process.pid).collect();
    match proof.and_then(|proof| proof.result.as_ref()) {
        Some(proof::Result::Proven(_)) if alive.is_empty() => Verdict::Proven,
        Some(proof::Result::Proven(method)) => {
            Verdict::Fault(format!("proven by {method}, and {pids:?} live"))
        }
        Some(proof::Result::Survivors(named)) => {
            let named: Vec<i32> = named.processes.iter().map(|one| one.pid).collect();
            match !named.is_empty() && pids.iter().all(|pid| named.contains(pid)) {
                true => Verdict::Named,
                false => Verdict::Fault(format!("{named:?} named, and {pids:?} live")),
            }
        }
        Some(proof::Result::Unproven(_)) | None if alive.is_empty() => Verdict::Unclaimed,
        Some(proof::Result::Unproven(_)) | None => Verdict::Unknown,
    }
}
