//! A task's start: everything up to a leader that runs its program, or the record of why not.

use heeler_shim::{
    record::{Stage, Start, TreeEnd},
    wire::Report,
};

use super::{
    arguments::Task,
    capture::Capture,
    clock,
    control::Control,
    leader::{self, Failure, Leader},
    memory::Buffer,
    supervise::Shim,
    surroundings::{self, Surroundings, Trouble},
    sys::{file, process},
    task_file::{Claim, Fact, TaskFile},
};

/// Runs a task; the exit code.
pub(super) fn run(task: Task) -> u8 {
    let Surroundings {
        server,
        child_signals,
    } = match surroundings::arrange() {
        Ok(surroundings) => surroundings,
        Err(Trouble { server, errno }) => {
            let failure = Failure::at(Stage::Prepare)(errno);
            return refuse(&mut Control::new(server), failure);
        }
    };
    if let Some(descriptors) = task.flags.descriptors {
        // Lowering one's own limit is always allowed.
        let _ = process::limit_descriptors(descriptors);
    }
    let mut control = Control::new(Some(server));
    let mut file = match TaskFile::claim(&task) {
        Claim::Made(file) => file,
        Claim::Taken => return 0,
        Claim::Failed(errno) => {
            return refuse(&mut control, Failure::at(Stage::TaskFile)(errno));
        }
    };
    match start(&task, &mut control) {
        Ok((leader, capture)) => {
            // SAFETY: the leader has its own copy.
            unsafe { task.forget_leader() };
            file.start = Fact::Due(running(&leader));
            Shim::new(child_signals, control, file, leader, capture).run();
            0
        }
        Err(failure) => fail(&mut control, &mut file, failure),
    }
}

/// Says that nothing was started and that no file says so.
fn refuse(control: &mut Control, Failure { stage, errno }: Failure) -> u8 {
    control.send([Some(Report::CannotStart {
        stage,
        errno: errno.0,
    })]);
    1
}

/// Records that nothing was started.
fn fail(control: &mut Control, file: &mut TaskFile, failure: Failure) -> u8 {
    file.start = Fact::Due(Start::Failed {
        stage: failure.stage,
        errno: failure.errno.0,
    });
    file.tree_end = Fact::Due(TreeEnd {
        time_micros: clock::now_micros(),
        output_end: 0,
        cgroup_empty: false,
        cpu_micros: 0,
        max_memory: 0,
        capture_errno: 0,
        discarded: 0,
    });
    file.settle(control);
    if file.is_due() {
        refuse(control, failure)
    } else {
        0
    }
}

fn start(task: &Task, control: &mut Control) -> Result<(Leader, Capture), Failure> {
    control
        .listen(&task.uid)
        .map_err(Failure::at(Stage::Prepare))?;
    let (stdout, stdout_end) = file::pipe().map_err(Failure::at(Stage::Prepare))?;
    let (stderr, stderr_end) = file::pipe().map_err(Failure::at(Stage::Prepare))?;
    let buffer = Buffer::new().map_err(Failure::at(Stage::Prepare))?;
    let leader = leader::start(task, &stdout_end, &stderr_end)?;
    Ok((leader, Capture::new(stdout, stderr, buffer)))
}

fn running(leader: &Leader) -> Start {
    Start::Running {
        pid: leader.pid,
        start_ticks: leader.start_ticks,
        time_micros: clock::now_micros(),
        in_cgroup: leader.cgroup.is_some(),
    }
}
