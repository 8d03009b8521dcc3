//! All processes that share a database have the same secret. The database keeps a fingerprint of it, from which the secret
//! cannot be computed.

use super::secret::SecretKey;
use landfall_store::{Error, Tx, args};

const NAME: &str = "key-fingerprint";
const LABEL: &str = "fingerprint";

/// How the secret of this process compares with that of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// The database had none. It is new, or was written by a version that kept its secrets in it.
    First,
    Same,
    /// The database had one of the secrets before. From now on it has this one.
    Rotated,
}

/// Compares the secret with that of the database, in the transaction that also seals again what must change with it. One
/// process does so at a time. Fails if the database has another secret.
pub async fn agree(tx: &mut Tx, secret: &SecretKey) -> Result<Agreement, Error> {
    tx.enter_section("secret key").await?;
    let own = secret.derive(LABEL);
    match kept(tx).await? {
        None => {
            let insert = "INSERT INTO secrets (name, value) VALUES ($1, $2)";
            tx.execute(insert, args![NAME, own.to_vec()]).await?;
            Ok(Agreement::First)
        }
        Some(kept) if kept == own => Ok(Agreement::Same),
        Some(kept) if secret.derive_previous(LABEL).iter().any(|previous| kept == previous) => {
            let update = "UPDATE secrets SET value = $2 WHERE name = $1";
            tx.execute(update, args![NAME, own.to_vec()]).await?;
            Ok(Agreement::Rotated)
        }
        Some(_) => Err(Error::Internal(
            "The secret key of this process is not that of the database, which has secrets that only the right one can \
             decrypt. If other processes use the database, set SECRET_KEY to the same value for all of them. If you have \
             changed the secret, also set SECRET_KEY_PREVIOUS to the former SECRET_KEY, or, if there was none, to the \
             former JWT_SECRET or the content of the file secret-key in the former DATA_DIR (docs/secrets.md)"
                .to_owned(),
        )),
    }
}

/// Checks that the database still has the secret of this process, until the transaction ends. Another process may have
/// rotated it.
pub async fn must_be_current(tx: &mut Tx, secret: &SecretKey) -> Result<(), Error> {
    tx.enter_section("secret key").await?;
    if kept(tx).await?.is_some_and(|kept| kept == secret.derive(LABEL)) {
        return Ok(());
    }
    Err(Error::Internal(
        "The secret key was rotated by another process: restart this one with the new SECRET_KEY".to_owned(),
    ))
}

async fn kept(tx: &mut Tx) -> Result<Option<Vec<u8>>, Error> {
    let kept: Option<(Vec<u8>,)> = tx.row("SELECT value FROM secrets WHERE name = $1", args![NAME]).await?;
    Ok(kept.map(|(value,)| value))
}
