//! The secret from which the server derives its keys.

use super::declared::{Declaration, group};
use super::reader::Reader;
use crate::auth::strength;

group! { "Secrets" {
    SECRET_KEY = "": "The secret from which the server derives the keys that sign upload URLs and encrypt the secrets of webhooks, the same for all processes of a database; without it, `JWT_SECRET`, and without that a file that the server creates in `DATA_DIR`."
    SECRET_KEY_PREVIOUS = "": "The secret that was in force before, while it is replaced: what it encrypted is encrypted again at the start."
} }

pub(super) fn read(read: &mut Reader) -> (Option<String>, Option<String>) {
    // The previous one only decrypts, so a weak one can be replaced.
    (read_strong(read, SECRET_KEY), read.secret(SECRET_KEY_PREVIOUS))
}

/// A secret that must not be easy to guess.
pub(super) fn read_strong(read: &mut Reader, setting: Declaration) -> Option<String> {
    let secret = read.secret(setting);
    if let Some(weakness) = secret.as_deref().and_then(strength::weakness) {
        read.complain(setting, &weakness);
    }
    secret
}
