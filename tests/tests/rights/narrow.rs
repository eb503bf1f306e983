//! Rights that the spawner narrows or widens, and the limit of nesting.

use heeler_tests::{Daemon, Refusal, SpawnRequestExt as _, v1::*};
use tonic::Code;

use super::{calling, clean_up, lines_of, sleeper, stranger};

fn with_rights(mut request: SpawnRequest, rights: TaskRights) -> SpawnRequest {
    request.spec.as_mut().unwrap().rights = rights.into();
    request
}

/// Prints a word for each call: the reason of its refusal, or `ok`.
const CALLS: &str = "
    try() { name=$1; shift; out=$(\"$@\" --json 2>&1) && echo $name ok ||
        echo $name $(echo \"$out\" | grep -o -e RIGHTS_INSUFFICIENT -e NOT_YOUR_TASK | head -n 1); }
    try report $H report --intent working
    try check $H check
    try list $H ps
    try spawn $H spawn --rights all -- sleep 3600
    try stop $H cancel {OTHER}
    try queue $H queue q --slots 2
    exit 0";

/// K3, P5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_spawner_narrows_and_widens_the_rights_of_a_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let no = "RIGHTS_INSUFFICIENT";
    for (rights, words) in [
        (TaskRights::None, [no, no, no, no, no, no]),
        (TaskRights::Report, ["ok", "ok", no, no, no, no]),
        (
            TaskRights::Children,
            ["ok", "ok", "ok", "ok", "NOT_YOUR_TASK", no],
        ),
        (TaskRights::All, ["ok", "ok", "ok", "ok", "ok", "ok"]),
    ] {
        let other = stranger(&api).await;
        let request = with_rights(calling(CALLS, &[("OTHER", &other.id)]), rights);
        let task = api.start(request).await;
        assert_eq!(task.spec.as_ref().unwrap().rights(), rights);
        api.ended(&task.id).await;
        let names = ["report", "check", "list", "spawn", "stop", "queue"];
        let expected: Vec<String> = (names.iter().zip(words))
            .map(|(name, word)| format!("{name} {word}"))
            .collect();
        assert_eq!(api.lines(&task.id).await, expected, "{rights:?}");
        let children = api.list(ListRequest {
            filter: Some(TaskFilter {
                parent_id: task.id.clone(),
                ..TaskFilter::default()
            }),
            ..ListRequest::default()
        });
        for child in children.await.unwrap().tasks {
            let given = child.spec.unwrap().rights();
            let expected = match rights {
                TaskRights::All => TaskRights::All,
                TaskRights::Unspecified
                | TaskRights::Children
                | TaskRights::Report
                | TaskRights::None => TaskRights::Children,
            };
            assert_eq!(given, expected, "a task cannot give more than it has");
        }
        clean_up(&daemon).await;
    }
}

/// P5: a task reports on itself, and on no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_reports_on_itself_only() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let other = stranger(&api).await;
    let script = "
        $H report --intent mine
        HEELER_TASK_ID={OTHER} $H report --intent theirs --json 2>&1 | grep -o NOT_YOUR_TASK | head -n 1
        $H spawn --orphans abandon --json -- true 2>&1 | grep -o RIGHTS_INSUFFICIENT | head -n 1";
    for rights in [TaskRights::Report, TaskRights::Children] {
        let request = with_rights(calling(script, &[("OTHER", &other.id)]), rights);
        let lines = lines_of(&api, request).await;
        assert_eq!(
            lines,
            ["NOT_YOUR_TASK", "RIGHTS_INSUFFICIENT"],
            "{rights:?}"
        );
    }
    assert_eq!(api.task(&other.id).await.progress, None);
    clean_up(&daemon).await;
}

/// K3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nesting_deeper_than_the_limit_is_refused() {
    let daemon = Daemon::builder().arg("--max-depth").arg("2").start().await;
    let api = daemon.api().await;
    let mut parent = api.start(sleeper()).await;
    for _ in 0..2 {
        parent = api.start(sleeper().with_parent(&parent.id)).await;
    }
    let refused = api.spawn(sleeper().with_parent(&parent.id)).await;
    let code = Code::FailedPrecondition;
    let refusal = Refusal::expect(refused, code, "DEPTH_LIMIT_REACHED");
    assert_eq!((refusal.value("depth"), refusal.value("max")), ("3", "2"));
    clean_up(&daemon).await;
}

/// K2: a request id of a stranger names nothing for a nested caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn request_ids_of_others_are_not_seen() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = SpawnRequest {
        request_id: "first".into(),
        ..sleeper()
    };
    let other = api.start(request).await;
    let script = "
        id=$($H spawn --request-id first -- sleep 3600)
        again=$($H spawn --request-id first -- sleep 3600)
        test $id = $again && test $id != {OTHER} && echo its own";
    let lines = lines_of(&api, calling(script, &[("OTHER", &other.id)])).await;
    assert_eq!(lines, ["its own"]);
    clean_up(&daemon).await;
}
