//! Accessors for the options that a task was spawned with.
//!
//! Only this file and [`super::policies`] read a `TaskSpec`: a change of the contract stays here.

use std::{sync::LazyLock, time::Duration};

use heeler_client::{
    time,
    v1::{
        ArgvCommand, BackgroundTask, OrphanPolicy, OutputPattern, ShellCommand, TaskSpec,
        task_spec::Command,
    },
};

/// The specification of a task; an empty one if the response has none.
pub(crate) fn of(task: &BackgroundTask) -> &TaskSpec {
    static EMPTY: LazyLock<TaskSpec> = LazyLock::new(TaskSpec::default);
    task.spec.as_ref().unwrap_or_else(|| &EMPTY)
}

/// The command line, quoted as for a shell; a script as it is.
pub(crate) fn command(task: &BackgroundTask) -> String {
    match &of(task).command {
        Some(Command::Argv(ArgvCommand { args })) => {
            let quoted: Vec<_> = args.iter().map(|arg| quote(arg)).collect();
            quoted.join(" ")
        }
        Some(Command::Shell(ShellCommand { script, .. })) => script.clone(),
        None => String::new(),
    }
}

fn quote(arg: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_^".contains(c);
    match arg {
        "" => "''".to_owned(),
        arg if arg.chars().all(plain) => arg.to_owned(),
        arg => format!("'{}'", arg.replace('\'', r"'\''")),
    }
}

pub(crate) fn name(task: &BackgroundTask) -> &str {
    &of(task).name
}

pub(crate) fn session(task: &BackgroundTask) -> &str {
    &of(task).session_id
}

pub(crate) fn working_directory(task: &BackgroundTask) -> &str {
    &of(task).working_directory
}

pub(crate) fn parent(task: &BackgroundTask) -> &str {
    &of(task).parent_id
}

/// The labels as `team=red size=5`.
pub(crate) fn labels(task: &BackgroundTask) -> String {
    let labels = of(task).labels.iter();
    let labels: Vec<_> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.join(" ")
}

/// The names of the environment variables that were given; their values are not recorded.
pub(crate) fn environment(task: &BackgroundTask) -> String {
    let environment = of(task).environment.as_ref();
    environment.map_or_else(String::new, |given| given.variable_names.join(" "))
}

/// The timeout in force: a Detach can replace the one of the specification.
pub(crate) fn timeout(task: &BackgroundTask) -> Option<Duration> {
    let replaced = task.detachment.as_ref().and_then(|made| made.timeout);
    replaced.or(of(task).timeout).map(time::from_proto)
}

/// The stop signal, and the time after it until the tree is killed.
pub(crate) fn stop_signal_and_grace(task: &BackgroundTask) -> Option<(&str, Duration)> {
    let policy = of(task).stop.as_ref()?;
    let grace = policy.grace.map(time::from_proto).unwrap_or_default();
    Some((&policy.signal, grace))
}

pub(crate) fn stale_after(task: &BackgroundTask) -> Option<Duration> {
    let silence = of(task).silence.as_ref()?;
    silence.stale_after.map(time::from_proto)
}

/// The patterns that are looked for in the output.
pub(crate) fn patterns(task: &BackgroundTask) -> &[OutputPattern] {
    let policy = of(task).output.as_ref();
    policy.map_or(&[], |policy| &policy.patterns)
}

pub(crate) fn queue(task: &BackgroundTask) -> &str {
    &of(task).queue
}

pub(crate) fn exclusive_key(task: &BackgroundTask) -> &str {
    let exclusive = of(task).exclusive.as_ref();
    exclusive.map_or("", |policy| &policy.key)
}

/// The queue and the key that a task needs before it starts, such as `queue builds, key dev`.
pub(crate) fn admission(task: &BackgroundTask) -> String {
    let mut needs = Vec::new();
    if !queue(task).is_empty() {
        needs.push(format!("queue {}", queue(task)));
    }
    if !exclusive_key(task).is_empty() {
        needs.push(format!("key {}", exclusive_key(task)));
    }
    needs.join(", ")
}

pub(crate) fn orphan_policy(task: &BackgroundTask) -> OrphanPolicy {
    of(task).orphan_policy()
}

/// Returns whether the task was spawned into the foreground, wherever it is now.
pub(crate) fn is_foreground(task: &BackgroundTask) -> bool {
    of(task).foreground.is_some()
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{Detachment, ExclusivePolicy};

    use super::*;

    fn with(spec: TaskSpec) -> BackgroundTask {
        BackgroundTask {
            spec: Some(spec),
            ..BackgroundTask::default()
        }
    }

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        let args = ["sh", "-c", "it's", "a b", ""].map(str::to_owned).to_vec();
        let task = with(TaskSpec {
            command: Some(Command::Argv(ArgvCommand { args })),
            ..TaskSpec::default()
        });
        assert_eq!(command(&task), r"sh -c 'it'\''s' 'a b' ''");
    }

    #[test]
    fn admission_names_the_queue_and_the_key() {
        assert_eq!(admission(&BackgroundTask::default()), "");
        let task = with(TaskSpec {
            queue: "builds".to_owned(),
            exclusive: Some(ExclusivePolicy {
                key: "dev".to_owned(),
                ..ExclusivePolicy::default()
            }),
            ..TaskSpec::default()
        });
        assert_eq!(admission(&task), "queue builds, key dev");
    }

    #[test]
    fn the_timeout_of_a_detach_replaces_the_tasks_own() {
        let seconds = Duration::from_secs;
        let mut task = with(TaskSpec {
            timeout: Some(time::to_proto(seconds(60))),
            ..TaskSpec::default()
        });
        assert_eq!(timeout(&task), Some(seconds(60)));
        task.detachment = Some(Detachment::default());
        assert_eq!(timeout(&task), Some(seconds(60)));
        task.detachment = Some(Detachment {
            timeout: Some(time::to_proto(seconds(5))),
            ..Detachment::default()
        });
        assert_eq!(timeout(&task), Some(seconds(5)));
    }
}
