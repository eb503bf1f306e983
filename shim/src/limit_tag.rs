//! The limit tag: the value of a resource limit by which the processes of a task are recognised.
//!
//! Every process inherits its parent's resource limits, and no exec, session or namespace changes
//! them. The limit on file locks is in use nowhere: Linux ignores it since 2.4.25. So a value that is
//! derived from the task's uid marks every process of the task and limits nothing.

/// The number of the limit, `RLIMIT_LOCKS`.
pub const RESOURCE: usize = 10;
/// The name of the limit in `/proc/<pid>/limits`.
pub const NAME: &[u8] = b"Max file locks";
/// The value of a limit that is not set.
pub const UNLIMITED: u64 = u64::MAX;

/// The highest bit of a tag.
const TOP: u64 = 1 << 62;
/// The smallest value that can be a shortened tag. Fewer bits would not be unique.
const FLOOR: u64 = 1 << 44;

/// The soft and the hard value of the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub soft: u64,
    pub hard: u64,
}

impl Limits {
    pub const UNSET: Self = Self {
        soft: UNLIMITED,
        hard: UNLIMITED,
    };

    /// Returns whether one of the values may be a tag.
    pub const fn may_be_tagged(self) -> bool {
        is_tag(self.soft) || is_tag(self.hard)
    }

    /// Parses `/proc/<pid>/limits`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let line = text
            .split(|byte| *byte == b'\n')
            .find_map(|line| line.strip_prefix(NAME))?;
        let mut fields = line
            .split(|byte| *byte == b' ')
            .filter(|field| !field.is_empty());
        let mut value = || match fields.next()? {
            b"unlimited" => Some(UNLIMITED),
            digits => crate::procfs::number(digits),
        };
        Some(Self {
            soft: value()?,
            hard: value()?,
        })
    }
}

/// The tag of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitTag(u64);

impl LimitTag {
    /// Derives the tag from the uid of a task.
    pub const fn of(uid: [u8; 16]) -> Self {
        let all = u128::from_be_bytes(uid);
        // Neither the time nor the counter in a uid may decide alone.
        let mut mixed = ((all >> 64) as u64 ^ (all as u64).rotate_left(32)).wrapping_mul(ODD);
        mixed = (mixed ^ (mixed >> 32)).wrapping_mul(ODD);
        Self((mixed ^ (mixed >> 29)) & (TOP - 1) | TOP)
    }

    /// The limits with the tag for a process that has other limits now; `None` if there is no room for
    /// it.
    ///
    /// A hard limit that is set may be the tag of another task, in which this server runs. It stays,
    /// and the soft limit gets as many of the tag's bits as fit.
    pub const fn put_on(self, now: Limits) -> Option<Limits> {
        if now.hard == UNLIMITED {
            return Some(Limits {
                soft: self.0,
                hard: self.0,
            });
        }
        let mut soft = self.0;
        while soft > now.hard {
            soft >>= 1;
        }
        if soft < FLOOR {
            return None;
        }
        Some(Limits {
            soft,
            hard: now.hard,
        })
    }

    /// Returns whether a process with these limits has the tag.
    pub const fn is_on(self, limits: Limits) -> bool {
        self.is(limits.soft) || self.is(limits.hard)
    }

    /// Compares as many bits as the value has.
    const fn is(self, value: u64) -> bool {
        is_tag(value) && self.0 >> (value.leading_zeros() - TOP.leading_zeros()) == value
    }
}

/// The multiplier of Fibonacci hashing.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

const fn is_tag(value: u64) -> bool {
    FLOOR <= value && value < TOP << 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn tags() -> Vec<LimitTag> {
        let uids = (0..1000u128).map(|n| (0x0198_u128 << 112 | n << 32).to_be_bytes());
        uids.map(LimitTag::of).collect()
    }

    #[test]
    fn a_tag_marks_its_own_task_and_no_other() {
        let tags = tags();
        for tag in &tags {
            let limits = tag.put_on(Limits::UNSET).expect("there is room");
            assert_eq!(limits.soft, limits.hard);
            assert!(limits.hard < 1 << 63, "a C program can read it as signed");
            let found: Vec<_> = tags.iter().filter(|other| other.is_on(limits)).collect();
            assert_eq!(found, [tag]);
        }
    }

    #[test]
    fn a_process_of_two_nested_tasks_has_both_tags() {
        let tags = tags();
        for (outer, inner) in tags.iter().zip(&tags[1..]) {
            let limits = outer.put_on(Limits::UNSET).expect("there is room");
            let limits = inner.put_on(limits).expect("there is room");
            assert!(limits.soft <= limits.hard);
            let found: Vec<_> = tags.iter().filter(|tag| tag.is_on(limits)).collect();
            assert_eq!(found, [outer, inner]);
        }
    }

    #[test]
    fn a_low_limit_has_no_room_for_a_tag() {
        let [tag, ..] = tags()[..] else {
            unreachable!("there are a thousand")
        };
        let low = |hard| Limits { soft: hard, hard };
        assert_eq!(tag.put_on(low(FLOOR - 1)), None);
        assert!(tag.put_on(low(FLOOR << 1)).is_some());
        for untagged in [Limits::UNSET, low(0), low(1024), low(FLOOR - 1)] {
            assert!(!tag.is_on(untagged) && !untagged.may_be_tagged());
        }
    }

    #[test]
    fn the_limits_of_a_process_are_parsed() {
        let text =
            b"Limit                     Soft Limit           Hard Limit           Units     \n\
            Max address space         unlimited            unlimited            bytes     \n\
            Max file locks            4693671547643874799  unlimited            locks     \n\
            Max pending signals       62798                62798                signals   \n";
        let limits = Limits {
            soft: 4_693_671_547_643_874_799,
            hard: UNLIMITED,
        };
        assert_eq!(Limits::parse(text), Some(limits));
        assert_eq!(Limits::parse(b""), None);
        assert_eq!(Limits::parse(b"Max file locks            12"), None);
    }
}
