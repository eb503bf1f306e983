//! `heeler serve`: the options of the daemon. [`crate::daemon::serve`] runs it.

mod webhooks;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum, value_parser};
use heeler_client::paths;
use heeler_server::{
    AllowedHosts, Config, ContainmentSetting, Durability, Http, HttpAccess, Limits, Listen, OnExit,
    Retention, TlsFiles,
};

use crate::{
    args::{
        value::duration,
        value::listen_address::{self, ListenAddress, Tls},
        value::size,
    },
    daemon::{
        serve::{self, ProcessSession},
        unit,
    },
    exit::Exit,
    failure::Failure,
};

/// The flag of a daemon that a client command starts.
pub(crate) const OWN_SESSION: &str = "--own-session";

const EXAMPLES: &str = "\
Examples:
  heeler serve
  heeler serve --state-dir /srv/heeler --listen unix:/run/heeler.sock
  heeler serve --listen unix:/run/heeler.sock --listen tcp:127.0.0.1:0
  heeler serve --http 127.0.0.1:7118
  heeler serve --webhook http://127.0.0.1:8080/hook --webhook-events ended
  heeler serve --webhook-file ~/.config/heeler/webhooks --allow-webhook-hosts
  heeler serve --listen tcp:0.0.0.0:7117 --tls-cert cert.pem --tls-key key.pem
  heeler serve --keep-finished 1000 --max-output 500MiB --keep-for 72h
  HEELER_LOG=debug heeler serve
  heeler serve --print-unit > ~/.config/systemd/user/heeler.service

Above a limit the oldest finished tasks are deleted with their output; those whose end no client \
has received yet go last, and --keep-for does not apply to them. Live tasks are never deleted. A \
watcher that asks for a deleted event gets an error that names the oldest one.

Over TCP and HTTP every call needs the token in the file `token` of the state directory, which the first \
start creates. Beyond loopback the daemon requires TLS. With a certificate every TCP address uses \
TLS; clients connect to tls:HOST:PORT.

At its start the daemon prints its addresses and its containment. SIGTERM, SIGINT and `heeler \
shutdown` stop it and leave its tasks running: the next daemon on the same state directory takes \
them over.";

/// Run the daemon in the foreground
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The state directory [env: HEELER_STATE_DIR] [default: $XDG_STATE_HOME/heeler, else
    /// ~/.local/state/heeler]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// An address to listen on, e.g. unix:/run/x.sock or tcp:127.0.0.1:7117; port 0 chooses a free
    /// one; may be repeated [env: HEELER_ADDR] [default: this user's own socket]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<ListenAddress>,

    /// An address for JSON over HTTP and the page, e.g. 127.0.0.1:7118; port 0 chooses a free one
    #[arg(long, value_name = "IP:PORT", value_parser = listen_address::http)]
    http: Option<SocketAddr>,

    /// Refuse calls over HTTP that change something
    #[arg(long, requires = "http")]
    http_read_only: bool,

    /// A name by which browsers reach the HTTP address, beside localhost and its own, with or without a
    /// port; may be repeated
    #[arg(long, value_name = "NAME", requires = "http")]
    http_host: Vec<String>,

    /// An origin whose pages may make calls over HTTP, e.g. `https://ide.example.com`; may be repeated
    #[arg(long, value_name = "ORIGIN", requires = "http", value_parser = origin)]
    http_origin: Vec<String>,

    /// The PEM certificate chain for TCP addresses
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The PEM private key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// The most live tasks
    #[arg(long, value_name = "N", default_value_t = Config::DEFAULT_MAX_TASKS, value_parser = limit)]
    max_tasks: usize,

    /// The most live tasks of one session [default: --max-tasks]
    #[arg(long, value_name = "N", value_parser = limit)]
    max_per_session: Option<usize>,

    /// The most live tasks with the same value of this label; may be repeated
    #[arg(long, value_name = "KEY=N", value_parser = label_limit)]
    max_per_label: Vec<(String, usize)>,

    /// The most ancestors of a task: tasks that spawn tasks that spawn tasks
    #[arg(long, value_name = "N", default_value_t = Config::DEFAULT_MAX_DEPTH)]
    max_depth: usize,

    /// The mechanism that keeps the processes of a task together
    #[arg(long, value_enum, default_value_t = Containment::Auto)]
    containment: Containment,

    /// The crashes that recorded state survives
    #[arg(long, value_enum, default_value_t = SurvivedCrash::Process)]
    durability: SurvivedCrash,

    /// The working directory of tasks that name none [default: the user's home]
    #[arg(long, value_name = "DIR")]
    working_directory: Option<PathBuf>,

    /// A directory on a memory file system for the first MiB of each foreground task's output
    /// [default: /dev/shm]
    #[arg(long, value_name = "DIR")]
    memory_dir: Option<PathBuf>,

    /// The most output in memory, of all tasks together; with 0 all output goes to disk [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory_output: Option<u64>,

    /// Stop every live task when SIGTERM or SIGINT stops the daemon
    #[arg(long)]
    stop_tasks_on_exit: bool,

    /// The most finished tasks to keep
    #[arg(long, value_name = "N", default_value_t = Retention::default().finished)]
    keep_finished: u64,

    /// The most output on disk, of all tasks together, 1MiB or more: the oldest finished tasks are
    /// removed, then live ones drop their oldest output [default: 10GiB, or a tenth of the file system if
    /// that is less, and 256MiB at least]
    #[arg(long, value_name = "SIZE", value_parser = max_output)]
    max_output: Option<u64>,

    /// Delete finished tasks this long after their end was delivered, e.g. 72h [default: no limit]
    #[arg(long, value_name = "T", value_parser = duration::parse)]
    keep_for: Option<Duration>,

    /// The most events to keep, 1 or more
    #[arg(long, value_name = "N", default_value_t = Retention::default().events,
          value_parser = value_parser!(u64).range(1..))]
    keep_events: u64,

    #[command(flatten)]
    webhooks: webhooks::Options,

    /// Export traces to this collector, by OTLP over gRPC: a span for each task and each call
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,

    /// Let ready policies request http URLs of any host, not of this machine alone
    #[arg(long)]
    allow_probe_hosts: bool,

    /// Print a systemd user unit that runs this command line, and exit
    #[arg(long)]
    print_unit: bool,

    /// Leave the caller's process session and close inherited descriptors
    #[arg(long, hide = true)]
    own_session: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Containment {
    /// A cgroup if the daemon can create one, else a subreaper
    Auto,
    /// A cgroup for each task; without cgroups the daemon does not start
    Cgroup,
    /// The shim of each task as its subreaper
    Subreaper,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SurvivedCrash {
    /// The crash of any process
    Process,
    /// A power cut too
    Power,
}

impl Serve {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let config = self.config()?;
        if self.print_unit {
            return unit::print();
        }
        let session = match self.own_session {
            true => ProcessSession::Own,
            false => ProcessSession::Callers,
        };
        serve::run(config, session)
    }

    fn config(&self) -> Result<Config, Failure> {
        Ok(Config {
            state_dir: match &self.state_dir {
                Some(dir) => absolute("--state-dir", dir)?,
                None => paths::state_dir().map_err(|error| Failure::Usage(error.to_string()))?,
            },
            listen: self.addresses()?,
            http: self.http.map(|address| Http {
                address,
                access: match self.http_read_only {
                    true => HttpAccess::ReadOnly,
                    false => HttpAccess::All,
                },
                hosts: self.http_host.clone(),
                origins: self.http_origin.clone(),
            }),
            tls: self.tls_files()?,
            containment: match self.containment {
                Containment::Auto => ContainmentSetting::Auto,
                Containment::Cgroup => ContainmentSetting::Cgroup,
                Containment::Subreaper => ContainmentSetting::Subreaper,
            },
            durability: match self.durability {
                SurvivedCrash::Process => Durability::Process,
                SurvivedCrash::Power => Durability::Power,
            },
            limits: Limits {
                tasks: self.max_tasks,
                per_session: self.max_per_session,
                per_label: self.max_per_label.iter().cloned().collect(),
                depth: self.max_depth,
            },
            working_directory: (self.working_directory.as_deref())
                .map(|dir| absolute("--working-directory", dir))
                .transpose()?,
            memory_dir: (self.memory_dir.as_deref())
                .map(|dir| absolute("--memory-dir", dir))
                .transpose()?,
            memory_output: self.memory_output.unwrap_or(Config::DEFAULT_MEMORY_OUTPUT),
            max_output: self.max_output,
            on_exit: match self.stop_tasks_on_exit {
                true => OnExit::StopTasks,
                false => OnExit::LeaveRunning,
            },
            retention: self.retention(),
            probe_hosts: match self.allow_probe_hosts {
                true => AllowedHosts::Any,
                false => AllowedHosts::Loopback,
            },
            webhooks: self.webhooks.read()?,
            otlp: self.otlp.clone(),
        })
    }

    fn retention(&self) -> Retention {
        Retention {
            finished: self.keep_finished,
            age: self.keep_for,
            events: self.keep_events,
        }
    }

    fn addresses(&self) -> Result<Vec<Listen>, Failure> {
        let own;
        let addresses = match self.listen.is_empty() {
            true => {
                own = [ListenAddress::from_env_or_default()?];
                &own[..]
            }
            false => &self.listen[..],
        };
        let needs_tls = addresses.iter().any(|one| one.tls == Tls::Required);
        if needs_tls && self.tls_cert.is_none() {
            let text = "a tls: address needs --tls-cert FILE and --tls-key FILE";
            return Err(Failure::Usage(text.to_owned()));
        }
        let has_tcp = self.http.is_some() || addresses.iter().any(|one| one.listen.tcp().is_some());
        if self.tls_cert.is_some() && !has_tcp {
            let text = "--tls-cert needs a TCP address, e.g. --listen tcp:0.0.0.0:7117";
            return Err(Failure::Usage(text.to_owned()));
        }
        Ok(addresses.iter().map(|one| one.listen.clone()).collect())
    }

    fn tls_files(&self) -> Result<Option<TlsFiles>, Failure> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        Ok(Some(TlsFiles {
            certificate: absolute("--tls-cert", certificate)?,
            key: absolute("--tls-key", key)?,
        }))
    }
}

fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a number, 1 or more".to_owned()),
        Ok(limit) => Ok(limit),
    }
}

fn origin(text: &str) -> Result<String, String> {
    let host = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains(['/', '*']) => Ok(text.to_owned()),
        Some(_) | None => {
            Err("expected https://HOST or http://HOST:PORT, without a path".to_owned())
        }
    }
}

fn max_output(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        bytes if bytes < Config::MIN_MAX_OUTPUT => Err("expected 1MiB or more".to_owned()),
        bytes => Ok(bytes),
    }
}

fn label_limit(text: &str) -> Result<(String, usize), String> {
    // A key may contain an equals sign.
    match text.rsplit_once('=') {
        Some((key, max)) if !key.is_empty() => Ok((key.to_owned(), limit(max)?)),
        Some(_) | None => Err("expected KEY=N".to_owned()),
    }
}

fn absolute(flag: &str, path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::Usage(format!("{flag} {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    fn config(args: &[&str]) -> Config {
        parse::<Serve>(args).unwrap().config().unwrap()
    }

    #[test]
    fn every_given_address_is_listened_on() {
        let config = config(&["--listen", "unix:/a.sock", "--listen", "unix:/b.sock"]);
        let sockets = ["/a.sock", "/b.sock"].map(|path| Listen::Unix(path.into()));
        assert_eq!(config.listen, sockets);
    }

    #[test]
    fn relative_directories_are_resolved_against_the_callers() {
        let here = std::env::current_dir().unwrap();
        let config = config(&["--state-dir", "s", "--working-directory", "w"]);
        assert_eq!(config.state_dir, here.join("s"));
        assert_eq!(config.working_directory, Some(here.join("w")));
    }

    /// L7
    #[test]
    fn retention_can_be_configured() {
        let args = [
            "--keep-finished",
            "0",
            "--max-output",
            "1.5",
            "--keep-for",
            "1h",
        ];
        assert!(parse::<Serve>(&args).is_err());
        let chosen = config(&[
            "--keep-finished=5",
            "--max-output=2MiB",
            "--keep-for=1h",
            "--keep-events=7",
        ]);
        let expected = Retention {
            finished: 5,
            age: Some(Duration::from_secs(3600)),
            events: 7,
        };
        assert_eq!(chosen.retention, expected);
        assert_eq!(chosen.max_output, Some(2 << 20));
        assert_eq!(config(&[]).max_output, None);
        assert!(parse::<Serve>(&["--max-output=1000KiB"]).is_err());
        assert_eq!(config(&[]).retention, Retention::default());
        assert!(parse::<Serve>(&["--keep-events", "0"]).is_err());
    }

    /// F9
    #[test]
    fn memory_output_can_be_configured() {
        let chosen = config(&["--memory-dir", "/run/m", "--memory-output", "8MiB"]);
        assert_eq!(chosen.memory_dir.as_deref(), Some(Path::new("/run/m")));
        assert_eq!(chosen.memory_output, 8 << 20);
        let unchosen = config(&[]);
        assert_eq!(unchosen.memory_dir, None);
        assert_eq!(unchosen.memory_output, Config::DEFAULT_MEMORY_OUTPUT);
    }

    /// X3
    #[test]
    fn limits_per_session_and_label_can_be_configured() {
        let chosen = config(&[
            "--max-per-session=3",
            "--max-per-label=a=b=2",
            "--max-per-label=repo=1",
        ]);
        assert_eq!(chosen.limits.per_session, Some(3));
        let labels = [("a=b".to_owned(), 2), ("repo".to_owned(), 1)];
        assert_eq!(chosen.limits.per_label, labels.into());
        assert_eq!(config(&[]).limits, Limits::default());
        for wrong in [
            "--max-per-session=0",
            "--max-per-label=x",
            "--max-per-label==1",
        ] {
            assert!(parse::<Serve>(&[wrong]).is_err());
        }
    }

    #[test]
    fn serve_accepts_the_flag_of_an_automatic_start() {
        assert!(parse::<Serve>(&[OWN_SESSION]).is_ok());
    }
}
