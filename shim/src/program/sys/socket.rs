//! Unix sockets.

use super::{Errno, Fd, Result, call};
use crate::program::arch::number;

const AF_UNIX: u16 = 1;
const SOCK_STREAM: usize = 1;
const SOCK_NONBLOCK: usize = 0o4000;
const SOCK_CLOEXEC: usize = 0o2_000_000;
const SOL_SOCKET: usize = 1;
const SO_TYPE: usize = 3;
const SO_PEERCRED: usize = 17;
const MSG_DONTWAIT: usize = 0x40;
const MSG_NOSIGNAL: usize = 0x4000;
const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;
const SCM_RIGHTS: u32 = 1;
/// The most pending connections. There is one server; the rest is room beside other users, who can
/// connect too.
pub(crate) const BACKLOG: usize = 128;
/// The bytes before the name in a `sockaddr_un`: the family, and the NUL of an abstract name.
const BEFORE_NAME: usize = 3;

/// Listens on an abstract name.
pub(crate) fn listen<const N: usize>(name: &[u8; N]) -> Result<Fd> {
    let kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    // SAFETY: takes only numbers.
    let socket = unsafe { call(number::SOCKET, [usize::from(AF_UNIX), kind, 0]) }.map(Fd::new)?;
    let mut address = [0u8; 110];
    address[..2].copy_from_slice(&AF_UNIX.to_ne_bytes());
    let room = address
        .get_mut(BEFORE_NAME..BEFORE_NAME + N)
        .ok_or(Errno::ENAMETOOLONG)?;
    room.copy_from_slice(name);
    let args = [socket.arg(), address.as_ptr() as usize, BEFORE_NAME + N];
    // SAFETY: the length is that of the address.
    unsafe { call(number::BIND, args) }?;
    // SAFETY: takes only numbers.
    unsafe { call(number::LISTEN, [socket.arg(), BACKLOG]) }?;
    Ok(socket)
}

/// Accepts the next connection.
pub(crate) fn accept(listener: &Fd) -> Result<Fd> {
    // SAFETY: no address is requested.
    unsafe { call(number::ACCEPT4, [listener.arg(), 0, 0, SOCK_CLOEXEC]) }.map(Fd::new)
}

/// Returns the user id of the peer.
pub(crate) fn peer_user(socket: &Fd) -> Result<u32> {
    let mut credentials = [0u32; 3];
    let mut len = 12u32;
    let to = [credentials.as_mut_ptr() as usize, &raw mut len as usize];
    // SAFETY: the array has room for pid, uid and gid.
    unsafe {
        call(
            number::GETSOCKOPT,
            [socket.arg(), SOL_SOCKET, SO_PEERCRED, to[0], to[1]],
        )
    }?;
    Ok(credentials[1])
}

/// Sends all bytes without blocking, or fails. A partial send is a failure.
pub(crate) fn send(socket: &Fd, bytes: &[u8]) -> Result<()> {
    match send_part(socket, bytes)? {
        sent if sent == bytes.len() => Ok(()),
        _ => Err(Errno::EAGAIN),
    }
}

/// Sends bytes or a part of them without blocking; returns the number sent.
pub(crate) fn send_part(socket: &Fd, bytes: &[u8]) -> Result<usize> {
    let flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    let args = [
        socket.arg(),
        bytes.as_ptr() as usize,
        bytes.len(),
        flags,
        0,
        0,
    ];
    // SAFETY: pointer and length are those of the slice.
    unsafe { call(number::SENDTO, args) }
}

/// Receives without blocking; 0 is end-of-file.
pub(crate) fn receive(socket: &Fd, buffer: &mut [u8]) -> Result<usize> {
    let args = [
        socket.arg(),
        buffer.as_mut_ptr() as usize,
        buffer.len(),
        MSG_DONTWAIT,
        0,
        0,
    ];
    // SAFETY: pointer and length are those of the buffer.
    unsafe { call(number::RECVFROM, args) }
}

/// Returns whether a descriptor is a stream socket.
pub(crate) fn is_stream(fd: &Fd) -> bool {
    let (mut kind, mut len) = (0u32, 4u32);
    let to = [&raw mut kind as usize, &raw mut len as usize];
    let args = [fd.arg(), SOL_SOCKET, SO_TYPE, to[0], to[1]];
    // SAFETY: there is room for the number.
    let answered = unsafe { call(number::GETSOCKOPT, args) };
    answered.is_ok() && kind as usize == SOCK_STREAM
}

/// The most descriptors of a message.
const DESCRIPTORS: usize = 3;

/// A `cmsghdr` and its descriptors.
#[repr(C)]
struct Control {
    len: usize,
    level: u32,
    kind: u32,
    descriptors: [i32; DESCRIPTORS + 1],
}

/// Receives bytes and their descriptors without blocking; returns the number of bytes, 0 at end-of-file. More than three
/// descriptors are closed.
pub(crate) fn receive_descriptors(
    socket: &Fd,
    buffer: &mut [u8],
) -> Result<(usize, [Option<Fd>; DESCRIPTORS])> {
    const HEADER: usize = 16;
    let part = [buffer.as_mut_ptr() as usize, buffer.len()];
    let mut control = Control {
        len: 0,
        level: 0,
        kind: 0,
        descriptors: [-1; DESCRIPTORS + 1],
    };
    let room = HEADER + 4 * DESCRIPTORS;
    // struct msghdr: no address, one part, the control data, flags.
    let mut message = [
        0,
        0,
        part.as_ptr() as usize,
        1,
        &raw mut control as usize,
        room,
        0,
    ];
    let flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
    let args = [socket.arg(), message.as_mut_ptr() as usize, flags];
    // SAFETY: the structures are complete, and outlive the call.
    let len = unsafe { call(number::RECVMSG, args) }?;
    let is_rights = control.level as usize == SOL_SOCKET && control.kind == SCM_RIGHTS;
    let count = match is_rights && message[5] >= HEADER {
        true => control.len.saturating_sub(HEADER) / 4,
        false => 0,
    };
    let fd = |at: usize| (at < count).then(|| Fd::new(control.descriptors[at] as usize));
    Ok((len, [fd(0), fd(1), fd(2)]))
}
