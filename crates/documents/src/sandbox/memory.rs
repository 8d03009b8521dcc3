//! Tells a process that ran out of memory from one that crashed.
//!
//! When an allocation fails, Rust aborts the process, as it does for other fatal errors. So the program's allocator
//! records a failed allocation, and the handler of the abort signal checks that record.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

use super::protocol::EXIT_OUT_OF_MEMORY;

/// Whether an allocation failed since the last [`reset`].
static ALLOCATION_FAILED: AtomicBool = AtomicBool::new(false);

pub fn allocation_failed() -> bool {
    ALLOCATION_FAILED.load(Ordering::Relaxed)
}

pub fn reset() {
    ALLOCATION_FAILED.store(false, Ordering::Relaxed);
}

/// The system's allocator, which also records that an allocation failed.
///
/// With it as the `#[global_allocator]`, a document that needs more memory than
/// [`SandboxConfig::memory_mb`](super::SandboxConfig) ends with [`ErrorKind::OutOfMemory`](crate::ErrorKind). With
/// another allocator it ends like one that crashes its reader, with [`ErrorKind::Damaged`](crate::ErrorKind).
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocator;

fn record(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() {
        ALLOCATION_FAILED.store(true, Ordering::Relaxed);
    }
    pointer
}

// SAFETY: every call and its result are passed on unchanged to and from the system's allocator, which keeps the
// contract. Beside that only an atomic is written, which neither allocates nor unwinds.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is that of the system's.
        record(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is that of the system's.
        record(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the pointer came from the system's allocator, and the caller keeps the contract of `realloc`.
        record(unsafe { System.realloc(pointer, layout, size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from the system's allocator with this layout, as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// From here on, if this process aborts after a failed allocation, it exits with `EXIT_OUT_OF_MEMORY` instead.
pub fn exit_on_failed_allocation() -> std::io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = on_abort;
    // SAFETY: all zeros is a valid `sigaction`: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the action is valid for the call and has a handler of the type that goes without SA_SIGINFO. The
    // handler does only what a handler may: it reads an atomic and calls `_exit`.
    match unsafe { libc::sigaction(libc::SIGABRT, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// When this returns, the process aborts.
extern "C" fn on_abort(_: libc::c_int) {
    if allocation_failed() {
        // SAFETY: `_exit` may be called at any time, also from a handler.
        unsafe { libc::_exit(EXIT_OUT_OF_MEMORY) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_keeps_its_bytes_when_it_grows_and_only_a_failure_is_recorded() {
        let (small, large) = (Layout::array::<u8>(3).unwrap(), Layout::array::<u8>(30_000).unwrap());
        reset();
        // SAFETY: each block is used within its layout, from its allocation until it is freed with the same layout.
        unsafe {
            let block = Allocator.alloc(small);
            assert!(!block.is_null());
            for (place, number) in [7, 8, 9].into_iter().enumerate() {
                block.add(place).write(number);
            }
            let block = Allocator.realloc(block, small, large.size());
            assert!(!block.is_null());
            assert_eq!(std::slice::from_raw_parts(block, 3), [7, 8, 9]);
            block.add(29_999).write(10);
            Allocator.dealloc(block, large);
            let zeros = Allocator.alloc_zeroed(large);
            assert!(std::slice::from_raw_parts(zeros, large.size()).iter().all(|byte| *byte == 0));
            Allocator.dealloc(zeros, large);
        }
        assert!(!allocation_failed());
        // Miri ends the program there, and does not let the allocation fail.
        if cfg!(not(miri)) {
            let huge = Layout::array::<u8>(isize::MAX as usize - 4_096).unwrap();
            // SAFETY: the layout has a size, and there is no block to free.
            assert!(unsafe { Allocator.alloc(huge) }.is_null());
            assert!(allocation_failed());
        }
        reset();
    }
}
