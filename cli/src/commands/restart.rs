//! `heeler restart`: stops a task, proves it gone, and starts the same command as a new task.
//!
//! The environment, the number of labels and the parent are checked before the old task is stopped. The
//! daemon checks the rest at the Spawn, after the stop.

use std::collections::BTreeMap;

use clap::Args;
use heeler_client::{
    CancelOptions, Client, Error, Spawn,
    v1::{BackgroundTask, TaskSpec},
};

use crate::{
    args::{
        key_value::{self, KeyValue},
        selection,
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
leave them out with --drop-env. Nothing is stopped before this is known. If the daemon refuses the new task, for \
example because its directory is gone, the old one stays stopped.";

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

impl Restart {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let id = task_ref::resolve_one(&cx.client, &self.id).await?;
        let old = cx.client.task(id).get().await?;
        let spec = self.new_spec(&cx.client, &old).await?;
        stop(&cx.client, &old).await?;
        let response = cx.client.spawn_response(Spawn::from(spec)).await;
        let response = response.inspect_err(|_| {
            out::note(&format!("{} is stopped, and was not started again", old.id));
        })?;
        if cx.print_json(&response)? == Printed::No {
            let task = response.task.ok_or(Error::Incomplete { field: "task" })?;
            cx.out.line(&task.id)?;
        }
        cx.out.flush()?;
        Ok(Exit::Success)
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

/// Stops the task, unless it is finished, and expects the proof that its tree is gone.
async fn stop(client: &Client, old: &BackgroundTask) -> Result<(), Failure> {
    let options = CancelOptions::graceful()
        .actor("heeler restart")
        .reason("restart");
    let stopped = client.task(&old.id).cancel(options).await?.task;
    match stopped {
        Some(task) if !status::is_finished(&task) => {
            let found = proof::of(&task).map(proof::clause).unwrap_or_default();
            let text = format!("{} is not started again: {found}", task.id);
            Err(Failure::Other(text))
        }
        Some(_) | None => Ok(()),
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
