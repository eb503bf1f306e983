//! A shim's life: one task after the other, each up to a running leader or a record of the failure.

pub(crate) mod cgroup;

mod assignment;
mod connection;
mod leader;
mod supervision;
mod task_file;

use heeler_shim::{
    record::{Stage, Start, TreeEnd},
    wire::{AfterTask, Report},
};

use super::{
    clock,
    output::{capture::Capture, writer::Writer},
    pages::{Buffer, Title},
    startup::{
        arguments::Flags,
        setup::{self, Own, Setup, SetupError},
    },
    sys::{Fd, Result, file},
};
use assignment::Assignment;
use connection::Connection;
use leader::{Failure, Leader};
use supervision::Supervision;
use task_file::{Claim, Fact, TaskFile};

/// Runs tasks; returns the exit code.
pub(crate) fn run(flags: &Flags, mut title: Title) -> u8 {
    title.show(b"");
    let Setup {
        server,
        child_signals,
        own,
    } = match setup::set_up(flags) {
        Ok(setup) => setup,
        Err(SetupError { server, errno }) => {
            let failure = Failure::at(Stage::Prepare)(errno);
            return refuse(&mut Connection::new(server), failure);
        }
    };
    let mut connection = Connection::new(Some(server));
    let buffer = match Buffer::new() {
        Ok(buffer) => buffer,
        Err(errno) => return refuse(&mut connection, Failure::at(Stage::Prepare)(errno)),
    };
    let mut shim = Shim {
        own,
        child_signals,
        connection,
        buffer,
    };
    loop {
        // Created before the task comes, while no Spawn waits.
        let pipes = Pipes::new();
        let Some(assignment) = shim.connection.next_assignment() else {
            return 0;
        };
        match shim.serve(&assignment, pipes, &mut title) {
            Ok(AfterTask::Waits) => shim.release_memory(),
            Ok(AfterTask::Ends) => return 0,
            Err(code) => return code,
        }
        title.show(b"");
    }
}

/// The state that outlives a task.
struct Shim {
    own: Own,
    child_signals: Fd,
    connection: Connection,
    buffer: Buffer,
}

impl Shim {
    /// Runs one task, from the creation of its file to its end.
    fn serve(
        &mut self,
        assignment: &Assignment,
        pipes: Result<Pipes>,
        title: &mut Title,
    ) -> core::result::Result<AfterTask, u8> {
        let Some(task) = assignment.task() else {
            return Err(2);
        };
        title.show(task.file.to_bytes());
        let mut file = match TaskFile::claim(&task, &self.own) {
            Claim::Made(file) => file,
            Claim::Taken => return Ok(AfterTask::Ends),
            Claim::Failed(errno) => {
                let failure = Failure::at(Stage::TaskFile)(errno);
                return Err(refuse(&mut self.connection, failure));
            }
        };
        let prepared = pipes.and_then(|pipes| {
            self.connection.listen(&task.uid)?;
            Ok(pipes)
        });
        let started = prepared
            .map_err(Failure::at(Stage::Prepare))
            .and_then(|pipes| Ok((leader::start(&task, &pipes)?, pipes)));
        let (leader, pipes) = match started {
            Ok(started) => started,
            Err(failure) => return self.fail(file, failure),
        };
        // SAFETY: the leader has executed its program and has copies of its own.
        unsafe { assignment.wipe_leader() };
        file.start = Fact::Due(running(&leader));
        let writer = Writer::new(task.memory, task.output, self.own.durability);
        let capture = Capture::new(pipes.stdout, pipes.stderr, writer, &mut self.buffer);
        let end = Supervision::new(
            &self.child_signals,
            &mut self.connection,
            file,
            leader,
            capture,
        )
        .run();
        self.own.cpu_micros = self.own.cpu_micros.saturating_add(end.cpu_micros);
        Ok(end.after)
    }

    /// Records that nothing was started.
    fn fail(
        &mut self,
        mut file: TaskFile,
        failure: Failure,
    ) -> core::result::Result<AfterTask, u8> {
        file.start = Fact::Due(Start::Failed {
            stage: failure.stage,
            errno: failure.errno.0,
        });
        file.tree_end = Fact::Due(TreeEnd {
            time: clock::stamp(),
            output_end: 0,
            cgroup_empty: false,
            cpu_micros: 0,
            max_memory: 0,
            capture_errno: 0,
            discarded: 0,
            abandoned: false,
        });
        let after = self.connection.after_task();
        file.settle(&mut self.connection, after);
        if file.is_due() {
            return Err(refuse(&mut self.connection, failure));
        }
        Ok(after)
    }

    /// Gives back the memory that a task's output used.
    fn release_memory(&mut self) {
        if self.buffer.is_touched() {
            self.buffer.release();
        }
    }
}

/// The two ends of the leader's output pipes.
struct Pipes {
    stdout: Fd,
    stderr: Fd,
    /// The leader's ends.
    stdout_end: Fd,
    stderr_end: Fd,
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

/// Reports that nothing was started and that no file says so; returns the exit code.
fn refuse(connection: &mut Connection, Failure { stage, errno }: Failure) -> u8 {
    connection.send([Some(Report::CannotStart {
        stage,
        errno: errno.0,
    })]);
    1
}

fn running(leader: &Leader<'_>) -> Start {
    Start::Running {
        pid: leader.pid,
        start_ticks: leader.start_ticks,
        time: clock::stamp(),
        in_cgroup: leader.cgroup.is_some(),
    }
}
