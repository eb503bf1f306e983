//! Spawn: a request in the server's own words, then the supervisor.

use heeler_proto::v1::{self, spawn_request::Command as Asked};

use super::{Service, check, convert, refusal::Refusal, rules};
use crate::task::{
    Command, DEFAULT_GRACE, EnvDefaults, Kind, Signal, SpawnRequest, StopPolicy, Task,
};

const SIGTERM: Signal = Signal(15);

pub(super) async fn spawn(
    service: &Service,
    request: v1::SpawnRequest,
) -> Result<v1::SpawnResponse, Refusal> {
    let event = service.supervisor.spawn(read(request)?).await?;
    Ok(v1::SpawnResponse {
        task: Some(convert::task(&event.task)),
        revision: event.revision.0,
        notices: notices(&event.task),
    })
}

/// What the sender of a request should know, whenever it hears of it.
fn notices(task: &Task) -> Vec<v1::SpawnNotice> {
    let ampersand = || v1::SpawnNotice {
        r#type: v1::SpawnNoticeType::TrailingAmpersand.into(),
        message: "the trailing & was taken away: the whole script runs as one background task"
            .to_owned(),
    };
    task.spec
        .had_ampersand
        .then(ampersand)
        .into_iter()
        .collect()
}

fn read(request: v1::SpawnRequest) -> Result<SpawnRequest, Refusal> {
    let rules = rules::read(&request)?;
    let request_id = check::text("request_id", request.request_id, check::REQUEST_ID)?;
    let parent = match request.parent_id.as_str() {
        "" => None,
        id => Some(check::task_id("parent_id", id).map_err(|_| unknown_parent(id))?),
    };
    let directory = match request.working_directory.as_str() {
        "" => None,
        _ => Some(check::absolute_path(
            "working_directory",
            request.working_directory,
        )?),
    };
    Ok(SpawnRequest {
        request_id: (!request_id.is_empty()).then_some(request_id),
        kind: kind(check::enumerated("kind", request.kind)?)?,
        name: check::text("name", request.name, check::LONG_TEXT)?,
        session_id: check::text("session_id", request.session_id, check::SHORT_TEXT)?,
        parent,
        labels: check::labels("labels", request.labels)?,
        command: command(request.command)?,
        working_directory: directory,
        env: check::env(request.env)?,
        env_remove: check::env_remove(request.env_remove)?,
        env_defaults: match check::enumerated("env_defaults", request.env_defaults)? {
            v1::EnvDefaults::Unspecified | v1::EnvDefaults::NonInteractive => {
                EnvDefaults::NonInteractive
            }
            v1::EnvDefaults::None => EnvDefaults::None,
        },
        timeout: rules::span("timeout", request.timeout)?,
        stop_policy: stop_policy(request.stop_policy.unwrap_or_default())?,
        rules,
    })
}

/// What is no id names no task, and so no parent.
fn unknown_parent(id: &str) -> Refusal {
    let shown: String = id.chars().take(64).flat_map(char::escape_default).collect();
    let message = format!("there is no parent task {shown}");
    Refusal::new(
        tonic::Code::FailedPrecondition,
        v1::ErrorReason::ParentNotLive,
        message,
    )
    .with("parent_id", shown)
}

fn kind(kind: v1::TaskKind) -> Result<Kind, Refusal> {
    match kind {
        v1::TaskKind::Unspecified | v1::TaskKind::Shell => Ok(Kind::Shell),
        v1::TaskKind::Agent => Ok(Kind::Agent),
        v1::TaskKind::Hosted => Err(Refusal::field(
            "kind",
            "cannot be HOSTED: such tasks are not spawned",
        )),
    }
}

fn command(command: Option<Asked>) -> Result<Command, Refusal> {
    match command {
        None => Err(Refusal::field("command", "is required: argv or shell")),
        Some(Asked::Argv(argv)) => {
            if argv.args.is_empty() {
                return Err(Refusal::field("argv.args", "is empty"));
            }
            if argv.args.len() > check::ARGUMENTS {
                let problem = format!("has more than {} arguments", check::ARGUMENTS);
                return Err(Refusal::field("argv.args", problem));
            }
            if argv.args[0].is_empty() {
                return Err(Refusal::field(
                    "argv.args[0]",
                    "is empty: it names the program",
                ));
            }
            let checked =
                argv.args.into_iter().enumerate().map(|(at, arg)| {
                    check::os_text(&format!("argv.args[{at}]"), arg, check::ARGUMENT)
                });
            Ok(Command::Argv(checked.collect::<Result<_, _>>()?))
        }
        Some(Asked::Shell(shell)) => {
            if shell.script.trim().is_empty() {
                return Err(Refusal::field("shell.script", "is empty"));
            }
            let program = match shell.program.as_str() {
                "" => None,
                _ => Some(check::absolute_path("shell.program", shell.program)?),
            };
            let script = check::os_text("shell.script", shell.script, check::ARGUMENT)?;
            Ok(Command::Shell { script, program })
        }
    }
}

fn stop_policy(policy: v1::StopPolicy) -> Result<StopPolicy, Refusal> {
    let grace = policy
        .grace
        .map(|span| check::duration("stop_policy.grace", span))
        .transpose()?;
    let signal = check::signal("stop_policy.signal", &policy.signal)?;
    Ok(StopPolicy {
        grace: grace.unwrap_or(DEFAULT_GRACE),
        signal: signal.unwrap_or(SIGTERM),
    })
}
