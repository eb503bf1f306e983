//! The part that all records share: the frame around the payload, and its fields one by one.

use super::{Unreadable, VERSION};
use crate::{
    checksum::crc32,
    stamp::{STAMP, Stamp},
};

const MAGIC: [u8; 3] = *b"HLR";
const LENGTH: usize = 6;
const PAYLOAD: usize = 8;
const CHECKSUM: usize = 4;

/// Fills a slot of `SIZE` bytes, which has room for the record.
pub(super) struct Writer<const SIZE: usize> {
    slot: [u8; SIZE],
    at: usize,
}

impl<const SIZE: usize> Writer<SIZE> {
    pub(super) fn new(kind: u8) -> Self {
        let mut slot = [0; SIZE];
        slot[0..3].copy_from_slice(&MAGIC);
        slot[3] = kind;
        slot[4..6].copy_from_slice(&VERSION.to_le_bytes());
        Self { slot, at: PAYLOAD }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let end = self.at + bytes.len();
        self.slot[self.at..end].copy_from_slice(bytes);
        self.at = end;
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn i64(&mut self, value: i64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn stamp(&mut self, stamp: Stamp) {
        self.bytes(&stamp.encode());
    }

    pub(super) fn finish(mut self) -> [u8; SIZE] {
        let len = (self.at - PAYLOAD) as u16;
        self.slot[LENGTH..PAYLOAD].copy_from_slice(&len.to_le_bytes());
        let sum = crc32(&self.slot[..self.at]);
        self.slot[SIZE - CHECKSUM..].copy_from_slice(&sum.to_le_bytes());
        self.slot
    }
}

/// Reads the fields of a slot whose magic, kind, version and checksum are right.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new<const SIZE: usize>(
        slot: &'a [u8; SIZE],
        kind: u8,
    ) -> Result<Self, Unreadable> {
        let end = PAYLOAD + usize::from(u16::from_le_bytes([slot[LENGTH], slot[LENGTH + 1]]));
        let (record, checksum) = slot.split_at(SIZE - CHECKSUM);
        let Some((summed, zeros)) = record.split_at_checked(end) else {
            return Err(Unreadable::Damaged);
        };
        if slot.iter().all(|byte| *byte == 0) {
            return Err(Unreadable::Empty);
        }
        let whole = checksum == crc32(summed).to_le_bytes();
        let clean = zeros.iter().all(|byte| *byte == 0);
        let ours = slot[0..3] == MAGIC && slot[3] == kind;
        if !(whole && clean && ours) {
            return Err(Unreadable::Damaged);
        }
        match u16::from_le_bytes([slot[4], slot[5]]) {
            VERSION => Ok(Self {
                rest: &summed[PAYLOAD..],
            }),
            version => Err(Unreadable::UnknownVersion(version)),
        }
    }

    pub(super) fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.slice(N)?.try_into().ok()
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    pub(super) fn stamp(&mut self) -> Option<Stamp> {
        self.array::<STAMP>().map(|bytes| Stamp::decode(&bytes))
    }
}

/// Replaces a slot's checksum by the right one.
#[cfg(test)]
pub(super) fn reseal<const SIZE: usize>(slot: &mut [u8; SIZE]) {
    let len = usize::from(u16::from_le_bytes([slot[LENGTH], slot[LENGTH + 1]]));
    let sum = crc32(&slot[..PAYLOAD + len]);
    slot[SIZE - CHECKSUM..].copy_from_slice(&sum.to_le_bytes());
}
