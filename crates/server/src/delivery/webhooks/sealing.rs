//! The secrets of webhooks are encrypted in the database, each for its own webhook: a copy of the database signs nothing.
//!
//! At every start, one transaction compares the secret key of the process with that of the database and seals what is not
//! sealed with the current one: secrets of a version that stored them as they are, and all of them after a rotation. It is
//! done as a whole or not at all, and by one process at a time.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use uuid::Uuid;

use super::rows;
use super::signature::Secret;
use crate::auth::agreement::{self, Agreement};
use crate::auth::secret::{CannotOpen, SecretKey, is_sealed};
use crate::intake::idempotency;
use landfall_store::{Error, Tx, Write};

const LABEL: &str = "webhook secrets";
/// What a sealed secret in a kept answer begins with.
const IN_ANSWER: &str = "sealed:";
const PAGE_SIZE: i64 = 500;

/// The secret of a webhook as the database has it.
#[derive(Debug, Clone, PartialEq, Eq, landfall_store::FromColumn)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    pub fn new(key: &SecretKey, webhook: Uuid, secret: &Secret) -> Self {
        Self(key.seal(LABEL, webhook.as_bytes(), &secret.bytes()))
    }

    pub fn open(&self, key: &SecretKey, webhook: Uuid) -> Result<Secret, CannotOpen> {
        key.open(LABEL, webhook.as_bytes(), &self.0).map(Secret::from)
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.clone()
    }

    /// As text, for the answer that is kept with an idempotency key.
    pub fn to_answer(&self) -> String {
        format!("{IN_ANSWER}{}", BASE64_STANDARD.encode(&self.0))
    }

    fn from_answer(text: &str) -> Option<Self> {
        BASE64_STANDARD.decode(text.strip_prefix(IN_ANSWER)?).ok().map(Self)
    }

    /// The same secret sealed with the current key; `None` if it is so already, or if no key opens it.
    fn renewed(&self, key: &SecretKey, webhook: Uuid) -> Result<Option<Self>, CannotOpen> {
        if !is_sealed(&self.0) {
            return Ok(Some(Self::new(key, webhook, &Secret::from(self.0.clone()))));
        }
        if key.sealed_this(LABEL, webhook.as_bytes(), &self.0) {
            return Ok(None);
        }
        let secret = self.open(key, webhook)?;
        Ok(Some(Self::new(key, webhook, &secret)))
    }
}

/// The secret that a kept answer has, as its owner may see it.
pub fn reveal(key: &SecretKey, webhook: Uuid, answer: &str) -> Result<String, Error> {
    let sealed = Sealed::from_answer(answer);
    let opened = sealed.and_then(|sealed| sealed.open(key, webhook).ok());
    opened.map(|secret| secret.reveal()).ok_or_else(|| {
        Error::Internal(format!("the kept answer with the secret of webhook {webhook} cannot be decrypted"))
    })
}

/// Makes the database's secrets those of this process.
pub struct SealAll {
    pub key: SecretKey,
}

/// What the start did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    pub agreement: Option<Agreement>,
    /// Webhooks whose secrets were sealed, or sealed again.
    pub sealed: usize,
    /// Webhooks whose secret no known key can open. They stay as they are.
    pub unreadable: Vec<Uuid>,
}

impl Write for SealAll {
    type Output = Renewed;

    async fn apply(&self, tx: &mut Tx) -> Result<Renewed, Error> {
        let agreement = agreement::agree(tx, &self.key).await?;
        let mut renewed = Renewed { agreement: Some(agreement), ..Renewed::default() };
        let mut after = Uuid::nil();
        loop {
            let page = rows::secrets_after(tx, after, PAGE_SIZE).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            for row in page {
                let current = row.secret.renewed(&self.key, row.id);
                let old = row.old_secret.as_ref().map(|old| old.renewed(&self.key, row.id));
                if current.is_err() {
                    renewed.unreadable.push(row.id);
                }
                // An old secret that cannot be opened signs nothing any more, and ends by itself.
                let (current, old) = (current.ok().flatten(), old.and_then(Result::ok).flatten());
                if current.is_some() || old.is_some() {
                    renewed.sealed += 1;
                    rows::reseal(tx, row.id, current, old).await?;
                }
            }
        }
        if agreement != Agreement::Same {
            seal_answers(tx, &self.key).await?;
        }
        Ok(renewed)
    }
}

/// The answers to registrations and rotations have a secret in them.
async fn seal_answers(tx: &mut Tx, key: &SecretKey) -> Result<(), Error> {
    for marker in [Secret::PREFIX, IN_ANSWER] {
        for mut kept in idempotency::answers_with(tx, marker).await? {
            let answer = &mut kept.answer["answer"];
            let Some(webhook) = answer["id"].as_str().and_then(|id| Uuid::parse_str(id).ok()) else {
                continue;
            };
            let Some(text) = answer["secret"].as_str() else { continue };
            let sealed = Secret::parse(text)
                .map(|secret| Sealed::new(key, webhook, &secret))
                .or_else(|| Sealed::from_answer(text)?.renewed(key, webhook).ok()?);
            if let Some(sealed) = sealed {
                answer["secret"] = Value::from(sealed.to_answer());
                idempotency::replace_answer(tx, &kept).await?;
            }
        }
    }
    Ok(())
}
