//! The statements about the table `webhooks`.

use landfall_core::caller::{Caller, Role, TenantUser};
use landfall_core::clock::Time;
use landfall_core::refusal::Refusal;
use landfall_core::states::Scope;
use landfall_store::{Error, Rows, Tx, args};
use serde_json::Value;
use uuid::Uuid;

use super::sealing::Sealed;
use super::{MAX_WAITING, Webhook};

impl Webhook {
    /// A webhook, as it is now.
    pub(super) async fn find(tx: &mut Tx, id: Uuid) -> Result<Option<Self>, Error> {
        tx.row("SELECT * FROM webhooks WHERE id = $1", args![id]).await
    }

    /// A webhook that the caller may manage.
    pub async fn find_for(tx: &mut Tx, caller: &Caller, id: Uuid) -> Result<Self, Error> {
        Self::visible(Self::find(tx, id).await?, caller)
    }

    /// The same, locked until the transaction ends.
    pub async fn lock_for(tx: &mut Tx, caller: &Caller, id: Uuid) -> Result<Self, Error> {
        Self::visible(Self::lock(tx, id).await?, caller)
    }

    fn visible(found: Option<Self>, caller: &Caller) -> Result<Self, Error> {
        let webhook = found.ok_or_else(Refusal::no_such_webhook)?;
        if webhook.is_of(caller) {
            Ok(webhook)
        } else {
            Err(Refusal::no_such_webhook().not_permitted().into())
        }
    }

    /// A webhook, locked until the transaction ends.
    pub(super) async fn lock(tx: &mut Tx, id: Uuid) -> Result<Option<Self>, Error> {
        let lock = tx.for_update();
        tx.row(format!("SELECT * FROM webhooks WHERE id = $1 {lock}"), args![id]).await
    }

    /// A page of the caller's webhooks, newest first, before `before`.
    pub async fn list(tx: &mut Tx, caller: &Caller, before: Uuid, limit: i64) -> Result<Vec<Self>, Error> {
        let own = "tenant_id = $3 AND user_id = $4 AND scope = 'own'";
        let mine = match caller.role {
            Role::Member => own.to_owned(),
            Role::TenantAdmin => format!("({own} OR tenant_id = $3 AND scope = 'tenant')"),
            Role::Operator => format!("({own} OR tenant_id = $3 AND scope = 'tenant' OR scope = 'all')"),
        };
        let arguments = args![before, limit, &caller.tenant, &caller.user];
        tx.rows(
            format!("SELECT * FROM webhooks WHERE id < $1 AND {mine} ORDER BY id DESC LIMIT $2"),
            arguments,
        )
        .await
    }
}

/// Whether there is a webhook at all.
pub(super) async fn any(tx: &mut Tx) -> Result<bool, Error> {
    let found: Option<(Uuid,)> = tx.row("SELECT id FROM webhooks LIMIT 1", args![]).await?;
    Ok(found.is_some())
}

/// How many webhooks a user has.
pub(super) async fn count_of(tx: &mut Tx, owner: &TenantUser) -> Result<i64, Error> {
    let sql = "SELECT COUNT(*) FROM webhooks WHERE tenant_id = $1 AND user_id = $2";
    tx.number(sql, args![&owner.tenant, &owner.user]).await
}

/// A webhook as it is registered.
pub(super) struct NewRow<'a> {
    pub id: Uuid,
    pub tenant: &'a str,
    pub user: &'a str,
    pub scope: Scope,
    pub url: &'a str,
    pub description: Option<String>,
    pub event_types: Option<Value>,
    pub secret: &'a Sealed,
    pub cursor: i64,
    pub now: Time,
}

/// Writes the row of a new webhook.
pub(super) async fn insert(tx: &mut Tx, webhook: NewRow<'_>) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO webhooks (id, tenant_id, user_id, scope, url, description, event_types, secret, cursor_id,
                               turn_at, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $10)",
        args![
            webhook.id,
            webhook.tenant,
            webhook.user,
            webhook.scope,
            webhook.url,
            webhook.description,
            webhook.event_types,
            webhook.secret.bytes(),
            webhook.cursor,
            webhook.now,
        ],
    )
    .await
    .map(drop)
}

/// Changes what the owner may change.
pub(super) async fn change(
    tx: &mut Tx,
    webhook: Uuid,
    url: String,
    event_types: Option<Value>,
    description: Option<String>,
    now: Time,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE webhooks SET url = $2, event_types = $3, description = $4, updated_at = $5 WHERE id = $1",
        args![webhook, url, event_types, description, now],
    )
    .await
    .map(drop)
}

/// Enables a webhook, which continues after the event `cursor`.
pub(super) async fn enable(tx: &mut Tx, webhook: Uuid, cursor: i64) -> Result<(), Error> {
    tx.execute(
        "UPDATE webhooks SET enabled = TRUE, disabled_at = NULL, disabled_reason = NULL, cursor_id = $2
         WHERE id = $1",
        args![webhook, cursor],
    )
    .await
    .map(drop)
}

/// Nothing more is sent there.
pub(super) async fn disable(tx: &mut Tx, webhook: Uuid, reason: &str, now: Time) -> Result<(), Error> {
    tx.execute(
        "UPDATE webhooks SET enabled = FALSE, disabled_at = $2, disabled_reason = $3, updated_at = $2
         WHERE id = $1 AND enabled",
        args![webhook, now, reason],
    )
    .await
    .map(drop)
}

/// Counts one more failure.
pub(super) async fn note_failure(
    tx: &mut Tx,
    webhook: Uuid,
    failing_since: Time,
    rest_until: Option<Time>,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE webhooks SET failures = failures + 1, failing_since = $2, rest_until = $3 WHERE id = $1",
        args![webhook, failing_since, rest_until],
    )
    .await
    .map(drop)
}

/// The next attempt is made at once, as if none had failed.
pub(super) async fn forget_failures(tx: &mut Tx, webhook: Uuid) -> Result<(), Error> {
    let sql = "UPDATE webhooks SET failures = 0, failing_since = NULL, rest_until = NULL WHERE id = $1";
    tx.execute(sql, args![webhook]).await.map(drop)
}

/// Ends the back-off after failures, which still count.
pub(super) async fn end_backoff(tx: &mut Tx, webhook: Uuid) -> Result<(), Error> {
    let sql = "UPDATE webhooks SET rest_until = NULL WHERE id = $1";
    tx.execute(sql, args![webhook]).await.map(drop)
}

/// Ends the back-off if it would last longer than `ahead`.
pub(super) async fn end_backoff_after(tx: &mut Tx, webhook: Uuid, ahead: Time) -> Result<(), Error> {
    let sql = "UPDATE webhooks SET rest_until = NULL WHERE id = $1 AND rest_until > $2";
    tx.execute(sql, args![webhook, ahead]).await.map(drop)
}

/// Gives a webhook a fresh secret. The previous one also signs until `until`.
pub(super) async fn rotate_secret(
    tx: &mut Tx,
    webhook: Uuid,
    fresh: &Sealed,
    until: Time,
    now: Time,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE webhooks SET old_secret = secret, old_secret_until = $2, secret = $3, updated_at = $4 WHERE id = $1",
        args![webhook, until, fresh.bytes(), now],
    )
    .await
    .map(drop)
}

/// The secrets of a webhook.
#[derive(landfall_store::FromRow)]
pub(super) struct Secrets {
    pub id: Uuid,
    pub secret: Sealed,
    pub old_secret: Option<Sealed>,
}

/// A page of the secrets of all webhooks, locked until the transaction ends.
pub(super) async fn secrets_after(tx: &mut Tx, after: Uuid, limit: i64) -> Result<Vec<Secrets>, Error> {
    let lock = tx.for_update();
    let sql =
        format!("SELECT id, secret, old_secret FROM webhooks WHERE id > $1 ORDER BY id LIMIT $2 {lock}");
    tx.rows(sql, args![after, limit]).await
}

/// Writes the same secrets as they are sealed now. What is not given stays.
pub(super) async fn reseal(
    tx: &mut Tx,
    webhook: Uuid,
    secret: Option<Sealed>,
    old_secret: Option<Sealed>,
) -> Result<(), Error> {
    if let Some(secret) = secret {
        tx.execute("UPDATE webhooks SET secret = $2 WHERE id = $1", args![webhook, secret.bytes()]).await?;
    }
    if let Some(old) = old_secret {
        tx.execute("UPDATE webhooks SET old_secret = $2 WHERE id = $1", args![webhook, old.bytes()]).await?;
    }
    Ok(())
}

/// Removes a webhook.
pub(super) async fn remove(tx: &mut Tx, webhook: Uuid) -> Result<(), Error> {
    tx.execute("DELETE FROM webhooks WHERE id = $1", args![webhook]).await.map(drop)
}

/// A webhook whose cursor is behind the last event.
#[derive(Debug, Clone, landfall_store::FromRow)]
pub(super) struct Behind {
    pub id: Uuid,
    pub tenant_id: String,
    pub user_id: String,
    #[row(try_from = "String")]
    pub scope: Scope,
    pub event_types: Option<Value>,
    pub cursor_id: i64,
}

/// The webhooks whose cursor is behind the event `horizon` and that have room for more deliveries, the furthest behind
/// first.
pub(super) async fn behind(tx: &mut Tx, horizon: i64, limit: i64) -> Result<Vec<Behind>, Error> {
    tx.rows(
        "SELECT id, tenant_id, user_id, scope, event_types, cursor_id FROM webhooks w
         WHERE enabled AND cursor_id < $1
           AND (SELECT COUNT(*) FROM webhook_deliveries d
                WHERE d.webhook_id = w.id AND d.next_at IS NOT NULL) < $2
         ORDER BY cursor_id, id LIMIT $3",
        args![horizon, MAX_WAITING, limit],
    )
    .await
}

/// Moves the cursors of these webhooks, of those that are enabled and still at `from`. Returns which moved.
pub(super) async fn move_cursors(
    tx: &mut Tx,
    webhooks: &[Uuid],
    from: i64,
    to: i64,
) -> Result<Vec<Uuid>, Error> {
    let mut moved = Vec::with_capacity(webhooks.len());
    for part in webhooks.chunks(Rows::MAX) {
        let mut rows = Rows::default();
        for webhook in part {
            rows.push(args![*webhook, from, to]);
        }
        let (values, arguments) = rows.into_values(tx);
        let sql = format!(
            "UPDATE webhooks SET cursor_id = v.column3 FROM ({values}) AS v
             WHERE webhooks.id = v.column1 AND webhooks.cursor_id = v.column2 AND webhooks.enabled
             RETURNING webhooks.id"
        );
        moved.extend(tx.rows::<(Uuid,)>(sql, arguments).await?.into_iter().map(|(id,)| id));
    }
    Ok(moved)
}

/// Webhooks with due deliveries, failing or not, that no process holds, or a dead process, or `holder`. The one that waited
/// longest goes first.
pub(super) async fn waiting(
    tx: &mut Tx,
    failing: bool,
    holder: Uuid,
    limit: usize,
    now: Time,
) -> Result<Vec<Uuid>, Error> {
    let condition = if failing { "w.failing_since IS NOT NULL" } else { "w.failing_since IS NULL" };
    let found: Vec<(Uuid,)> = tx
        .rows(
            format!(
                "SELECT w.id FROM webhooks w
                 WHERE w.enabled AND {condition} AND (w.rest_until IS NULL OR w.rest_until <= $1)
                   AND (w.held_by IS NULL OR w.held_by = $2
                        OR NOT EXISTS (SELECT 1 FROM workers k WHERE k.id = w.held_by))
                   AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.next_at IS NOT NULL
                                 AND (d.next_at <= $1 OR d.attempts = 0))
                 ORDER BY w.turn_at, w.id LIMIT $3"
            ),
            args![now, holder, limit],
        )
        .await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// The holder of a webhook that is enabled, if it has one. Its row is locked until the transaction ends; `None` if it is
/// disabled, gone, or locked by another process.
pub(super) async fn lock_holder(tx: &mut Tx, webhook: Uuid) -> Result<Option<Option<Uuid>>, Error> {
    let lock = tx.skip_locked();
    let sql = format!("SELECT held_by, enabled FROM webhooks WHERE id = $1 {lock}");
    let found: Option<(Option<Uuid>, bool)> = tx.row(sql, args![webhook]).await?;
    Ok(found.filter(|(_, enabled)| *enabled).map(|(held_by, _)| held_by))
}

/// Gives a webhook to a holder.
pub(super) async fn take(tx: &mut Tx, webhook: Uuid, holder: Uuid, now: Time) -> Result<(), Error> {
    tx.execute("UPDATE webhooks SET held_by = $2, turn_at = $3 WHERE id = $1", args![webhook, holder, now])
        .await
        .map(drop)
}

/// Takes a webhook from its holder.
pub(super) async fn release(tx: &mut Tx, webhook: Uuid, holder: Uuid) -> Result<(), Error> {
    tx.execute("UPDATE webhooks SET held_by = NULL WHERE id = $1 AND held_by = $2", args![webhook, holder])
        .await
        .map(drop)
}
