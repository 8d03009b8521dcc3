//! All randomness of this program that does not come from `landfall_core::random`: the keys of hash maps, the order in which
//! `select!` polls, the jitter of libraries. All of it begins with the system call `getrandom`, so the program has its own.
//!
//! The keys of hash maps decide the order in which they are walked. With the same numbers in the same order, a history is the
//! same bit for bit.

use std::sync::atomic::{AtomicU64, Ordering};

static STATE: AtomicU64 = AtomicU64::new(0x4c61_6e64_6661_6c6c);

/// Makes sure that the linker takes this module, and with it the function below.
pub fn replace() {
    STATE.store(0x4c61_6e64_6661_6c6c, Ordering::Relaxed);
}

/// SplitMix64.
fn next() -> u64 {
    let state = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Takes the place of the C library's function in this program. What it returns can be foretold: nothing here is secret.
///
/// # Safety
///
/// As of the function that it replaces: `buffer` has room for `length` bytes.
// SAFETY: the name and the signature are those of `getrandom(2)`, so every caller passes what this function expects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    if buffer.is_null() || length == 0 {
        return 0;
    }
    // SAFETY: the caller says that `length` bytes at `buffer` are its own to write, and the pointer is not null.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&next().to_le_bytes()[..part.len()]);
    }
    isize::try_from(length).unwrap_or(isize::MAX)
}
