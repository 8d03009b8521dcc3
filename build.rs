//! Puts the tokenizer of the built-in model where the code can include it: what counts the tokens of a chunk must be
//! the very tokenizer that the model reads it with, and the model's crate does not hand it out.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=Cargo.lock");
    let tokenizer = model_crate().join("assets/tokenizer.json");
    let target =
        PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("tokenizer.json");
    std::fs::copy(&tokenizer, &target)
        .unwrap_or_else(|error| panic!("cannot copy {}: {error}", tokenizer.display()));
}

/// Where cargo keeps the source of the crate that carries the model.
fn model_crate() -> PathBuf {
    let cargo = std::env::var_os("CARGO").expect("cargo sets CARGO");
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata answers JSON");
    metadata["packages"]
        .as_array()
        .and_then(|packages| packages.iter().find(|package| package["name"] == "pocket-encoder"))
        .and_then(|package| package["manifest_path"].as_str())
        .map(|manifest| Path::new(manifest).parent().expect("a manifest lies in a folder").to_owned())
        .expect("pocket-encoder is a dependency")
}
