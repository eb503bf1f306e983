//! A program that does nothing: `build.rs` compiles it, and the daemon is asked to run it.

#![no_std]
#![no_main]

use core::{arch::global_asm, panic::PanicInfo};

#[cfg(target_arch = "x86_64")]
global_asm!(".globl _start", "_start:", "xor edi, edi", "mov eax, 231", "syscall");

#[cfg(target_arch = "aarch64")]
global_asm!(".globl _start", "_start:", "mov x0, #0", "mov x8, #94", "svc #0");

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
