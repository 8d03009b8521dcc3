//! The API keys of programs: made once, shown once, and kept as a hash.
//!
//! A key looks like `lf_` and 46 letters and digits. The last six of them are a checksum of the others, so that a program
//! that searches for leaked keys finds them without asking a server, and a mistyped key needs no look at the database.

use chrono::TimeDelta;
use landfall_api::keys::{CreatedKey, KeyView, NewKey};
use landfall_core::caller::{Caller, KeyScope, Reach, Role, TenantUser};
use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::{Db, Durability, Error, Tx, Write, args};
use rand::RngExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Credential, Identity, is_name};
use crate::records::reach;

pub const PREFIX: &str = "lf_";
const RANDOM_LENGTH: usize = 40;
const CHECKSUM_LENGTH: usize = 6;
/// The characters that people see of a key in lists.
const HINT_LENGTH: usize = PREFIX.len() + 5;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Keys of one user that are neither revoked nor expired.
const MAX_KEYS: i64 = 50;
const MAX_NAME_LENGTH: usize = 100;
/// The use of a key is noted no more often than this.
const BETWEEN_USES: TimeDelta = TimeDelta::minutes(1);
/// A stream that was opened with a key ends after this time, so that it does not outlive a revoked key by much.
const MAX_STREAM: TimeDelta = TimeDelta::minutes(15);

/// The text of a key.
#[derive(Clone)]
pub struct KeyText(String);

impl KeyText {
    pub fn random() -> Self {
        let mut random = landfall_core::random::Source;
        let digits = (0..RANDOM_LENGTH).map(|_| char::from(DIGITS[random.random_range(0..DIGITS.len())]));
        let text: String = PREFIX.chars().chain(digits).collect();
        Self(format!("{text}{}", checksum(&text)))
    }

    /// `None` if this cannot be a key.
    pub fn parse(text: &str) -> Option<Self> {
        let (random, check) = text.split_at_checked(PREFIX.len() + RANDOM_LENGTH)?;
        (random.starts_with(PREFIX) && checksum(random) == check).then(|| Self(text.to_owned()))
    }

    fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.0.as_bytes()))
    }

    fn hint(&self) -> &str {
        &self.0[..HINT_LENGTH]
    }
}

/// CRC-32 in six digits.
fn checksum(text: &str) -> String {
    let mut rest = crc32fast::hash(text.as_bytes()) as usize;
    let mut digits = ['0'; CHECKSUM_LENGTH];
    for digit in digits.iter_mut().rev() {
        *digit = char::from(DIGITS[rest % DIGITS.len()]);
        rest /= DIGITS.len();
    }
    digits.iter().collect()
}

/// The row, without the hash.
#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct ApiKey {
    pub id: Uuid,
    pub tenant_id: String,
    pub user_id: String,
    #[row(try_from = "String")]
    pub role: Role,
    scopes: Value,
    pub name: String,
    pub hint: String,
    pub creator_tenant: String,
    pub creator_user: String,
    pub created_at: Time,
    pub expires_at: Option<Time>,
    pub last_used_at: Option<Time>,
    pub last_used_from: Option<String>,
    pub revoked_at: Option<Time>,
    pub revoked_by: Option<String>,
}

const COLUMNS: &str = "id, tenant_id, user_id, role, scopes, name, hint, creator_tenant, creator_user, created_at, expires_at, \
                       last_used_at, last_used_from, revoked_at, revoked_by";

impl ApiKey {
    fn scopes(&self) -> Vec<KeyScope> {
        let names = self.scopes.as_array().into_iter().flatten();
        names.filter_map(|name| name.as_str()?.parse().ok()).collect()
    }

    /// Whether the caller may see and revoke it.
    fn is_of(&self, caller: &Caller) -> bool {
        caller.may_access(&self.tenant_id, &self.user_id)
    }

    /// A page of keys, newest first, before `before`.
    pub async fn list(tx: &mut Tx, reach: &Reach, before: Uuid, limit: i64) -> Result<Vec<Self>, Error> {
        let mut arguments = args![before, limit];
        let whose = reach::condition(reach, &mut arguments);
        let sql =
            format!("SELECT {COLUMNS} FROM api_keys WHERE id < $1 AND {whose} ORDER BY id DESC LIMIT $2");
        tx.rows(sql, arguments).await
    }
}

impl From<ApiKey> for KeyView {
    fn from(key: ApiKey) -> Self {
        Self {
            scopes: key.scopes(),
            key_id: key.id,
            name: key.name,
            hint: format!("{}…", key.hint),
            tenant_id: key.tenant_id,
            user_id: key.user_id,
            role: key.role,
            created_by: key.creator_user,
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
            last_used_from: key.last_used_from,
            revoked_at: key.revoked_at,
            revoked_by: key.revoked_by,
        }
    }
}

/// The caller with a key. `from` is the address of the client.
pub async fn identify(db: &Db, text: &str, from: Option<String>, now: Time) -> Result<Identity, Error> {
    let invalid = |why: &str| {
        Error::from(Refusal::new(RefusalCode::InvalidToken, format!("The API key is not valid: {why}")))
    };
    let key =
        KeyText::parse(text).ok_or_else(|| invalid("it is not a key of Landfall, or has a typing error"))?;
    let sql = format!("SELECT {COLUMNS} FROM api_keys WHERE hash = $1");
    let found: Option<ApiKey> = db.look_up().await?.row(sql, args![key.hash()]).await?;
    let found = found.ok_or_else(|| invalid("there is no such key"))?;
    if found.revoked_at.is_some() {
        return Err(invalid("it was revoked"));
    }
    if found.expires_at.is_some_and(|at| at <= now) {
        return Err(Refusal::new(RefusalCode::TokenExpired, "The API key has expired").into());
    }
    if found.last_used_at.is_none_or(|at| now - at >= BETWEEN_USES) {
        db.write(NoteUse { key: found.id, from, now }).await?;
    }
    let scopes = found.scopes();
    // Without this scope the role is not used.
    let role = if scopes.contains(&KeyScope::Admin) { found.role } else { Role::Member };
    let until = now + MAX_STREAM;
    Ok(Identity {
        until: found.expires_at.map_or(until, |at| at.min(until)),
        credential: Credential::Key { id: found.id, scopes, expires_at: found.expires_at },
        caller: Caller { tenant: found.tenant_id, user: found.user_id, role },
    })
}

struct NoteUse {
    key: Uuid,
    from: Option<String>,
    now: Time,
}

impl Write for NoteUse {
    type Output = ();

    fn durability(&self) -> Durability {
        // The next use notes it again.
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let sql = "UPDATE api_keys SET last_used_at = $2, last_used_from = $3 WHERE id = $1";
        tx.execute(sql, args![self.key, self.now, self.from.clone()]).await.map(drop)
    }
}

/// Creates a key, which is in the result and nowhere else.
pub struct CreateKey {
    pub id: Uuid,
    pub creator: Identity,
    pub wanted: NewKey,
    pub key: KeyText,
    pub now: Time,
}

impl CreateKey {
    /// The user that the key acts for, with its role.
    fn subject(&self) -> Result<Caller, Refusal> {
        let (creator, wanted) = (&self.creator.caller, &self.wanted);
        let forbidden = |message: &str| Err(Refusal::new(RefusalCode::Forbidden, message));
        let tenant = wanted.tenant_id.clone().unwrap_or_else(|| creator.tenant.clone());
        let user = wanted.user_id.clone().unwrap_or_else(|| creator.user.clone());
        if !creator.may_access(&tenant, &user) {
            return forbidden(
                "You may create keys for yourself, or for the users of a tenant that you administer",
            );
        }
        let role = wanted.role.unwrap_or_default();
        if role > creator.role {
            return forbidden("A key cannot have a higher role than you");
        }
        Ok(Caller { tenant, user, role })
    }

    fn check(&self) -> Result<Caller, Refusal> {
        let invalid = |message: String| Err(Refusal::new(RefusalCode::InvalidRequest, message));
        let NewKey { name, scopes, expires_at, .. } = &self.wanted;
        if name.trim().is_empty() || name.chars().count() > MAX_NAME_LENGTH || name.contains('\0') {
            return invalid(format!("name: a key's name has 1 to {MAX_NAME_LENGTH} characters and no NUL"));
        }
        if scopes.is_empty() {
            return invalid("scopes: name at least one of read, upload, manage, admin".to_owned());
        }
        if expires_at.is_some_and(|at| at <= self.now) {
            return invalid("expiresAt: this time is over".to_owned());
        }
        let mut names = [&self.wanted.tenant_id, &self.wanted.user_id].into_iter().flatten();
        if !names.all(|name| is_name(name)) {
            return invalid(
                "A user and a tenant have a name of 1 to 255 bytes without a NUL in it".to_owned(),
            );
        }
        let subject = self.subject()?;
        if subject.role != Role::Member && !scopes.contains(&KeyScope::Admin) {
            return invalid(format!("role: a key uses the role {} only with the scope admin", subject.role));
        }
        // A key must not make another that can do more, or lasts longer.
        if let Some(missing) = scopes.iter().find(|scope| !self.creator.credential.allows(**scope)) {
            let message = format!("Your own key does not have the scope {missing}");
            return Err(Refusal::new(RefusalCode::InsufficientScope, message));
        }
        if let Credential::Key { expires_at: Some(own), .. } = &self.creator.credential
            && expires_at.is_none_or(|at| at > *own)
        {
            return invalid(format!("expiresAt: a key that is made with your key expires with it, at {own}"));
        }
        Ok(subject)
    }
}

impl Write for CreateKey {
    type Output = CreatedKey;

    async fn apply(&self, tx: &mut Tx) -> Result<CreatedKey, Error> {
        let Caller { tenant, user, role } = self.check()?;
        let owner = TenantUser::new(tenant, user);
        // Of two requests at once the second must see the first, or both would take the last free place.
        tx.enter_section(&format!("API keys of {owner}")).await?;
        let sql = "SELECT COUNT(*) FROM api_keys WHERE tenant_id = $1 AND user_id = $2 AND revoked_at IS NULL
                       AND (expires_at IS NULL OR expires_at > $3)";
        let there = tx.number(sql, args![&owner.tenant, &owner.user, self.now]).await?;
        if there >= MAX_KEYS {
            let message =
                format!("There are {there} keys of this user, which is the maximum: revoke one first");
            return Err(Refusal::new(RefusalCode::TooManyKeys, message).into());
        }
        let mut scopes = self.wanted.scopes.clone();
        scopes.sort_unstable();
        scopes.dedup();
        let creator = &self.creator.caller;
        tx.execute(
            "INSERT INTO api_keys (id, tenant_id, user_id, role, scopes, name, hash, hint, creator_tenant, creator_user,
                                   created_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            args![
                self.id,
                &owner.tenant,
                &owner.user,
                role.name(),
                json!(scopes),
                self.wanted.name.trim(),
                self.key.hash(),
                self.key.hint(),
                &creator.tenant,
                &creator.user,
                self.now,
                self.wanted.expires_at,
            ],
        )
        .await?;
        let sql = format!("SELECT {COLUMNS} FROM api_keys WHERE id = $1");
        let created: Option<ApiKey> = tx.row(sql, args![self.id]).await?;
        let created = created.ok_or_else(|| Error::Internal("a new key is missing".to_owned()))?;
        Ok(CreatedKey { key: self.key.0.clone(), about: created.into() })
    }
}

/// Revokes a key: from now on it is refused everywhere. Revoking it again changes nothing.
pub struct RevokeKey {
    pub caller: Caller,
    pub key: Uuid,
    pub now: Time,
}

impl Write for RevokeKey {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let sql = format!("SELECT {COLUMNS} FROM api_keys WHERE id = $1");
        let found: Option<ApiKey> = tx.row(sql, args![self.key]).await?;
        let missing = || Refusal::new(RefusalCode::KeyNotFound, "There is no such API key");
        let found = found.ok_or_else(missing)?;
        if !found.is_of(&self.caller) {
            return Err(missing().not_permitted().into());
        }
        tx.execute(
            "UPDATE api_keys SET revoked_at = $2, revoked_by = $3 WHERE id = $1 AND revoked_at IS NULL",
            args![self.key, self.now, &self.caller.user],
        )
        .await
        .map(drop)
    }
}

/// Removes up to `limit` keys that were revoked before a time, or that expired before it. Returns how many.
pub async fn remove_old(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    let old = "(revoked_at < $1 OR expires_at < $1)";
    let sql =
        format!("DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys WHERE {old} LIMIT $2) AND {old}");
    tx.execute(sql, args![before, limit]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_recognised_by_its_form() {
        let key = KeyText::random();
        assert_eq!(key.0.len(), PREFIX.len() + RANDOM_LENGTH + CHECKSUM_LENGTH);
        assert!(key.0.strip_prefix(PREFIX).unwrap().chars().all(|digit| digit.is_ascii_alphanumeric()));
        assert!(KeyText::parse(&key.0).is_some());
        assert_ne!(key.0, KeyText::random().0);
    }

    #[test]
    fn a_typing_error_is_noticed() {
        let KeyText(key) = KeyText::random();
        for at in 0..key.len() {
            let mut wrong = key.clone().into_bytes();
            wrong[at] = if wrong[at] == b'x' { b'y' } else { b'x' };
            assert!(KeyText::parse(std::str::from_utf8(&wrong).unwrap()).is_none(), "{at}");
        }
        for wrong in ["", "lf_", "lf_short", &key[1..], &format!("{key}0"), "lf_ä"] {
            assert!(KeyText::parse(wrong).is_none(), "{wrong}");
        }
    }
}
