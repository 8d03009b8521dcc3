//! Tells a process that was refused memory from one that crashed.
//!
//! Where memory runs out, Rust ends the process the way it ends it for any other disaster. So the program's allocator
//! remembers that it could not give what was asked for, and the last handler before the end looks whether it did.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

use super::protocol::EXIT_OUT_OF_MEMORY;

/// Whether memory was refused since the last [`forget`].
static REFUSED: AtomicBool = AtomicBool::new(false);

pub fn was_refused() -> bool {
    REFUSED.load(Ordering::Relaxed)
}

pub fn forget() {
    REFUSED.store(false, Ordering::Relaxed);
}

/// The system's allocator, with a memory of what it refused.
pub struct Remembering;

fn remember(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() {
        REFUSED.store(true, Ordering::Relaxed);
    }
    pointer
}

// SAFETY: every call is handed on as it is to the system's allocator, which keeps the contract; its answers are handed
// back as they are. Beside that only an atomic is written, which neither allocates nor unwinds.
unsafe impl GlobalAlloc for Remembering {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is that of the system's.
        remember(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is that of the system's.
        remember(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the pointer came from the system's allocator, and the caller keeps the contract of `realloc`.
        remember(unsafe { System.realloc(pointer, layout, size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from the system's allocator with this layout, as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// From here on this process ends with `EXIT_OUT_OF_MEMORY` where it would abort after having been refused memory.
pub fn end_by_exit_code() -> std::io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = on_abort;
    // SAFETY: all zeros is a valid `sigaction`: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the action is valid for the call and has a handler of the type that goes without SA_SIGINFO. The handler
    // does only what a handler may: it reads an atomic and calls `_exit`.
    match unsafe { libc::sigaction(libc::SIGABRT, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// When this returns, the process aborts all the same.
extern "C" fn on_abort(_: libc::c_int) {
    if was_refused() {
        // SAFETY: `_exit` may be called at any time, also from a handler.
        unsafe { libc::_exit(EXIT_OUT_OF_MEMORY) }
    }
}
