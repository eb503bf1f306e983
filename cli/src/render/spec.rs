//! Accessors for the options that a task was spawned with.
//!
//! Only this file and [`super::policies`] read those fields of a `BackgroundTask`: a change of the
//! contract stays here.

use std::time::Duration;

use heeler_client::{
    time,
    v1::{ArgvCommand, BackgroundTask, OrphanPolicy, ShellCommand, background_task::Command},
};

/// The command line, quoted as for a shell; a script as it is.
pub(crate) fn command(task: &BackgroundTask) -> String {
    match &task.command {
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
    &task.name
}

pub(crate) fn session(task: &BackgroundTask) -> &str {
    &task.session_id
}

pub(crate) fn working_directory(task: &BackgroundTask) -> &str {
    &task.working_directory
}

pub(crate) fn parent(task: &BackgroundTask) -> &str {
    &task.parent_id
}

/// The labels as `team=red size=5`.
pub(crate) fn labels(task: &BackgroundTask) -> String {
    let labels = task.labels.iter();
    let labels: Vec<_> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.join(" ")
}

/// The names of the environment variables that were given; their values are not recorded.
pub(crate) fn environment(task: &BackgroundTask) -> String {
    task.env_names.join(" ")
}

pub(crate) fn timeout(task: &BackgroundTask) -> Option<Duration> {
    task.timeout.map(time::from_proto)
}

/// The stop signal, and the time after it until the tree is killed.
pub(crate) fn stop_signal_and_grace(task: &BackgroundTask) -> Option<(&str, Duration)> {
    let policy = task.stop_policy.as_ref()?;
    let grace = policy.grace.map(time::from_proto).unwrap_or_default();
    Some((&policy.signal, grace))
}

pub(crate) fn stale_after(task: &BackgroundTask) -> Option<Duration> {
    task.stale_after.map(time::from_proto)
}

pub(crate) fn queue(task: &BackgroundTask) -> &str {
    &task.queue
}

pub(crate) fn exclusive_key(task: &BackgroundTask) -> &str {
    &task.exclusive_key
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
    task.orphan_policy()
}

/// Returns whether the task was spawned into the foreground, wherever it is now.
pub(crate) fn is_foreground(task: &BackgroundTask) -> bool {
    task.foreground_timeout.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        let args = ["sh", "-c", "it's", "a b", ""].map(str::to_owned).to_vec();
        let task = BackgroundTask {
            command: Some(Command::Argv(ArgvCommand { args })),
            ..BackgroundTask::default()
        };
        assert_eq!(command(&task), r"sh -c 'it'\''s' 'a b' ''");
    }

    #[test]
    fn admission_names_the_queue_and_the_key() {
        let mut task = BackgroundTask::default();
        assert_eq!(admission(&task), "");
        task.queue = "builds".to_owned();
        task.exclusive_key = "dev".to_owned();
        assert_eq!(admission(&task), "queue builds, key dev");
    }
}
