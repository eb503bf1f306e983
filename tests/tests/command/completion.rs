//! Completion by the shell, and manual pages.

use heeler_tests::{Daemon, cli::CommandResult};

/// U4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_shell_has_a_completion_script() {
    let daemon = Daemon::start().await;
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let result = daemon.heeler(["completions", shell]).await.ok();
        assert!(
            result.stdout.contains("HEELER_COMPLETE"),
            "{shell}: {result:?}"
        );
    }
}

/// Presses tab in bash after these words, and returns the candidates.
async fn completed(daemon: &Daemon, words: &[&str]) -> Vec<String> {
    let script = r#"
        PATH="$(dirname "$1"):$PATH"; shift
        eval "$(heeler completions bash)"
        COMP_WORDS=(heeler "$@"); COMP_CWORD=$#; COMP_TYPE=9
        _clap_complete_heeler heeler "${!#}" ""
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut bash = daemon.wrapper("bash");
    bash.arg("-c").arg(script).arg("bash").arg(daemon.program());
    let result = CommandResult::of({
        bash.args(words);
        bash
    })
    .await
    .ok();
    result
        .stdout
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// U4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bash_completes_commands_ids_names_sessions_and_queues() {
    let daemon = Daemon::start().await;
    let flags = [
        "--name",
        "devserver",
        "--session",
        "s-one",
        "--queue",
        "builds",
    ];
    let args: Vec<&str> = flags.iter().copied().chain(["sleep", "60"]).collect();
    let id = daemon.spawned(&args).await;
    let completes = async |words: &[&str], expected: &str| {
        let found = completed(&daemon, words).await;
        assert!(
            found.iter().any(|one| one == expected),
            "{words:?}: {found:?}"
        );
    };
    completes(&["insp"], "inspect").await;
    completes(&["ps", "--sess"], "--session").await;
    for command in [
        "inspect", "cancel", "logs", "wait", "rm", "restart", "attach", "detach",
    ] {
        completes(&[command, "shell-"], &id).await;
        completes(&[command, "dev"], "devserver").await;
    }
    for command in ["ps", "cancel", "wait", "events", "spawn"] {
        completes(&[command, "--session", "s-"], "s-one").await;
    }
    completes(&["queue", ""], "builds").await;
    completes(&["run", "--queue", "b"], "builds").await;
}

/// U4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn completion_starts_no_daemon() {
    let daemon = Daemon::builder().own_program().prepare();
    let found = completed(&daemon, &["inspect", "shell-"]).await;
    assert_eq!(found.concat(), "");
    assert!(daemon.processes().is_empty());
    assert!(!daemon.socket().exists());
}

/// U4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_manual_page_is_printed_for_each_command() {
    let daemon = Daemon::start().await;
    let own = daemon.heeler(["man"]).await.ok().stdout;
    assert!(own.contains(".TH heeler 1"), "{own}");
    let run = daemon.heeler(["man", "run"]).await.ok().stdout;
    assert!(run.contains(".TH heeler-run 1"), "{run}");
    assert!(run.contains("foreground\\-timeout"), "{run}");
    let unknown = daemon.heeler(["man", "no-such"]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}
