//! A shim's life: one task after the other, each up to a running leader or a record of the failure.

pub(crate) mod cgroup;

mod assignment;
mod attempt;
mod connection;
mod input;
mod leader;
mod listener;
pub(crate) mod relay;
mod streams;
mod supervision;
mod task_file;

use heeler_shim::{
    record::{Stage, Start, TreeEnd},
    wire::{AfterTask, Report},
};

use super::{
    clock,
    output::{
        capture::{Capture, Source},
        writer::Writer,
    },
    pages::{Buffer, Title},
    startup::{
        arguments::Flags,
        setup::{self, Own, Setup, SetupError},
    },
    sys::{Fd, Result},
};
use assignment::{AfterFailure, Assignment, Task};
use connection::Connection;
use input::Input;
use leader::{Failure, Leader};
use streams::{LeaderEnds, Pipes, Streams};
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
            Ok(AfterTask::Ends | AfterTask::Keeps) => return 0,
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
            Streams::new(task.stdin, pipes)
        });
        let started = prepared
            .map_err(Failure::at(Stage::Prepare))
            .and_then(|streams| start(&task, streams));
        let (leader, sources, input, _ends) = match started {
            Ok(started) => started,
            Err(failure) => return self.fail(file, failure),
        };
        if task.after_failure == AfterFailure::End {
            // SAFETY: the leader has executed its program and has copies of its own.
            unsafe { assignment.wipe_leader() };
        }
        file.start = Fact::Due(running(&leader));
        let writer = Writer::new(task.memory, task.output, self.own.durability);
        let capture = Capture::new(sources, writer, &mut self.buffer);
        let end = Supervision::new(
            &self.child_signals,
            &mut self.connection,
            file,
            (task, leader),
            (capture, input),
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
        file.start = Fact::Due(failed(failure));
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

/// A leader, the shim's ends of its streams, and the leader's ends.
type Started<'a> = (Leader<'a>, [Source; 2], Input, LeaderEnds);

/// Starts the leader; returns it with the shim's ends of its streams, and the leader's ends that stay open.
fn start<'a>(task: &Task<'a>, streams: Streams) -> core::result::Result<Started<'a>, Failure> {
    let Streams {
        sources,
        sink,
        ends,
        stdin_end,
    } = streams;
    let input = Input::new(sink).map_err(Failure::at(Stage::Prepare))?;
    let leader = leader::start(task, &ends, stdin_end.as_ref())?;
    Ok((leader, sources, input, ends))
}

/// Reports that nothing was started and that no file says so; returns the exit code.
fn refuse(connection: &mut Connection, Failure { stage, errno }: Failure) -> u8 {
    connection.send([Some(Report::CannotStart {
        stage,
        errno: errno.0,
    })]);
    1
}

fn failed(failure: Failure) -> Start {
    Start::Failed {
        stage: failure.stage,
        errno: failure.errno.0,
    }
}

fn running(leader: &Leader<'_>) -> Start {
    Start::Running {
        pid: leader.pid,
        start_ticks: leader.start_ticks,
        time: clock::stamp(),
        in_cgroup: leader.cgroup.is_some(),
    }
}
