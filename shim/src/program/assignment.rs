//! The task that a shim was told to start, in memory of its own.
//!
//! ```text
//!  as it came                                                                made of it
//! ┌──────┬──────┬────────┬────────┬───────────┬─────────┬───────────┬───────────┬────────────────┐
//! │ uuid │ file │ memory │ cgroup │ directory │ program │ arguments │ variables │ lists of texts │
//! └──────┴──────┴────────┴────────┴───────────┴─────────┴───────────┴───────────┴────────────────┘
//!   ours                           the leader's
//! ```

use core::{
    ffi::{CStr, c_char},
    mem,
};

use super::{control::Control, memory::Pages};

/// The longest description: beyond what the kernel lets a program be started with.
const LONGEST: u64 = 32 * 1024 * 1024;
const UID: usize = 16;
/// Texts before the leader's own: the task file, the memory file, the cgroup.
const OURS: usize = 3;
/// The directory and the program.
const BEFORE_LISTS: usize = 2;
const POINTER: usize = mem::size_of::<*const c_char>();

/// How much is to come, as the order says.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) arguments: u64,
    pub(super) variables: u64,
}

/// A description, whole and understood.
pub(super) struct Assignment {
    pages: Pages,
    /// How long it is, as it came.
    len: usize,
    /// Where the leader's part begins.
    leader: usize,
    /// How many arguments there are.
    arguments: usize,
}

/// The task to run; everything is borrowed from its assignment.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) uid: [u8; UID],
    pub(super) file: &'a CStr,
    /// Where its output begins, if not in that file.
    pub(super) memory: Option<&'a CStr>,
    pub(super) cgroup: Option<&'a CStr>,
    pub(super) directory: &'a CStr,
    pub(super) program: &'a CStr,
    /// Ends in a null pointer.
    pub(super) arguments: *const *const c_char,
    /// Ends in a null pointer.
    pub(super) environment: *const *const c_char,
}

impl Assignment {
    /// Takes the description from the server; `None` if the server is gone, says something
    /// malformed, or there is no memory.
    pub(super) fn receive(size: Size, control: &mut Control) -> Option<Self> {
        // Each text takes a byte at least, so that there are never more texts than bytes.
        let texts = size.arguments.checked_add(size.variables)?;
        if size.bytes > LONGEST || texts > size.bytes {
            return None;
        }
        let (len, arguments) = (size.bytes as usize, size.arguments as usize);
        let lists = (texts as usize + 2) * POINTER;
        let mut pages = Pages::new(lists_at(len) + lists).ok()?;
        control.receive_all(pages.bytes().get_mut(..len)?)?;
        let leader = point(pages.bytes(), len, arguments)?;
        Some(Self {
            pages,
            len,
            leader,
            arguments,
        })
    }

    /// The task.
    pub(super) fn task(&self) -> Option<Task<'_>> {
        let bytes = self.pages.shared();
        let (uid, texts) = bytes.get(..self.len)?.split_at_checked(UID)?;
        let mut texts = Texts(texts);
        let (file, memory, cgroup) = (texts.next()?, texts.next()?, texts.next()?);
        let (directory, program) = (texts.next()?, texts.next()?);
        let lists: *const *const c_char = bytes.get(lists_at(self.len)..)?.as_ptr().cast();
        Some(Task {
            uid: uid.try_into().ok()?,
            file,
            memory: (!memory.is_empty()).then_some(memory),
            cgroup: (!cgroup.is_empty()).then_some(cgroup),
            directory,
            program,
            arguments: lists,
            environment: lists.wrapping_add(self.arguments + 1),
        })
    }

    /// Wipes what only the leader needed, once it has it: a script may be long, and there is no need
    /// to keep a second copy of a secret.
    ///
    /// # Safety
    ///
    /// The leader's part of the task may not be used again.
    pub(super) unsafe fn forget_leader(&self) {
        // SAFETY: as promised to us.
        unsafe { self.pages.wipe_from(self.leader) }
    }
}

/// Where the lists begin, behind a description.
fn lists_at(len: usize) -> usize {
    len.next_multiple_of(POINTER)
}

/// Makes the lists of pointers, which fill what is behind the description, and says where the
/// leader's part begins; `None` if there are more or fewer texts than there should be.
fn point(bytes: &mut [u8], len: usize, arguments: usize) -> Option<usize> {
    let (texts, lists) = bytes.split_at_mut_checked(lists_at(len))?;
    let mut texts = Texts(texts.get(UID..len)?);
    for _ in 0..OURS {
        texts.next()?;
    }
    let leader = len - texts.0.len();
    for _ in 0..BEFORE_LISTS {
        texts.next()?;
    }
    let count = lists.len() / POINTER;
    for (index, place) in lists.chunks_exact_mut(POINTER).enumerate() {
        let ends_a_list = index == arguments || index + 1 == count;
        let address = match ends_a_list {
            true => 0,
            false => texts.next()?.as_ptr() as usize,
        };
        place.copy_from_slice(&address.to_ne_bytes());
    }
    texts.0.is_empty().then_some(leader)
}

/// Texts one behind the other.
struct Texts<'a>(&'a [u8]);

impl<'a> Iterator for Texts<'a> {
    type Item = &'a CStr;

    fn next(&mut self) -> Option<&'a CStr> {
        let text = CStr::from_bytes_until_nul(self.0).ok()?;
        self.0 = self.0.get(text.to_bytes_with_nul().len()..)?;
        Some(text)
    }
}
