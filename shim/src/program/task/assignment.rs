//! The description of the task to start, in pages of its own.
//!
//! ```text
//!  received                                                                                   computed
//! ┌──────┬────────┬───────┬──────┬────────┬────────┬───────────┬─────────┬───────────┬───────────┬────────────────┐
//! │ uuid │ policy │ stdin │ file │ memory │ cgroup │ directory │ program │ arguments │ variables │ lists of texts │
//! └──────┴────────┴───────┴──────┴────────┴────────┴───────────┴─────────┴───────────┴───────────┴────────────────┘
//!   for the shim                                    for the leader
//! ```

use core::{
    ffi::{CStr, c_char},
    mem,
};

use heeler_shim::{
    input::{STDIN, Stdin},
    output_policy::{OUTPUT_POLICY, OutputPolicy},
};

use super::connection::Connection;
use crate::program::pages::Pages;

/// The longest description: more than the kernel accepts for an exec.
const LONGEST: u64 = 32 * 1024 * 1024;
const UID: usize = 16;
/// The bytes before the texts.
const NUMBERS: usize = UID + OUTPUT_POLICY + STDIN;
/// The texts for the shim: the task file, the memory file, the cgroup.
const SHIM_TEXTS: usize = 3;
/// The working directory and the program.
const LEADER_TEXTS: usize = 2;
const POINTER: usize = mem::size_of::<*const c_char>();

/// The size of a description, from its order.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) arguments: u64,
    pub(super) variables: u64,
}

/// The treatment of a task whose leader has failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterFailure {
    End,
    /// It is kept, to be started again.
    Keep,
}

/// A complete, well-formed description.
pub(super) struct Assignment {
    pages: Pages,
    after_failure: AfterFailure,
    output: OutputPolicy,
    stdin: Stdin,
    /// The number of received bytes.
    len: usize,
    /// The position of the leader's part.
    leader: usize,
    arguments: usize,
}

/// The task to run, borrowed from its assignment.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) uid: [u8; UID],
    pub(super) after_failure: AfterFailure,
    pub(super) output: OutputPolicy,
    pub(super) stdin: Stdin,
    pub(super) file: &'a CStr,
    /// The file in which the output begins, if not the task file.
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
    /// Receives the description; `None` if the server is gone, the description is malformed, or there
    /// is no memory.
    pub(super) fn receive(
        size: Size,
        after_failure: AfterFailure,
        connection: &mut Connection,
    ) -> Option<Self> {
        // Each text takes at least one byte.
        let texts = size.arguments.checked_add(size.variables)?;
        if size.bytes > LONGEST || texts > size.bytes {
            return None;
        }
        let (len, arguments) = (size.bytes as usize, size.arguments as usize);
        let lists = (texts as usize + 2) * POINTER;
        let mut pages = Pages::new(lists_at(len) + lists).ok()?;
        connection.receive_all(pages.bytes().get_mut(..len)?)?;
        let numbers = pages.shared().get(..len)?;
        let output = OutputPolicy::decode(numbers.get(UID..)?.first_chunk()?)?;
        let stdin = Stdin::decode(numbers.get(UID + OUTPUT_POLICY..)?.first_chunk()?)?;
        let leader = point(pages.bytes(), len, arguments)?;
        Some(Self {
            pages,
            after_failure,
            output,
            stdin,
            len,
            leader,
            arguments,
        })
    }

    pub(super) fn task(&self) -> Option<Task<'_>> {
        let bytes = self.pages.shared();
        let (numbers, texts) = bytes.get(..self.len)?.split_at_checked(NUMBERS)?;
        let mut texts = Texts(texts);
        let (file, memory, cgroup) = (texts.next()?, texts.next()?, texts.next()?);
        let (directory, program) = (texts.next()?, texts.next()?);
        let lists: *const *const c_char = bytes.get(lists_at(self.len)..)?.as_ptr().cast();
        Some(Task {
            uid: *numbers.first_chunk()?,
            after_failure: self.after_failure,
            output: self.output,
            stdin: self.stdin,
            file,
            memory: (!memory.is_empty()).then_some(memory),
            cgroup: (!cgroup.is_empty()).then_some(cgroup),
            directory,
            program,
            arguments: lists,
            environment: lists.wrapping_add(self.arguments + 1),
        })
    }

    /// Overwrites the leader's part once the leader has it: a script may be long, and a secret needs
    /// no second copy.
    ///
    /// # Safety
    ///
    /// The leader's part of the task must not be used again.
    pub(super) unsafe fn wipe_leader(&self) {
        // SAFETY: the caller does not use that part again.
        unsafe { self.pages.wipe_from(self.leader) }
    }
}

/// Returns the position of the lists, behind a description.
fn lists_at(len: usize) -> usize {
    len.next_multiple_of(POINTER)
}

/// Fills the lists of pointers behind the description, and returns the position of the leader's part;
/// `None` if the number of texts is wrong.
fn point(bytes: &mut [u8], len: usize, arguments: usize) -> Option<usize> {
    let (texts, lists) = bytes.split_at_mut_checked(lists_at(len))?;
    let mut texts = Texts(texts.get(NUMBERS..len)?);
    for _ in 0..SHIM_TEXTS {
        texts.next()?;
    }
    let leader = len - texts.0.len();
    for _ in 0..LEADER_TEXTS {
        texts.next()?;
    }
    let count = lists.len() / POINTER;
    for (index, entry) in lists.chunks_exact_mut(POINTER).enumerate() {
        let ends_a_list = index == arguments || index + 1 == count;
        let address = match ends_a_list {
            true => 0,
            false => texts.next()?.as_ptr() as usize,
        };
        entry.copy_from_slice(&address.to_ne_bytes());
    }
    texts.0.is_empty().then_some(leader)
}

/// Iterates over texts that each end in a NUL.
struct Texts<'a>(&'a [u8]);

impl<'a> Iterator for Texts<'a> {
    type Item = &'a CStr;

    fn next(&mut self) -> Option<&'a CStr> {
        let text = CStr::from_bytes_until_nul(self.0).ok()?;
        self.0 = self.0.get(text.to_bytes_with_nul().len()..)?;
        Some(text)
    }
}
