//! The modules of this crate are layers: `src/lib.rs` lists them from the ground up, and each uses only those before it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The top-level modules in the order of `lib.rs`.
fn layers() -> Vec<String> {
    let source = read(&source().join("lib.rs"));
    let modules = source.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    modules.map(str::to_owned).collect()
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every source file with the top-level module that it belongs to.
fn files() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut folders = vec![source()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let inside = path.strip_prefix(source()).expect("it is below the source");
                let first = inside.iter().next().and_then(|part| part.to_str()).expect("a name");
                let module = first.trim_end_matches(".rs");
                if module != "lib" {
                    found.push((module.to_owned(), path));
                }
            }
        }
    }
    found
}

/// The top-level modules that a source names, in an import or in the middle of the code: `crate::name`, also inside a group
/// (`crate::{name, other::Thing}`).
fn uses(source: &str) -> Vec<String> {
    let code: String =
        source.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for rest in code.split("crate::").skip(1) {
        if let Some(group) = rest.strip_prefix('{') {
            let (mut depth, mut name) = (0, String::new());
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(std::mem::take(&mut name)),
                    c if depth == 0 => name.push(c),
                    _ => {}
                }
            }
            found.push(name);
        } else {
            found.push(rest.to_owned());
        }
    }
    let word = |text: String| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    found.into_iter().map(word).collect()
}

#[test]
fn no_module_uses_one_that_stands_above_it() {
    let layers = layers();
    assert!(layers.len() > 10, "the list of modules is found: {layers:?}");
    let height: BTreeMap<&str, usize> =
        layers.iter().enumerate().map(|(height, layer)| (layer.as_str(), height)).collect();
    let mut upward = Vec::new();
    for (module, path) in files() {
        let own = height.get(module.as_str()).unwrap_or_else(|| panic!("lib.rs does not list {module}"));
        for used in uses(&read(&path)) {
            if height.get(used.as_str()).is_some_and(|used| used > own) {
                upward.push(format!("{} uses {used}, which stands above {module}", path.display()));
            }
        }
    }
    // What only ever points downwards has no cycle either.
    assert!(upward.is_empty(), "{}", upward.join("\n"));
}

#[test]
fn imports_are_found_however_they_are_written() {
    let source = "
        use crate::records::file::File;
        use crate::{queue::{claim, settle}, stages};
        // use crate::http::router;
        fn f() { crate::app::start(); }";
    assert_eq!(uses(source), ["records", "queue", "stages", "app"]);
}
