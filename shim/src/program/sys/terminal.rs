//! Pseudoterminals.

use heeler_shim::input::TerminalSize;

use super::{Fd, Result, call, file};
use crate::program::arch::number;

const TCGETS: usize = 0x5401;
const TCSETS: usize = 0x5402;
const TIOCSCTTY: usize = 0x540E;
const TIOCGWINSZ: usize = 0x5413;
const TIOCSWINSZ: usize = 0x5414;
const TIOCGPTPEER: usize = 0x5441;
const TIOCSPTLCK: usize = 0x4004_5431;
const O_RDWR: usize = 2;
const O_NOCTTY: usize = 0o400;
const O_CLOEXEC: usize = 0o2_000_000;
/// Erase whole characters of UTF-8.
const IUTF8: u32 = 0o40_000;
const ICANON: u32 = 0o2;
/// The place of the end-of-file character among the special ones.
const VEOF: usize = 4;

/// The kernel's `struct termios`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Termios {
    input: u32,
    output: u32,
    control: u32,
    local: u32,
    line: u8,
    characters: [u8; 19],
}

/// The two ends of a pseudoterminal.
pub(crate) struct Terminal {
    /// Reads and writes of it do not block.
    pub(crate) master: Fd,
    pub(crate) slave: Fd,
}

impl Terminal {
    pub(crate) fn open(size: TerminalSize) -> Result<Self> {
        let master = file::open(c"/dev/ptmx", file::Open::Terminal)?;
        let unlocked = 0i32;
        let at = &raw const unlocked as usize;
        // SAFETY: the kernel reads a number.
        unsafe { call(number::IOCTL, [master.arg(), TIOCSPTLCK, at]) }?;
        let flags = O_RDWR | O_NOCTTY | O_CLOEXEC;
        // SAFETY: takes only numbers.
        let slave = unsafe { call(number::IOCTL, [master.arg(), TIOCGPTPEER, flags]) };
        let slave = slave.map(Fd::new)?;
        let mut termios = get(&slave)?;
        termios.input |= IUTF8;
        let at = &raw const termios as usize;
        // SAFETY: the structure is complete.
        unsafe { call(number::IOCTL, [slave.arg(), TCSETS, at]) }?;
        resize(&master, size)?;
        Ok(Self { master, slave })
    }
}

fn get(terminal: &Fd) -> Result<Termios> {
    let mut termios = Termios::default();
    let at = &raw mut termios as usize;
    // SAFETY: there is room for the structure.
    unsafe { call(number::IOCTL, [terminal.arg(), TCGETS, at]) }?;
    Ok(termios)
}

/// Makes a terminal the controlling one of this process's session, which must have none.
pub(crate) fn control(terminal: i32) -> Result<()> {
    // SAFETY: takes only numbers.
    unsafe { call(number::IOCTL, [terminal as usize, TIOCSCTTY, 0]) }.map(drop)
}

/// Changes the size. If it is another one, the kernel sends SIGWINCH to the terminal's foreground processes.
pub(crate) fn resize(terminal: &Fd, size: TerminalSize) -> Result<()> {
    let size = [size.rows, size.columns, 0, 0];
    let at = size.as_ptr() as usize;
    // SAFETY: the kernel reads a `struct winsize`, which is four numbers.
    unsafe { call(number::IOCTL, [terminal.arg(), TIOCSWINSZ, at]) }.map(drop)
}

pub(crate) fn size(terminal: &Fd) -> TerminalSize {
    let mut size = [0u16; 4];
    let at = size.as_mut_ptr() as usize;
    // SAFETY: there is room for a `struct winsize`.
    let _ = unsafe { call(number::IOCTL, [terminal.arg(), TIOCGWINSZ, at]) };
    let [rows, columns, ..] = size;
    TerminalSize { columns, rows }
}

/// The present end-of-file character, and whether the terminal hands its input over line by line.
pub(crate) fn end_of_file(slave: &Fd) -> (u8, bool) {
    const CONTROL_D: u8 = 4;
    match get(slave) {
        Ok(termios) => (termios.characters[VEOF], termios.local & ICANON != 0),
        Err(_) => (CONTROL_D, true),
    }
}
