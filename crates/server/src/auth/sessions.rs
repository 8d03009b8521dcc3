//! Sessions of the page. The browser keeps a random id in a cookie, the table its hash. Every process looks a session up
//! for each request, so a session that was ended is over everywhere at once.
//!
//! A session ends at its expiry, when the person has done nothing for the idle time, or when the person signs out.
//! Only requests that a person causes keep it alive: the page that refreshes itself does not.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use sha2::{Digest, Sha256};

use super::{Credential, Identity};
use landfall_core::caller::{Caller, Role};
use landfall_core::clock::{Time, to_delta};
use landfall_store::Error;
use landfall_store::{Db, Tx, Write, args};

/// Sessions of one person. With one more, that which was unused for the longest time ends.
const MAX_SESSIONS: i64 = 50;
/// How often it is written down that the person is there.
const RENEW_AFTER: TimeDelta = TimeDelta::minutes(1);
/// An event stream ends after this time at the latest, and the browser opens it again if the session is still there.
const MAX_STREAM: TimeDelta = TimeDelta::minutes(15);

#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// From sign-in to sign-in.
    pub lifetime: Duration,
    /// How long a person may do nothing.
    pub idle: Duration,
}

/// The id of a session, which only its browser knows.
#[derive(Clone)]
pub struct SessionId(String);

impl SessionId {
    pub fn random() -> Self {
        let bytes: [u8; 32] = landfall_core::random::random();
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// As the browser sent it.
    pub fn from_cookie(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.0.as_bytes()))
    }

    /// What a page of ours sends with each change, and a page of another site cannot know.
    pub fn csrf_token(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"landfall csrf ");
        hash.update(self.0.as_bytes());
        URL_SAFE_NO_PAD.encode(hash.finalize())
    }
}

/// How a person signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Provider,
    Link,
    Token,
}

impl Origin {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Link => "link",
            Self::Token => "token",
        }
    }
}

/// A session that has not ended.
#[derive(Clone)]
pub struct Session {
    pub id: SessionId,
    pub caller: Caller,
    seen_at: Time,
    pub expires_at: Time,
    /// When it ends if the person does nothing.
    pub idle_until: Time,
}

impl Session {
    /// The caller. Streams that are opened with it do not outlive the session by much.
    pub fn identity(&self, now: Time) -> Identity {
        let until = self.expires_at.min(self.idle_until).min(now + MAX_STREAM);
        Identity { caller: self.caller.clone(), until, credential: Credential::Session }
    }
}

#[derive(landfall_store::FromRow)]
struct Row {
    tenant_id: String,
    user_id: String,
    role: String,
    seen_at: Time,
    expires_at: Time,
}

#[derive(Clone)]
pub struct Sessions {
    pub db: Db,
    pub config: SessionConfig,
}

impl Sessions {
    /// Begins a session. One that the browser had before ends.
    pub async fn begin(
        &self,
        caller: &Caller,
        origin: Origin,
        at_most_until: Time,
        replaces: Option<SessionId>,
        now: Time,
    ) -> Result<Session, Error> {
        let id = SessionId::random();
        let expires_at = (now + to_delta(self.config.lifetime)).min(at_most_until);
        let begin = Begin {
            id: id.hash(),
            caller: caller.clone(),
            origin,
            now,
            expires_at,
            replaces: replaces.map(|id| id.hash()),
        };
        self.db.write(begin).await?;
        tracing::info!(
            tenantId = caller.tenant,
            userId = caller.user,
            role = caller.role.name(),
            by = origin.name(),
            "a person signed in"
        );
        let idle_until = now + to_delta(self.config.idle);
        Ok(Session { id, caller: caller.clone(), seen_at: now, expires_at, idle_until })
    }

    pub async fn find(&self, id: SessionId, now: Time) -> Result<Option<Session>, Error> {
        let sql = "SELECT tenant_id, user_id, role, seen_at, expires_at FROM sessions WHERE id = $1";
        let row: Option<Row> = self.db.look_up().await?.row(sql, args![id.hash()]).await?;
        let Some(row) = row else { return Ok(None) };
        let idle_until = row.seen_at + to_delta(self.config.idle);
        // A role that a later version knows gives no rights in this one.
        let role = row.role.parse::<Role>().unwrap_or_default();
        let caller = Caller { tenant: row.tenant_id, user: row.user_id, role };
        let session = Session { id, caller, seen_at: row.seen_at, expires_at: row.expires_at, idle_until };
        Ok(Some(session).filter(|session| now < session.expires_at && now < idle_until))
    }

    /// The person did something: the idle time begins again.
    pub async fn renew(&self, session: &mut Session, now: Time) -> Result<(), Error> {
        if now - session.seen_at >= RENEW_AFTER {
            self.db.write(Renew { id: session.id.hash(), now }).await?;
            session.seen_at = now;
            session.idle_until = now + to_delta(self.config.idle);
        }
        Ok(())
    }

    /// Ends a session, or all sessions of its person. Returns how many.
    pub async fn end(&self, session: &Session, everywhere: bool) -> Result<u64, Error> {
        let Caller { tenant, user, .. } = &session.caller;
        let all_of = everywhere.then(|| (tenant.clone(), user.clone()));
        let ended = self.db.write(End { id: session.id.hash(), all_of }).await?;
        tracing::info!(tenantId = tenant, userId = user, ended, "a person signed out");
        Ok(ended)
    }
}

struct Begin {
    id: String,
    caller: Caller,
    origin: Origin,
    now: Time,
    expires_at: Time,
    replaces: Option<String>,
}

impl Write for Begin {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let Caller { tenant, user, role, .. } = &self.caller;
        tx.execute("DELETE FROM sessions WHERE id = $1", args![self.replaces.as_ref()]).await?;
        tx.execute(
            "DELETE FROM sessions WHERE tenant_id = $1 AND user_id = $2 AND id NOT IN
                 (SELECT id FROM sessions WHERE tenant_id = $1 AND user_id = $2 ORDER BY seen_at DESC LIMIT $3)",
            args![tenant, user, MAX_SESSIONS - 1],
        )
        .await?;
        tx.execute(
            "INSERT INTO sessions (id, tenant_id, user_id, role, origin, created_at, seen_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $6, $7)",
            args![&self.id, tenant, user, role.name(), self.origin.name(), self.now, self.expires_at],
        )
        .await?;
        Ok(())
    }
}

struct Renew {
    id: String,
    now: Time,
}

impl Write for Renew {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let sql = "UPDATE sessions SET seen_at = $2 WHERE id = $1 AND seen_at < $2";
        tx.execute(sql, args![&self.id, self.now]).await.map(drop)
    }
}

struct End {
    id: String,
    /// Also all other sessions of this tenant's user.
    all_of: Option<(String, String)>,
}

impl Write for End {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        match &self.all_of {
            Some((tenant, user)) => {
                let sql = "DELETE FROM sessions WHERE tenant_id = $1 AND user_id = $2";
                tx.execute(sql, args![tenant, user]).await
            }
            None => tx.execute("DELETE FROM sessions WHERE id = $1", args![&self.id]).await,
        }
    }
}

/// Removes up to `limit` sessions that expired before a time. Returns how many.
pub async fn remove_old(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    let sql = "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at < $1 LIMIT $2)";
    tx.execute(sql, args![before, limit]).await
}
