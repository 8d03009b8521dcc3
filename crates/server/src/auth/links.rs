//! Links that sign a person in once, for a server with a secret of its own. `landfall open` prints one on the terminal of
//! the operator. The code in it is valid for a few minutes and is gone once it was used, so a link in a history, a log
//! or a chat is worth nothing.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use sha2::{Digest, Sha256};

use landfall_core::caller::{Caller, Role};
use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;
use landfall_store::{Db, Tx, Write, args};

const LIFETIME: TimeDelta = TimeDelta::minutes(5);
/// Links that were made and not used yet. More than that is a program in a loop.
const MAX_LINKS: i64 = 100;

#[derive(Clone)]
pub struct Links {
    pub db: Db,
}

/// The code of a link, and until when it can be used.
pub struct Link {
    pub code: String,
    pub expires_at: Time,
}

impl Links {
    pub async fn issue(&self, caller: &Caller, now: Time) -> Result<Link, Error> {
        let bytes: [u8; 24] = landfall_core::random::random();
        let code = URL_SAFE_NO_PAD.encode(bytes);
        let expires_at = now + LIFETIME;
        self.db.write(Issue { code: hash(&code), caller: caller.clone(), now, expires_at }).await?;
        Ok(Link { code, expires_at })
    }

    /// Whom a link signs in. It can still be used.
    pub async fn show(&self, code: &str, now: Time) -> Result<Caller, Error> {
        let sql = "SELECT tenant_id, user_id, role FROM sign_in_links WHERE code = $1 AND expires_at > $2";
        let row: Option<Row> = self.db.read().await?.row(sql, args![hash(code), now]).await?;
        row.map(Row::caller).ok_or_else(|| unknown().into())
    }

    /// Whom a link signs in. It cannot be used again.
    pub async fn redeem(&self, code: &str, now: Time) -> Result<Caller, Error> {
        self.db.write(Redeem { code: hash(code), now }).await
    }
}

fn hash(code: &str) -> String {
    hex::encode(Sha256::digest(code.as_bytes()))
}

fn unknown() -> Refusal {
    let message = "This link was used, has expired, or was never issued; `landfall open` prints a new one";
    Refusal::new(RefusalCode::InvalidLink, message)
}

#[derive(landfall_store::FromRow)]
struct Row {
    tenant_id: String,
    user_id: String,
    role: String,
}

impl Row {
    fn caller(self) -> Caller {
        let role = self.role.parse::<Role>().unwrap_or_default();
        Caller { tenant: self.tenant_id, user: self.user_id, role }
    }
}

struct Issue {
    code: String,
    caller: Caller,
    now: Time,
    expires_at: Time,
}

impl Write for Issue {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute("DELETE FROM sign_in_links WHERE expires_at <= $1", args![self.now]).await?;
        tx.execute(
            "DELETE FROM sign_in_links WHERE code NOT IN
                 (SELECT code FROM sign_in_links ORDER BY expires_at DESC LIMIT $1)",
            args![MAX_LINKS - 1],
        )
        .await?;
        let Caller { tenant, user, role, .. } = &self.caller;
        tx.execute(
            "INSERT INTO sign_in_links (code, tenant_id, user_id, role, expires_at) VALUES ($1, $2, $3, $4, $5)",
            args![&self.code, tenant, user, role.name(), self.expires_at],
        )
        .await
        .map(drop)
    }
}

struct Redeem {
    code: String,
    now: Time,
}

impl Write for Redeem {
    type Output = Caller;

    async fn apply(&self, tx: &mut Tx) -> Result<Caller, Error> {
        // Of two that use it at once, one deletes the row.
        let sql = "DELETE FROM sign_in_links WHERE code = $1 AND expires_at > $2 RETURNING tenant_id, user_id, role";
        let row: Option<Row> = tx.row(sql, args![&self.code, self.now]).await?;
        row.map(Row::caller).ok_or_else(|| unknown().into())
    }
}

/// Removes up to `limit` links that expired before a time. Returns how many.
pub async fn remove_old(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    let sql = "DELETE FROM sign_in_links WHERE code IN (SELECT code FROM sign_in_links WHERE expires_at < $1 LIMIT $2)";
    tx.execute(sql, args![before, limit]).await
}
