//! A request that a client sends again because the response was lost is executed once. A key of the client
//! identifies it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use landfall_core::caller::TenantUser;
use landfall_core::clock::Time;
use landfall_core::mutants::{self, Mutant};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::{Durability, Error, Joint, Tx, Write, args};

const MAX_KEY_BYTES: usize = 255;

/// A change with an optional idempotency key. Its output is stored in the same transaction.
pub struct Idempotent<W> {
    pub key: Option<Key>,
    pub now: Time,
    pub change: W,
}

#[derive(Debug, Clone)]
pub struct Key {
    owner: TenantUser,
    key: String,
    /// A hash of the request.
    request: String,
}

impl Key {
    pub fn new(owner: TenantUser, key: &str, path: &str, body: &[u8]) -> Result<Self, Refusal> {
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return Err(Refusal::new(
                RefusalCode::InvalidIdempotencyKey,
                format!("An Idempotency-Key has 1 to {MAX_KEY_BYTES} characters"),
            ));
        }
        let mut hash = Sha256::new();
        hash.update(path.as_bytes());
        hash.update([0]);
        hash.update(body);
        Ok(Self { owner, key: key.to_owned(), request: hex::encode(hash.finalize()) })
    }
}

impl<W> Write for Idempotent<W>
where
    W: Write,
    W::Output: Serialize + DeserializeOwned + Sync,
{
    type Output = W::Output;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let Some(key) = &self.key else {
            return self.change.apply(tx).await;
        };
        if !key.is_new(tx, self.now).await? {
            return kept_answer(tx, key).await;
        }
        let output = self.change.apply(tx).await?;
        key.keep_answer(tx, &output).await?;
        Ok(output)
    }
}

impl<J> Joint for Idempotent<J>
where
    J: Joint,
    J::Output: Serialize + DeserializeOwned + Sync,
{
    type Output = J::Output;

    fn key(&self) -> &str {
        self.change.key()
    }

    fn rows(&self) -> usize {
        self.change.rows()
    }

    fn durability(&self) -> Durability {
        self.change.durability()
    }

    async fn apply_all(these: &[&Self], tx: &mut Tx) -> Result<Vec<Self::Output>, Error> {
        // In the order of their names, so that two processes never wait for one another.
        let mut keys: Vec<(&Key, Time)> =
            these.iter().filter_map(|one| Some((one.key.as_ref()?, one.now))).collect();
        keys.sort_by_key(|(key, _)| (&key.owner.tenant, &key.owner.user, &key.key));
        for (key, now) in keys {
            if !key.is_new(tx, now).await? {
                return match these {
                    [_] => Ok(vec![kept_answer(tx, key).await?]),
                    _ => Err(Error::Internal("a repeated request is answered by itself".to_owned())),
                };
            }
        }
        let changes: Vec<&J> = these.iter().map(|one| &one.change).collect();
        let outputs = J::apply_all(&changes, tx).await?;
        for (one, output) in these.iter().zip(&outputs) {
            if let Some(key) = &one.key {
                key.keep_answer(tx, output).await?;
            }
        }
        Ok(outputs)
    }
}

impl Key {
    /// Writes the key. The request that does so does the work; another one with the same key waits here for its commit.
    async fn is_new(&self, tx: &mut Tx, now: Time) -> Result<bool, Error> {
        let written = tx
            .execute(
                "INSERT INTO idempotency_keys (tenant_id, user_id, key, request, created_at) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT DO NOTHING",
                args![&self.owner.tenant, &self.owner.user, &self.key, &self.request, now],
            )
            .await?;
        Ok(written > 0 || mutants::on(Mutant::KeyIgnored))
    }

    async fn keep_answer(&self, tx: &mut Tx, output: &(impl Serialize + Sync)) -> Result<(), Error> {
        let kept = serde_json::to_value(output).map_err(unreadable)?;
        tx.execute(
            "UPDATE idempotency_keys SET answer = $4 WHERE tenant_id = $1 AND user_id = $2 AND key = $3",
            args![&self.owner.tenant, &self.owner.user, &self.key, serde_json::json!({ "answer": kept })],
        )
        .await
        .map(drop)
    }
}

async fn kept_answer<A: DeserializeOwned>(tx: &mut Tx, key: &Key) -> Result<A, Error> {
    let kept: Option<(String, Option<Value>)> = tx
        .row(
            "SELECT request, answer FROM idempotency_keys WHERE tenant_id = $1 AND user_id = $2 AND key = $3",
            args![&key.owner.tenant, &key.owner.user, &key.key],
        )
        .await?;
    match kept {
        Some((request, Some(mut stored))) if request == key.request => {
            serde_json::from_value(stored["answer"].take()).map_err(unreadable)
        }
        Some((request, _)) if request != key.request => Err(Refusal::new(
            RefusalCode::IdempotencyKeyReused,
            "This Idempotency-Key was used for another request",
        )
        .into()),
        _ => Err(Error::Internal("an idempotency key has no answer".to_owned())),
    }
}

/// The answer that is kept with a key.
#[derive(landfall_store::FromRow)]
pub struct KeptAnswer {
    tenant_id: String,
    user_id: String,
    key: String,
    pub answer: Value,
}

/// The kept answers in whose text a marker occurs, locked until the transaction ends. For what changes at a start, not for
/// requests: it looks at all of them.
pub async fn answers_with(tx: &mut Tx, marker: &str) -> Result<Vec<KeptAnswer>, Error> {
    let lock = tx.for_update();
    let sql = format!(
        "SELECT tenant_id, user_id, key, answer FROM idempotency_keys
         WHERE answer IS NOT NULL AND CAST(answer AS TEXT) LIKE $1 {lock}"
    );
    tx.rows(sql, args![format!("%{marker}%")]).await
}

pub async fn replace_answer(tx: &mut Tx, kept: &KeptAnswer) -> Result<(), Error> {
    tx.execute(
        "UPDATE idempotency_keys SET answer = $4 WHERE tenant_id = $1 AND user_id = $2 AND key = $3",
        args![&kept.tenant_id, &kept.user_id, &kept.key, kept.answer.clone()],
    )
    .await
    .map(drop)
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::Internal(format!("a kept answer cannot be read: {error}"))
}

/// Removes up to `limit` keys from before a time. Returns how many.
pub async fn remove_old(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    // What a batch picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        "DELETE FROM idempotency_keys WHERE (tenant_id, user_id, key) IN
             (SELECT tenant_id, user_id, key FROM idempotency_keys WHERE created_at < $1 LIMIT $2)
         AND created_at < $1",
        args![before, limit],
    )
    .await
}
