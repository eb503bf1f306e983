//! The task file: made by us or not at all, locked while we live, with its records in order.
//!
//! A record that the disk refuses stays due, and those behind it wait: nobody is told of what is
//! not in the file. Output goes to the same file, by [`super::capture`].

use heeler_shim::{
    record::{CgroupPath, Identity, LeaderExit, SlotBytes, Start, TreeEnd, position},
    wire::{After, Report},
};

use super::{
    arguments::Durability,
    assignment::Task,
    control::Control,
    surroundings::Own,
    sys::{Errno, Fd, Result, file},
};

/// The file of a running task.
pub(super) struct TaskFile {
    fd: Fd,
    durability: Durability,
    /// How the start went.
    pub(super) start: Fact<Start>,
    /// How the leader ended.
    pub(super) leader_exit: Fact<LeaderExit>,
    /// That the tree is empty.
    pub(super) tree_end: Fact<TreeEnd>,
}

/// What goes into a record.
#[derive(Clone, Copy)]
pub(super) enum Fact<T> {
    /// It has not happened.
    Unknown,
    /// It has, and the file does not say so yet.
    Due(T),
    /// The file says so.
    Written,
}

/// Whether the task is ours to start.
pub(super) enum Claim {
    /// It is.
    Made(TaskFile),
    /// Somebody has undone the start before we came to it.
    Taken,
    /// The file cannot be made.
    Failed(Errno),
}

impl TaskFile {
    /// Makes the file, locks it, and writes who we are.
    pub(super) fn claim(task: &Task<'_>, own: &Own) -> Claim {
        let fd = match file::open(task.file, file::Open::Create) {
            Ok(fd) => fd,
            Err(Errno::EEXIST) => return Claim::Taken,
            Err(errno) => return Claim::Failed(errno),
        };
        // Whoever found the file before we had locked it may have claimed or removed it.
        if file::lock(&fd).is_err() {
            return Claim::Taken;
        }
        let identified = file::links_and_size(&fd).and_then(|untouched| match untouched {
            (1, 0) => write(&fd, &identify(task, own)?.encode(), position::IDENTITY).map(Some),
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

    /// For output.
    pub(super) fn fd(&self) -> &Fd {
        &self.fd
    }

    /// Writes what is due, in order, and then tells of it, all at once, and what becomes of us if
    /// that was all.
    pub(super) fn settle(&mut self, control: &mut Control, after: After) {
        let mut news = [None; 3];
        let mut end_written = false;
        // Fails at the first record that cannot be written.
        let _ = (|| -> Result<()> {
            if self
                .start
                .settle(&self.fd, position::START, Start::encode)?
            {
                news[0] = Some(Report::Started);
            }
            if self
                .leader_exit
                .settle(&self.fd, position::LEADER_EXIT, LeaderExit::encode)?
            {
                news[1] = Some(Report::LeaderExited);
                end_written = true;
            }
            if self
                .tree_end
                .settle(&self.fd, position::TREE_END, TreeEnd::encode)?
            {
                news[2] = Some(Report::TreeEnded { shim: after });
                end_written = true;
            }
            Ok(())
        })();
        if end_written && self.durability == Durability::Power {
            let _ = file::sync_data(&self.fd);
        }
        control.send(news);
    }

    /// Whether a record is still to be written.
    pub(super) fn is_due(&self) -> bool {
        self.start.is_due() || self.leader_exit.is_due() || self.tree_end.is_due()
    }

    /// What a server that has just come should look at.
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

    /// Writes the record if it is due; whether it was.
    fn settle(&mut self, fd: &Fd, at: u64, encode: fn(&T) -> SlotBytes) -> Result<bool> {
        let Self::Due(fact) = self else {
            return Ok(false);
        };
        write(fd, &encode(fact), at)?;
        *self = Self::Written;
        Ok(true)
    }
}

fn write(fd: &Fd, slot: &SlotBytes, at: u64) -> Result<()> {
    match file::write_at(fd, slot, at)? {
        len if len == slot.len() => Ok(()),
        _ => Err(Errno::ENOSPC),
    }
}

fn identify(task: &Task<'_>, own: &Own) -> Result<Identity> {
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
