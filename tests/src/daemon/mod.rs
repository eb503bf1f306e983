//! One daemon in a directory of its own, with its own address, state and home.
//!
//! Dropping it stops its live tasks, ends it, and fails the test if a process or a cgroup of it is
//! left (see `cleanup`).

mod boot;
mod builder;
mod cleanup;
mod clock;
pub mod containment;
pub mod crash;

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

use crate::{Api, DEADLINE, binary, eventually_some, waiting::eventually_blocking};

/// The name of the service, for health checks.
pub const SERVICE: &str = "heeler.v1.BackgroundTasks";

/// A daemon, running or not.
#[derive(Debug)]
pub struct Daemon {
    pub(crate) dir: TempDir,
    /// Holds the memory files of foreground tasks.
    pub(crate) memory: TempDir,
    pub(crate) child: Option<Child>,
    pub(crate) fixtures: AtomicU32,
    pub(crate) epoch: Option<String>,
    pub(crate) builder: Builder,
    pub(crate) fixture: OnceLock<PathBuf>,
}

impl Daemon {
    /// Starts a daemon with the defaults.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Adds an argument of `serve` for later starts.
    pub fn add_arg(&mut self, arg: &str) {
        self.builder.args.push(arg.to_owned());
    }

    /// Drops all arguments of `serve` for later starts, and returns them.
    pub fn take_args(&mut self) -> Vec<String> {
        std::mem::take(&mut self.builder.args)
    }

    /// Starts it on the same state, and waits until it serves.
    pub async fn restart(&mut self) {
        self.launch();
        self.serving().await;
        self.learn_epoch().await;
    }

    /// Starts it on the same state, without waiting.
    pub fn launch(&mut self) {
        assert!(self.child.is_none(), "the daemon is running");
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

    /// Learns the epoch, by which clean-up finds the cgroup.
    pub async fn learn_epoch(&mut self) {
        let epoch = self.api().await.server().await.epoch;
        // The cgroup keeps the name of the first epoch.
        self.epoch.get_or_insert(epoch);
    }

    /// `heeler` in the environment of this daemon.
    pub fn command(&self) -> Command {
        let mut command = binary::with_default_signals(self.program());
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
                panic!("the daemon ended at its start, {status}:\n{}", self.log());
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

    /// Makes a new connection.
    pub async fn api(&self) -> Api {
        Api::connect(&self.address())
            .await
            .expect("a daemon that takes connections")
    }

    /// Kills it, and returns its exit status, which may be an earlier end of its own.
    pub fn kill9(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it can be killed");
        child.wait().expect("it can be reaped")
    }

    /// Sends SIGTERM, and expects exit code 0.
    pub fn terminate(&mut self) {
        kill(Pid::from_raw(self.pid()), Signal::SIGTERM).unwrap();
        self.ended();
    }

    /// Its exit status, if it ends within the limit.
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

    /// Waits for its end, and expects exit code 0.
    pub fn ended(&mut self) {
        let status = self.exited(DEADLINE);
        let status = status.unwrap_or_else(|| panic!("still running:\n{}", self.log()));
        assert_eq!(status.code(), Some(0), "{status}:\n{}", self.log());
    }

    /// Makes later starts run a copy of the program, as after an upgrade.
    pub fn replace_program(&mut self) {
        self.builder.program = Program::Copied;
    }

    pub fn pid(&self) -> i32 {
        self.child.as_ref().expect("it runs").id() as i32
    }

    /// The address where it listens.
    pub fn address(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    pub fn socket(&self) -> PathBuf {
        self.path("run/heeler/heeler.sock")
    }

    pub fn state_dir(&self) -> PathBuf {
        self.path("state")
    }

    /// The directory of its memory files.
    pub fn memory_dir(&self) -> PathBuf {
        let own = fs::read_dir(self.memory.path()).ok();
        let own = own.and_then(|mut own| own.next()?.ok());
        let id = self.epoch.as_deref().unwrap_or_default();
        let name = format!("heeler-{}", id.replace('-', ""));
        own.map_or_else(|| self.memory.path().join(name), |own| own.path())
    }

    /// The memory file of a task.
    pub fn memory_file(&self, id: &str) -> PathBuf {
        self.memory_dir().join(id)
    }

    /// The default working directory of its tasks.
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// A path in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A path in its directory, as text for a script.
    pub fn file(&self, name: &str) -> String {
        self.path(name).to_str().expect("ASCII").to_owned()
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Waits for a line of the log that contains this text.
    pub async fn logged(&self, text: &str) -> String {
        let find = || {
            self.log()
                .lines()
                .find(|line| line.contains(text))
                .map(str::to_owned)
        };
        eventually_some(text, find).await
    }

    /// This daemon's own copy of the fixture: a process that runs it belongs to this daemon.
    pub fn fixture_program(&self) -> &Path {
        self.fixture.get_or_init(|| {
            let built = binary::sibling("heeler-fixture");
            binary::copy(&built, &self.path("heeler-fixture"))
        })
    }

    /// The file of `heeler` that it runs.
    pub fn program(&self) -> PathBuf {
        match self.builder.program {
            Program::Built => binary::heeler().to_owned(),
            Program::Copied if self.path("heeler").exists() => self.path("heeler"),
            Program::Copied => binary::copy(binary::heeler(), &self.path("heeler")),
        }
    }

    /// The number of lines in a file of its directory; 0 if there is none.
    pub fn line_count(&self, name: &str) -> usize {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().count()
    }

    /// A program that the kernel refuses to execute: its interpreter does not exist.
    pub fn broken_program(&self) -> String {
        let path = self.file("broken");
        binary::make(Path::new(&path), "#!/no/such/interpreter\n");
        path
    }

    /// Runs a server on a state directory, which it must refuse, and returns its stderr.
    pub async fn refused_start(&self, state: &Path, args: &[&str]) -> String {
        let state = ["serve", "--state-dir", state.to_str().expect("UTF-8")];
        let result = self.heeler(state.iter().chain(args)).await;
        assert!(result.code.is_some_and(|code| code != 0), "{result:?}");
        result.stderr
    }

    /// Copies the journal of a daemon that has ended, for [`Daemon::restore_journal`].
    pub fn save_journal(&self) {
        fs::copy(self.path("state/journal.db"), self.path("saved.db")).unwrap();
    }

    /// Puts the saved journal back, as if a power cut had taken all later entries.
    pub fn restore_journal(&self) {
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(self.path(&format!("state/journal.db{suffix}")));
        }
        fs::copy(self.path("saved.db"), self.path("state/journal.db")).unwrap();
    }

    fn log_path(&self) -> PathBuf {
        self.path("server.log")
    }
}
