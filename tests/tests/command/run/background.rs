//! Runs whose task goes to the background.

use heeler_tests::{Daemon, Process, TaskSpecExt as _, cli::CommandResult, v1::*, within};
use nix::sys::signal::Signal;

use super::{ended, reads, run, send, the_task};

/// F1, F5, F7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_detach_by_another_client_prints_the_id_and_keeps_the_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "printf one; exec sleep 60";
    let mut command = run(&daemon, &["--session", "s", "-c", script]);
    reads(command.stdout.as_mut().unwrap(), "one").await;
    let task = the_task(&api).await;
    let ps = daemon.heeler(["ps"]).await.ok().stdout;
    assert!(ps.contains("fg"), "{ps}");
    let waiting = daemon.cli(["wait", "--until", "background", &task.id]);
    let waiting = tokio::spawn(CommandResult::of(waiting));

    let args = ["detach", &task.id, "--reason", "enough", "--timeout", "10m"];
    let result = daemon.heeler(args).await.ok();
    assert_eq!(result.stdout, format!("{}  RUNNING; detached\n", task.id));
    let result = ended(command).await;
    // On a line of its own, although the task's output did not end with a newline.
    assert_eq!(
        (result.code, result.stdout),
        (Some(0), format!("\n{}\n", task.id))
    );
    assert!(result.stderr.contains("background") && result.stderr.contains("enough"));
    assert_eq!(within("the wait", waiting).await.unwrap().code, Some(0));

    let after = api.task(&task.id).await;
    assert_eq!(after.leader, task.leader, "the same process");
    assert_eq!(
        (after.state(), after.placement()),
        (TaskState::Running, Placement::Background)
    );
    assert_eq!(after.timeout(), None, "the specification stays");
    let timeout = after.detachment.unwrap().timeout;
    assert_eq!(timeout, Some(heeler_tests::secs(600)));
    let again = daemon.heeler(["detach", &task.id]).await.ok();
    assert!(again.stdout.contains("already in the background"));
    let nothing = daemon.heeler(["detach", "--session", "s"]).await.ok();
    assert_eq!(nothing.stdout, "");
    let events = daemon.heeler(["events", "--type", "detached"]).await.ok();
    assert_eq!(events.stdout.lines().count(), 1, "{}", events.stdout);
    assert!(
        events.stdout.contains(" detach by heeler detach"),
        "{}",
        events.stdout
    );
    let card = daemon.heeler(["inspect", &task.id]).await.ok().stdout;
    for part in ["in the background", "enough", "no time limit"] {
        assert!(card.contains(part), "{part}: {card}");
    }
}

/// F4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_foreground_timeout_puts_the_task_into_the_background() {
    let daemon = Daemon::start().await;
    let args = ["run", "--foreground-timeout", "300ms", "--", "sleep", "60"];
    let result = daemon.heeler(args).await.ok();
    let task = daemon.api().await.task(result.stdout.trim_end()).await;
    assert_eq!(task.state(), TaskState::Running);
    assert!(result.stderr.contains("(foreground timeout)"), "{result:?}");
}

/// F7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn detach_reports_a_finished_task_and_refuses_an_unknown_one() {
    let daemon = Daemon::start().await;
    let id = daemon.spawned(&["--", "true"]).await;
    daemon.api().await.ended(&id).await;
    let result = daemon.heeler(["detach", &id]).await.ok();
    assert!(result.stdout.contains("already finished"), "{result:?}");
    let unknown = daemon.heeler(["detach", "shell-aaaaaaaaaa"]).await;
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
}

/// F11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn orphans_go_on_in_the_background_or_are_killed() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "sleep 60 & echo $!; exit 3";
    let result = daemon.heeler(["run", "-c", script]).await;
    assert_eq!(result.code, Some(3), "{result:?}");
    assert!(
        result.stderr.contains("continues in the background"),
        "{result:?}"
    );
    assert_eq!(the_task(&api).await.placement(), Placement::Background);

    let result = daemon
        .heeler(["run", "--orphans", "kill", "-c", script])
        .await;
    let found = (result.code, &*result.stderr);
    assert_eq!(found, (Some(3), ""), "{result:?}");
    let child = result.stdout.trim_end().parse().unwrap();
    assert!(Process::now(child).is_none_or(|child| child.is_gone()));
}

/// F11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_of_an_orphan_right_after_the_leaders_exit_is_printed() {
    let daemon = Daemon::start().await;
    // The orphan writes only after the shell has exited.
    let late = "(while kill -0 $$; do :; done) 2> /dev/null; echo late";
    for json in [&[][..], &["--json"]] {
        let script = format!("({late}) & exit 3");
        let args = [&["run"], json, &["-c", &script]].concat();
        let result = daemon.heeler(args).await;
        assert_eq!((result.code, &*result.stderr), (Some(3), ""), "{result:?}");
        if json.is_empty() {
            assert_eq!(result.stdout, "late\n");
        } else {
            let last = result.stdout.lines().last().unwrap();
            assert!(result.stdout.contains("bGF0ZQo="), "{result:?}");
            assert!(last.contains("ATTACH_END_REASON_FINISHED"), "{result:?}");
        }
    }
    let script = "exec > >(tee log.txt) 2>&1; echo start; echo end";
    let result = daemon.heeler(["run", "--", "bash", "-c", script]).await;
    assert_eq!((result.code, &*result.stdout), (Some(0), "start\nend\n"));
}

/// A1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_script_with_a_trailing_ampersand_prints_its_id_alone() {
    let daemon = Daemon::start().await;
    let result = daemon.heeler(["run", "-c", "echo hi &"]).await.ok();
    assert!(result.stderr.contains("trailing &"), "{result:?}");
    assert_eq!(result.stderr.lines().count(), 1, "{result:?}");
    let api = daemon.api().await;
    let id = result.stdout.strip_suffix('\n').unwrap();
    assert_eq!(api.ended(id).await.placement(), Placement::Background);

    let result = daemon.heeler(["run", "--json", "-c", "echo hi &"]).await;
    let line: serde_json::Value = serde_json::from_str(&result.ok().stdout).unwrap();
    assert_eq!(line["ended"]["reason"], "ATTACH_END_REASON_DETACHED");
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reattach_window_too_short_for_an_attach_is_refused() {
    let daemon = Daemon::start().await;
    let args = ["run", "--reattach-window", "100ms", "--", "sleep", "60"];
    let result = daemon.heeler(args).await;
    assert_eq!(result.code, Some(2), "{result:?}");
    assert!(result.stderr.contains("--reattach-window"), "{result:?}");
    assert!(result.stderr.contains("1s or more"), "{result:?}");
    assert!(daemon.api().await.all().await.is_empty());
}

/// C9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn attach_to_an_unknown_task_prints_one_error() {
    let daemon = Daemon::start().await;
    let result = daemon.heeler(["attach", "shell-aaaaaaaaaa"]).await;
    assert_eq!(result.code, Some(3), "{result:?}");
    assert_eq!(result.stderr.lines().count(), 1, "{result:?}");
    assert!(!result.stderr.contains("lost the connection"), "{result:?}");
}

/// O2, L5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn attached_clients_see_all_output_and_may_leave() {
    let daemon = Daemon::start().await;
    let (mut gate, path) = (daemon.gate("gate"), daemon.file("gate"));
    let script = format!("echo one; echo two; read line < {path}; echo three; exit 8");
    let id = daemon.spawned(&["-c", &script]).await;
    let attach = |args: &[&str]| {
        let mut command = daemon.cli(["attach", &id].iter().chain(args));
        command.stdout(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let mut leaving = attach(&[]);
    reads(leaving.stdout.as_mut().unwrap(), "one\ntwo\n").await;
    let mut staying = attach(&["--tail", "1"]);
    reads(staying.stdout.as_mut().unwrap(), "two\n").await;
    send(&leaving, Signal::SIGINT);
    assert_eq!(ended(leaving).await.code, Some(130));
    let task = daemon.api().await.task(&id).await;
    assert_eq!(task.state(), TaskState::Running);
    gate.write("\n");
    let result = ended(staying).await;
    assert_eq!((result.code, &*result.stdout), (Some(8), "three\n"));
}
