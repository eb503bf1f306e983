//! The task file: created by this shim or not used at all, locked while the shim has the task, with its
//! records in order.
//!
//! A record that the disk refuses stays due, and later ones wait for it: nothing is reported that is
//! not in the file. Output goes to the same file, see [`crate::program::output`].

use heeler_shim::{
    log::BLOCKS_START,
    record::{
        AttemptBegin, CgroupPath, IDENTITY_SLOT, Identity, LeaderExit, SLOT, SlotBytes, Start,
        TreeEnd, position,
    },
    wire::{AfterTask, Report},
};

use super::{assignment::Task, connection::Connection};
use crate::program::{
    startup::{arguments::Durability, setup::Own},
    sys::{
        Errno, Fd, Result, file,
        process::{self, ParentEnd},
    },
};

/// The file of a running task.
pub(super) struct TaskFile {
    fd: Fd,
    durability: Durability,
    pub(super) start: Fact<Start>,
    pub(super) leader_exit: Fact<LeaderExit>,
    pub(super) tree_end: Fact<TreeEnd>,
}

/// The content of a record.
#[derive(Clone, Copy)]
pub(super) enum Fact<T> {
    /// Has not happened.
    Unknown,
    /// Has happened and is not in the file yet.
    Due(T),
    /// Is in the file.
    Written,
}

/// The result of claiming a task.
pub(super) enum Claim {
    /// The file is ours, so the task may start.
    Made(TaskFile),
    /// A server has claimed the file first, which cancels the start.
    Taken,
    /// The file cannot be created.
    Failed(Errno),
}

impl TaskFile {
    /// Creates the file, locks it, and writes the identity record.
    pub(super) fn claim(task: &Task<'_>, own: &Own) -> Claim {
        let fd = match file::open(task.file, file::Open::Create) {
            Ok(fd) => fd,
            Err(Errno::EEXIST) => return Claim::Taken,
            Err(errno) => return Claim::Failed(errno),
        };
        // A server that found the file before the lock may have claimed or removed it.
        if file::lock(&fd).is_err() {
            return Claim::Taken;
        }
        // A server that finds the lock waits for this shim. So it may outlive its own server from here on,
        // and not before.
        if let Err(errno) = process::at_parent_end(ParentEnd::Ignored) {
            return Claim::Failed(errno);
        }
        let identified = file::links_and_size(&fd).and_then(|untouched| match untouched {
            (1, 0) => write_header(&fd, &identity(task, own)?).map(Some),
            _ => Ok(None),
        });
        match identified {
            Ok(Some(())) => Claim::Made(Self {
                fd,
                durability: own.durability,
                start: Fact::Unknown,
                leader_exit: Fact::Unknown,
                tree_end: Fact::Unknown,
            }),
            Ok(None) => Claim::Taken,
            Err(errno) => {
                let _ = file::remove(task.file);
                Claim::Failed(errno)
            }
        }
    }

    /// Empties the records of the attempt before this one, and records its begin.
    pub(super) fn begin_attempt(&mut self, begin: AttemptBegin) -> Result<()> {
        // Without their slots, the records of an attempt that has begun cannot be those of an earlier one.
        let empty = [0; 3 * SLOT];
        write_all(&self.fd, &empty, position::START)?;
        write(&self.fd, &begin.encode(), position::ATTEMPT)?;
        (self.start, self.leader_exit, self.tree_end) =
            (Fact::Unknown, Fact::Unknown, Fact::Unknown);
        Ok(())
    }

    pub(super) fn fd(&self) -> &Fd {
        &self.fd
    }

    /// Writes the due records in order, then reports them in one send.
    pub(super) fn settle(&mut self, connection: &mut Connection, after: AfterTask) {
        let mut reports = [None; 3];
        let mut end_written = false;
        // Stops at the first record that cannot be written.
        let _ = (|| -> Result<()> {
            if self
                .start
                .settle(&self.fd, position::START, Start::encode)?
            {
                reports[0] = Some(Report::Started);
            }
            if self
                .leader_exit
                .settle(&self.fd, position::LEADER_EXIT, LeaderExit::encode)?
            {
                reports[1] = Some(Report::LeaderExited);
                end_written = true;
            }
            if self
                .tree_end
                .settle(&self.fd, position::TREE_END, TreeEnd::encode)?
            {
                reports[2] = Some(Report::TreeEnded { shim: after });
                end_written = true;
            }
            Ok(())
        })();
        if end_written && self.durability == Durability::Power {
            let _ = file::sync_data(&self.fd);
        }
        connection.send(reports);
    }

    /// Returns whether a record is still to be written.
    pub(super) fn is_due(&self) -> bool {
        self.start.is_due() || self.leader_exit.is_due() || self.tree_end.is_due()
    }

    /// The reports for a server that has just connected.
    pub(super) fn hints(&self) -> [Option<Report>; 2] {
        [
            self.start.is_written().then_some(Report::Started),
            self.leader_exit
                .is_written()
                .then_some(Report::LeaderExited),
        ]
    }
}

impl<T> Fact<T> {
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    pub(super) fn is_written(&self) -> bool {
        matches!(self, Self::Written)
    }

    fn is_due(&self) -> bool {
        matches!(self, Self::Due(_))
    }

    /// Writes the record if it is due; returns whether it was.
    fn settle(&mut self, fd: &Fd, at: u64, encode: fn(&T) -> SlotBytes) -> Result<bool> {
        let Self::Due(fact) = self else {
            return Ok(false);
        };
        write(fd, &encode(fact), at)?;
        *self = Self::Written;
        Ok(true)
    }
}

/// Writes the identity and the empty slots after it, so that the file system has room for the records of
/// the task's end: a disk may be full by then, and its blocks smaller than the header.
fn write_header(fd: &Fd, identity: &Identity) -> Result<()> {
    let mut header = [0; BLOCKS_START as usize];
    header[..IDENTITY_SLOT].copy_from_slice(&identity.encode());
    write_all(fd, &header, position::IDENTITY)
}

fn write(fd: &Fd, slot: &SlotBytes, at: u64) -> Result<()> {
    write_all(fd, slot, at)
}

fn write_all(fd: &Fd, bytes: &[u8], at: u64) -> Result<()> {
    match file::write_at(fd, bytes, at)? {
        len if len == bytes.len() => Ok(()),
        _ => Err(Errno::ENOSPC),
    }
}

fn identity(task: &Task<'_>, own: &Own) -> Result<Identity> {
    let cgroup = task.cgroup.map_or(Some(CgroupPath::NONE), |path| {
        CgroupPath::new(path.to_bytes())
    });
    Ok(Identity {
        task_uid: task.uid,
        boot_id: own.boot_id,
        shim_pid: own.pid,
        shim_start_ticks: own.start_ticks,
        cgroup: cgroup.ok_or(Errno::ENAMETOOLONG)?,
        cpu_before_micros: own.cpu_micros,
    })
}
