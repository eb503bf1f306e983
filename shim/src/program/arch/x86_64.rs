//! x86_64.

use core::arch::{asm, global_asm};

global_asm!(
    ".text",
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {enter}",
    "ud2",
    enter = sym crate::program::enter,
);

/// Open a directory or fail.
pub(crate) const O_DIRECTORY: usize = 0o200_000;
/// Do not follow a symbolic link.
pub(crate) const O_NOFOLLOW: usize = 0o400_000;

/// The numbers of the system calls.
pub(crate) mod number {
    pub(crate) const PRLIMIT64: usize = 302;
    pub(crate) const READ: usize = 0;
    pub(crate) const WRITE: usize = 1;
    pub(crate) const CLOSE: usize = 3;
    pub(crate) const MMAP: usize = 9;
    pub(crate) const MUNMAP: usize = 11;
    pub(crate) const RT_SIGACTION: usize = 13;
    pub(crate) const RT_SIGPROCMASK: usize = 14;
    pub(crate) const IOCTL: usize = 16;
    pub(crate) const PREAD64: usize = 17;
    pub(crate) const PWRITE64: usize = 18;
    pub(crate) const MADVISE: usize = 28;
    pub(crate) const GETPID: usize = 39;
    pub(crate) const SOCKET: usize = 41;
    pub(crate) const SENDTO: usize = 44;
    pub(crate) const RECVFROM: usize = 45;
    pub(crate) const RECVMSG: usize = 47;
    pub(crate) const BIND: usize = 49;
    pub(crate) const LISTEN: usize = 50;
    pub(crate) const GETSOCKOPT: usize = 55;
    pub(crate) const CLONE: usize = 56;
    pub(crate) const EXECVE: usize = 59;
    pub(crate) const WAIT4: usize = 61;
    pub(crate) const KILL: usize = 62;
    pub(crate) const FCNTL: usize = 72;
    pub(crate) const FLOCK: usize = 73;
    pub(crate) const FDATASYNC: usize = 75;
    pub(crate) const FTRUNCATE: usize = 77;
    pub(crate) const CHDIR: usize = 80;
    pub(crate) const GETEUID: usize = 107;
    pub(crate) const SETSID: usize = 112;
    pub(crate) const GETPGID: usize = 121;
    pub(crate) const PRCTL: usize = 157;
    pub(crate) const GETDENTS64: usize = 217;
    pub(crate) const CLOCK_GETTIME: usize = 228;
    pub(crate) const EXIT_GROUP: usize = 231;
    pub(crate) const WAITID: usize = 247;
    pub(crate) const OPENAT: usize = 257;
    pub(crate) const MKDIRAT: usize = 258;
    pub(crate) const UNLINKAT: usize = 263;
    pub(crate) const PPOLL: usize = 271;
    pub(crate) const SPLICE: usize = 275;
    pub(crate) const TEE: usize = 276;
    pub(crate) const ACCEPT4: usize = 288;
    pub(crate) const SIGNALFD4: usize = 289;
    pub(crate) const DUP3: usize = 292;
    pub(crate) const PIPE2: usize = 293;
    pub(crate) const PWRITEV: usize = 296;
    pub(crate) const SCHED_SETATTR: usize = 314;
    pub(crate) const SCHED_GETATTR: usize = 315;
    pub(crate) const STATX: usize = 332;
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
    // SAFETY: the kernel keeps every register but these three; the caller guarantees the arguments.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
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
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, {data}",
            "call {child}",
            "ud2",
            "2:",
            inout("rax") number as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") 0,
            in("r10") 0,
            in("r8") 0,
            data = in(reg) data,
            child = in(reg) child,
            out("rcx") _,
            out("r11") _,
        );
    }
    result
}

/// Returns the stack pointer.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: only reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack)) };
    pointer
}

/// The memory routines that the compiler calls by name and a C library would provide.
mod c_names {
    use core::arch::global_asm;

    // In assembly, so that the compiler cannot recognise a loop and replace it by a call to itself.
    global_asm!(
        ".text",
        ".globl memcpy, memmove, memset, memcmp, bcmp, strlen",
        "memmove:",
        "mov rax, rdi",
        "sub rax, rsi",
        "cmp rax, rdx",
        "jb 2f",
        "memcpy:",
        "mov rax, rdi",
        "mov rcx, rdx",
        "rep movsb",
        "ret",
        "2:",
        "mov rax, rdi",
        "mov rcx, rdx",
        "lea rdi, [rdi + rdx - 1]",
        "lea rsi, [rsi + rdx - 1]",
        "std",
        "rep movsb",
        "cld",
        "ret",
        "memset:",
        "mov r8, rdi",
        "mov eax, esi",
        "mov rcx, rdx",
        "rep stosb",
        "mov rax, r8",
        "ret",
        "memcmp:",
        "bcmp:",
        "xor eax, eax",
        "mov rcx, rdx",
        "cmp rcx, rcx",
        "repe cmpsb",
        "je 3f",
        "movzx eax, byte ptr [rdi - 1]",
        "movzx ecx, byte ptr [rsi - 1]",
        "sub eax, ecx",
        "3:",
        "ret",
        "strlen:",
        "xor eax, eax",
        "mov rcx, -1",
        "repne scasb",
        "not rcx",
        "lea rax, [rcx - 1]",
        "ret",
    );
}
