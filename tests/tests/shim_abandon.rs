//! Orphans that are abandoned when the leader has exited.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use heeler_server::{
    process::{
        shim::{AfterTask, ShimLink, ShimOrder, ShimReport},
        task_file::Exit,
    },
    task::TaskUid,
};
use heeler_tests::{
    Daemon, LoneShims, LoneTask, Process, Setting, eventually, eventually_some, in_each_setting,
    setting, shell, skipped,
    v1::{TaskState, outcome::Result as Ended},
    within,
};
use nix::sys::signal::Signal;

in_each_setting! {
    a_recorded_abandonment_is_the_end_and_no_orphan_is_sought,
}

/// A leader that prints the pid of a child and leaves it behind.
const LEAVES_A_CHILD: &str = "sleep 600 & echo $!; exit 7";

async fn child_of(task: &LoneTask) -> Process {
    let pid = eventually_some("the child's pid", || {
        let text = String::from_utf8(task.output()).unwrap();
        text.strip_suffix('\n')?.lines().next()?.parse().ok()
    })
    .await;
    Process::now(pid).unwrap()
}

/// Abandoned processes are the test's to stop.
fn stop(child: &Process) {
    child.signal(Signal::SIGKILL);
}

/// F11
#[tokio::test]
async fn orphans_live_on_when_they_are_abandoned_after_the_leaders_exit() {
    let shims = LoneShims::new();
    let mut task = shims.start(LEAVES_A_CHILD).await;
    task.reported("the leader's end", |report| {
        report == ShimReport::LeaderExited
    })
    .await;
    let child = child_of(&task).await;
    assert!(task.records().tree_end.whole().is_none());
    let shim = task.shim().unwrap();
    task.order(ShimOrder::Abandon).await;
    task.reported("the end", |report| {
        report
            == ShimReport::TreeEnded {
                shim: AfterTask::Ends,
            }
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
async fn an_order_to_abandon_waits_for_the_leaders_exit() {
    let shims = LoneShims::new();
    let gate = shims.path("gate");
    let script = format!(
        "sleep 600 & echo $!; while ! test -e {}; do sleep 0.01; done; echo last; exit 7",
        gate.display()
    );
    let mut task = shims.start(&script).await;
    let child = child_of(&task).await;
    task.order(ShimOrder::Abandon).await;
    // The order before this one was received too.
    task.order(ShimOrder::Follow { beyond: 0 }).await;
    task.reported("output", |report| {
        matches!(report, ShimReport::Output { .. })
    })
    .await;
    assert!(task.records().tree_end.whole().is_none());
    // No server repeats the order.
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
async fn an_empty_tree_has_no_abandoned_orphans() {
    let shims = LoneShims::new();
    let gate = shims.path("gate");
    let script = format!("while ! test -e {}; do sleep 0.01; done", gate.display());
    let mut task = shims.start(&script).await;
    task.order(ShimOrder::Abandon).await;
    std::fs::write(gate, "").unwrap();
    assert!(!task.ended().await.abandoned);
}

/// C3
#[tokio::test]
async fn a_task_that_is_being_stopped_does_not_abandon_its_orphans() {
    let shims = LoneShims::new();
    let kill = ShimOrder::Kill {
        within_millis: 10_000,
    };
    for orders in [
        [ShimOrder::Abandon, ShimOrder::Signal { number: 15 }, kill],
        [ShimOrder::Abandon, kill, ShimOrder::Abandon],
        [kill, ShimOrder::Abandon, ShimOrder::Spill],
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
async fn a_cgroup_with_abandoned_orphans_is_kept() {
    if !setting::cgroups_are_usable() {
        return skipped("this machine has no cgroup v2 that a shim of this user could use");
    }
    let own = setting::own_cgroup().unwrap();
    let leaf = own.join(format!("heeler-abandon-{}", std::process::id()));
    let shims = LoneShims::new();
    let mut task = shims.start_in(Some(&leaf), LEAVES_A_CHILD).await;
    let child = child_of(&task).await;
    task.order(ShimOrder::Abandon).await;
    let end = task.ended().await;
    assert!(end.abandoned && !end.cgroup_empty, "{end:?}");
    let members = std::fs::read_to_string(leaf.join("cgroup.procs")).unwrap();
    assert_eq!(members.trim(), child.pid.to_string());
    stop(&child);
    eventually("an empty cgroup", || std::fs::remove_dir(&leaf).is_ok()).await;
}

/// F11, R1
async fn a_recorded_abandonment_is_the_end_and_no_orphan_is_sought(mut daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let task = api.start(shell(LEAVES_A_CHILD)).await;
    let pid = eventually_some("the child's pid", || {
        let file = std::fs::read(daemon.task_file(&task.id)).ok()?;
        let text = String::from_utf8_lossy(file.get(4096 + 44..)?).into_owned();
        text.strip_suffix('\n')?.parse().ok()
    })
    .await;
    let child = Process::now(pid).unwrap();
    let uid: TaskUid = serde_json::from_value(task.uid.clone().into()).unwrap();
    daemon.kill9();
    // As a server that dies before it has recorded the end.
    let mut link = ShimLink::connect(uid).unwrap();
    link.send(ShimOrder::Abandon).await.unwrap();
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
