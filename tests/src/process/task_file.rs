//! Task files in version 2 of the format, written byte by byte. The shim's own code is not used, so that
//! a change of it cannot change what the tests write.
//!
//! ```text
//! 0     identity         each record in a slot up to the next one:
//! 1024  start              "HLR", kind, version u16, length u16, payload, zeros, and in the last
//! 1536  leader's exit      four bytes the CRC-32 of all before the zeros; every number little-endian
//! 2048  tree's end
//! 2560  output's state, in two slots of 512 bytes that are written in turn
//! 4096  blocks of 64 KiB: "HLB1", 0 u32, first offset u64, CRC-32 of those, 0 u32, then frames:
//!       length and stream (1 stdout, 2 stderr, in the top byte) u32, wall clock u64,
//!       monotonic clock u64, bytes
//!
//! A time is two numbers: microseconds since 1970, then microseconds of the monotonic clock.
//! ```

use std::{fs, path::PathBuf};

use crate::{Daemon, Process, process::Stat};

/// The offsets of the records and of the output.
pub const IDENTITY: usize = 0;
pub const START: usize = 1024;
pub const LEADER_EXIT: usize = 1536;
pub const TREE_END: usize = 2048;
pub const OUTPUT_STATE: usize = 2560;
pub const BLOCKS: usize = 4096;

const IDENTITY_SLOT: usize = 1024;
const SLOT: usize = 512;
const PAYLOAD: usize = 8;

/// A slot with one record.
pub fn slot(kind: u8, payload: &[u8]) -> Vec<u8> {
    slot_of(SLOT, kind, payload)
}

fn slot_of(size: usize, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut slot = vec![b'H', b'L', b'R', kind, 2, 0];
    slot.extend((payload.len() as u16).to_le_bytes());
    slot.extend(payload);
    let sum = crc32(&slot);
    slot.resize(size - 4, 0);
    slot.extend(sum.to_le_bytes());
    slot
}

/// The end of a header page without a state of the output.
pub fn no_output_state() -> Vec<u8> {
    vec![0; BLOCKS - OUTPUT_STATE]
}

/// The encoding of numbers in a record.
pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The identity record of a shim without a cgroup.
pub fn identity(uid: [u8; 16], boot: [u8; 16], shim_pid: u64) -> Vec<u8> {
    let (shim_start_ticks, cpu_before_micros, cgroup_len) = (1, 0, 0);
    let payload = [
        &uid[..],
        &boot[..],
        &words(&[shim_pid, shim_start_ticks, cpu_before_micros, cgroup_len])[..],
    ];
    slot_of(IDENTITY_SLOT, b'I', &payload.concat())
}

/// The start record of a leader without a cgroup.
pub fn running(pid: u64, start_ticks: u64, time_micros: u64) -> Vec<u8> {
    slot(
        b'S',
        &words(&[0, pid, start_ticks, time_micros, monotonic(time_micros), 0]),
    )
}

/// The exit record of a leader that exited with a code.
pub fn exited(code: i64, time_micros: u64, output_end: u64) -> Vec<u8> {
    let time = [time_micros, monotonic(time_micros)];
    slot(
        b'L',
        &words(&[0, code.cast_unsigned(), 0, time[0], time[1], output_end]),
    )
}

/// The record of an empty tree.
pub fn tree_end(time_micros: u64, output_end: u64) -> Vec<u8> {
    let (cgroup_empty, cpu_micros, max_memory) = (0, 1_500_000, 4096);
    let (capture_errno, discarded, abandoned) = (0, 0, 0);
    let payload = [
        time_micros,
        monotonic(time_micros),
        output_end,
        cgroup_empty,
        cpu_micros,
        max_memory,
        capture_errno,
        discarded,
        abandoned,
    ];
    slot(b'T', &words(&payload))
}

/// Returns the header of a block.
pub fn block(first_offset: u64) -> Vec<u8> {
    let mut block = b"HLB1\0\0\0\0".to_vec();
    block.extend(first_offset.to_le_bytes());
    let sum = crc32(&block);
    block.extend(sum.to_le_bytes());
    block.extend([0; 4]);
    block
}

/// A frame of output, of stream 1 or 2.
pub fn frame(stream: u32, time_micros: u64, bytes: &[u8]) -> Vec<u8> {
    let mut frame = (bytes.len() as u32 | stream << 24).to_le_bytes().to_vec();
    frame.extend(words(&[time_micros, monotonic(time_micros)]));
    frame.extend(bytes);
    frame
}

/// The monotonic time that these tests put beside a wall-clock time.
pub fn monotonic(time_micros: u64) -> u64 {
    time_micros - 1_600_000_000_000_000
}

/// CRC-32 with the polynomial of zlib, bit by bit.
pub fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xEDB8_8320 & 0u32.wrapping_sub(crc & 1));
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    !bytes.iter().fold(u32::MAX, byte)
}

/// Parses a UUID.
pub fn uuid(text: &str) -> [u8; 16] {
    let hex: String = text.trim().chars().filter(|c| *c != '-').collect();
    let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    std::array::from_fn(byte)
}

/// The kernel's boot id.
pub fn boot_id() -> [u8; 16] {
    uuid(&fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap())
}

impl Daemon {
    /// The path of a task file.
    pub fn task_file(&self, id: &str) -> PathBuf {
        let last = id.chars().next_back().expect("an id").to_string();
        self.state_dir().join("tasks").join(last).join(id)
    }

    /// Changes a task file that no shim has open.
    pub fn edit(&self, id: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.task_file(id);
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
    }
}

/// Changes the boot id of a task file, and corrects the checksum.
pub fn of_another_boot(file: &mut [u8]) {
    let boot = PAYLOAD + 16..PAYLOAD + 32;
    file[boot].fill(0xB0);
    reseal(file, IDENTITY);
}

/// Corrects the checksum of a record.
pub fn reseal(file: &mut [u8], at: usize) {
    let size = match at {
        IDENTITY => IDENTITY_SLOT,
        _ => SLOT,
    };
    let slot = &mut file[at..at + size];
    let len = usize::from(u16::from_le_bytes([slot[6], slot[7]]));
    let sum = crc32(&slot[..PAYLOAD + len]);
    slot[size - 4..].copy_from_slice(&sum.to_le_bytes());
}

/// The shim of a live leader.
pub fn shim_of(leader: &Process) -> Process {
    let parent = Stat::of(leader.pid).expect("a living leader").parent;
    let shim = Process::now(parent).expect("a living shim");
    assert!(shim.command().starts_with("heeler-shim"), "{shim:?}");
    shim
}
