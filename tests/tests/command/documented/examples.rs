//! Every example in the help runs as printed.

use std::{fs, os::unix::fs::PermissionsExt};

use heeler_tests::{Authority, Daemon, binary, cli::CommandResult, daemon::Builder};
use tempfile::TempDir;

/// Programs that the examples run, which need not do more than end well.
const PROGRAMS: [&str; 7] = [
    "make",
    "npm",
    "cargo",
    "check.sh",
    "build.sh",
    "subagent",
    "some-stdio-server",
];

/// Ends a command that runs until Ctrl-C, with exit code 124, when it has shown that it runs.
pub(super) const UNTIL_INTERRUPTED: &str = "timeout 1";

/// The commands, as `heeler --help` lists them.
fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// The examples of a help text.
fn examples(help: &str) -> Vec<String> {
    let found = help
        .lines()
        .skip_while(|line| !line.starts_with("Example"))
        .skip(1);
    let found = found.take_while(|line| line.starts_with("  "));
    found.map(|line| line.trim().to_owned()).collect()
}

/// A directory with programs for the examples, which goes at the head of the search path.
pub(super) fn programs() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in PROGRAMS {
        binary::make(&dir.path().join(name), "#!/bin/sh\nexit 0\n");
    }
    std::os::unix::fs::symlink(binary::heeler(), dir.path().join("heeler")).unwrap();
    dir
}

/// A daemon whose tasks find the programs, and a home with the files that the examples mention.
pub(super) fn builder(programs: &TempDir) -> Builder {
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", programs.path().display());
    Daemon::builder().env("PATH", path).env("TOKEN", "t")
}

pub(super) fn prepare_home(daemon: &Daemon, programs: &TempDir) {
    let home = daemon.home();
    for name in PROGRAMS {
        binary::copy(&programs.path().join(name), &home.join(name));
    }
    for dir in [
        ".local/share/bash-completion/completions",
        ".zfunc",
        ".config/fish/completions",
        ".codex",
    ] {
        fs::create_dir_all(home.join(dir)).unwrap();
    }
}

/// Two finished tasks of a session.
async fn finished_tasks(daemon: &Daemon) -> [String; 2] {
    let args = ["--session", "s1", "--label", "team=red", "true"];
    let ids = [daemon.spawned(&args).await, daemon.spawned(&args).await];
    for id in &ids {
        daemon.api().await.ended(id).await;
    }
    ids
}

/// The example as it is run: with ids that exist, and a live task of the name that it mentions.
async fn adapted(daemon: &Daemon, example: &str, ids: &[String; 2]) -> String {
    if example.split_whitespace().any(|word| word == "dev") && !example.contains("spawn") {
        let script = "echo Listening on :80; exec sleep 60";
        daemon.spawned(&["--name", "dev", "-c", script]).await;
    }
    let ids = match example.contains("heeler send shell") || example.contains("heeler send --") {
        // It needs a stdin.
        true => &[daemon.spawned(&["-i", "sleep", "60"]).await, ids[1].clone()],
        false => ids,
    };
    let example = example.replace("shell-4k2mzq7xda", &ids[0]);
    let example = example.replace("shell-7rw3hm2pqe", &ids[1]);
    if !["heeler send", "heeler report", "heeler check"]
        .iter()
        .any(|words| example.contains(words))
    {
        return example;
    }
    // Of a live task, and from inside of it.
    let live = daemon.spawned(&["sleep", "60"]).await;
    let example = example.replace("agent-4k2mzq7xda", &live);
    let example = example.replace("hosted-7rw3hm2pqe", &live);
    let example = example.replace("next_step", "break");
    format!("export HEELER_TASK_ID={live}; {example}")
}

pub(super) async fn run(daemon: &Daemon, script: &str) -> CommandResult {
    let mut bash = daemon.wrapper("bash");
    bash.arg("-c").arg(format!("set -o pipefail; {script}"));
    CommandResult::of(bash).await
}

/// U2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_example_in_the_help_runs_as_printed() {
    let programs = programs();
    let first = Daemon::start().await;
    let help = first.heeler(["--help"]).await.ok().stdout;
    let mut count = 0;
    // `serve`, `top` and `dashboard` have tests of their own; `doctor` looks at the processes of other tests too.
    let skipped = ["serve", "top", "dashboard", "doctor"];
    for command in commands(&help)
        .iter()
        .filter(|name| !skipped.contains(&name.as_str()))
    {
        let help = first.heeler([command, "--help"]).await.ok().stdout;
        for example in examples(&help) {
            let mut daemon = builder(&programs).start().await;
            prepare_home(&daemon, &programs);
            let ids = finished_tasks(&daemon).await;
            let script = adapted(&daemon, &example, &ids).await;
            let endless = ["events -f", "--watch", "follow dev"];
            let runs_on = endless.iter().any(|words| script.contains(words));
            let (wrapper, expected) = match runs_on {
                true => (UNTIL_INTERRUPTED, 124),
                false => ("", 0),
            };
            let result = run(&daemon, &format!("{wrapper} {script}")).await;
            // A pattern that is not found is no failure of the command.
            let is_good = result.code == Some(expected) || script.contains("| grep");
            assert!(is_good, "{command}: {example}\n{result:?}");
            if command == "shutdown" {
                daemon.ended();
            }
            count += 1;
        }
    }
    assert!(count > 40, "only {count} examples were found");
}

/// U2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_example_of_serve_starts_a_daemon() {
    let programs = programs();
    let daemon = builder(&programs).prepare();
    let files = Authority::new(&daemon.path(""), "test").certify("localhost");
    fs::copy(files.certificate, daemon.home().join("cert.pem")).unwrap();
    fs::copy(files.key, daemon.home().join("key.pem")).unwrap();
    let help = daemon.heeler(["serve", "--help"]).await.ok().stdout;
    let found = examples(&help);
    assert!(found.len() > 4, "{help}");
    for directory in ["systemd/user", "heeler"] {
        fs::create_dir_all(daemon.home().join(".config").join(directory)).unwrap();
    }
    let webhooks = daemon.home().join(".config/heeler/webhooks");
    fs::write(&webhooks, "http://127.0.0.1:9/hook").unwrap();
    fs::set_permissions(&webhooks, PermissionsExt::from_mode(0o600)).unwrap();
    for example in found {
        if example.contains("--print-unit") {
            run(&daemon, &example).await.ok();
            let unit = daemon.home().join(".config/systemd/user/heeler.service");
            let unit = fs::read_to_string(unit).unwrap();
            assert!(unit.contains("/heeler serve\n"), "{unit}");
            continue;
        }
        let script = example.replace("/srv/", &daemon.file("srv-"));
        let script = script
            .replace("/run/", &daemon.file("run/"))
            .replace(":7117", ":0");
        let result = run(
            &daemon,
            &script.replace("heeler serve", &format!("{UNTIL_INTERRUPTED} heeler serve")),
        )
        .await;
        assert_eq!(result.code, Some(124), "{example}\n{result:?}");
        assert!(
            result.stderr.contains("listening on"),
            "{example}\n{result:?}"
        );
    }
}
