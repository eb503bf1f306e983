//! Builds the request of `spawn` and `run` from their flags: the only file that writes a task's options.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use heeler_client::{
    Client, Spawn,
    v1::{EnvironmentDefaults, OutputPattern, StaleAction},
};

use super::{
    task::{AdmissionArgs, ForegroundArgs, TaskArgs},
    value::key_value::KeyValue,
};
use crate::{failure::Failure, task_ref};

/// A background task. Options that were not given are left to the daemon.
pub(crate) fn background(args: &TaskArgs) -> Result<Spawn, Failure> {
    let mut spawn = match &args.script {
        Some(script) => Spawn::shell(script),
        None => Spawn::argv(&args.argv),
    };
    spawn = spawn.working_directory(directory(args.cwd.as_deref())?);
    for KeyValue { key, value } in &args.labels {
        spawn = spawn.label(key, value);
    }
    for KeyValue { key, value } in &args.env {
        spawn = spawn.env(key, value);
    }
    for key in &args.env_remove {
        spawn = spawn.env_remove(key);
    }
    spawn = args
        .patterns
        .iter()
        .map(pattern)
        .fold(spawn, Spawn::pattern);
    if args.no_env_defaults {
        spawn = spawn.env_defaults(EnvironmentDefaults::None);
    }
    let spawn = args.ready.add_to(options(args, spawn));
    let spawn = args.restart.add_to(spawn);
    let spawn = args.input.add_to(spawn);
    Ok(admission(&args.admission, spawn))
}

/// A foreground task: without a time limit unless one was given.
pub(crate) fn foreground(args: &TaskArgs, foreground: &ForegroundArgs) -> Result<Spawn, Failure> {
    let timeout = foreground.foreground_timeout.unwrap_or(Duration::MAX);
    let spawn = background(args)?.foreground().foreground_timeout(timeout);
    let spawn = with(spawn, foreground.on_foreground_timeout, |spawn, action| {
        spawn.on_foreground_timeout(action.into())
    });
    let spawn = with(spawn, foreground.on_disconnect, |spawn, action| {
        spawn.on_disconnect(action.into())
    });
    Ok(with(
        spawn,
        foreground.reattach_window,
        Spawn::reattach_window,
    ))
}

/// A pattern to look for in the output, with the daemon's limits on its events.
pub(crate) fn pattern(KeyValue { key, value }: &KeyValue) -> OutputPattern {
    OutputPattern {
        name: key.clone(),
        regex: value.clone(),
        ..OutputPattern::default()
    }
}

/// Sets the parent, which may be given by a prefix or a name.
pub(crate) async fn with_parent(
    client: &Client,
    args: &TaskArgs,
    spawn: Spawn,
) -> Result<Spawn, Failure> {
    match args.parent() {
        Some(word) => Ok(spawn.parent(task_ref::resolve_one(client, word).await?)),
        None => Ok(spawn),
    }
}

fn options(args: &TaskArgs, spawn: Spawn) -> Spawn {
    let spawn = with(spawn, args.session.as_ref(), Spawn::session);
    let spawn = with(spawn, args.name.as_ref(), Spawn::name);
    let spawn = with(spawn, args.timeout, Spawn::timeout);
    let spawn = with(spawn, args.grace, Spawn::grace);
    let spawn = with(spawn, args.soft_grace, Spawn::soft_grace);
    let spawn = with(spawn, args.stop_signal.as_ref(), Spawn::stop_signal);
    let spawn = with(spawn, args.kind.map(Into::into), Spawn::kind);
    let spawn = with(spawn, args.orphans.map(Into::into), Spawn::orphan_policy);
    let spawn = with(spawn, args.rights.map(Into::into), Spawn::rights);
    let spawn = with(spawn, args.idle_timeout, Spawn::idle_timeout);
    let spawn = with(spawn, args.stale_after, Spawn::stale_after);
    let spawn = with(spawn, args.max_output, Spawn::max_output);
    let spawn = with(spawn, args.on_output_limit, |spawn, action| {
        spawn.on_output_limit(action.into())
    });
    let spawn = match args.stale_cancel {
        true => spawn.on_stale(StaleAction::Cancel),
        false => spawn,
    };
    with(spawn, args.request_id.as_ref(), Spawn::request_id)
}

fn admission(args: &AdmissionArgs, spawn: Spawn) -> Spawn {
    let spawn = with(spawn, args.queue.as_ref(), Spawn::queue);
    with(spawn, args.exclusive.as_ref(), |spawn, key| {
        spawn.exclusive(key, args.on_held.into())
    })
}

fn with<T>(spawn: Spawn, option: Option<T>, set: impl FnOnce(Spawn, T) -> Spawn) -> Spawn {
    match option {
        Some(value) => set(spawn, value),
        None => spawn,
    }
}

/// The directory to start in, absolute: the daemon has another one.
fn directory(cwd: Option<&Path>) -> Result<PathBuf, Failure> {
    let directory = match cwd {
        Some(cwd) => std::path::absolute(cwd)
            .map_err(|error| Failure::Usage(format!("--cwd {}: {error}", cwd.display())))?,
        None => env::current_dir().map_err(|error| {
            Failure::Usage(format!(
                "cannot determine the current directory: {error}; use --cwd"
            ))
        })?,
    };
    match directory.to_str() {
        Some(_) => Ok(directory),
        None => Err(Failure::Usage(format!(
            "the working directory {} is not valid UTF-8; use --cwd",
            directory.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{SpawnRequest, TaskSpec};

    use super::*;
    use crate::args::parse;

    fn spec(spawn: Spawn) -> TaskSpec {
        SpawnRequest::from(spawn).spec.unwrap()
    }

    #[test]
    fn options_that_are_not_given_are_left_to_the_daemon() {
        let task = parse::<TaskArgs>(&["--cwd", "/", "--", "true"]).unwrap();
        let spec = spec(background(&task).unwrap());
        assert_eq!((spec.stop, spec.timeout), (None, None));
        assert_eq!((spec.foreground, spec.orphan_policy), (None, 0));
        assert_eq!(spec.output, None);
        assert_eq!(spec.working_directory, "/");
    }

    #[test]
    fn a_foreground_task_has_no_time_limit_by_default() {
        let task = parse::<TaskArgs>(&["--", "true"]).unwrap();
        let flags = parse::<ForegroundArgs>(&[]).unwrap();
        let policy = spec(foreground(&task, &flags).unwrap()).foreground.unwrap();
        let years = policy.timeout.unwrap().seconds / (365 * 24 * 3600);
        assert!(years > 1000, "{years}");
        assert_eq!((policy.on_disconnect, policy.reattach_window), (0, None));
    }

    #[test]
    fn a_relative_directory_is_resolved_against_the_callers() {
        let here = env::current_dir().unwrap();
        assert_eq!(directory(None).unwrap(), here);
        assert_eq!(directory(Some(Path::new("src"))).unwrap(), here.join("src"));
        let absolute = directory(Some(Path::new("/srv"))).unwrap();
        assert_eq!(absolute, Path::new("/srv"));
    }
}
