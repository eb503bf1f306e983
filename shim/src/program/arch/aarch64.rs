//! aarch64.

use core::arch::{asm, global_asm};

global_asm!(
    ".text",
    ".globl _start",
    "_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "mov x0, sp",
    "bl {enter}",
    "brk #1",
    enter = sym crate::program::enter,
);

/// Open a directory or fail.
pub(crate) const O_DIRECTORY: usize = 0o40_000;
/// Do not follow a symbolic link.
pub(crate) const O_NOFOLLOW: usize = 0o100_000;

/// The numbers of the system calls.
pub(crate) mod number {
    pub(crate) const PRLIMIT64: usize = 261;
    pub(crate) const DUP3: usize = 24;
    pub(crate) const FCNTL: usize = 25;
    pub(crate) const IOCTL: usize = 29;
    pub(crate) const FLOCK: usize = 32;
    pub(crate) const MKDIRAT: usize = 34;
    pub(crate) const UNLINKAT: usize = 35;
    pub(crate) const FTRUNCATE: usize = 46;
    pub(crate) const CHDIR: usize = 49;
    pub(crate) const OPENAT: usize = 56;
    pub(crate) const CLOSE: usize = 57;
    pub(crate) const PIPE2: usize = 59;
    pub(crate) const GETDENTS64: usize = 61;
    pub(crate) const READ: usize = 63;
    pub(crate) const WRITE: usize = 64;
    pub(crate) const PREAD64: usize = 67;
    pub(crate) const PWRITE64: usize = 68;
    pub(crate) const PWRITEV: usize = 70;
    pub(crate) const PPOLL: usize = 73;
    pub(crate) const SIGNALFD4: usize = 74;
    pub(crate) const SPLICE: usize = 76;
    pub(crate) const TEE: usize = 77;
    pub(crate) const FDATASYNC: usize = 83;
    pub(crate) const EXIT_GROUP: usize = 94;
    pub(crate) const WAITID: usize = 95;
    pub(crate) const CLOCK_GETTIME: usize = 113;
    pub(crate) const KILL: usize = 129;
    pub(crate) const RT_SIGACTION: usize = 134;
    pub(crate) const RT_SIGPROCMASK: usize = 135;
    pub(crate) const GETPGID: usize = 155;
    pub(crate) const SETSID: usize = 157;
    pub(crate) const PRCTL: usize = 167;
    pub(crate) const GETPID: usize = 172;
    pub(crate) const GETEUID: usize = 175;
    pub(crate) const SOCKET: usize = 198;
    pub(crate) const BIND: usize = 200;
    pub(crate) const LISTEN: usize = 201;
    pub(crate) const SENDTO: usize = 206;
    pub(crate) const RECVFROM: usize = 207;
    pub(crate) const RECVMSG: usize = 212;
    pub(crate) const GETSOCKOPT: usize = 209;
    pub(crate) const MUNMAP: usize = 215;
    pub(crate) const CLONE: usize = 220;
    pub(crate) const EXECVE: usize = 221;
    pub(crate) const MMAP: usize = 222;
    pub(crate) const MADVISE: usize = 233;
    pub(crate) const ACCEPT4: usize = 242;
    pub(crate) const WAIT4: usize = 260;
    pub(crate) const SCHED_SETATTR: usize = 274;
    pub(crate) const SCHED_GETATTR: usize = 275;
    pub(crate) const STATX: usize = 291;
    pub(crate) const PIDFD_SEND_SIGNAL: usize = 424;
    pub(crate) const PIDFD_OPEN: usize = 434;
    pub(crate) const CLONE3: usize = 435;
    pub(crate) const CLOSE_RANGE: usize = 436;
}

/// Makes a system call; a result in -4095..0 is an error.
///
/// # Safety
///
/// The arguments must be valid for system call `number`.
#[inline(always)]
pub(crate) unsafe fn syscall(number: usize, args: [usize; 6]) -> isize {
    let result;
    // SAFETY: the kernel keeps every register but x0; the caller guarantees the arguments.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") args[0] as isize => result,
            in("x1") args[1],
            in("x2") args[2],
            in("x3") args[3],
            in("x4") args[4],
            in("x5") args[5],
            options(nostack),
        );
    }
    result
}

/// Makes a `clone` or `clone3` call with a separate stack, on which the child runs `child(data)`.
///
/// # Safety
///
/// As for [`syscall`]. The child's stack must be aligned to 16 and otherwise unused, and `data` must be
/// valid for `child`.
pub(crate) unsafe fn clone_and_run<T>(
    number: usize,
    args: [usize; 2],
    child: unsafe extern "C" fn(*mut T) -> !,
    data: *mut T,
) -> isize {
    let result;
    // SAFETY: the child never returns from `child`, and the parent never calls it.
    unsafe {
        asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, {data}",
            "blr {child}",
            "brk #1",
            "2:",
            in("x8") number,
            inout("x0") args[0] as isize => result,
            in("x1") args[1],
            in("x2") 0,
            in("x3") 0,
            in("x4") 0,
            data = in(reg) data,
            child = in(reg) child,
        );
    }
    result
}

/// Returns the stack pointer.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: only reads a register.
    unsafe { asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack)) };
    pointer
}

/// The memory routines that the compiler calls by name and a C library would provide.
mod c_names {
    use core::arch::global_asm;

    // Byte by byte, since copies are short. In assembly, so that the compiler cannot recognise a loop and
    // replace it by a call to itself.
    global_asm!(
        ".text",
        ".globl memcpy, memmove, memset, memcmp, bcmp, strlen",
        "memmove:",
        "sub x3, x0, x1",
        "cmp x3, x2",
        "b.lo 3f",
        "memcpy:",
        "mov x3, x0",
        "2:",
        "cbz x2, 9f",
        "ldrb w4, [x1], #1",
        "strb w4, [x3], #1",
        "sub x2, x2, #1",
        "b 2b",
        "3:",
        "cbz x2, 9f",
        "sub x2, x2, #1",
        "ldrb w4, [x1, x2]",
        "strb w4, [x0, x2]",
        "b 3b",
        "memset:",
        "mov x3, x0",
        "4:",
        "cbz x2, 9f",
        "strb w1, [x3], #1",
        "sub x2, x2, #1",
        "b 4b",
        "memcmp:",
        "bcmp:",
        "mov x3, x0",
        "mov w0, wzr",
        "5:",
        "cbz x2, 9f",
        "ldrb w4, [x3], #1",
        "ldrb w5, [x1], #1",
        "sub x2, x2, #1",
        "subs w0, w4, w5",
        "b.eq 5b",
        "9:",
        "ret",
        "strlen:",
        "mov x1, x0",
        "6:",
        "ldrb w2, [x1], #1",
        "cbnz w2, 6b",
        "sub x0, x1, x0",
        "sub x0, x0, #1",
        "ret",
    );
}
