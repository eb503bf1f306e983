//! Sweeps of real processes.

use std::process::{Child, Command, Stdio};

use super::*;
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
