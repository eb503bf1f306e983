//! Calls from inside of a task: the rights that they have, and the tasks that they see.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod narrow;
mod nested;
mod token;

use heeler_tests::{Api, Daemon, SpawnRequestExt as _, binary, shell, v1::*};

/// The `heeler` command, quoted for a script.
fn heeler() -> String {
    format!("'{}'", binary::heeler().display())
}

/// A task whose script calls the daemon as `$H`. `{NAME}` in the script stands for a given value.
fn calling(script: &str, values: &[(&str, &str)]) -> SpawnRequest {
    let mut script = format!("H={}; {script}", heeler());
    for (name, value) in values {
        script = script.replace(&format!("{{{name}}}"), value);
    }
    shell(&script)
}

/// Runs such a task to its end, and returns the lines that it has written.
async fn lines_of(api: &Api, request: SpawnRequest) -> Vec<String> {
    let task = api.start(request).await;
    let ended = api.ended(&task.id).await;
    assert_eq!(ended.state(), TaskState::Completed, "{ended:?}");
    api.lines(&task.id).await
}

/// A task that sleeps.
fn sleeper() -> SpawnRequest {
    heeler_tests::argv(["sleep", "3600"])
}

/// A sleeping task of the user, in a session.
async fn stranger(api: &Api) -> BackgroundTask {
    api.start(sleeper().with_session("s")).await
}

/// Stops every task that is left.
async fn clean_up(daemon: &Daemon) {
    let api = daemon.api().await;
    api.stop_everything().await.unwrap();
}
