//! The machine that this process runs on.

use std::sync::LazyLock;

/// Names this start of the machine. What a process wrote to a local file is seen by all others until the machine starts again,
/// also what was not synced.
pub fn boot_id() -> &'static str {
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        let read = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        // Without it each process is taken for one on a machine of its own.
        read.map_or_else(|_| landfall_core::random::new_uuid().to_string(), |id| id.trim().to_owned())
    });
    &BOOT
}
