#![no_main]

use std::ops::ControlFlow;

use landfall_documents::ArchiveLimits;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let limits = ArchiveLimits { total_bytes: 16 << 20, member_bytes: 4 << 20, ..ArchiveLimits::default() };
    let goes_on = || ControlFlow::Continue(());
    // An archive that cannot be unpacked is an error, which is an answer.
    _ = landfall_documents::archive_members(bytes, &limits, &goes_on, &mut |_| Ok(()));
});
