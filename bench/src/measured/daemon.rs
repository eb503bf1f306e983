//! The real daemon in a directory of its own, and its complete removal.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use heeler_proto::v1::{
    CancelRequest, ForcedStop, ListRequest, TaskFilter, TaskState, cancel_request::How,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tonic::transport::Channel;

use crate::{
    Result,
    floor::cgroup,
    measured::{
        connection::{self, Stub},
        http::Http,
        process,
    },
};

/// Maximum time to start or to end.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The containment of a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Containment {
    /// The best one available.
    Best,
    /// SUBREAPER.
    Subreaper,
}

/// A running daemon.
#[derive(Debug)]
pub(crate) struct Daemon {
    heeler: PathBuf,
    dir: PathBuf,
    state: PathBuf,
    containment: Containment,
    /// Further flags of `heeler serve`.
    flags: &'static [&'static str],
    /// Its address for JSON over HTTP, if its flags ask for one.
    http: Option<String>,
    /// `None` once it is being ended.
    child: Option<Child>,
    cgroup: Option<PathBuf>,
}

impl Daemon {
    /// Starts a daemon with its socket in `dir` and its state directory `state`.
    pub(crate) async fn start(
        heeler: &Path,
        dir: PathBuf,
        state: PathBuf,
        containment: Containment,
        flags: &'static [&'static str],
    ) -> Result<Self> {
        let mut daemon = Self {
            heeler: heeler.to_owned(),
            dir,
            state,
            containment,
            flags,
            http: None,
            child: None,
            cgroup: None,
        };
        daemon.restart()?;
        let server = daemon.stub().await?.list(ListRequest::default()).await?;
        let server = server.into_inner().server.unwrap_or_default();
        let name = format!("heeler-{}", server.epoch.replace('-', ""));
        daemon.cgroup = cgroup::own().ok().map(|own| own.join(name));
        Ok(daemon)
    }

    /// Starts it again, and returns the time until it serves.
    pub(crate) fn restart(&mut self) -> Result<Duration> {
        let mut command = Command::new(&self.heeler);
        command.arg("serve").arg("--state-dir").arg(&self.state);
        command.arg("--listen").arg(self.address());
        if self.containment == Containment::Subreaper {
            command.args(["--containment", "subreaper"]);
        }
        command.args(self.flags);
        command.env("HEELER_LOG", "error").current_dir(&self.dir);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let begun = Instant::now();
        let mut child = command.spawn()?;
        let ready = child.stderr.take().map(announcement);
        self.child = Some(child);
        match ready.and_then(|ready| ready.recv_timeout(TIME_LIMIT).ok()) {
            Some(Ok(ready)) => {
                self.http = ready.http;
                Ok(ready.at - begun)
            }
            Some(Err(words)) => Err(format!("the daemon does not serve:\n{words}").into()),
            None => Err("the daemon does not serve".into()),
        }
    }

    /// Kills it; its tasks continue.
    pub(crate) fn kill9(&mut self) -> Result {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Ends its tasks, then the daemon.
    pub(crate) async fn end(mut self) -> Result {
        self.stop_tasks().await?;
        self.terminate()?;
        self.remove_cgroup();
        Ok(())
    }

    /// Ends every live task.
    pub(crate) async fn stop_tasks(&self) -> Result {
        let live = [TaskState::Starting, TaskState::Running, TaskState::Stopping];
        let states = live.map(i32::from).to_vec();
        let filter = TaskFilter {
            states,
            ..TaskFilter::default()
        };
        let request = CancelRequest {
            filter: Some(filter),
            how: Some(How::Force(ForcedStop {})),
            wait: true,
            ..CancelRequest::default()
        };
        self.stub().await?.cancel(request).await?;
        Ok(())
    }

    fn terminate(&mut self) -> Result {
        kill(Pid::from_raw(self.pid()), Signal::SIGTERM)?;
        let mut child = self.child.take().ok_or("it does not run")?;
        let until = Instant::now() + TIME_LIMIT;
        while child.try_wait()?.is_none() {
            if Instant::now() > until {
                child.kill()?;
                child.wait()?;
                return Err("the daemon did not obey SIGTERM".into());
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Opens a connection.
    pub(crate) async fn channel(&self) -> Result<Channel> {
        connection::connect(&self.socket()).await
    }

    /// Opens a connection to the service.
    pub(crate) async fn stub(&self) -> Result<Stub> {
        connection::stub(&self.socket()).await
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> i32 {
        self.child.as_ref().map_or(0, |child| child.id() as i32)
    }

    /// Its address, as in `--addr`.
    pub(crate) fn address(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// A path in its directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The shims that have a task.
    pub(crate) fn shims(&self) -> Vec<i32> {
        process::with_argument_below(&self.state.join("tasks"))
    }

    /// Its address for JSON over HTTP, and the token.
    pub(crate) fn http(&self) -> Result<Http> {
        let host = self.http.clone().ok_or("it was started without --http")?;
        let token = fs::read_to_string(self.state.join("token"))?;
        Ok(Http::new(host, token.trim_end()))
    }

    /// The path of its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path("heeler.sock")
    }

    fn remove_cgroup(&mut self) {
        if let Some(cgroup) = self.cgroup.take() {
            cgroup::remove(&cgroup);
        }
    }
}

/// After a failure, kills every process of it that can be found.
impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.kill9();
        if let Some(cgroup) = self.cgroup.take() {
            for leaf in fs::read_dir(&cgroup).into_iter().flatten().flatten() {
                let _ = fs::write(leaf.path().join("cgroup.kill"), "1");
            }
            process::end_all(|| process::belonging_to(&self.state, &self.address()));
            cgroup::remove(&cgroup);
        }
    }
}

/// The announcement of a daemon that serves.
#[derive(Debug)]
struct Announced {
    at: Instant,
    http: Option<String>,
}

/// Sends a message when the daemon reports that it serves, or its output if it ends before that. All of
/// its output is read, so that it never blocks.
fn announcement(stderr: ChildStderr) -> Receiver<std::result::Result<Announced, String>> {
    let (tell, ready) = mpsc::channel();
    thread::spawn(move || {
        let (mut words, mut at, mut http) = (String::new(), None, None);
        for line in BufReader::new(stderr)
            .lines()
            .map_while(std::result::Result::ok)
        {
            if let Some(address) = line.strip_prefix("heeler: listening on ") {
                at.get_or_insert_with(Instant::now);
                if let Some(host) = address.strip_prefix("http://") {
                    http = Some(host.to_owned());
                }
            } else if let (true, Some(at)) = (line.starts_with("heeler: containment"), at) {
                let http = http.take();
                // The receiver may have stopped waiting.
                let _ = tell.send(Ok(Announced { at, http }));
            }
            words.push_str(&line);
            words.push('\n');
        }
        let _ = tell.send(Err(words));
    });
    ready
}
