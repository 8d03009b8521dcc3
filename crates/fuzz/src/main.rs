//! Searches for inputs that break the target `LANDFALL_FUZZ_TARGET`. The arguments are those of libFuzzer.

#![no_main]

use std::sync::OnceLock;

use landfall_fuzz::Target;

static TARGET: OnceLock<Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        // libFuzzer's hook ends the process at every panic. Readers catch some panics of the libraries that they use, which is
        // an answer; a panic that is not caught still ends the process.
        drop(std::panic::take_hook());
    },
    |bytes: &[u8]| {
        let target = TARGET.get_or_init(|| {
            let name = std::env::var("LANDFALL_FUZZ_TARGET").unwrap_or_default();
            landfall_fuzz::target(&name).unwrap_or_else(|| {
                let names: Vec<&str> = landfall_fuzz::targets().map(|target| target.name).collect();
                eprintln!("LANDFALL_FUZZ_TARGET is {name:?}; set it to one of: {}", names.join(" "));
                std::process::exit(2);
            })
        });
        (target.run)(bytes);
    }
);
