//! Sweeps of real processes.

use std::{
    collections::BTreeSet,
    process::{Child, Command, Stdio},
};

use super::{
    look::{Ahead, NewestPids},
    marks::TaskMarks,
    *,
};
use crate::process::launch::ENVIRONMENT_TAG;

fn sleeper(uid: TaskUid) -> Child {
    Command::new("sleep")
        .arg("60")
        .env(ENVIRONMENT_TAG, uid.to_string())
        .stdin(Stdio::null())
        .spawn()
        .expect("a sleep")
}

fn target(uid: TaskUid) -> SweepTarget {
    SweepTarget {
        uid,
        cgroup: None,
        leader: None,
        spared: None,
    }
}

#[tokio::test]
async fn only_processes_with_the_tasks_tag_are_killed() {
    let (ours, other) = (TaskUid::new(), TaskUid::new());
    let (mut child, mut bystander) = (sleeper(ours), sleeper(other));
    let sweeper = Sweeper::start().expect("a thread");
    let target = target(ours);
    // The tag is there once the program runs.
    while sweeper.count(&target).await.expect("a /proc") == 0 {
        tokio::task::yield_now().await;
    }
    let swept = sweeper.sweep(&target, Duration::from_secs(10)).await;
    let swept = swept.expect("a /proc");
    assert_eq!(swept, Swept::Gone { found: 1 });
    assert!(!child.wait().expect("a child").success());
    assert!(bystander.try_wait().expect("a child").is_none());
    bystander.kill().expect("it lives");
    bystander.wait().expect("a child");
}

#[tokio::test]
async fn a_leader_with_another_start_time_is_not_killed() {
    let mut child = sleeper(TaskUid::new());
    let pid = child.id();
    let leader = LeaderId {
        pid,
        start_ticks: 1,
    };
    let target = SweepTarget {
        leader: Some(leader),
        ..target(TaskUid::new())
    };
    let swept = Sweeper::start()
        .expect("a thread")
        .sweep(&target, Duration::from_secs(10))
        .await
        .expect("a /proc");
    assert_eq!(swept, Swept::Gone { found: 0 });
    assert!(child.try_wait().expect("a child").is_none());
    child.kill().expect("it lives");
    child.wait().expect("a child");
}

/// C4, C14
#[test]
fn a_look_that_was_taken_ahead_is_continued_with_older_and_newer_processes() {
    let (older, newer) = (TaskUid::new(), TaskUid::new());
    let newest = NewestPids::of_kernel();
    let mut first = tagged_sleeper(older);
    // It cannot be continued if the machine starts too many processes meanwhile, or is too slow.
    let (look, mut second) = loop {
        let ahead = Ahead::take(SearchedMarks::Both, &newest).expect("a /proc");
        let mut second = tagged_sleeper(newer);
        if let Some(look) = ahead.continued(SearchedMarks::Both, &newest) {
            break (look, second);
        }
        second.kill().expect("it lives");
        second.wait().expect("a child");
    };
    let found = |uid| look.of_task(&TaskMarks::of(uid)).collect::<BTreeSet<_>>();
    let found = [found(older), found(newer), found(TaskUid::new())];
    for child in [&mut first, &mut second] {
        child.kill().expect("it lives");
        child.wait().expect("a child");
    }
    let pids = [first.id(), second.id()].map(|pid| BTreeSet::from([pid as i32]));
    assert_eq!(found[..2], pids);
    assert_eq!(found[2], BTreeSet::new());
}

/// C4, C14
#[test]
fn a_look_that_was_taken_ahead_is_not_continued_once_it_is_old() {
    let newest = NewestPids::of_kernel();
    let ahead = Ahead::take(SearchedMarks::LimitTag, &newest).expect("a /proc");
    let both = ahead.continued(SearchedMarks::Both, &newest);
    assert!(both.is_none(), "it knows one mark alone");
    std::thread::sleep(look::OLDEST_AHEAD);
    let later = ahead.continued(SearchedMarks::LimitTag, &newest);
    assert!(later.is_none());
}

/// Starts a process and waits until its program runs, from when on it has the tag.
fn tagged_sleeper(uid: TaskUid) -> Child {
    let child = sleeper(uid);
    let program = format!("/proc/{}/comm", child.id());
    while std::fs::read(&program).expect("it lives") != b"sleep\n" {
        std::thread::yield_now();
    }
    child
}

/// The search of a thread that hangs in the kernel.
#[tokio::test]
async fn a_search_that_hangs_is_given_up_by_its_caller() {
    // Nothing is received from the queue.
    let (work, _queue) = mpsc::channel(QUEUE);
    let sweeper = Sweeper {
        work,
        longest_search: Duration::from_millis(10),
    };
    let late = sweeper.count(&target(TaskUid::new())).await;
    let late = late.expect_err("no answer");
    assert_eq!(late.kind(), io::ErrorKind::TimedOut, "{late}");
}

/// A shortened tag of the nil id may be a limit that an ordinary process has.
#[tokio::test]
async fn no_process_has_the_marks_of_the_nil_id() {
    let nil = TaskUid(uuid::Uuid::nil());
    let mut child = sleeper(nil);
    let sweeper = Sweeper::start().expect("a thread");
    // The tag is there once the program runs.
    while Marks::of(child.id() as i32)
        .task_among([nil].into_iter())
        .is_none()
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(sweeper.count(&target(nil)).await.expect("a /proc"), 0);
    child.kill().expect("it lives");
    child.wait().expect("a child");
}
