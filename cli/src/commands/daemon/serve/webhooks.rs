//! The options of webhooks.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use heeler_client::v1::TaskEventType;
use heeler_server::{AllowedHosts, Webhooks};

use super::absolute;
use crate::{args::value::choices::EventType, failure::Failure};

/// The value of --webhook-events that stands for every type.
const ALL_EVENTS: &str = "all";

/// The options of which one must name a receiver.
const RECEIVERS: &str = "receivers";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new(RECEIVERS).args(["webhook", "webhook_file"]).multiple(true))]
pub(super) struct Options {
    /// A URL to which events are sent, e.g. `http://127.0.0.1:8080/hook`; may be repeated. Other users of this
    /// machine can read it: a secret one belongs into --webhook-file
    #[arg(long, value_name = "URL")]
    webhook: Vec<String>,

    /// A file with URLs to which events are sent, one a line, which only its user can read; may be repeated
    #[arg(long, value_name = "FILE")]
    webhook_file: Vec<PathBuf>,

    /// The types of events to send, as by `heeler events --type`, or `all`
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',', requires = RECEIVERS, value_parser = event_name,
          default_values_t = Webhooks::DEFAULT_EVENTS.map(|name| name.to_lowercase().replace('_', "-")))]
    webhook_events: Vec<String>,

    /// The file with the secret that signs what is sent; it is created if it does not exist [default:
    /// `webhook-secret` in the state directory]
    #[arg(long, value_name = "FILE", requires = RECEIVERS)]
    webhook_secret_file: Option<PathBuf>,

    /// Send events to any host, not to this machine alone
    #[arg(long, requires = RECEIVERS)]
    allow_webhook_hosts: bool,
}

impl Options {
    /// Returns the configuration; none without a receiver.
    pub(super) fn read(&self) -> Result<Option<Webhooks>, Failure> {
        if self.webhook.is_empty() && self.webhook_file.is_empty() {
            return Ok(None);
        }
        let url_files = self.webhook_file.iter();
        let secret_file = self.webhook_secret_file.as_deref();
        Ok(Some(Webhooks {
            urls: self.webhook.clone(),
            url_files: url_files
                .map(|file| absolute("--webhook-file", file))
                .collect::<Result<_, _>>()?,
            events: match self.webhook_events.iter().any(|name| name == ALL_EVENTS) {
                true => Vec::new(),
                false => self.webhook_events.clone(),
            },
            secret_file: secret_file
                .map(|file| absolute("--webhook-secret-file", file))
                .transpose()?,
            hosts: match self.allow_webhook_hosts {
                true => AllowedHosts::Any,
                false => AllowedHosts::Loopback,
            },
        }))
    }
}

/// The contract's name of a type of events.
fn event_name(text: &str) -> Result<String, String> {
    if text == ALL_EVENTS {
        return Ok(text.to_owned());
    }
    let of = EventType::from_str(text, true);
    let of =
        of.map_err(|_| format!("expected {ALL_EVENTS} or a type as by `heeler events --type`"))?;
    let name = TaskEventType::from(of).as_str_name();
    Ok(name.trim_start_matches("TASK_EVENT_TYPE_").to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{args::parse, commands::daemon::serve::Serve};

    fn read(args: &[&str]) -> Option<Webhooks> {
        parse::<Serve>(args).unwrap().webhooks.read().unwrap()
    }

    /// H7
    #[test]
    fn webhooks_can_be_configured() {
        assert_eq!(read(&[]), None);
        let url = "--webhook=http://localhost/hook";
        let chosen = read(&[url]).unwrap();
        assert_eq!(chosen.events, Webhooks::DEFAULT_EVENTS);
        assert_eq!(chosen.hosts, AllowedHosts::Loopback);
        assert_eq!(chosen.secret_file, None);
        let args = [
            url,
            "--webhook=https://ntfy.sh/topic",
            "--webhook-events=ended,needs-input",
            "--webhook-secret-file=/s",
            "--allow-webhook-hosts",
        ];
        let chosen = read(&args).unwrap();
        assert_eq!(
            chosen.urls,
            ["http://localhost/hook", "https://ntfy.sh/topic"]
        );
        assert_eq!(chosen.events, ["ENDED", "NEEDS_INPUT"]);
        assert_eq!(chosen.hosts, AllowedHosts::Any);
        assert_eq!(chosen.secret_file, Some("/s".into()));
        let files = [
            "--webhook-file=/a",
            "--webhook-file=/b",
            "--allow-webhook-hosts",
        ];
        let chosen = read(&files).unwrap();
        assert_eq!(chosen.url_files, [Path::new("/a"), Path::new("/b")]);
        assert_eq!(chosen.urls, [""; 0]);
        assert_eq!(read(&[url, files[0]]).unwrap().url_files, [Path::new("/a")]);
        let all = read(&[url, "--webhook-events=all"]).unwrap();
        assert!(all.events.is_empty());
        for wrong in [
            "--webhook-events=ended",
            "--allow-webhook-hosts",
            "--webhook-secret-file=/s",
        ] {
            assert!(parse::<Serve>(&[wrong]).is_err(), "{wrong}");
        }
        assert!(parse::<Serve>(&[url, "--webhook-events=finished"]).is_err());
    }
}
