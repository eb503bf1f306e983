//! Abandoned trees: processes that the shim leaves running after the leader's exit.

use heeler_server::internal::{AfterTask, Exit, ShimLink, ShimOrder, ShimReport, TaskUid};
use heeler_tests::{
    Daemon, LoneShims, LoneTask, Process, Setting, containment, eventually, eventually_some,
    in_each_setting, outcome::exit_code, shell, skipped, v1::TaskState, within,
};
use nix::sys::signal::Signal;

in_each_setting! {
    a_recorded_abandonment_is_the_end_and_the_next_server_kills_nothing,
}

/// A leader that prints the pid of its child and exits while the child runs.
const LEAVES_A_CHILD: &str = "sleep 600 & echo $!; exit 7";

async fn child_of(task: &LoneTask) -> Process {
    let pid = eventually_some("the child's pid", || {
        let text = String::from_utf8(task.output()).unwrap();
        text.strip_suffix('\n')?.lines().next()?.parse().ok()
    })
    .await;
    Process::now(pid).unwrap()
}

/// Ends an abandoned process, which the test has to do itself.
fn stop(child: &Process) {
    child.signal(Signal::SIGKILL);
}

/// F11
#[tokio::test]
async fn after_the_leaders_exit_an_abandon_order_leaves_the_orphans_running() {
    let shims = LoneShims::new();
    let mut task = shims.start(LEAVES_A_CHILD).await;
    task.reported("the exit of the leader", |report| {
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
    eventually("the end of the shim", || !shim.is_alive()).await;
    assert!(child.is_alive());
    stop(&child);
}

/// F11
#[tokio::test]
async fn an_abandon_order_takes_effect_at_the_leaders_exit() {
    let shims = LoneShims::new();
    let gate = shims.path("gate");
    let script = format!(
        "sleep 600 & echo $!; while ! test -e {}; do sleep 0.01; done; echo last; exit 7",
        gate.display()
    );
    let mut task = shims.start(&script).await;
    let child = child_of(&task).await;
    task.order(ShimOrder::Abandon).await;
    // The order has arrived once a later one is answered.
    task.order(ShimOrder::Follow { beyond: 0 }).await;
    task.reported("output", |report| {
        matches!(report, ShimReport::Output { .. })
    })
    .await;
    assert!(task.records().tree_end.whole().is_none());
    // No server is left to repeat the order.
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
async fn a_tree_without_orphans_is_not_recorded_as_abandoned() {
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
async fn a_tree_that_is_being_stopped_is_not_abandoned() {
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
            // The kill may be complete before the next order is sent.
            task.order_if_there(order).await;
        }
        assert!(!task.ended().await.abandoned);
        assert!(!child.is_alive());
    }
}

/// F11
#[tokio::test]
async fn a_cgroup_with_abandoned_processes_stays() {
    if !containment::cgroups_are_usable() {
        return skipped("no cgroup v2 that this user may use");
    }
    let own = containment::own_cgroup().unwrap();
    let leaf = own.join(format!("heeler-abandoned-{}", std::process::id()));
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
async fn a_recorded_abandonment_is_the_end_and_the_next_server_kills_nothing(
    mut daemon: Daemon,
    _: Setting,
) {
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
    // The order of a server that dies before it reads the end.
    let mut link = ShimLink::connect(uid).await.unwrap();
    link.send(ShimOrder::Abandon).await.unwrap();
    within("the end of the shim", async {
        while link.next().await.is_some() {}
    })
    .await;
    daemon.restart().await;
    let api = daemon.api().await;
    let ended = api.ended(&task.id).await;
    assert_eq!(ended.state(), TaskState::Failed);
    assert_eq!(exit_code(&ended), 7);
    daemon.kill9();
    daemon.restart().await;
    assert!(child.is_alive());
    stop(&child);
    // The next server removes the cgroup, once it is empty.
    eventually("the end of the child", || !child.is_alive()).await;
    daemon.kill9();
    daemon.restart().await;
}
