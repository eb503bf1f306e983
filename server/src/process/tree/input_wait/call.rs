//! The system calls in which a thread waits for input, from `/proc/<pid>/task/<tid>/syscall`. No I/O.

use nix::libc;

/// More descriptors than a program that waits for its input waits for.
const MOST_DESCRIPTORS: u64 = 64;

/// The descriptors that a thread waits on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// A read of one descriptor.
    On(i32),
    /// Any of several descriptors, which the memory of the process names.
    InMemory(Set),
    /// The descriptors that are registered with an epoll descriptor.
    OnEpoll(i32),
}

/// A set of descriptors in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Set {
    pub(super) address: u64,
    pub(super) len: usize,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One bit for each descriptor, as `select` takes them.
    Bits,
    /// Structures of eight bytes, as `poll` takes them.
    Entries,
}

impl Waiting {
    /// Parses the text: the number of the call and its arguments, or that the thread runs. `None` if it
    /// does not wait for input.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace();
        let number: i64 = fields.next()?.parse().ok()?;
        let mut argument = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
        let (first, second) = (argument()?, argument()?);
        match Call::of(number)? {
            Call::Read => Some(Self::On(first as i32)),
            Call::Epoll => Some(Self::OnEpoll(first as i32)),
            Call::Select if (1..=MOST_DESCRIPTORS).contains(&first) && second != 0 => {
                Some(Self::InMemory(Set {
                    address: second,
                    len: first.div_ceil(8) as usize,
                    form: Form::Bits,
                }))
            }
            Call::Poll if (1..=MOST_DESCRIPTORS).contains(&second) => Some(Self::InMemory(Set {
                address: first,
                len: second as usize * 8,
                form: Form::Entries,
            })),
            Call::Select | Call::Poll => None,
        }
    }
}

impl Set {
    /// The descriptors that are waited on.
    pub(super) fn descriptors(&self, bytes: &[u8]) -> Vec<i32> {
        match self.form {
            Form::Bits => (0..bytes.len() * 8)
                .filter(|fd| bytes[fd / 8] >> (fd % 8) & 1 == 1)
                .map(|fd| fd as i32)
                .collect(),
            Form::Entries => {
                let fds = bytes.as_chunks::<8>().0.iter();
                let fds = fds.map(|[a, b, c, d, ..]| i32::from_ne_bytes([*a, *b, *c, *d]));
                // A negative one is skipped by the kernel.
                fds.filter(|fd| *fd >= 0).collect()
            }
        }
    }
}

/// The descriptors in `/proc/<pid>/fdinfo` of an epoll descriptor that are watched for input.
pub(super) fn registered(info: &str) -> Vec<i32> {
    let entry = |line: &str| {
        let mut fields = line.strip_prefix("tfd:")?.split_ascii_whitespace();
        let fd = fields.next()?.parse().ok()?;
        let events = fields.skip_while(|field| *field != "events:").nth(1)?;
        let events = u32::from_str_radix(events, 16).ok()?;
        (events & libc::EPOLLIN as u32 != 0).then_some(fd)
    };
    info.lines().filter_map(entry).collect()
}

enum Call {
    Read,
    Select,
    Poll,
    Epoll,
}

impl Call {
    fn of(number: i64) -> Option<Self> {
        match number {
            libc::SYS_read | libc::SYS_readv => Some(Self::Read),
            libc::SYS_pselect6 => Some(Self::Select),
            libc::SYS_ppoll => Some(Self::Poll),
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Some(Self::Epoll),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => Some(Self::Select),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => Some(Self::Poll),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => Some(Self::Epoll),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(call: i64, first: u64, second: u64) -> String {
        format!("{call} {first:#x} {second:#x} 0x0 0x0 0x0 0x0 0x7ffd14574238 0x7f3f7edf52ad\n")
    }

    #[test]
    fn the_calls_that_wait_for_input_are_recognised() {
        let parse = |call, first, second| Waiting::parse(&text(call, first, second));
        assert_eq!(parse(libc::SYS_read, 7, 99), Some(Waiting::On(7)));
        assert_eq!(
            parse(libc::SYS_epoll_pwait, 5, 99),
            Some(Waiting::OnEpoll(5))
        );
        let set = |address, len, form| {
            let set = Set { address, len, form };
            Some(Waiting::InMemory(set))
        };
        assert_eq!(parse(libc::SYS_pselect6, 9, 0x70), set(0x70, 2, Form::Bits));
        assert_eq!(parse(libc::SYS_pselect6, 1, 0), None, "nothing to read");
        assert_eq!(
            parse(libc::SYS_ppoll, 0x70, 2),
            set(0x70, 16, Form::Entries)
        );
        assert_eq!(parse(libc::SYS_ppoll, 0x70, 65), None, "too many");
        assert_eq!(parse(libc::SYS_ppoll, 0x70, 0), None, "it sleeps");
        assert_eq!(parse(libc::SYS_write, 1, 0x70), None);
        for other in ["running\n", "-1 0x7ffd 0x7f3f\n", ""] {
            assert_eq!(Waiting::parse(other), None, "{other:?}");
        }
    }

    #[test]
    fn the_descriptors_of_a_set_are_decoded() {
        let set = |form| Set {
            address: 0,
            len: 0,
            form,
        };
        let bits = set(Form::Bits).descriptors(&[0b1000_0001, 0b10]);
        assert_eq!(bits, [0, 7, 9]);
        let entry = |fd: i32| [fd.to_ne_bytes(), [1, 0, 0, 0]].concat();
        let entries = [entry(3), entry(-1), entry(0)].concat();
        assert_eq!(set(Form::Entries).descriptors(&entries), [3, 0]);
    }

    #[test]
    fn the_descriptors_that_epoll_watches_for_input_are_parsed() {
        let info = "pos:\t0\nflags:\t02000002\nmnt_id:\t16\n\
            tfd:        0 events:       19 data:                0  pos:0 ino:5 sdev:18\n\
            tfd:       12 events:        4 data:               12  pos:0 ino:6 sdev:18\n\
            tfd:        7 events: 80000001 data:                7  pos:0 ino:7 sdev:18\n";
        assert_eq!(registered(info), [0, 7]);
    }
}
