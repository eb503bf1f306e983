//! The ready policy and the input policy, in and out.

use std::time::Duration;

use heeler_proto::v1::{self, ready_policy::Probe as ProbeMessage};
use http::Uri;

use super::{
    super::{check, convert, output, refusal::Refusal},
    arguments,
};
use crate::task::{DEFAULT_PROBE_INTERVAL, Input, OnReadyTimeout, Probe, Ready};

const SHORTEST_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum length of a URL.
const URL: usize = 4096;

pub(super) fn read(policy: v1::ReadyPolicy) -> Result<Ready, Refusal> {
    const INTERVAL: &str = "spec.ready.interval";
    let is_by_pattern = matches!(policy.probe, Some(ProbeMessage::Pattern(_)));
    if is_by_pattern && policy.interval.is_some() {
        let problem = "cannot be combined with pattern: output is searched as it is written";
        return Err(Refusal::field(INTERVAL, problem));
    }
    let interval = check::optional_duration(INTERVAL, policy.interval)?;
    let interval = interval.unwrap_or(DEFAULT_PROBE_INTERVAL);
    if interval < SHORTEST_INTERVAL {
        return Err(Refusal::field(INTERVAL, "is shorter than 20 ms"));
    }
    let on_timeout = check::enumerated("spec.ready.on_timeout", policy.on_timeout)?;
    let timeout = check::timeout("spec.ready.timeout", policy.timeout)?;
    let on_timeout = match on_timeout {
        v1::ReadyTimeoutAction::Unspecified | v1::ReadyTimeoutAction::Notify => {
            OnReadyTimeout::Notify
        }
        v1::ReadyTimeoutAction::Cancel => OnReadyTimeout::Cancel,
    };
    Ok(Ready {
        probe: probe(policy.probe)?,
        interval,
        timeout,
        on_timeout,
    })
}

fn probe(probe: Option<ProbeMessage>) -> Result<Probe, Refusal> {
    match probe {
        None => Err(Refusal::field(
            "spec.ready.probe",
            "is required: set port, http_url, command or pattern of spec.ready",
        )),
        Some(ProbeMessage::Port(0)) => Ok(Probe::Port(None)),
        Some(ProbeMessage::Port(port)) => {
            check::port("spec.ready.port", port).map(|port| Probe::Port(Some(port)))
        }
        Some(ProbeMessage::HttpUrl(url)) => http_url(url).map(Probe::HttpUrl),
        Some(ProbeMessage::Command(command)) => {
            arguments("spec.ready.command.args", command.args).map(Probe::Command)
        }
        Some(ProbeMessage::Pattern(pattern)) => {
            output::required_pattern("spec.ready.pattern", &pattern)?;
            Ok(Probe::Pattern(pattern))
        }
    }
}

fn http_url(url: String) -> Result<String, Refusal> {
    const FIELD: &str = "spec.ready.http_url";
    let refuse = |problem| Err(Refusal::field(FIELD, problem));
    let url = check::os_text(FIELD, url, URL)?;
    let Ok(uri) = url.parse::<Uri>() else {
        return refuse("is not a URL, such as http://localhost:3000/health");
    };
    let (host, authority) = (
        uri.host().unwrap_or_default(),
        uri.authority().map_or("", |authority| authority.as_str()),
    );
    let has_port = uri.port_u16().is_some_and(|port| port > 0);
    match uri.scheme_str() {
        Some("http") if authority.contains('@') => refuse("has a user name, which is not sent"),
        Some("http") if authority != host && !has_port => refuse("has an invalid port"),
        Some("http") if !host.is_empty() => Ok(url),
        Some("https") => refuse("is an https URL: use http, a port or a command"),
        Some(_) | None => refuse("is not an http URL, such as http://localhost:3000/health"),
    }
}

pub(super) fn show(ready: &Ready) -> v1::ReadyPolicy {
    v1::ReadyPolicy {
        probe: Some(match &ready.probe {
            Probe::Port(port) => ProbeMessage::Port(port.unwrap_or(0).into()),
            Probe::HttpUrl(url) => ProbeMessage::HttpUrl(url.clone()),
            Probe::Command(args) => ProbeMessage::Command(v1::ArgvCommand { args: args.clone() }),
            Probe::Pattern(pattern) => ProbeMessage::Pattern(pattern.clone()),
        }),
        interval: match ready.pattern() {
            Some(_) => None,
            None => Some(convert::duration(ready.interval)),
        },
        timeout: ready.timeout.map(convert::duration),
        on_timeout: match ready.on_timeout {
            OnReadyTimeout::Notify => v1::ReadyTimeoutAction::Notify,
            OnReadyTimeout::Cancel => v1::ReadyTimeoutAction::Cancel,
        }
        .into(),
    }
}

pub(super) fn read_input(policy: v1::InputPolicy) -> Result<Input, Refusal> {
    let notify_after = check::timeout("spec.input.notify_after", policy.notify_after)?;
    Ok(Input { notify_after })
}

pub(super) fn show_input(input: Input) -> v1::InputPolicy {
    v1::InputPolicy {
        notify_after: input.notify_after.map(convert::duration),
    }
}
