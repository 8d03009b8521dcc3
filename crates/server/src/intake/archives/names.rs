//! What the files of an archive are called.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::intake::announce::{check_name, is_bad_in_name};

/// The attribute with the path of a file in its archive. `landfall upload` notes the paths of a folder under the same name.
pub const PATH: &str = "path";
/// The most characters of the value of an attribute, and the most attributes of a file.
const MAX_PATH: usize = 512;
const MAX_ATTRIBUTES: usize = 16;

/// The id of a file in an archive: always the same for the same path. It has the time of the archive's id, so that lists in
/// the order of ids have both together.
pub fn id(archive: Uuid, path: &str) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(archive.as_bytes());
    hash.update(path.as_bytes());
    let hash = hash.finalize();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&archive.as_bytes()[..6]);
    bytes[6..].copy_from_slice(&hash[..10]);
    uuid::Builder::from_bytes(bytes)
        .with_variant(uuid::Variant::RFC4122)
        .with_version(uuid::Version::SortRand)
        .into_uuid()
}

/// The name of a file: the last part of its path.
pub fn name(path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or_default();
    let name = last.replace(is_bad_in_name, "_");
    if check_name(&name).is_ok() { name } else { "unnamed".to_owned() }
}

/// The attributes of a file: those of its archive, and its path.
pub fn attributes(archive: Option<&Value>, path: &str) -> Option<Value> {
    let mut attributes: Map<String, Value> = archive.and_then(Value::as_object).cloned().unwrap_or_default();
    if attributes.len() < MAX_ATTRIBUTES || attributes.contains_key(PATH) {
        attributes.insert(PATH.to_owned(), Value::String(shortened(path)));
    }
    (!attributes.is_empty()).then_some(Value::Object(attributes))
}

/// The end of a path says more than its beginning.
fn shortened(path: &str) -> String {
    let length = path.chars().count();
    if length <= MAX_PATH {
        return path.to_owned();
    }
    let end: String = path.chars().skip(length - (MAX_PATH - 1)).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use landfall_core::clock::Clock;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_follows_from_the_archive_and_the_path() {
        let (one, other) = (Clock::System.new_id(), Clock::System.new_id());
        assert_eq!(id(one, "a/b.txt"), id(one, "a/b.txt"));
        assert_ne!(id(one, "a/b.txt"), id(one, "a/c.txt"));
        assert_ne!(id(one, "a/b.txt"), id(other, "a/b.txt"));
        assert_eq!(id(one, "a").get_version_num(), 7);
        assert_eq!(id(one, "a").as_bytes()[..6], one.as_bytes()[..6]);
    }

    #[test]
    fn a_file_has_the_last_part_of_its_path_as_its_name() {
        assert_eq!(name("a/b.txt"), "b.txt");
        assert_eq!(name("b.txt"), "b.txt");
        assert_eq!(name("a/x\u{202e}fdp.exe"), "x_fdp.exe", "it does not deceive a reader");
        assert_eq!(name("a/ "), "unnamed");
    }

    #[test]
    fn a_file_has_the_attributes_of_its_archive_and_its_path() {
        let year = json!({ "year": 2024 });
        assert_eq!(attributes(Some(&year), "a/b").unwrap(), json!({ "year": 2024, "path": "a/b" }));
        assert_eq!(attributes(None, "a/b").unwrap(), json!({ "path": "a/b" }));
        let many: Map<String, Value> = (0..16).map(|number| (number.to_string(), json!(1))).collect();
        let full = Value::Object(many);
        assert_eq!(attributes(Some(&full), "a/b"), Some(full.clone()), "there is no room for the path");
        let long = attributes(None, &"ä/".repeat(900)).unwrap();
        assert_eq!(long["path"].as_str().unwrap().chars().count(), MAX_PATH);
    }
}
