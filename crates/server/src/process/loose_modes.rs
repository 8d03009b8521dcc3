//! What other users of the machine can read. What the server creates is for its own user alone; a folder from before, or one
//! that was made by hand, may be open to all.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the group and all others may do.
const OTHERS: u32 = 0o077;

/// A warning for each of the places that others can use, with the command that ends it. A place in a folder that is closed to
/// others needs none of its own.
pub fn warnings(places: &[PathBuf]) -> Vec<String> {
    let mut named: Vec<&Path> = Vec::new();
    let mut warnings = Vec::new();
    for place in places {
        let Ok(found) = std::fs::metadata(place) else { continue };
        let mode = found.mode() & 0o7777;
        let folder = place.parent().and_then(|folder| std::fs::metadata(folder).ok());
        let is_closed = folder.is_some_and(|folder| folder.mode() & OTHERS == 0);
        if mode & OTHERS == 0 || is_closed || named.iter().any(|above| place.starts_with(above)) {
            continue;
        }
        let path = place.display();
        let how = if found.is_dir() { "-R " } else { "" };
        warnings.push(format!(
            "Other users of this machine can use {path} (mode {mode:o}): run `chmod {how}go= '{path}'`"
        ));
        if found.is_dir() {
            named.push(place);
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_others_can_reach_is_named_once_with_the_command_that_closes_it() {
        let above = tempfile::tempdir().expect("a folder");
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
        };
        let (data, file) = (above.path().join("data"), above.path().join("data/landfall.db"));
        std::fs::create_dir(&data).expect("it is made");
        std::fs::write(&file, "x").expect("it is written");
        let places = [data.clone(), file.clone()];
        open(above.path(), 0o755);
        open(&data, 0o755);
        open(&file, 0o644);
        let found = warnings(&places);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(&format!("chmod -R go= '{}'", data.display())), "{found:?}");
        open(&data, 0o700);
        assert!(warnings(&places).is_empty(), "no other user gets to the file");
        assert_eq!(warnings(std::slice::from_ref(&file)).len(), 0);
        open(&data, 0o755);
        assert!(warnings(&[file])[0].contains("chmod go= "));
    }
}
