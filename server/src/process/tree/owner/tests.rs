//! The owner of real processes. The test itself is the shim of its children.

use std::{
    path::PathBuf,
    process::{Child, Command},
};

use super::*;
use crate::{
    process::containment::SubreaperReason,
    task::{IdKey, Kind, Seq},
};

const NO_CGROUP: ChosenContainment = ChosenContainment::Subreaper {
    reason: SubreaperReason::Requested,
};

/// A child, until it is dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start(uid: Option<TaskUid>) -> Self {
        let mut command = Command::new("sleep");
        command.arg("600").env_remove("HEELER_TASK_UID");
        if let Some(uid) = uid {
            command.env("HEELER_TASK_UID", uid.to_string());
        }
        let child = command.spawn().unwrap();
        // A program that has just been executed has no environment yet.
        let environ = format!("/proc/{}/environ", child.id());
        while fs::read(&environ).unwrap().is_empty() {}
        Self(child)
    }

    fn pin(&self) -> PinnedProcess {
        PinnedProcess::open(self.0.id() as i32).unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn task(number: u64, shim: Option<ShimProcess>) -> KnownTask {
    KnownTask {
        id: IdKey(1).task_id(Kind::Shell, Seq(number)),
        uid: TaskUid::new(),
        shim,
    }
}

fn this_process() -> ShimProcess {
    let pid = std::process::id() as i32;
    let start_ticks = super::super::start_ticks(pid).unwrap();
    ShimProcess { pid, start_ticks }
}

#[test]
fn a_descendant_of_a_shim_belongs_to_its_task_whatever_its_marks_say() {
    let tasks = [task(1, None), task(2, Some(this_process()))];
    let sleeper = Sleeper::start(Some(tasks[0].uid));
    let owner = owner(&sleeper.pin(), &tasks, &NO_CGROUP);
    assert_eq!(owner, Owner::Task(tasks[1].id.clone()));
}

#[test]
fn a_shim_is_recognised_by_its_start_time_too() {
    let mut other = this_process();
    other.start_ticks += 1;
    let tasks = [task(1, Some(other))];
    let sleeper = Sleeper::start(None);
    assert_eq!(owner(&sleeper.pin(), &tasks, &NO_CGROUP), Owner::None);
}

#[test]
fn a_process_without_a_shim_belongs_to_the_task_of_its_marks() {
    let tasks = [task(1, None), task(2, None)];
    let sleeper = Sleeper::start(Some(tasks[1].uid));
    let owner = owner(&sleeper.pin(), &tasks, &NO_CGROUP);
    assert_eq!(owner, Owner::Task(tasks[1].id.clone()));
}

#[test]
fn the_owner_of_a_process_that_has_ended_is_unknown() {
    let mut sleeper = Sleeper::start(None);
    let pinned = sleeper.pin();
    sleeper.0.kill().unwrap();
    sleeper.0.wait().unwrap();
    let tasks = [task(1, Some(this_process()))];
    assert_eq!(owner(&pinned, &tasks, &NO_CGROUP), Owner::Unknown);
}

#[test]
fn a_process_below_the_cgroup_of_a_task_is_in_its_leaf() {
    let root = PathBuf::from("/sys/fs/cgroup/user/heeler-1");
    let leaf = |path: &'static str| leaf_below(root.file_name().unwrap(), Path::new(path));
    assert_eq!(leaf("/user/heeler-1/shell-a"), Some("shell-a"));
    assert_eq!(leaf("/../heeler-1/shell-a/own/deeper"), Some("shell-a"));
    let nested = "/user/heeler-1/shell-a/heeler-1/shell-b";
    assert_eq!(leaf(nested), Some("shell-b"), "the inner server's");
    for other in ["/", "/user/heeler-1", "/user/heeler-2/shell-a"] {
        assert_eq!(leaf(other), None, "{other}");
    }
}
