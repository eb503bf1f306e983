//! A tree that is let go when its leader has ended.

use heeler_server::{process::link::Link, task::TaskUid};
use heeler_shim::{
    record::Exit,
    wire::{After, Order, Report},
};
use heeler_tests::{
    Daemon, LoneShims, LoneTask, Process, Setting, containment, eventually, eventually_some,
    in_each_setting, shell, skipped,
    v1::{TaskState, outcome::Result as Ended},
    within,
};
use nix::sys::signal::Signal;

in_each_setting! {
    a_release_on_record_is_the_end_and_nobody_is_looked_for,
}

/// A leader that leaves a child behind, which says its pid; the child ignores that nobody reads it.
const LEAVES_A_CHILD: &str = "sleep 600 & echo $!; exit 7";

async fn child_of(task: &LoneTask) -> Process {
    let pid = eventually_some("the child's pid", || {
        let text = String::from_utf8(task.output()).unwrap();
        text.strip_suffix('\n')?.lines().next()?.parse().ok()
    })
    .await;
    Process::now(pid).unwrap()
}

/// Whoever was let go is the test's to stop.
fn stop(child: &Process) {
    child.signal(Signal::SIGKILL);
}

/// F11
#[tokio::test]
async fn once_the_leader_has_ended_the_others_are_let_go_and_live() {
    let shims = LoneShims::new();
    let mut task = shims.start(LEAVES_A_CHILD).await;
    task.reported("the leader's end", |report| report == Report::LeaderExited)
        .await;
    let child = child_of(&task).await;
    assert!(task.records().tree_end.whole().is_none());
    let shim = task.shim().unwrap();
    task.order(Order::Abandon).await;
    task.reported("the end", |report| {
        report == Report::TreeEnded { shim: After::Ends }
    })
    .await;
    let records = task.records();
    let end = records.tree_end.whole().unwrap();
    assert!(end.abandoned && !end.cgroup_empty, "{end:?}");
    let exit = records.leader_exit.whole().unwrap();
    assert_eq!(exit.exit, Exit::Code(7));
    assert_eq!(end.output_end, exit.output_end);
    eventually("the shim's end", || !shim.is_alive()).await;
    assert!(child.is_alive());
    stop(&child);
}

/// F11
#[tokio::test]
async fn an_order_to_let_go_waits_for_the_leader() {
    let shims = LoneShims::new();
    let gate = shims.path("gate");
    let script = format!(
        "sleep 600 & echo $!; while ! test -e {}; do sleep 0.01; done; echo last; exit 7",
        gate.display()
    );
    let mut task = shims.start(&script).await;
    let child = child_of(&task).await;
    task.order(Order::Abandon).await;
    // Heard, as what comes behind it is.
    task.order(Order::Follow { beyond: 0 }).await;
    task.reported("output", |report| matches!(report, Report::Output { .. }))
        .await;
    assert!(task.records().tree_end.whole().is_none());
    // Nobody is there to say it again.
    task.hang_up();
    std::fs::write(gate, "").unwrap();
    let end = task.recorded_end().await;
    assert!(end.abandoned);
    assert!(task.output().ends_with(b"last\n"));
    assert!(child.is_alive());
    stop(&child);
}

/// F11
#[tokio::test]
async fn a_tree_of_which_nobody_is_left_was_not_let_go() {
    let shims = LoneShims::new();
    let gate = shims.path("gate");
    let script = format!("while ! test -e {}; do sleep 0.01; done", gate.display());
    let mut task = shims.start(&script).await;
    task.order(Order::Abandon).await;
    std::fs::write(gate, "").unwrap();
    assert!(!task.ended().await.abandoned);
}

/// C3
#[tokio::test]
async fn whoever_is_to_be_stopped_is_not_let_go() {
    let shims = LoneShims::new();
    let kill = Order::Kill {
        within_millis: 10_000,
    };
    for orders in [
        [Order::Abandon, Order::Signal { number: 15 }, kill],
        [Order::Abandon, kill, Order::Abandon],
        [kill, Order::Abandon, Order::Spill],
    ] {
        let script = "trap '' TERM; sleep 600 & echo $!; sleep 600";
        let mut task = shims.start(script).await;
        let child = child_of(&task).await;
        for order in orders {
            // A kill may be done before the next order is sent.
            task.order_if_there(order).await;
        }
        assert!(!task.ended().await.abandoned);
        assert!(!child.is_alive());
    }
}

/// F11
#[tokio::test]
async fn a_cgroup_with_somebody_in_it_stays() {
    if !containment::cgroups_are_usable() {
        return skipped("this machine has no cgroup v2 that a shim of this user could use");
    }
    let own = containment::own_cgroup().unwrap();
    let leaf = own.join(format!("heeler-ended-{}", std::process::id()));
    let shims = LoneShims::new();
    let mut task = shims.start_in(Some(&leaf), LEAVES_A_CHILD).await;
    let child = child_of(&task).await;
    task.order(Order::Abandon).await;
    let end = task.ended().await;
    assert!(end.abandoned && !end.cgroup_empty, "{end:?}");
    let members = std::fs::read_to_string(leaf.join("cgroup.procs")).unwrap();
    assert_eq!(members.trim(), child.pid.to_string());
    stop(&child);
    eventually("an empty cgroup", || std::fs::remove_dir(&leaf).is_ok()).await;
}

/// F11, R1
async fn a_release_on_record_is_the_end_and_nobody_is_looked_for(mut daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let task = api.start(shell(LEAVES_A_CHILD)).await;
    let pid = eventually_some("the child's pid", || {
        let file = std::fs::read(daemon.task_file(&task.id)).ok()?;
        let text = String::from_utf8_lossy(file.get(4096 + 40..)?).into_owned();
        text.strip_suffix('\n')?.parse().ok()
    })
    .await;
    let child = Process::now(pid).unwrap();
    let uid: TaskUid = serde_json::from_value(task.uid.clone().into()).unwrap();
    daemon.kill9();
    // As a server that dies before it has taken the end in.
    let mut link = Link::connect(uid).unwrap();
    link.send(Order::Abandon).await.unwrap();
    within("the shim's end", async {
        while link.next().await.is_some() {}
    })
    .await;
    daemon.restart().await;
    let api = daemon.api().await;
    let ended = api.ended(&task.id).await;
    assert_eq!(ended.state(), TaskState::Failed);
    assert_eq!(ended.outcome.unwrap().result, Some(Ended::ExitCode(7)));
    daemon.kill9();
    daemon.restart().await;
    assert!(child.is_alive());
    stop(&child);
    // The cgroup goes with the next server, once it is empty.
    eventually("its end", || !child.is_alive()).await;
    daemon.kill9();
    daemon.restart().await;
}
