//! `heeler restart`: stops a task, proves it gone, and starts the same command as a new task.
//!
//! The new task is checked and recorded before the old one is asked to stop, and waits for its end by an
//! exclusive key: the old one's own key or, if it has none, its id. So a refusal leaves the old task as it
//! is, and once it is stopped the new one starts, whatever becomes of this command.

use std::collections::BTreeMap;

use clap::Args;
use heeler_client::{
    CancelOptions, Client, Error, Filter, Spawn, StreamExt, WatchItem, WatchOptions,
    v1::{
        BackgroundTask, ExclusiveMode, ExclusivePolicy, SpawnResponse, TaskEventType, TaskSpec,
        TaskState,
    },
};

use crate::{
    args::{
        selection,
        value::key_value::{self, KeyValue},
    },
    completion,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::{proof, spec, status},
    task_ref,
};

/// The label of a new task with the id of the one that it repeats.
const RESTART_OF: &str = "heeler.restart-of";
/// The most labels that the daemon accepts.
const MOST_LABELS: usize = 64;

const EXAMPLES: &str = "\
Examples:
  heeler restart dev
  heeler restart --env TOKEN shell-4k2mzq7xda

The new task has the command, directory, name, session, labels and policies of the old one, starts in the \
background, and has the label heeler.restart-of with the old id. Its id is printed. A finished task is started again.

The daemon keeps the names of a task's environment variables, not their values: give each again with --env, or \
leave them out with --drop-env.

The old task is stopped once the daemon has accepted the new one: if it refuses it, for example because its \
directory is gone, nothing is stopped. The new task has the exclusive key of the old one, or its id as the key, and \
starts when the old one is proven gone, or when its queue has a slot. A finished task stops no other: if another \
task has its key, it is not started.";

/// Stop a task and start the same command as a new task
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Restart {
    /// The task: an id, a unique prefix of one, or the name of a live task
    #[arg(value_name = "ID", add = completion::tasks(), value_parser = selection::not_empty())]
    id: String,

    /// A variable of the old task, or a new one; K alone passes on the value that it has here; may be repeated
    #[arg(long, value_name = "K[=V]", value_parser = key_value::parse_env)]
    env: Vec<KeyValue>,

    /// Start without the variables of the old task that --env does not give
    #[arg(long)]
    drop_env: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The way to stop the old task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// It is finished.
    Nothing,
    /// The daemon stops it for the new task, which starts at once.
    Replaced,
    /// The new task waits, in its queue or for the key, and the old one is cancelled.
    Cancelled,
}

impl Stop {
    fn of(old: &BackgroundTask) -> Self {
        if status::is_finished(old) {
            Self::Nothing
        } else if old.state() == TaskState::Queued || !spec::queue(old).is_empty() {
            Self::Cancelled
        } else {
            Self::Replaced
        }
    }

    /// Makes the new task come after the old one.
    fn order(self, old: &BackgroundTask, spec: &mut TaskSpec) {
        let mode = match self {
            Self::Replaced => ExclusiveMode::Replace,
            Self::Cancelled => ExclusiveMode::Queue,
            Self::Nothing => {
                // Its key may have another holder by now.
                if let Some(exclusive) = &mut spec.exclusive
                    && exclusive.mode() == ExclusiveMode::Replace
                {
                    exclusive.set_mode(ExclusiveMode::Reject);
                }
                return;
            }
        };
        let key = match spec::exclusive_key(old) {
            "" => &old.id,
            key => key,
        };
        spec.exclusive = Some(ExclusivePolicy {
            key: key.to_owned(),
            mode: mode.into(),
        });
    }
}

impl Restart {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let id = task_ref::resolve_one(&cx.client, &self.id).await?;
        let old = cx.client.task(id).get().await?;
        let stop = Stop::of(&old);
        let mut spec = self.new_spec(&cx.client, &old).await?;
        stop.order(&old, &mut spec);
        let response = spawned(&cx.client, &old, spec).await?;
        let new = (response.task.as_ref()).ok_or(Error::Incomplete { field: "task" })?;
        let new = new.id.clone();
        if cx.print_json(&response)? == Printed::No {
            cx.out.line(&new)?;
        }
        cx.out.flush()?;
        match stop {
            Stop::Nothing | Stop::Replaced => Ok(Exit::Success),
            Stop::Cancelled => cancel(&cx.client, &old, &new).await,
        }
    }

    /// The specification of the new task. Refused if it cannot be the same.
    async fn new_spec(&self, client: &Client, old: &BackgroundTask) -> Result<TaskSpec, Failure> {
        let mut spec = spec::of(old).clone();
        self.set_environment(&mut spec)?;
        spec.foreground = None;
        spec.labels.insert(RESTART_OF.to_owned(), old.id.clone());
        if spec.labels.len() > MOST_LABELS {
            let text = format!(
                "{} has {MOST_LABELS} labels, and the new task needs one more",
                old.id
            );
            return Err(Failure::Usage(text));
        }
        if !spec.parent_id.is_empty() {
            let parent = client.task(&spec.parent_id).get().await;
            if !parent.is_ok_and(|parent| !status::is_finished(&parent)) {
                let parent = std::mem::take(&mut spec.parent_id);
                out::note(&format!("the new task has no parent: {parent} is finished"));
            }
        }
        Ok(spec)
    }

    /// Gives every variable of the old task a value again, unless it is to be dropped.
    fn set_environment(&self, spec: &mut TaskSpec) -> Result<(), Failure> {
        let environment = spec.environment.get_or_insert_default();
        let given: BTreeMap<&str, &str> = (self.env.iter())
            .map(|one| (one.key.as_str(), one.value.as_str()))
            .collect();
        let names = std::mem::take(&mut environment.variable_names);
        let missing: Vec<&str> = (names.iter().map(String::as_str))
            .filter(|name| !given.contains_key(name))
            .collect();
        if !missing.is_empty() && !self.drop_env {
            let flags: Vec<String> = missing
                .iter()
                .map(|name| format!("--env {name}=…"))
                .collect();
            return Err(Failure::Usage(format!(
                "the values of {} are not kept; use {}, or --drop-env",
                missing.join(", "),
                flags.join(" ")
            )));
        }
        environment.variables = given
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Ok(())
    }
}

/// Starts the new task. The call may last until the old one is gone: processes of it that have outlived
/// the kill are named meanwhile.
async fn spawned(
    client: &Client,
    old: &BackgroundTask,
    spec: TaskSpec,
) -> Result<SpawnResponse, Error> {
    let overdue = WatchOptions::after(old.revision)
        .matching(Filter::all().task(&old.id))
        .event_type(TaskEventType::KillOverdue);
    let mut overdue = client.watch(overdue);
    let response = client.spawn_response(Spawn::from(spec));
    tokio::pin!(response);
    loop {
        tokio::select! {
            response = &mut response => return response,
            Some(item) = overdue.next() => {
                if let Ok(WatchItem::Event(event)) = item
                    && let Some(found) = event.task.as_ref().and_then(proof::of)
                {
                    out::note(&format!("{}: {}", old.id, proof::clause(found)));
                }
            }
        }
    }
}

/// Stops the old task after the new one is recorded.
async fn cancel(client: &Client, old: &BackgroundTask, new: &str) -> Result<Exit, Failure> {
    let options = CancelOptions::graceful()
        .actor("heeler restart")
        .reason(format!("replaced by {new}"));
    let stopped = client.task(&old.id).cancel(options).await?.task;
    match stopped {
        Some(task) if !status::is_finished(&task) => {
            let found = proof::of(&task).map(proof::clause).unwrap_or_default();
            out::note(&format!("{}: {found}; {new} waits for it", task.id));
            Ok(Exit::Failed)
        }
        Some(_) | None => Ok(Exit::Success),
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::TaskEnvironment;

    use super::*;

    fn environment(args: &[&str]) -> Result<TaskEnvironment, Failure> {
        let args = crate::args::parse::<Restart>(args).unwrap();
        let mut spec = TaskSpec {
            environment: Some(TaskEnvironment {
                variable_names: vec!["A".to_owned(), "B".to_owned()],
                remove: vec!["C".to_owned()],
                ..TaskEnvironment::default()
            }),
            ..TaskSpec::default()
        };
        args.set_environment(&mut spec)?;
        Ok(spec.environment.unwrap())
    }

    fn ordered(state: TaskState, spec: TaskSpec) -> (Stop, Option<ExclusivePolicy>) {
        let old = BackgroundTask {
            id: "shell-4k2mzq7xda".to_owned(),
            state: state.into(),
            spec: Some(spec.clone()),
            ..BackgroundTask::default()
        };
        let (stop, mut new) = (Stop::of(&old), spec);
        stop.order(&old, &mut new);
        (stop, new.exclusive)
    }

    fn policy(key: &str, mode: ExclusiveMode) -> Option<ExclusivePolicy> {
        Some(ExclusivePolicy {
            key: key.to_owned(),
            mode: mode.into(),
        })
    }

    /// U3
    #[test]
    fn the_new_task_comes_after_the_old_one_by_its_key_or_its_id() {
        use ExclusiveMode::{Ensure, Queue, Reject, Replace};
        let plain = TaskSpec::default;
        let keyed = |mode| TaskSpec {
            exclusive: policy("k", mode),
            ..plain()
        };
        let in_queue = || TaskSpec {
            queue: "q".to_owned(),
            ..plain()
        };
        let own_id = |mode| policy("shell-4k2mzq7xda", mode);
        let running = |spec| ordered(TaskState::Running, spec);
        assert_eq!(running(plain()), (Stop::Replaced, own_id(Replace)));
        let replaced = (Stop::Replaced, policy("k", Replace));
        assert_eq!(running(keyed(Ensure)), replaced);
        assert_eq!(running(in_queue()), (Stop::Cancelled, own_id(Queue)));
        let waiting = ordered(TaskState::Queued, keyed(Queue));
        assert_eq!(waiting, (Stop::Cancelled, policy("k", Queue)));
        let finished = ordered(TaskState::Failed, keyed(Replace));
        assert_eq!(finished, (Stop::Nothing, policy("k", Reject)));
        assert_eq!(ordered(TaskState::Failed, plain()), (Stop::Nothing, None));
    }

    #[test]
    fn values_that_are_not_kept_must_be_given_or_dropped() {
        let Err(Failure::Usage(text)) = environment(&["id", "--env", "A=1"]) else {
            panic!("a value is missing");
        };
        assert!(
            text.contains("--env B=") && !text.contains("--env A="),
            "{text}"
        );
        let given = environment(&["id", "--env", "A=1", "--env", "B=2"]).unwrap();
        assert_eq!((given.variables.len(), given.variable_names.len()), (2, 0));
        assert_eq!(given.remove, ["C"]);
        let dropped = environment(&["id", "--drop-env"]).unwrap();
        assert!(dropped.variables.is_empty());
    }
}
