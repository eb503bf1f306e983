//! Tool errors: what is wrong, and what the model should do next. They never end the connection.

use heeler_client::{Code, Error, Refusal, v1::ErrorReason};

use crate::view::cut;

/// The reason why a tool call has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("there is no tool `{0}`")]
    NoTool(String),
    /// Each entry names an argument.
    #[error("bad arguments: {}", .0.join("; "))]
    Arguments(Vec<String>),
    #[error("no task `{word}` in this session")]
    NoTask { word: String },
    #[error("several live tasks are named `{word}`: {}", .ids.join(", "))]
    Ambiguous { word: String, ids: Vec<String> },
    #[error("`cursor` {cursor:?} {fault}")]
    Cursor { cursor: String, fault: String },
    #[error("the call was cancelled{0}")]
    Cancelled(String),
    #[error(
        "the task has not started in time: a task that it replaces is still being stopped, or the daemon is slow; it starts after that"
    )]
    NotStarted,
    #[error("a defect of Heeler has ended the call; it is described on the stderr of this server")]
    Defect,
    /// The longest argument, if one is long.
    #[error("{}", describe(.0))]
    TooLong(Error, Option<String>),
    /// A daemon that is not started from here.
    #[error("{}", describe(.0))]
    Away(Error),
    /// The connection broke during a Spawn.
    #[error("{}; the command may have started", describe(.0))]
    MaybeStarted(Error),
    /// The failure of a call that has started a task.
    #[error("{cause}; the command has started, as {id}")]
    Started { id: String, cause: Box<Self> },
    #[error("the daemon does not answer: it hangs, or the machine is overloaded")]
    NoAnswer,
    #[error("{}", describe(.0))]
    Daemon(#[from] Error),
}

impl Problem {
    /// A bad value of one argument.
    pub(crate) fn argument(name: &str, fault: impl AsRef<str>) -> Self {
        Self::Arguments(vec![format!("`{name}` {}", fault.as_ref())])
    }

    /// Names the longest argument of the call, if the daemon or the system has refused it for its length.
    pub(crate) fn with_longest(self, argument: Option<String>) -> Self {
        match (self, argument) {
            (Self::Daemon(error), argument) if is_too_long(&error) => {
                Self::TooLong(error, argument)
            }
            (other, _) => other,
        }
    }

    /// The failure of a Spawn.
    pub(crate) fn of_spawn(error: Error) -> Self {
        match error.is_transient() {
            true => Self::MaybeStarted(error),
            false => Self::Daemon(error),
        }
    }

    /// The failure of a call that has started a task, unless it tells of that itself.
    pub(crate) fn after_start_of(self, id: &str) -> Self {
        if matches!(self, Self::Cancelled(_) | Self::Started { .. }) {
            return self;
        }
        Self::Started {
            id: id.to_owned(),
            cause: Box::new(self),
        }
    }

    /// True if no daemon answers any more.
    pub(crate) fn is_daemon_gone(&self) -> bool {
        match self {
            Self::Away(_) | Self::MaybeStarted(_) | Self::NoAnswer => true,
            Self::Started { cause, .. } => cause.is_daemon_gone(),
            Self::Daemon(error) => error.is_transient(),
            Self::NoTool(_)
            | Self::Arguments(_)
            | Self::NoTask { .. }
            | Self::Ambiguous { .. }
            | Self::Cursor { .. }
            | Self::Cancelled(_)
            | Self::NotStarted
            | Self::TooLong(..)
            | Self::Defect => false,
        }
    }

    /// The text of the tool error.
    pub(crate) fn text(&self) -> String {
        format!("Error: {self}.\nNext: {}.", self.next())
    }

    fn next(&self) -> String {
        match self {
            Self::NoTool(_) => format!("use one of {}", crate::tools::names().join(", ")),
            Self::Arguments(_) => "correct the arguments and call the tool again".to_owned(),
            Self::NoTask { .. } => {
                "call heeler_list to see the tasks of this session, and use an id from there".to_owned()
            }
            Self::Ambiguous { .. } => "use one of these ids instead of the name".to_owned(),
            Self::Cursor { .. } => {
                "pass the `next_cursor` of an earlier answer for the same task, or no cursor to read what is unread"
                    .to_owned()
            }
            Self::Cancelled(_) => "call heeler_list to see what still runs".to_owned(),
            Self::NotStarted => {
                "call heeler_ensure with the same arguments but without replace, which waits for it and starts no second one; heeler_list shows both tasks"
                    .to_owned()
            }
            Self::Defect => {
                "call heeler_list to see whether the call had an effect, and tell the user of the defect".to_owned()
            }
            Self::TooLong(_, Some(argument)) => format!(
                "shorten `{argument}`, the longest of the arguments, or write it to a file for the command to read"
            ),
            Self::TooLong(_, None) => "shorten the arguments and call the tool again".to_owned(),
            Self::MaybeStarted(_) => {
                "call heeler_list first, to see whether it has started; call the tool again only if it has not".to_owned()
            }
            Self::Started { id, .. } => format!(
                "call heeler_wait {{\"ids\": [\"{id}\"]}} for its end, or heeler_output; do not run it again"
            ),
            Self::NoAnswer => {
                "ask the user to run `heeler doctor`; when the daemon answers again, call heeler_list first, to see whether the call had an effect".to_owned()
            }
            Self::Away(_) => {
                "call the tool again; if the daemon stays away, ask the user to start it: one with an address of its own is not started from here. Its tasks and their output are not lost".to_owned()
            }
            Self::Daemon(error) => next_after(error),
        }
    }
}

/// True if the arguments were too long for the daemon, or for the system to start a program with.
fn is_too_long(error: &Error) -> bool {
    let no_room = |refusal: &Refusal| refusal.message.contains("Argument list too long");
    error.is(ErrorReason::RequestTooLarge) || error.refusal().is_some_and(no_room)
}

/// The advice for refusals that have one of their own.
const ADVICE: [(ErrorReason, &str); 14] = [
    (
        ErrorReason::WorkingDirectoryUnusable,
        "pass an existing directory as `cwd`",
    ),
    (
        ErrorReason::ExclusiveKeyDiffers,
        "use the task that runs (its id is in the message), pass the same arguments as it has, or pass replace=true to stop it and start this one",
    ),
    (
        ErrorReason::TaskLimitReached,
        "call heeler_list and cancel what is not needed, or pass `queue` to wait for a place",
    ),
    (
        ErrorReason::SessionLimitReached,
        "call heeler_list and cancel what is not needed, or pass `queue` to wait for a place",
    ),
    (
        ErrorReason::LabelLimitReached,
        "call heeler_list and cancel what is not needed, or pass `queue` to wait for a place",
    ),
    (
        ErrorReason::QueueFull,
        "wait for the tasks in the queue with heeler_wait, then call again",
    ),
    (
        ErrorReason::StorageFull,
        "free disk space, or ask the user to, then call again; running tasks continue",
    ),
    (
        ErrorReason::StorageReadOnly,
        "ask the user to make the state directory writable; running tasks continue",
    ),
    (
        ErrorReason::ProbeHostNotAllowed,
        "use a `ready_url` of localhost, or `ready_port` or `ready_command`",
    ),
    (
        ErrorReason::TaskFinished,
        "the task has ended: read its result with heeler_inspect, or start a new one",
    ),
    (
        ErrorReason::InputMissing,
        "start the command again with `stdin` or `terminal`, or send a `message` if it is an agent",
    ),
    (
        ErrorReason::InputHeld,
        "pass `take_over` to take the input from the client that has it, such as an attached terminal, or wait until that has left",
    ),
    (
        ErrorReason::MailboxFull,
        "wait until the worker has read its messages, then send again",
    ),
    (
        ErrorReason::ProgramUnusable,
        "check the spelling of the program, and that it is installed",
    ),
];

fn next_after(error: &Error) -> String {
    let Some(refusal) = error.refusal() else {
        return match error.is_transient() {
            true => "call the tool again: the daemon is started or reconnected to, and its tasks and their output are not lost".to_owned(),
            false => "ask the user to run `heeler doctor`".to_owned(),
        };
    };
    let own = ADVICE.iter().find(|(reason, _)| refusal.is(*reason));
    match own {
        Some((_, advice)) => (*advice).to_owned(),
        None if refusal.code == Code::InvalidArgument => {
            "correct the arguments and call the tool again".to_owned()
        }
        None if error.is_transient() => "call the tool again in a few seconds".to_owned(),
        None => "call heeler_inspect or heeler_list to see the present state".to_owned(),
    }
}

/// The arguments of the tools by the fields of the contract that they set: a field before the group that it is in.
const ARGUMENTS: [(&str, &str); 30] = [
    ("spec.shell.script", "command"),
    ("spec.working_directory", "cwd"),
    ("spec.name", "name"),
    ("spec.environment.variables", "env"),
    ("spec.timeout", "timeout_seconds"),
    ("spec.queue", "queue"),
    ("spec.exclusive.key", "key"),
    ("spec.silence.stale_after", "stale_after_seconds"),
    ("spec.ready.port", "ready_port"),
    ("spec.ready.http_url", "ready_url"),
    ("spec.ready.command", "ready_command"),
    ("spec.ready.pattern", "ready_pattern"),
    ("spec.ready", "ready_*"),
    ("spec.silence", "stale_after_seconds"),
    ("spec.environment", "env"),
    ("spec.input", "stdin"),
    ("spec.terminal", "terminal"),
    ("spec.kind", "kind"),
    ("spec.command", "command"),
    ("spec.session_id", "--session"),
    ("match.regex", "pattern"),
    ("filter.include", "grep"),
    ("filter.task_ids", "ids"),
    ("filter.name", "name"),
    ("filter.port", "port"),
    ("filter.session_id", "--session"),
    ("page_token", "cursor"),
    ("reason", "reason"),
    ("text", "message"),
    ("data", "input"),
];

fn describe(error: &Error) -> String {
    match error.refusal() {
        Some(refusal) => describe_refusal(refusal),
        None => error.to_string(),
    }
}

fn describe_refusal(refusal: &Refusal) -> String {
    let reason = refusal.reason.as_ref().map(|reason| format!(" ({reason})"));
    let reason = reason.unwrap_or_default();
    let task = refusal.metadata.get("task_id");
    let task = task.filter(|id| !refusal.message.contains(id.as_str()));
    let task = task
        .map(|id| format!("; the task is {id}"))
        .unwrap_or_default();
    let bad = refusal.fields.first().and_then(|bad| {
        let (field, argument) = ARGUMENTS
            .iter()
            .find(|(field, _)| bad.field.starts_with(field))?;
        // An index or a key, such as ["PATH"].
        let entry = &bad.field[field.len()..];
        let entry = cut(if entry.starts_with('[') { entry } else { "" }, 80);
        let fault = bad.description.trim_start_matches(&bad.field).trim_start();
        Some(format!("`{argument}{entry}` {}", with_arguments(fault)))
    });
    let message = bad.unwrap_or_else(|| with_arguments(&refusal.message));
    format!("{}{reason}{task}", message.trim_end_matches('.'))
}

/// A message of the daemon, with the fields of a task named as the arguments that set them.
fn with_arguments(message: &str) -> String {
    let fields = ARGUMENTS
        .iter()
        .filter(|(field, _)| field.starts_with("spec."));
    fields.fold(message.to_owned(), |text, (field, argument)| {
        text.replace(field, &format!("`{argument}`"))
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, io};

    use heeler_client::{FieldViolation, Reason};

    use super::*;

    fn refused(code: Code, reason: ErrorReason, field: &str) -> Problem {
        let field = FieldViolation {
            field: field.to_owned(),
            option: String::new(),
            description: "is empty".to_owned(),
        };
        Problem::Daemon(Error::Refused(Box::new(Refusal {
            code,
            reason: Some(Reason::Known(reason)),
            message: format!("{} is empty", field.field),
            metadata: BTreeMap::new(),
            fields: vec![field],
        })))
    }

    /// M5
    #[test]
    fn a_refusal_names_the_argument_and_the_next_step() {
        let text = refused(
            Code::InvalidArgument,
            ErrorReason::InvalidField,
            "spec.shell.script",
        );
        let text = text.text();
        assert!(
            text.contains("`command` is empty (INVALID_FIELD)"),
            "{text}"
        );
        assert!(text.contains("Next: correct the arguments"), "{text}");
    }

    /// M5
    #[test]
    fn no_field_of_the_contract_is_named() {
        for (field, argument) in [
            ("filter.name", "`name`"),
            ("data", "`input`"),
            ("spec.ready", "`ready_*`"),
            ("spec.environment.variables[\"A=\"]", "`env[\"A=\"]`"),
        ] {
            let text = refused(Code::InvalidArgument, ErrorReason::InvalidField, field).text();
            assert!(text.contains(&format!("{argument} is empty")), "{text}");
            assert!(!text.contains(field), "{text}");
        }
    }

    /// M5
    #[test]
    fn what_is_too_long_is_named() {
        let refused = || refused(Code::OutOfRange, ErrorReason::RequestTooLarge, "x");
        let text = refused().with_longest(Some("env".to_owned())).text();
        assert!(text.contains("Next: shorten `env`"), "{text}");
        let text = refused().with_longest(None).text();
        assert!(text.contains("Next: shorten the arguments"), "{text}");
    }

    /// M5: a command that may run, or runs, is not to be run again.
    #[test]
    fn an_error_after_a_start_leads_to_the_task() {
        let gone = || Error::NotRunning {
            address: "unix:/x".parse().unwrap(),
            source: io::ErrorKind::NotFound.into(),
        };
        let maybe = Problem::of_spawn(gone());
        assert!(maybe.is_daemon_gone());
        let text = maybe.text();
        assert!(text.contains("Next: call heeler_list first"), "{text}");
        let started = Problem::Daemon(gone()).after_start_of("shell-a");
        assert!(started.is_daemon_gone());
        let text = started.text();
        assert!(text.contains("has started, as shell-a"), "{text}");
        assert!(text.contains("do not run it again"), "{text}");
    }

    /// M5
    #[test]
    fn a_full_disk_says_that_running_tasks_continue() {
        let text = refused(Code::ResourceExhausted, ErrorReason::StorageFull, "x").text();
        assert!(text.contains("running tasks continue"), "{text}");
    }
}
