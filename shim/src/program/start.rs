//! A shim's life: one task after the other, each up to a leader that runs its program, or the
//! record of why not.

use heeler_shim::{
    record::{Stage, Start, TreeEnd},
    wire::{After, Report},
};

use super::{
    arguments::Flags,
    assignment::Assignment,
    capture::Capture,
    clock,
    control::Control,
    leader::{self, Failure, Leader},
    memory::{Buffer, Room},
    output::Output,
    supervise::Supervision,
    surroundings::{self, Own, Surroundings, Trouble},
    sys::{Fd, Result, file},
    task_file::{Claim, Fact, TaskFile},
};

/// Runs tasks; the exit code.
pub(super) fn run(flags: &Flags, mut room: Room) -> u8 {
    room.show(b"");
    let Surroundings {
        server,
        child_signals,
        own,
    } = match surroundings::arrange(flags) {
        Ok(surroundings) => surroundings,
        Err(Trouble { server, errno }) => {
            let failure = Failure::at(Stage::Prepare)(errno);
            return refuse(&mut Control::new(server), failure);
        }
    };
    let mut control = Control::new(Some(server));
    let buffer = match Buffer::new() {
        Ok(buffer) => buffer,
        Err(errno) => return refuse(&mut control, Failure::at(Stage::Prepare)(errno)),
    };
    let mut shim = Shim {
        own,
        child_signals,
        control,
        buffer,
    };
    loop {
        // Made ahead, as nobody waits now.
        let pipes = Pipes::new();
        let Some(assignment) = shim.control.next_assignment() else {
            return 0;
        };
        match shim.serve(&assignment, pipes, &mut room) {
            Ok(After::Waits) => shim.rest(),
            Ok(After::Ends) => return 0,
            Err(code) => return code,
        }
        room.show(b"");
    }
}

/// What outlasts a task.
struct Shim {
    own: Own,
    child_signals: Fd,
    control: Control,
    buffer: Buffer,
}

impl Shim {
    /// One task, from its file to its end.
    fn serve(
        &mut self,
        assignment: &Assignment,
        pipes: Result<Pipes>,
        room: &mut Room,
    ) -> core::result::Result<After, u8> {
        let Some(task) = assignment.task() else {
            return Err(2);
        };
        room.show(task.file.to_bytes());
        let mut file = match TaskFile::claim(&task, &self.own) {
            Claim::Made(file) => file,
            Claim::Taken => return Ok(After::Ends),
            Claim::Failed(errno) => {
                let failure = Failure::at(Stage::TaskFile)(errno);
                return Err(refuse(&mut self.control, failure));
            }
        };
        let prepared = pipes.and_then(|pipes| {
            self.control.listen(&task.uid)?;
            Ok(pipes)
        });
        let started = prepared
            .map_err(Failure::at(Stage::Prepare))
            .and_then(|pipes| Ok((leader::start(&task, &pipes)?, pipes)));
        let (leader, pipes) = match started {
            Ok(started) => started,
            Err(failure) => return self.fail(file, failure),
        };
        // SAFETY: the leader has its own copy.
        unsafe { assignment.forget_leader() };
        file.start = Fact::Due(running(&leader));
        let output = Output::new(task.memory, self.own.durability);
        let capture = Capture::new(pipes.stdout, pipes.stderr, output, &mut self.buffer);
        let end = Supervision::new(
            &self.child_signals,
            &mut self.control,
            file,
            leader,
            capture,
        )
        .run();
        self.own.cpu_micros = self.own.cpu_micros.saturating_add(end.cpu_micros);
        Ok(end.after)
    }

    /// Records that nothing was started.
    fn fail(&mut self, mut file: TaskFile, failure: Failure) -> core::result::Result<After, u8> {
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
            abandoned: false,
        });
        let after = self.control.after();
        file.settle(&mut self.control, after);
        if file.is_due() {
            return Err(refuse(&mut self.control, failure));
        }
        Ok(after)
    }

    /// Gives back what a task has taken.
    fn rest(&mut self) {
        if self.buffer.is_touched() {
            self.buffer.release();
        }
    }
}

/// The leader's output: where we read it, and where the leader writes it.
pub(super) struct Pipes {
    stdout: Fd,
    stderr: Fd,
    pub(super) stdout_end: Fd,
    pub(super) stderr_end: Fd,
}

impl Pipes {
    fn new() -> Result<Self> {
        let (stdout, stdout_end) = file::pipe()?;
        let (stderr, stderr_end) = file::pipe()?;
        Ok(Self {
            stdout,
            stderr,
            stdout_end,
            stderr_end,
        })
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

fn running(leader: &Leader<'_>) -> Start {
    Start::Running {
        pid: leader.pid,
        start_ticks: leader.start_ticks,
        time_micros: clock::now_micros(),
        in_cgroup: leader.cgroup.is_some(),
    }
}
