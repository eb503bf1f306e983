//! `heeler serve`: what an operator can choose. Running the daemon is `crate::serve`'s.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum, value_parser};
use heeler_client::paths;
use heeler_server::{
    Config, Limits, Listen, OnExit, Retention, TlsFiles, journal::Durability,
    process::containment::ContainmentSetting,
};

use crate::{
    duration,
    exit::{Exit, Failure},
    listen::{ListenAddress, Tls},
    serve, size,
};

/// The flag of a daemon that nobody holds in the foreground.
pub(crate) const OWN_SESSION: &str = "--own-session";

const EXAMPLES: &str = "\
Examples:
  heeler serve
  heeler serve --state-dir /srv/heeler --listen unix:/run/heeler.sock
  heeler serve --listen unix:/run/heeler.sock --listen tcp:127.0.0.1:0
  heeler serve --listen tcp:0.0.0.0:7117 --tls-cert cert.pem --tls-key key.pem
  heeler serve --keep-finished 1000 --keep-output 500MiB --keep-for 72h
  HEELER_LOG=debug heeler serve

Beyond a limit the oldest finished tasks go first, with their output, and those whose end nobody has
been told of yet go last; --keep-for counts for ends that were told only. Live tasks never go. A
watcher that asks for an event that is no longer kept is told which is the oldest.

Over TCP every call must show the token that is in the file `token` of the state directory, made at the
first start. Beyond loopback there must be TLS, or the daemon does not start; with a certificate every
TCP address speaks it, and is reached by clients as tls:HOST:PORT.

It says where it listens and which rung of the kill ladder it has. SIGTERM, SIGINT and `heeler shutdown`
end it and leave its tasks running: the next daemon on the state directory takes them back.";

/// Run the daemon in the foreground
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// Where everything is kept [env: HEELER_STATE_DIR] [default: $XDG_STATE_HOME/heeler, else
    /// ~/.local/state/heeler]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// Where to listen, e.g. unix:/run/x.sock or tcp:127.0.0.1:7117, where port 0 is one that is
    /// free; may be given again [env: HEELER_ADDR] [default: this user's own socket]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<ListenAddress>,

    /// The certificate for TCP addresses, in PEM form, with those that lead to its authority
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The certificate's private key, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// How many tasks may be live at once
    #[arg(long, value_name = "N", default_value_t = Config::DEFAULT_MAX_TASKS, value_parser = limit)]
    max_tasks: usize,

    /// How many tasks of one session may be live at once [default: as many as in all]
    #[arg(long, value_name = "N", value_parser = limit)]
    max_per_session: Option<usize>,

    /// How many tasks with the same value of this label may be live at once; may be given again
    #[arg(long, value_name = "KEY=N", value_parser = label_limit)]
    max_per_label: Vec<(String, usize)>,

    /// How trees of processes are held together
    #[arg(long, value_enum, default_value_t = Containment::Auto)]
    containment: Containment,

    /// What a recorded fact survives
    #[arg(long, value_enum, default_value_t = Survives::Process)]
    durability: Survives,

    /// Where tasks start that were given no directory [default: the user's home]
    #[arg(long, value_name = "DIR")]
    working_directory: Option<PathBuf>,

    /// Where foreground tasks keep their first MiB of output, in a directory of this daemon's own: on a
    /// file system in memory [default: /dev/shm]
    #[arg(long, value_name = "DIR")]
    memory_dir: Option<PathBuf>,

    /// How much output may be in memory between all tasks; 0: all of it goes to the disk [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory_output: Option<u64>,

    /// Stop every live task when SIGTERM or SIGINT ends the daemon
    #[arg(long)]
    stop_tasks_on_exit: bool,

    /// How many finished tasks to keep
    #[arg(long, value_name = "N", default_value_t = Retention::default().finished)]
    keep_finished: u64,

    /// How much output finished tasks may have between them, e.g. 500MiB [default: 10GiB]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    keep_output: Option<u64>,

    /// How long to keep a finished task once its end was seen, e.g. 72h [default: however long]
    #[arg(long, value_name = "T", value_parser = duration::parse)]
    keep_for: Option<Duration>,

    /// How many events to keep; at least 1
    #[arg(long, value_name = "N", default_value_t = Retention::default().events,
          value_parser = value_parser!(u64).range(1..))]
    keep_events: u64,

    /// Leave the caller's session and close what was inherited from it
    #[arg(long, hide = true)]
    own_session: bool,
}

/// Which rung of the kill ladder to stand on.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Containment {
    /// The best there is
    Auto,
    /// A cgroup for each task, or no daemon
    Cgroup,
    /// The shim of each task as subreaper
    Subreaper,
}

/// What a recorded fact survives.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Survives {
    /// The death of any process
    Process,
    /// That of the machine too
    Power,
}

impl Serve {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let config = self.config()?;
        let session = if self.own_session {
            serve::Session::Own
        } else {
            serve::Session::Callers
        };
        serve::run(config, session)
    }

    fn config(&self) -> Result<Config, Failure> {
        Ok(Config {
            state_dir: match &self.state_dir {
                Some(dir) => absolute("--state-dir", dir)?,
                None => paths::state_dir().map_err(|error| Failure::Usage(error.to_string()))?,
            },
            listen: self.places()?,
            tls: self.tls_files()?,
            containment: match self.containment {
                Containment::Auto => ContainmentSetting::Auto,
                Containment::Cgroup => ContainmentSetting::Cgroup,
                Containment::Subreaper => ContainmentSetting::Subreaper,
            },
            durability: match self.durability {
                Survives::Process => Durability::Process,
                Survives::Power => Durability::Power,
            },
            limits: Limits {
                tasks: self.max_tasks,
                per_session: self.max_per_session,
                per_label: self.max_per_label.iter().cloned().collect(),
            },
            working_directory: match &self.working_directory {
                Some(dir) => Some(absolute("--working-directory", dir)?),
                None => None,
            },
            memory_dir: match &self.memory_dir {
                Some(dir) => Some(absolute("--memory-dir", dir)?),
                None => None,
            },
            memory_output: self.memory_output.unwrap_or(Config::DEFAULT_MEMORY_OUTPUT),
            on_exit: match self.stop_tasks_on_exit {
                true => OnExit::StopTasks,
                false => OnExit::LeaveRunning,
            },
            retention: Retention {
                finished: self.keep_finished,
                output_bytes: self
                    .keep_output
                    .unwrap_or(Retention::default().output_bytes),
                age: self.keep_for,
                events: self.keep_events,
            },
        })
    }

    fn places(&self) -> Result<Vec<Listen>, Failure> {
        let own;
        let addresses = match self.listen.is_empty() {
            true => {
                own = [ListenAddress::from_env_or_default()?];
                &own[..]
            }
            false => &self.listen[..],
        };
        let asked = addresses.iter().any(|address| address.tls == Tls::Asked);
        if asked && self.tls_cert.is_none() {
            let text = "a tls: address needs --tls-cert FILE and --tls-key FILE";
            return Err(Failure::Usage(text.to_owned()));
        }
        let tcp = addresses.iter().any(|one| one.listen.tcp().is_some());
        if self.tls_cert.is_some() && !tcp {
            let text = "--tls-cert is for a TCP address: give one, e.g. --listen tcp:0.0.0.0:7117";
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

/// A limit that lets somebody in.
fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("nothing could be started".to_owned()),
        Ok(limit) => Ok(limit),
        Err(_) => Err(format!("{text:?} is no number")),
    }
}

fn label_limit(text: &str) -> Result<(String, usize), String> {
    // A key may contain anything; a number contains no equals sign.
    match text.rsplit_once('=') {
        Some((key, max)) if !key.is_empty() => Ok((key.to_owned(), limit(max)?)),
        Some(_) | None => Err("write KEY=N".to_owned()),
    }
}

fn absolute(flag: &str, path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::Usage(format!("{flag} {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn config(args: &[&str]) -> Config {
        let cli = crate::Cli::try_parse_from([&["heeler", "serve"], args].concat()).unwrap();
        let crate::commands::Command::Serve(crate::deferred::Deferred(args)) = cli.command else {
            panic!("not serve")
        };
        args.config().unwrap()
    }

    #[test]
    fn every_address_that_is_given_is_listened_on() {
        let config = config(&["--listen", "unix:/a.sock", "--listen", "unix:/b.sock"]);
        let sockets = ["/a.sock", "/b.sock"].map(|path| Listen::Unix(path.into()));
        assert_eq!(config.listen, sockets);
    }

    #[test]
    fn relative_directories_are_resolved_here() {
        let here = std::env::current_dir().unwrap();
        let config = config(&["--state-dir", "s", "--working-directory", "w"]);
        assert_eq!(config.state_dir, here.join("s"));
        assert_eq!(config.working_directory, Some(here.join("w")));
    }

    /// L7
    #[test]
    fn what_is_kept_can_be_chosen() {
        let args = [
            "--keep-finished",
            "0",
            "--keep-output",
            "1.5",
            "--keep-for",
            "1h",
        ];
        assert!(crate::Cli::try_parse_from([&["heeler", "serve"], &args[..]].concat()).is_err());
        let chosen = config(&[
            "--keep-finished=5",
            "--keep-output=2MiB",
            "--keep-for=1h",
            "--keep-events=7",
        ]);
        let expected = Retention {
            finished: 5,
            output_bytes: 2 << 20,
            age: Some(Duration::from_secs(3600)),
            events: 7,
        };
        assert_eq!(chosen.retention, expected);
        assert_eq!(config(&[]).retention, Retention::default());
        let none = ["heeler", "serve", "--keep-events", "0"];
        assert!(crate::Cli::try_parse_from(none).is_err());
    }

    /// F9
    #[test]
    fn where_output_begins_can_be_chosen() {
        let chosen = config(&["--memory-dir", "/run/m", "--memory-output", "8MiB"]);
        assert_eq!(chosen.memory_dir.as_deref(), Some(Path::new("/run/m")));
        assert_eq!(chosen.memory_output, 8 << 20);
        let unchosen = config(&[]);
        assert_eq!(unchosen.memory_dir, None);
        assert_eq!(unchosen.memory_output, Config::DEFAULT_MEMORY_OUTPUT);
    }

    /// X3
    #[test]
    fn limits_of_sessions_and_labels_can_be_chosen() {
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
            assert!(crate::Cli::try_parse_from(["heeler", "serve", wrong]).is_err());
        }
    }

    #[test]
    fn the_flag_of_an_automatic_start_is_one_that_serve_takes() {
        let args = ["heeler", "serve", OWN_SESSION];
        assert!(crate::Cli::try_parse_from(args).is_ok());
    }
}
