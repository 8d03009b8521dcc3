//! The `.env` file of the current folder. Only that folder is looked at: a file in a folder above it may belong to another
//! user, who could send this program and its tokens anywhere.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const ROOT: u32 = 0;
/// The bits with which the group and all others may write.
const WRITABLE: u32 = 0o022;

/// The variables of the file, in its order; none if there is no file.
pub fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    let failed = |error: &dyn std::fmt::Display| format!(".env: {error}");
    let link = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        found => found.map_err(|error| failed(&error))?,
    };
    let file = File::open(path).map_err(|error| failed(&error))?;
    let caller = rustix::process::geteuid().as_raw();
    // The file itself, which cannot be exchanged any more, and a link that may have led to it.
    let opened = file.metadata().map_err(|error| failed(&error))?;
    must_be_trusted(&opened, caller, opened.mode())?;
    must_be_trusted(&link, caller, 0)?;
    let lines = dotenvy::from_read_iter(file);
    lines.map(|line| line.map_err(|error| failed(&error))).collect()
}

fn must_be_trusted(found: &Metadata, caller: u32, mode: u32) -> Result<(), String> {
    if found.uid() != caller && found.uid() != ROOT {
        return Err(format!(
            ".env belongs to the user with the id {}, so it is not read: remove it, or make it yours with \
             `chown {caller} .env` if you trust what is in it",
            found.uid()
        ));
    }
    if mode & WRITABLE != 0 {
        return Err(".env can be changed by other users, so it is not read: run `chmod go-w .env` if you trust what is in it"
            .to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn file(folder: &tempfile::TempDir, mode: u32) -> std::path::PathBuf {
        let path = folder.path().join(".env");
        std::fs::write(&path, "PORT=4000\n# a comment\nDATA_DIR='a folder'\n").expect("it is written");
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("its mode");
        path
    }

    #[test]
    fn a_file_of_the_caller_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = vec![pair("PORT", "4000"), pair("DATA_DIR", "a folder")];
        assert_eq!(read(&file(&folder, 0o644)), Ok(expected.clone()));
        symlink(folder.path().join(".env"), folder.path().join("link")).expect("a link");
        assert_eq!(read(&folder.path().join("link")), Ok(expected));
        assert_eq!(read(&folder.path().join("none")), Ok(Vec::new()));
    }

    #[test]
    fn a_file_that_others_can_change_is_refused() {
        for mode in [0o664, 0o646, 0o666] {
            let folder = tempfile::tempdir().expect("a folder");
            let refused = read(&file(&folder, mode)).expect_err("it is refused");
            assert!(refused.contains("chmod go-w"), "{refused}");
        }
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let found = std::fs::metadata(file(&folder, 0o600)).expect("it is there");
        // Only root can give a file away, so the caller is another user here.
        if found.uid() == ROOT {
            std::os::unix::fs::chown(folder.path().join(".env"), Some(12_345), None).expect("root may");
            let refused = read(&folder.path().join(".env")).expect_err("it is refused");
            assert!(refused.contains("belongs to the user with the id 12345"), "{refused}");
        } else {
            assert!(must_be_trusted(&found, found.uid() + 1, 0o600).is_err());
        }
    }
}
