//! Files, directories and pipes.

use core::ffi::CStr;

use super::{Errno, Fd, Result, call, proc_path::Path, text};
use crate::program::arch::{self, number};

const AT_FDCWD: usize = -100i32 as usize;
const AT_REMOVEDIR: usize = 0x200;
const AT_EMPTY_PATH: usize = 0x1000;
const O_WRONLY: usize = 1;
const O_RDWR: usize = 2;
const O_CREAT: usize = 0o100;
const O_EXCL: usize = 0o200;
const O_NOCTTY: usize = 0o400;
const O_NONBLOCK: usize = 0o4000;
const O_CLOEXEC: usize = 0o2_000_000;
const O_PATH: usize = 0o10_000_000;
const F_SETFL: usize = 4;
const F_SETPIPE_SZ: usize = 1031;
const F_GETPIPE_SZ: usize = 1032;
const F_DUPFD_CLOEXEC: usize = 1030;
const LOCK_EX_NB: usize = 2 | 4;
const FIONREAD: usize = 0x541B;
const SPLICE_F_NONBLOCK: usize = 2;

/// The capacity of a pipe once it was full.
const GROWN_PIPE: usize = 1024 * 1024;
/// Up to so many bytes are better copied: a write, unlike splice and tee, tells the kernel that the writer is about
/// to wait, so that it lets the reader run on the same CPU and wakes up no other one.
const FEW: usize = 4096;

/// The mode of an open; the descriptor always closes at exec.
#[derive(Clone, Copy)]
pub(crate) enum Open {
    Read,
    Write,
    /// A directory, to list its entries.
    List,
    /// A directory, as the base of other calls.
    Base,
    /// A new file of mode 0600, to read and write; fails if the name exists.
    Create,
    /// A terminal, without blocking, that does not come to control this process.
    Terminal,
    /// A pipe, to read from without blocking.
    PipeToRead,
    /// A pipe with a reader, to write to without blocking.
    PipeToWrite,
}

pub(crate) fn open(path: &CStr, how: Open) -> Result<Fd> {
    open_from(AT_FDCWD, path, how)
}

/// Opens a file relative to a directory.
pub(crate) fn open_at(dir: &Fd, path: &CStr, how: Open) -> Result<Fd> {
    open_from(dir.arg(), path, how)
}

fn open_from(dir: usize, path: &CStr, how: Open) -> Result<Fd> {
    let flags = match how {
        Open::Read => 0,
        Open::Write => O_WRONLY,
        Open::List => arch::O_DIRECTORY,
        Open::Base => O_PATH | arch::O_DIRECTORY,
        Open::Create => O_RDWR | O_CREAT | O_EXCL | arch::O_NOFOLLOW,
        Open::Terminal => O_RDWR | O_NOCTTY | O_NONBLOCK,
        Open::PipeToRead => O_NONBLOCK,
        Open::PipeToWrite => O_WRONLY | O_NONBLOCK,
    };
    // SAFETY: the path ends in a NUL.
    unsafe { call(number::OPENAT, [dir, text(path), flags | O_CLOEXEC, 0o600]) }.map(Fd::new)
}

/// Puts `/dev/null` in place of descriptor 0, which stays open at exec.
pub(crate) fn null_input() -> Result<()> {
    let path = text(c"/dev/null");
    // SAFETY: no `Fd` owns descriptor 0. An open takes the lowest free number.
    let _ = unsafe { call(number::CLOSE, [0]) };
    // SAFETY: the path ends in a NUL.
    match unsafe { call(number::OPENAT, [AT_FDCWD, path, O_RDWR, 0]) }? {
        0 => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

/// Duplicates descriptor 0 to a number of at least 3.
pub(crate) fn copy_input() -> Result<Fd> {
    // SAFETY: takes only numbers.
    unsafe { call(number::FCNTL, [0, F_DUPFD_CLOEXEC, 3]) }.map(Fd::new)
}

/// Closes every descriptor but 0, 1 and 2.
pub(crate) fn close_inherited() {
    // SAFETY: called before any `Fd` exists.
    if unsafe { call(number::CLOSE_RANGE, [3, u32::MAX as usize, 0]) }.is_ok() {
        return;
    }
    // A sandbox may refuse the call. Descriptors that a server leaks have small numbers.
    for fd in 3..1024 {
        // SAFETY: called before any `Fd` exists.
        let _ = unsafe { call(number::CLOSE, [fd]) };
    }
}

/// Duplicates `fd` to `at`, which stays open at exec.
pub(crate) fn duplicate(fd: i32, at: usize) -> Result<()> {
    // SAFETY: takes only numbers.
    unsafe { call(number::DUP3, [fd as usize, at, 0]) }.map(drop)
}

pub(crate) fn read(fd: &Fd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: pointer and length are those of the buffer.
    unsafe {
        call(
            number::READ,
            [fd.arg(), buffer.as_mut_ptr() as usize, buffer.len()],
        )
    }
}

pub(crate) fn read_at(fd: &Fd, buffer: &mut [u8], position: u64) -> Result<usize> {
    let args = [
        fd.arg(),
        buffer.as_mut_ptr() as usize,
        buffer.len(),
        position as usize,
    ];
    // SAFETY: pointer and length are those of the buffer.
    unsafe { call(number::PREAD64, args) }
}

/// Reads the beginning of a small file.
pub(crate) fn read_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> Result<&'a [u8]> {
    let file = open(path, Open::Read)?;
    let len = read(&file, buffer)?;
    buffer.get(..len).ok_or(Errno::EINVAL)
}

/// Writes `bytes` or a part of them; returns the number written.
pub(crate) fn write(fd: &Fd, bytes: &[u8]) -> Result<usize> {
    // SAFETY: pointer and length are those of the slice.
    unsafe {
        call(
            number::WRITE,
            [fd.arg(), bytes.as_ptr() as usize, bytes.len()],
        )
    }
}

/// Writes `bytes` or a part of them at a position; returns the number written.
pub(crate) fn write_at(fd: &Fd, bytes: &[u8], position: u64) -> Result<usize> {
    let args = [
        fd.arg(),
        bytes.as_ptr() as usize,
        bytes.len(),
        position as usize,
    ];
    // SAFETY: pointer and length are those of the slice.
    unsafe { call(number::PWRITE64, args) }
}

/// One part of a vectored write.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    base: *const u8,
    len: usize,
    bytes: core::marker::PhantomData<&'a [u8]>,
}

impl<'a> Part<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            base: bytes.as_ptr(),
            len: bytes.len(),
            bytes: core::marker::PhantomData,
        }
    }
}

/// Writes the parts in order at a position. On failure returns the error and the number of bytes written.
pub(crate) fn write_all_at(
    fd: &Fd,
    parts: &mut [Part<'_>],
    position: u64,
) -> core::result::Result<(), (Errno, usize)> {
    let mut left: usize = parts.iter().map(|part| part.len).sum();
    let mut written = 0;
    while left > 0 {
        let at = position as usize + written;
        let args = [fd.arg(), parts.as_ptr() as usize, parts.len(), at, 0];
        // SAFETY: a Part has the layout of an iovec, and its bytes outlive it.
        let len = match unsafe { call(number::PWRITEV, args) } {
            Ok(0) => return Err((Errno::ENOSPC, written)),
            Ok(len) => len.min(left),
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err((errno, written)),
        };
        written += len;
        left -= len;
        if left > 0 {
            skip(parts, len);
        }
    }
    Ok(())
}

/// Drops the first bytes of the parts.
fn skip(parts: &mut [Part<'_>], mut len: usize) {
    for part in parts {
        let taken = len.min(part.len);
        part.base = part.base.wrapping_add(taken);
        part.len -= taken;
        len -= taken;
    }
}

/// Sets the length of a file.
pub(crate) fn truncate(fd: &Fd, len: u64) -> Result<()> {
    // SAFETY: takes only numbers.
    unsafe { call(number::FTRUNCATE, [fd.arg(), len as usize]) }.map(drop)
}

/// Waits until the file's data is on disk.
pub(crate) fn sync_data(fd: &Fd) -> Result<()> {
    // SAFETY: takes only numbers.
    unsafe { call(number::FDATASYNC, [fd.arg()]) }.map(drop)
}

/// Takes the file's exclusive lock, or fails at once.
pub(crate) fn lock(fd: &Fd) -> Result<()> {
    // SAFETY: takes only numbers.
    unsafe { call(number::FLOCK, [fd.arg(), LOCK_EX_NB]) }.map(drop)
}

/// Returns the number of a file's names and its size.
pub(crate) fn links_and_size(fd: &Fd) -> Result<(u32, u64)> {
    const STATX_NLINK_SIZE: usize = 4 | 0x200;
    let mut out = [0u64; 32];
    let to = out.as_mut_ptr() as usize;
    let args = [fd.arg(), text(c""), AT_EMPTY_PATH, STATX_NLINK_SIZE, to];
    // SAFETY: a statx is 256 bytes.
    unsafe { call(number::STATX, args) }?;
    // stx_nlink is the word at 16, stx_size the double word at 40.
    Ok((out[2] as u32, out[5]))
}

pub(crate) fn make_directory(path: &CStr) -> Result<()> {
    // SAFETY: the path ends in a NUL.
    unsafe { call(number::MKDIRAT, [AT_FDCWD, text(path), 0o755]) }.map(drop)
}

/// Removes an empty directory.
pub(crate) fn remove_directory(path: &CStr) -> Result<()> {
    // SAFETY: the path ends in a NUL.
    unsafe { call(number::UNLINKAT, [AT_FDCWD, text(path), AT_REMOVEDIR]) }.map(drop)
}

/// Removes a file's name.
pub(crate) fn remove(path: &CStr) -> Result<()> {
    // SAFETY: the path ends in a NUL.
    unsafe { call(number::UNLINKAT, [AT_FDCWD, text(path), 0]) }.map(drop)
}

pub(crate) fn enter_directory(path: &CStr) -> Result<()> {
    // SAFETY: the path ends in a NUL.
    unsafe { call(number::CHDIR, [text(path)]) }.map(drop)
}

/// Reads the next entries of a directory as `linux_dirent64`.
pub(crate) fn list(dir: &Fd, buffer: &mut [u8]) -> Result<usize> {
    let args = [dir.arg(), buffer.as_mut_ptr() as usize, buffer.len()];
    // SAFETY: pointer and length are those of the buffer.
    unsafe { call(number::GETDENTS64, args) }
}

/// The end of a pipe that does not block.
#[derive(Clone, Copy)]
pub(crate) enum NonBlocking {
    Reads,
    Writes,
}

/// Creates a pipe: a reading end and a writing end, one of which does not block.
pub(crate) fn pipe(non_blocking: NonBlocking) -> Result<(Fd, Fd)> {
    let mut ends = [0i32; 2];
    // SAFETY: there is room for two numbers.
    unsafe { call(number::PIPE2, [ends.as_mut_ptr() as usize, O_CLOEXEC]) }?;
    let (read, write) = (Fd(ends[0]), Fd(ends[1]));
    let end = match non_blocking {
        NonBlocking::Reads => &read,
        NonBlocking::Writes => &write,
    };
    // SAFETY: takes only numbers. The two ends have separate flags.
    unsafe { call(number::FCNTL, [end.arg(), F_SETFL, O_NONBLOCK]) }?;
    Ok((read, write))
}

/// Duplicates a descriptor; the two share its flags.
pub(crate) fn copy(fd: &Fd) -> Result<Fd> {
    // SAFETY: takes only numbers.
    unsafe { call(number::FCNTL, [fd.arg(), F_DUPFD_CLOEXEC, 3]) }.map(Fd::new)
}

/// Opens the pipe of a descriptor again. The new descriptor shares no flags with those of other processes.
pub(crate) fn open_pipe_again(pipe: &Fd, how: Open) -> Result<Fd> {
    // A pipe alone has a capacity. Unlike a question for the type, this one reaches no file system.
    // SAFETY: takes only numbers.
    unsafe { call(number::FCNTL, [pipe.arg(), F_GETPIPE_SZ]) }?;
    let path = Path::new()
        .text(b"/proc/self/fd/")
        .number(pipe.raw() as u32);
    open(path.as_c_str(), how)
}

/// Requests a larger pipe, for one that was full; a refusal is ignored.
pub(crate) fn grow_pipe(fd: &Fd) {
    // SAFETY: takes only numbers.
    let _ = unsafe { call(number::FCNTL, [fd.arg(), F_SETPIPE_SZ, GROWN_PIPE]) };
}

/// Returns the number of bytes in a pipe.
pub(crate) fn waiting(fd: &Fd) -> usize {
    let mut count = 0i32;
    // SAFETY: there is room for the number.
    match unsafe { call(number::IOCTL, [fd.arg(), FIONREAD, &raw mut count as usize]) } {
        Ok(_) => count as usize,
        Err(_) => 0,
    }
}

/// Returns whether the bytes in a pipe are so few that they are better copied than moved.
pub(crate) fn has_few(fd: &Fd) -> bool {
    waiting(fd) <= FEW
}

/// Moves up to so many bytes from a pipe to another without a copy, and without blocking; 0 at end-of-file.
pub(crate) fn splice(from: &Fd, to: &Fd, most: usize) -> Result<usize> {
    let args = [from.arg(), 0, to.arg(), 0, most, SPLICE_F_NONBLOCK];
    // SAFETY: takes only numbers; the two offsets are absent.
    unsafe { call(number::SPLICE, args) }
}

/// Puts up to so many bytes of a pipe into another as well, without a copy, and without blocking; 0 at end-of-file.
pub(crate) fn tee(from: &Fd, to: &Fd, most: usize) -> Result<usize> {
    // SAFETY: takes only numbers.
    unsafe { call(number::TEE, [from.arg(), to.arg(), most, SPLICE_F_NONBLOCK]) }
}
