//! Puts the files of the built-in model where the code can include them: the model's crate does not hand them out, and
//! its encoder is much slower than ours.

use std::path::{Path, PathBuf};
use std::process::Command;

const MODEL_CRATE: &str = "pocket-encoder";
const ASSETS: &str = "assets";
const FILES: [&str; 5] =
    ["tokenizer.json", "config.json", "shapes.json", "provenance.json", "model.safetensors"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../../Cargo.lock");
    let assets = in_the_registry().unwrap_or_else(where_cargo_says);
    let target = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for file in FILES {
        std::fs::copy(assets.join(file), target.join(file))
            .unwrap_or_else(|error| panic!("cannot copy {file} from {}: {error}", assets.display()));
    }
}

/// Where cargo unpacks what it downloads. It has done so before it builds anything.
fn in_the_registry() -> Option<PathBuf> {
    let lock = std::fs::read_to_string("../../Cargo.lock").ok()?;
    let (_, entry) = lock.split_once(&format!("name = \"{MODEL_CRATE}\"\nversion = \""))?;
    let (version, _) = entry.split_once('"')?;
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".cargo")))?;
    let registries = std::fs::read_dir(home.join("registry/src")).ok()?;
    registries
        .filter_map(Result::ok)
        .map(|registry| registry.path().join(format!("{MODEL_CRATE}-{version}")).join(ASSETS))
        .find(|assets| FILES.iter().all(|file| assets.join(file).is_file()))
}

/// Asks cargo, which knows of every other place: a vendored copy, a registry of one's own. This may download crates
/// that only other platforms need, so it comes second.
fn where_cargo_says() -> PathBuf {
    let cargo = std::env::var_os("CARGO").expect("cargo sets CARGO");
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata answers JSON");
    metadata["packages"]
        .as_array()
        .and_then(|packages| packages.iter().find(|package| package["name"] == MODEL_CRATE))
        .and_then(|package| package["manifest_path"].as_str())
        .map(|manifest| Path::new(manifest).parent().expect("a manifest lies in a folder").join(ASSETS))
        .expect("the model's crate is a dependency")
}
