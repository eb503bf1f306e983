//! The environment that a task is started with.

use std::collections::BTreeMap;

use heeler_tests::{Api, Daemon, SpawnRequestExt as _, TaskSpecExt as _, argv, v1::*};

/// All variables of a task that runs to its end.
async fn variables(api: &Api, request: SpawnRequest) -> BTreeMap<String, String> {
    let task = api
        .start(request.with_command_of(argv(["env", "-0"])))
        .await;
    assert_eq!(api.ended(&task.id).await.state(), TaskState::Completed);
    let all = String::from_utf8(api.output(&task.id).await).unwrap();
    let pairs = all
        .split_terminator('\0')
        .map(|pair| pair.split_once('=').unwrap());
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// S6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_request_overlays_the_servers_environment() {
    let daemon = Daemon::builder()
        .env("INHERITED", "base")
        .env("REPLACED", "base")
        .start()
        .await;
    let api = daemon.api().await;
    let env = [
        ("REPLACED", "own"),
        ("ADDED", "line\nbreak = 'quoted' \u{e9}"),
        ("EMPTY", ""),
    ];
    let seen = variables(&api, SpawnRequest::default().with_env(env)).await;
    assert_eq!(seen["INHERITED"], "base");
    assert_eq!(seen["REPLACED"], "own");
    assert_eq!(seen["ADDED"], "line\nbreak = 'quoted' \u{e9}");
    assert_eq!(seen["EMPTY"], "");
}

/// S6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_variable_can_be_taken_away() {
    let daemon = Daemon::builder()
        .env("SECRET", "s")
        .env("KEPT", "k")
        .start()
        .await;
    let api = daemon.api().await;
    let env_remove = ["SECRET", "PAGER", "NEVER_THERE"];
    let seen = variables(&api, SpawnRequest::default().with_env_remove(env_remove)).await;
    assert!(
        !seen.contains_key("SECRET") && !seen.contains_key("PAGER"),
        "{seen:?}"
    );
    assert_eq!(seen["KEPT"], "k");
}

/// S6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nobody_is_looking_unless_the_request_says_otherwise() {
    let daemon = Daemon::builder()
        .env("PAGER", "less")
        .env("TERM", "xterm")
        .start()
        .await;
    let api = daemon.api().await;
    let seen = variables(&api, SpawnRequest::default()).await;
    for name in ["PAGER", "GIT_PAGER"] {
        assert_eq!(seen[name], "cat", "no pager");
    }
    assert_eq!(seen["GIT_TERMINAL_PROMPT"], "0", "no prompt");
    assert!(!seen["NO_COLOR"].is_empty(), "no colour");
    for name in ["EDITOR", "VISUAL", "GIT_EDITOR"] {
        assert!(
            !["vi", "vim", "nano", "emacs"].contains(&seen[name].as_str()),
            "no editor"
        );
    }

    let env = [("PAGER", "more"), ("EDITOR", "ed")];
    let seen = variables(&api, SpawnRequest::default().with_env(env)).await;
    assert_eq!(
        (seen["PAGER"].as_str(), seen["EDITOR"].as_str()),
        ("more", "ed")
    );

    let env_defaults = EnvDefaults::None;
    let seen = variables(
        &api,
        SpawnRequest::default().with_env_defaults(env_defaults),
    )
    .await;
    assert_eq!(
        (seen["PAGER"].as_str(), seen["TERM"].as_str()),
        ("less", "xterm")
    );
    for name in ["NO_COLOR", "GIT_TERMINAL_PROMPT", "EDITOR", "GIT_PAGER"] {
        assert!(!seen.contains_key(name), "{name}");
    }
}

/// S6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_knows_itself_and_its_server_and_nothing_else_of_heeler() {
    let daemon = Daemon::builder()
        .env("HEELER_STATE_DIR", "/nowhere")
        .env("HEELER_OTHER", "x")
        .start()
        .await;
    let api = daemon.api().await;
    let task = api.start(argv(["env", "-0"])).await;
    api.ended(&task.id).await;
    let all = String::from_utf8(api.output(&task.id).await).unwrap();
    let mut ours: Vec<&str> = all
        .split('\0')
        .filter(|pair| pair.starts_with("HEELER_"))
        .collect();
    ours.sort_unstable();
    let expected = [
        format!("HEELER_ADDR={}", daemon.address()),
        format!("HEELER_TASK_ID={}", task.id),
        format!("HEELER_TASK_UID={}", task.uid),
    ];
    assert_eq!(ours, expected);
}

/// S6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_names_the_variables_that_were_set_and_never_their_values() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let env = [("TOKEN", "hunter2-hunter2"), ("ALPHA", "1")];
    let task = api.start(argv(["true"]).with_env(env)).await;
    assert_eq!(task.env_names(), ["ALPHA", "TOKEN"]);
    api.ended(&task.id).await;
    let told = format!(
        "{:?}{:?}",
        api.history().await,
        api.inspect(&task.id).await.unwrap()
    );
    assert!(!told.contains("hunter2"), "a value was told");
    assert!(!daemon.log().contains("hunter2"), "a value was logged");
}

/// S6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_bare_name_is_looked_up_in_the_tasks_own_path() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let tools = daemon.path("tools");
    std::fs::create_dir(&tools).unwrap();
    std::os::unix::fs::symlink(daemon.fixture_program(), tools.join("only-here")).unwrap();
    let env = [("PATH", tools.to_str().unwrap())];
    let task = api
        .start(argv(["only-here", "print", "found"]).with_env(env))
        .await;
    api.ended(&task.id).await;
    assert_eq!(api.lines(&task.id).await, ["found"]);
}
