//! Parents and children, read from `/proc`.
//!
//! Only the pids of the shim's own children are safe from reuse, since only the shim reaps them. Every
//! other pid must be checked again while a handle pins it.

use core::{ffi::CStr, ops::ControlFlow};

use heeler_shim::procfs::{PidReader, Stat, number};

use crate::program::sys::{Errno, Fd, file, proc_path::Path};

/// The way to find the children of a process.
#[derive(Clone, Copy)]
pub(crate) enum ChildSearch {
    /// Each thread has a file that lists its children.
    Lists,
    /// The kernel has no such files: look at the parent of every process.
    Scan,
}

impl ChildSearch {
    /// Selects what this kernel offers.
    pub(crate) fn of_kernel(own_pid: u32) -> Self {
        let path = Path::new()
            .text(b"/proc/")
            .number(own_pid)
            .text(b"/task/")
            .number(own_pid);
        match file::open(path.text(b"/children").as_c_str(), file::Open::Read) {
            Err(Errno::ENOENT) => Self::Scan,
            Ok(_) | Err(_) => Self::Lists,
        }
    }

    /// Passes the children of a process to `each` until it breaks.
    pub(crate) fn children(
        self,
        pid: u32,
        threads: u32,
        buffer: &mut [u8],
        mut each: impl FnMut(u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Self::Lists if threads <= 1 => children_of_thread(pid, pid, buffer, &mut each),
            Self::Lists => {
                let path = Path::new().text(b"/proc/").number(pid).text(b"/task");
                let (names, rest) = buffer.split_at_mut(buffer.len() / 2);
                numbers_in(&path, names, |tid| {
                    children_of_thread(pid, tid, rest, &mut each)
                })
            }
            Self::Scan => numbers_in(&Path::new().text(b"/proc"), buffer, |other| {
                if stat(other).is_some_and(|stat| stat.parent == pid) {
                    each(other)?;
                }
                ControlFlow::Continue(())
            }),
        }
    }
}

/// The most recently assigned pids.
pub(crate) struct NewestPids {
    /// `/proc/loadavg`, whose last field is the latest pid.
    load: Option<Fd>,
    /// One more than the largest pid.
    limit: u32,
}

impl NewestPids {
    pub(crate) fn of_kernel() -> Self {
        let mut text = [0; 16];
        let limit = file::read_file(c"/proc/sys/kernel/pid_max", &mut text).ok();
        let limit = limit.and_then(|text| number(text.trim_ascii_end()));
        Self {
            load: file::open(c"/proc/loadavg", file::Open::Read).ok(),
            limit: limit
                .and_then(|limit| u32::try_from(limit).ok())
                .unwrap_or(1 << 15),
        }
    }

    /// Passes `count` of them to `each`, from the latest down.
    pub(crate) fn each(&self, count: u32, mut each: impl FnMut(u32)) {
        let mut text = [0; 64];
        let read = self
            .load
            .as_ref()
            .and_then(|load| file::read_at(load, &mut text, 0).ok());
        let fields = read.and_then(|len| text.get(..len)).unwrap_or_default();
        let last = fields
            .trim_ascii_end()
            .rsplit(|byte| *byte == b' ')
            .next()
            .and_then(number);
        let Some(mut pid) = last.and_then(|pid| u32::try_from(pid).ok()) else {
            return;
        };
        for _ in 0..count.min(self.limit) {
            // Pids wrap around.
            if pid == 0 {
                pid = self.limit;
            } else {
                each(pid);
            }
            pid -= 1;
        }
    }
}

/// Reads `/proc/<pid>/stat`.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    let mut text = [0; 384];
    let path = Path::new().text(b"/proc/").number(pid).text(b"/stat");
    Stat::parse(file::read_file(path.as_c_str(), &mut text).ok()?)
}

fn children_of_thread(
    pid: u32,
    tid: u32,
    buffer: &mut [u8],
    each: &mut impl FnMut(u32) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let path = Path::new()
        .text(b"/proc/")
        .number(pid)
        .text(b"/task/")
        .number(tid)
        .text(b"/children");
    let Ok(list) = file::open(path.as_c_str(), file::Open::Read) else {
        return ControlFlow::Continue(());
    };
    let mut reader = PidReader::default();
    while let Ok(len @ 1..) = file::read(&list, buffer) {
        let text = buffer.get(..len).unwrap_or_default();
        text.iter()
            .filter_map(|byte| reader.push(*byte))
            .try_for_each(&mut *each)?;
    }
    ControlFlow::Continue(())
}

/// Passes the entries of a directory that are numbers to `each` until it breaks.
fn numbers_in(
    path: &Path,
    buffer: &mut [u8],
    mut each: impl FnMut(u32) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Ok(dir) = file::open(path.as_c_str(), file::Open::List) else {
        return ControlFlow::Continue(());
    };
    while let Some(entries) = next_entries(&dir, buffer) {
        let mut rest = entries;
        while let Some((name, later)) = split_entry(rest) {
            if let Some(pid) = number(name).and_then(|pid| u32::try_from(pid).ok()) {
                each(pid)?;
            }
            rest = later;
        }
    }
    ControlFlow::Continue(())
}

fn next_entries<'a>(dir: &Fd, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let len = file::list(dir, buffer).ok().filter(|len| *len > 0)?;
    buffer.get(..len)
}

/// Splits off the name of the first `linux_dirent64`: its length is the word at 16, its name begins at
/// 19.
fn split_entry(entries: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = usize::from(u16::from_ne_bytes([*entries.get(16)?, *entries.get(17)?]));
    let (entry, rest) = entries.split_at_checked(len)?;
    let name = CStr::from_bytes_until_nul(entry.get(19..)?).ok()?;
    Some((name.to_bytes(), rest))
}
