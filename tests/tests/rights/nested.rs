//! The kernel says which task a caller on the Unix socket is inside of.

use heeler_tests::{
    Daemon, Setting, SpawnRequestExt as _, TaskSpecExt as _, binary, eventually_some,
    in_each_setting, v1::*,
};

use super::{calling, clean_up, lines_of, sleeper, stranger};

/// K2: what a task may do, and what it does not see.
async fn a_task_sees_and_stops_its_descendants_only(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let other = stranger(&api).await;
    let script = "
        child=$($H spawn --parent {OTHER} -- sleep 3600)
        echo child $child
        echo listed $($H ps -q | sort | tr '\\n' ' ')
        echo own $HEELER_TASK_ID
        for call in 'cancel {OTHER}' 'logs {OTHER}' 'inspect {OTHER}' 'kill {OTHER}' 'send {OTHER} hello' \
                'rm {OTHER}' 'wait {OTHER}' 'detach {OTHER}' 'cancel '$HEELER_TASK_ID; do
            $H $call --json 2>&1 | grep -o 'NOT_YOUR_TASK' | head -n 1 | sed \"s/^/$call: /\"
        done
        $H cancel --session s >/dev/null 2>&1
        $H shutdown --json 2>&1 | grep -o RIGHTS_INSUFFICIENT | head -n 1
        $H queue q --pause --json 2>&1 | grep -o RIGHTS_INSUFFICIENT | head -n 1
        $H events -f --session s --end-session --json 2>&1 | grep -o RIGHTS_INSUFFICIENT | head -n 1
        $H inspect $HEELER_TASK_ID >/dev/null && echo inspected itself
        $H cancel $child >/dev/null && echo stopped";
    let request = calling(script, &[("OTHER", &other.id)]).with_session("s");
    let task = api.start(request).await;
    let ended = api.ended(&task.id).await;
    let lines = api.lines(&task.id).await;
    assert_eq!(ended.state(), TaskState::Completed, "{lines:?}");
    let child = lines[0].strip_prefix("child ").unwrap().to_owned();
    let mut seen = [child.clone(), task.id.clone()];
    seen.sort();
    assert_eq!(lines[1], format!("listed {} {}", seen[0], seen[1]));
    let refused = lines
        .iter()
        .filter(|line| line.ends_with(": NOT_YOUR_TASK"));
    assert_eq!(refused.count(), 9, "{lines:#?}");
    let tail = &lines[lines.len() - 5..];
    let expected = [
        "RIGHTS_INSUFFICIENT",
        "RIGHTS_INSUFFICIENT",
        "RIGHTS_INSUFFICIENT",
        "inspected itself",
        "stopped",
    ];
    assert_eq!(tail, expected, "{lines:#?}");

    let child = api.task(&child).await;
    assert_eq!(child.spec.unwrap().parent_id, task.id, "set by the server");
    assert_eq!(child.state, i32::from(TaskState::Cancelled));
    assert_eq!(api.task(&other.id).await.state(), TaskState::Running);
    let log = daemon.logged("refused a call from inside of a task").await;
    assert!(log.contains(&task.id), "the refusal is loud: {log}");
    clean_up(&daemon).await;
}

/// K1: no trick sheds the rights of the task.
async fn no_trick_sheds_the_rights_of_a_task(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let other = stranger(&api).await;
    let call = "$H cancel --addr $A --json {OTHER}";
    let tricks = [
        format!("{call} > {{OUT}} 2>&1"),
        format!("setsid sh -c 'A='$A'; H='$H'; {call} > {{OUT}} 2>&1; true' "),
        format!("env -i sh -c 'A='$A'; H='$H'; {call} > {{OUT}} 2>&1'"),
        format!(
            "(setsid env -i sh -c 'A='$A'; H='$H'; sleep 0.2; {call} > {{OUT}}.new 2>&1; mv {{OUT}}.new {{OUT}}' &) ; exit 0"
        ),
        format!(
            "(env -i HEELER_TASK_UID=00000000-0000-0000-0000-000000000000 sh -c 'A='$A'; H='$H'; {call} > {{OUT}} 2>&1')"
        ),
    ];
    for (number, trick) in tricks.iter().enumerate() {
        let out = daemon.file(&format!("out-{number}"));
        let script = format!("A=$HEELER_ADDR; {trick}");
        let task = api
            .start(calling(&script, &[("OTHER", &other.id), ("OUT", &out)]))
            .await;
        api.ended(&task.id).await;
        let text = std::fs::read_to_string(&out).unwrap();
        assert!(text.contains("NOT_YOUR_TASK"), "{trick}: {text}");
        assert!(text.contains(&task.id), "by the right task: {text}");
    }
    assert_eq!(api.task(&other.id).await.state(), TaskState::Running);
    clean_up(&daemon).await;
}

/// K1: the escapes of the fixture, with both marks scrubbed.
async fn a_process_without_marks_has_the_rights_of_its_task(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let other = stranger(&api).await;
    let (listed, address) = (daemon.file("listed"), daemon.address());
    let heeler = binary::heeler().display();
    let script = format!(
        "double-fork [ setsid clean-exec [ lower-limits call {listed} [ {heeler} ps -q --addr {address} ] ] ] exit 0"
    );
    let task = api.start(daemon.script(&script)).await;
    api.ended(&task.id).await;
    let listed = std::fs::read_to_string(&listed).unwrap();
    assert_eq!(listed.trim(), task.id, "it sees itself alone");
    assert_eq!(api.task(&other.id).await.state(), TaskState::Running);
    clean_up(&daemon).await;
}

/// K2: events, waits, sessions and queues of others are not seen.
async fn events_sessions_and_queues_of_others_are_not_seen(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let other = stranger(&api).await;
    let queued = sleeper();
    let queued = SpawnRequest {
        spec: Some(TaskSpec {
            queue: "theirs".into(),
            ..queued.spec.unwrap()
        }),
        ..queued
    };
    api.start(queued).await;
    let script = "
        child=$($H spawn --queue mine --session s -- sleep 3600)
        echo sessions $($H sessions --json | tr -d ' \\n' | grep -o '\"shellIds\":[^]]*')
        echo queues $($H queue | tail -n +2 | cut -d ' ' -f 1)
        $H cancel $child > /dev/null
        $H events --json > {OUT}
        grep -c $child {OUT} > /dev/null && echo has its own
        grep -c -f {HIDDEN} {OUT}
        exit 0";
    // In a file: the events of the task have its script.
    let (out, hidden) = (daemon.file("events"), daemon.file("hidden"));
    let words = format!("{}\nSESSION_IDLE\nsessionActivity\n", other.id);
    std::fs::write(&hidden, words).unwrap();
    let lines = lines_of(
        &api,
        calling(script, &[("HIDDEN", &hidden), ("OUT", &out)]).with_session("s"),
    )
    .await;
    assert!(!lines[0].contains(&other.id), "{lines:?}");
    assert_eq!(lines[1], "queues mine", "{lines:?}");
    assert_eq!(lines[2..], ["has its own", "0"], "{lines:?}");
    clean_up(&daemon).await;
}

/// K2: the end of a session tells of tasks that a task does not see.
async fn the_sessions_of_others_are_not_watched(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let script = "$H events -f --session s --type session-idle 2>&1; echo $?";
    let lines = lines_of(&api, calling(script, &[]).with_session("s")).await;
    assert!(lines[0].contains("RIGHTS_INSUFFICIENT"), "{lines:?}");
    assert!(
        daemon
            .log()
            .contains("refused a call from inside of a task")
    );
    clean_up(&daemon).await;
}

/// K2: an exclusive key of a stranger can be neither replaced nor used.
async fn a_task_cannot_replace_a_stranger(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let mut holder = sleeper();
    holder.spec.as_mut().unwrap().exclusive = Some(ExclusivePolicy {
        key: "k".into(),
        ..ExclusivePolicy::default()
    });
    let holder = api.start(holder).await;
    let script = "
        for key in k {HOLDER}; do for mode in replace ensure; do
            $H spawn --exclusive $key --on-held $mode --json -- sleep 3600 2>&1 | grep -o NOT_YOUR_TASK | head -n 1
        done; done
        $H spawn --exclusive own -- sleep 3600 > /dev/null
        $H spawn --exclusive own --on-held replace -- sleep 3600 > /dev/null && echo replaced its own";
    let lines = lines_of(&api, calling(script, &[("HOLDER", &holder.id)])).await;
    let expected = [
        "NOT_YOUR_TASK",
        "NOT_YOUR_TASK",
        "NOT_YOUR_TASK",
        "NOT_YOUR_TASK",
        "replaced its own",
    ];
    assert_eq!(lines, expected);
    assert_eq!(api.task(&holder.id).await.state(), TaskState::Running);
    clean_up(&daemon).await;
}

/// K1: a process that a task of the user has abandoned is in no task any more. Where its cgroup still names the
/// finished task it is refused.
async fn an_abandoned_orphan_is_the_user_without_a_cgroup(daemon: Daemon, setting: Setting) {
    let api = daemon.api().await;
    let other = stranger(&api).await;
    let (out, go) = (daemon.file("out"), daemon.file("go"));
    let script = "
        (setsid sh -c 'while ! test -e {GO}; do sleep 0.05; done
            '$H' ps --json > {OUT}.new 2>&1; mv {OUT}.new {OUT}' > /dev/null 2>&1 &)
        exit 0";
    let request = calling(script, &[("GO", &go), ("OUT", &out)]);
    let task = api
        .start(request.with_orphan_policy(OrphanPolicy::Abandon))
        .await;
    api.ended(&task.id).await;
    std::fs::write(&go, "").unwrap();
    let text = eventually_some("the answer to the orphan", || {
        std::fs::read_to_string(&out).ok()
    })
    .await;
    let expected = match setting {
        Setting::Cgroup => "CALLER_UNKNOWN",
        Setting::Subreaper | Setting::Unprivileged => other.id.as_str(),
    };
    assert!(text.contains(expected), "{text}");
    clean_up(&daemon).await;
}

in_each_setting!(
    an_abandoned_orphan_is_the_user_without_a_cgroup,
    a_task_sees_and_stops_its_descendants_only,
    no_trick_sheds_the_rights_of_a_task,
    a_process_without_marks_has_the_rights_of_its_task,
    events_sessions_and_queues_of_others_are_not_seen,
    the_sessions_of_others_are_not_watched,
    a_task_cannot_replace_a_stranger,
);

/// K2: a task that names itself is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_about_the_callers_own_task_is_refused_in_these_words() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "$H cancel $HEELER_TASK_ID 2>&1; exit 0";
    let task = api.start(calling(script, &[])).await;
    api.ended(&task.id).await;
    let expected = format!(
        "heeler: task {} makes the call itself: it may act on its descendants only (NOT_YOUR_TASK)",
        task.id
    );
    assert_eq!(api.lines(&task.id).await, [expected]);
}

/// K2: a task does not wait for itself, and is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_for_the_callers_own_session_says_which_tasks_it_waits_for() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "$H wait --session s 2>&1; $H wait --session other 2>&1; exit 0";
    let request = calling(script, &[]).with_session("s");
    let lines = lines_of(&api, request).await;
    let wait = "heeler: session \"s\" has no live task to wait for: a call from inside a task waits for \
                the descendants of that task only";
    let none = "heeler: no task, live or finished, is in session \"other\"";
    assert_eq!(lines, [wait, none]);
}

/// K2: the user sees and stops everything, a nested task included.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_user_acts_on_nested_tasks() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let lines = lines_of(&api, calling("$H spawn -- sleep 3600", &[])).await;
    let child = api.task(&lines[0]).await;
    assert_eq!(child.state(), TaskState::Running);
    assert_eq!(api.kill(&child.id).await.task.unwrap().session(), "");
}
