//! One daemon in a directory of its own, with its own address, state and home.
//!
//! When it is dropped, what is left of its tasks is stopped, it is asked to end, and the test fails
//! if anything of it is still there (see [`crate::cleanup`]).

pub mod binary;
mod boot;
mod builder;
mod cleanup;
pub mod containment;
pub mod crash;
pub mod tcp;

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{OnceLock, atomic::AtomicU32},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

pub use builder::Builder;
use builder::Program;

use crate::{Api, DEADLINE, eventually_some, waiting::eventually_blocking};

/// The service that health is asked for.
pub const SERVICE: &str = "heeler.v1.BackgroundTasks";

/// A daemon, running or not.
#[derive(Debug)]
pub struct Daemon {
    pub(crate) dir: TempDir,
    /// Where foreground tasks begin their output; removed with it.
    pub(crate) memory: TempDir,
    pub(crate) child: Option<Child>,
    pub(crate) fixtures: AtomicU32,
    pub(crate) epoch: Option<String>,
    pub(crate) builder: Builder,
    pub(crate) fixture: OnceLock<PathBuf>,
}

impl Daemon {
    /// A daemon with the defaults.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// A daemon to be described.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// One more argument of `serve`, from the next start on.
    pub fn add_arg(&mut self, arg: &str) {
        self.builder.args.push(arg.to_owned());
    }

    /// Starts it on the same state, and waits until it serves.
    pub async fn restart(&mut self) {
        self.launch();
        self.serving().await;
        self.meet().await;
    }

    /// Starts it on the same state, and waits for nothing.
    pub fn launch(&mut self) {
        assert!(self.child.is_none(), "it runs already");
        let mut command = self.command();
        command
            .arg("serve")
            .arg("--state-dir")
            .arg(self.state_dir())
            .arg("--memory-dir")
            .arg(self.memory.path());
        let dir = self.dir.path().to_str().expect("UTF-8");
        command.args(
            self.builder
                .args
                .iter()
                .map(|arg| arg.replace("{dir}", dir)),
        );
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path())
            .unwrap();
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        self.child = Some(command.spawn().expect("the daemon can be started"));
    }

    /// Asks whoever serves here which state it has, so that what it leaves can be told.
    pub async fn meet(&mut self) {
        let epoch = self.api().await.server().await.epoch;
        // The first names what it leaves, also when revisions begin to mean something else.
        self.epoch.get_or_insert(epoch);
    }

    /// The `heeler` program as this daemon's user in this daemon's surroundings.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.binary());
        command.current_dir(self.home()).env_clear();
        command.env(
            "PATH",
            std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()),
        );
        command
            .env("HOME", self.home())
            .env("XDG_RUNTIME_DIR", self.path("run"));
        command
            .env("XDG_STATE_HOME", self.path("xdg-state"))
            .env("RUST_BACKTRACE", "1");
        command.envs(self.builder.env.iter().cloned());
        command
    }

    async fn serving(&mut self) {
        let end = tokio::time::Instant::now() + DEADLINE;
        while !self.is_serving().await {
            let exited = self
                .child
                .as_mut()
                .expect("just started")
                .try_wait()
                .unwrap();
            if let Some(status) = exited {
                self.child = None;
                panic!("the daemon ended at once, {status}:\n{}", self.log());
            }
            assert!(
                tokio::time::Instant::now() < end,
                "not serving:\n{}",
                self.log()
            );
            tokio::time::sleep(crate::waiting::STEP).await;
        }
    }

    async fn is_serving(&self) -> bool {
        let Ok(api) = Api::connect(&self.address()).await else {
            return false;
        };
        let request = HealthCheckRequest {
            service: SERVICE.to_owned(),
        };
        let answer = HealthClient::new(api.channel()).check(request).await;
        answer.is_ok_and(|answer| answer.get_ref().status() == ServingStatus::Serving)
    }

    /// A new connection.
    pub async fn api(&self) -> Api {
        Api::connect(&self.address())
            .await
            .expect("a daemon that takes connections")
    }

    /// Ends it as a crash would; how it ended, which may have been by itself before.
    pub fn kill9(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it can be killed");
        child.wait().expect("it can be reaped")
    }

    /// Asks it to end, and expects exit code 0 in time.
    pub fn terminate(&mut self) {
        kill(Pid::from_raw(self.pid()), Signal::SIGTERM).unwrap();
        self.ended();
    }

    /// Its exit status, if it ends in time.
    pub fn exited(&mut self, limit: Duration) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        let mut status = None;
        eventually_blocking(limit, || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        if status.is_some() {
            self.child = None;
        }
        status
    }

    /// That it has ended, or is about to, with exit code 0.
    pub fn ended(&mut self) {
        let status = self.exited(DEADLINE);
        let status = status.unwrap_or_else(|| panic!("still there:\n{}", self.log()));
        assert_eq!(status.code(), Some(0), "{status}:\n{}", self.log());
    }

    /// From its next start on it is another file of the program, as after an upgrade.
    pub fn replace_program(&mut self) {
        self.builder.program = Program::Copied;
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.child.as_ref().expect("it runs").id() as i32
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// The socket where it listens.
    pub fn socket(&self) -> PathBuf {
        self.path("run/heeler/heeler.sock")
    }

    /// What it keeps.
    pub fn state_dir(&self) -> PathBuf {
        self.path("state")
    }

    /// Where foreground tasks begin their output.
    pub fn memory_dir(&self) -> PathBuf {
        let own = fs::read_dir(self.memory.path()).ok();
        let own = own.and_then(|mut own| own.next()?.ok());
        let id = self.epoch.as_deref().unwrap_or_default();
        let name = format!("heeler-{}", id.replace('-', ""));
        own.map_or_else(|| self.memory.path().join(name), |own| own.path())
    }

    /// A task's output, while it is in memory.
    pub fn memory_file(&self, id: &str) -> PathBuf {
        self.memory_dir().join(id)
    }

    /// Where its tasks start.
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// A path in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A path in its directory, for a script.
    pub fn file(&self, name: &str) -> String {
        self.path(name).to_str().expect("ASCII").to_owned()
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Until it has said this.
    pub async fn logged(&self, text: &str) -> String {
        let find = || {
            self.log()
                .lines()
                .find(|line| line.contains(text))
                .map(str::to_owned)
        };
        eventually_some(text, find).await
    }

    /// This daemon's own copy of the fixture, so that whatever runs it can be told to be its own.
    pub fn fixture_program(&self) -> &Path {
        self.fixture.get_or_init(|| {
            let built = binary::sibling("heeler-fixture");
            binary::copy(&built, &self.path("heeler-fixture"))
        })
    }

    fn binary(&self) -> PathBuf {
        match self.builder.program {
            Program::Built => binary::heeler().to_owned(),
            Program::Copied if self.path("heeler").exists() => self.path("heeler"),
            Program::Copied => binary::copy(binary::heeler(), &self.path("heeler")),
        }
    }

    fn log_path(&self) -> PathBuf {
        self.path("server.log")
    }
}
