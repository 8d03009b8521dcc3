//! Runs every target on its corpus and on mutations of it. `LANDFALL_FUZZ_MUTATIONS=1000` makes so many of each input.
//!
//! A search with coverage finds more (`make fuzz`). This keeps what it found fixed, and the targets working.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use landfall_fuzz::Target;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

const DEFAULT_MUTATIONS: usize = 4;

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let targets: BTreeSet<String> = landfall_fuzz::targets().map(|target| target.name.to_owned()).collect();
    let folders = std::fs::read_dir(corpus()).expect("the corpus").map(|entry| {
        let entry = entry.expect("an entry");
        let inputs = std::fs::read_dir(entry.path()).expect("a folder").count();
        assert!(inputs > 0, "{} is empty", entry.path().display());
        entry.file_name().into_string().expect("a name in text")
    });
    assert_eq!(folders.collect::<BTreeSet<_>>(), targets);
}

#[test]
fn documents_take_any_bytes() {
    run(|target| !is_of_server(target) && target.name != "pdf");
}

#[test]
fn pdf_takes_any_bytes() {
    run(|target| target.name == "pdf");
}

#[test]
fn the_server_takes_any_bytes() {
    run(is_of_server);
}

fn is_of_server(target: &Target) -> bool {
    ["cursor", "request", "settings", "token", "upload_url"].contains(&target.name)
}

fn run(is_wanted: impl Fn(&Target) -> bool) {
    let mutations = std::env::var("LANDFALL_FUZZ_MUTATIONS")
        .map_or(DEFAULT_MUTATIONS, |number| number.parse().expect("a number"));
    for target in landfall_fuzz::targets().filter(is_wanted) {
        let mut inputs: Vec<PathBuf> = std::fs::read_dir(corpus().join(target.name))
            .expect("a corpus")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        inputs.sort();
        for input in inputs {
            let bytes = std::fs::read(&input).expect("it can be read");
            // The last line before a failure names its input; only that of a failed test is shown.
            println!("{}", input.display());
            (target.run)(&bytes);
            for seed in 0..mutations {
                println!("{} with mutation {seed}", input.display());
                let mut random = StdRng::seed_from_u64(seed as u64);
                (target.run)(&mutated(bytes.clone(), &mut random));
            }
        }
    }
}

/// The bytes with one to eight changes.
fn mutated(mut bytes: Vec<u8>, random: &mut impl Rng) -> Vec<u8> {
    for _ in 0..random.random_range(1..=8) {
        if bytes.is_empty() {
            bytes.push(random.random());
        }
        let at = random.random_range(0..bytes.len());
        let end = (at + random.random_range(1..=32)).min(bytes.len());
        match random.random_range(0..6) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'<', b'(', b'\n'][random.random_range(0..8)],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let again: Vec<u8> = bytes[at..end].repeat(random.random_range(1..=20));
                drop(bytes.splice(at..at, again));
            }
            4 => {
                let other = random.random_range(0..bytes.len());
                bytes.swap(at, other);
            }
            _ if random.random_range(0..8) == 0 => bytes.truncate(at),
            _ => bytes[at..end].fill(random.random()),
        }
    }
    bytes
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}
