//! Secrets that the server generates and keeps in its data folder, each in a file that only its owner may read.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use landfall_store::Error;

/// Only the owner may read and write it.
const MODE: u32 = 0o600;
/// The bits of all others.
const OTHERS: u32 = 0o077;
const MIN_LENGTH: usize = 32;
/// A secret is much shorter. A longer file is another one.
const MAX_BYTES: u64 = 4_096;

/// Reads a secret. With `create` it is generated if it is missing.
pub fn read(data_dir: &Path, name: &str, create: bool) -> Result<String, Error> {
    let path = data_dir.join(name);
    let cannot = |verb: &str| {
        let what = format!("{verb} {}", path.display());
        move |source: std::io::Error| Error::Storage { what, source: source.into() }
    };
    if create && !path.exists() {
        std::fs::create_dir_all(data_dir).map_err(cannot("create"))?;
        generate(data_dir, name, &path).map_err(cannot("create"))?;
    }
    let file = File::open(&path).map_err(cannot("read"))?;
    close_to_others(&file, &path).map_err(cannot("protect"))?;
    let mut secret = String::new();
    file.take(MAX_BYTES).read_to_string(&mut secret).map_err(cannot("read"))?;
    if secret.trim().len() < MIN_LENGTH {
        return Err(Error::Internal(format!("the secret in {} is too short", path.display())));
    }
    Ok(secret.trim().to_owned())
}

/// The secret, if there is one.
pub fn find(data_dir: &Path, name: &str) -> Result<Option<String>, Error> {
    if data_dir.join(name).exists() { read(data_dir, name, false).map(Some) } else { Ok(None) }
}

/// Writes a draft and links it into place: another process sees the whole secret or none, and never replaces one.
fn generate(data_dir: &Path, name: &str, path: &Path) -> std::io::Result<()> {
    let fresh: [u8; 32] = landfall_core::random::random();
    let draft = data_dir.join(format!("{name}.{}", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(MODE)
        .open(&draft)
        .and_then(|mut file| {
            file.write_all(hex::encode(fresh).as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| match std::fs::hard_link(&draft, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        })
        // Without the entry of its folder, a power cut would take the secret away again.
        .and_then(|()| File::open(data_dir)?.sync_all());
    // The draft is linked by now, or was never created.
    drop(std::fs::remove_file(&draft));
    written
}

/// Takes away what other users of the machine may do with the file. Fails if that is not possible.
fn close_to_others(file: &File, path: &Path) -> std::io::Result<()> {
    let mode = file.metadata()?.mode();
    if mode & OTHERS == 0 {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(MODE))?;
    tracing::warn!(
        path = %path.display(),
        mode = format!("{:o}", mode & 0o7777),
        "other users of this machine could read a secret of the server; the mode is now 600. Replace the secret if one of \
         them may have read it (docs/secrets.md)"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("it is there").mode() & 0o777
    }

    #[test]
    fn a_secret_is_generated_once_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = read(folder.path(), "secret", true).expect("it is generated");
        assert_eq!(first.len(), 64);
        assert_eq!(mode(&folder.path().join("secret")), 0o600);
        assert_eq!(read(folder.path(), "secret", true).expect("it is read"), first);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "no draft is left");
    }

    #[test]
    fn one_that_others_can_read_is_closed_to_them_before_it_is_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "0".repeat(64)).expect("it is written");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("its mode");
        read(folder.path(), "secret", false).expect("it is read");
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn one_that_is_missing_is_not_generated_unasked() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(read(folder.path(), "secret", false).is_err());
        assert_eq!(find(folder.path(), "secret").expect("a look"), None);
    }
}
