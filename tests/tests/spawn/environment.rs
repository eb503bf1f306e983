//! The environment of a task.

use std::collections::BTreeMap;

use heeler_tests::{Api, Daemon, SpawnRequestExt as _, TaskSpecExt as _, argv, v1::*};

/// The variables of a task, as `env` prints them.
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
async fn request_variables_overlay_the_servers_environment() {
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
async fn a_variable_can_be_removed() {
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
async fn non_interactive_defaults_apply_unless_overridden_or_switched_off() {
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

    let env_defaults = EnvironmentDefaults::None;
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
async fn a_task_gets_its_id_its_uid_and_the_address_and_no_other_heeler_variable() {
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

/// S6, N4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_shows_the_names_of_its_variables_but_no_values() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let env = [("TOKEN", "hunter2-hunter2"), ("ALPHA", "1")];
    let task = api.start(argv(["true"]).with_env(env)).await;
    assert_eq!(task.env_names(), ["ALPHA", "TOKEN"]);
    api.ended(&task.id).await;
    let shown = format!(
        "{:?}{:?}",
        api.history().await,
        api.inspect(&task.id).await.unwrap()
    );
    assert!(
        !shown.contains("hunter2"),
        "a value in an event or in Inspect"
    );
    assert!(!daemon.log().contains("hunter2"), "a value in the log");
}

/// S6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_program_without_a_slash_is_searched_in_the_tasks_own_path() {
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
