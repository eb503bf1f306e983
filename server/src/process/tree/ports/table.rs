//! The listening TCP sockets of a network namespace.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The kernel's number of the state LISTEN.
const LISTEN: &str = "0A";

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Socket {
    /// The number that the descriptors of the socket have in common.
    pub(super) inode: u64,
    pub(super) address: IpAddr,
    pub(super) port: u16,
}

/// Reads the listening sockets of a process's network namespace.
pub(super) fn read(pid: i32) -> Vec<Socket> {
    let tables = ["tcp", "tcp6"].map(|table| format!("/proc/{pid}/net/{table}"));
    let read = |path: &String| -> io::Result<Vec<Socket>> {
        let lines = BufReader::new(File::open(path)?).lines();
        Ok(listening(lines.map_while(Result::ok)))
    };
    // A kernel without IPv6 has one table, and a process that is gone has none.
    tables.iter().flat_map(read).flatten().collect()
}

/// The kernel lists the listening sockets before all others, of which there may be very many.
fn listening(lines: impl Iterator<Item = String>) -> Vec<Socket> {
    lines.skip(1).map_while(|line| parse(&line)).collect()
}

/// Parses a line; `None` if its socket does not listen.
fn parse(line: &str) -> Option<Socket> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (address, port) = fields.next()?.split_once(':')?;
    let is_listening = fields.nth(1)? == LISTEN;
    let inode = fields.nth(5)?.parse().ok()?;
    is_listening.then_some(Socket {
        inode,
        address: parse_address(address)?,
        port: u16::from_str_radix(port, 16).ok()?,
    })
}

/// An address is written as numbers of 32 bits, each in the byte order of the machine.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = text.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            Some(IpAddr::from(Ipv6Addr::from(bytes)).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";

    fn line(local: &str, state: &str, inode: u64) -> String {
        format!(
            "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 000000 100 0 0 10 0"
        )
    }

    /// Y3
    #[cfg(target_endian = "little")]
    #[test]
    fn listening_sockets_are_read_up_to_the_first_other_one() {
        let v6 = "00000000000000000000000001000000:0050";
        let mapped = "0000000000000000FFFF00000100007F:01BB";
        let lines = [
            HEADER.to_owned(),
            line("0100007F:1F90", "0A", 7),
            line(v6, "0A", 8),
            line(mapped, "0A", 9),
            line("0100007F:1F90", "01", 10),
            line("0100007F:1F91", "0A", 11),
        ];
        let found: Vec<_> = listening(lines.into_iter())
            .iter()
            .map(|socket| (socket.inode, socket.address.to_string(), socket.port))
            .collect();
        let expected = [
            (7, "127.0.0.1".to_owned(), 8080),
            (8, "::1".to_owned(), 80),
            (9, "127.0.0.1".to_owned(), 443),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn malformed_lines_are_no_sockets() {
        for bad in ["", "0:", "0: 0100007F 0 0A", "0: XX:1 0 0A 0 0 0 0 0 9"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
        assert_eq!(parse_address("0100007"), None);
    }
}
