//! The log of deliveries: what was or will be sent to a webhook, and the result of the last attempt.

use serde_json::json;
use uuid::Uuid;

use super::turn::Due;
use super::{MAX_WAITING, WEBHOOK_TEST, Webhook, rows};
use crate::delivery::tail::StoredEvent;
use landfall_api::webhooks::DeliveryView;
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_core::states::DeliveryStatus;
use landfall_store::Error;
use landfall_store::wake::Signal;
use landfall_store::{Arg, Rows, Tx, Write, args};

/// How many deliveries that a person requested may wait beyond the usual limit.
const MAX_MANUAL: i64 = 100;

/// The row of a delivery, without its body.
#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct Delivery {
    pub id: Uuid,
    pub message_id: Uuid,
    pub event_id: Option<i64>,
    pub event_type: String,
    #[row(try_from = "String")]
    pub status: DeliveryStatus,
    pub attempts: i64,
    pub next_at: Option<Time>,
    pub last_attempt_at: Option<Time>,
    pub response_status: Option<i64>,
    pub response_excerpt: Option<String>,
    pub error: Option<String>,
    pub duration_ms: Option<i64>,
    pub created_at: Time,
    pub ended_at: Option<Time>,
    /// Its position in the log.
    pub number: i64,
}

impl From<Delivery> for DeliveryView {
    fn from(row: Delivery) -> Self {
        Self {
            id: row.id,
            message_id: row.message_id,
            event_id: row.event_id,
            event_type: row.event_type,
            status: row.status,
            attempts: row.attempts,
            next_attempt_at: row.next_at,
            last_attempt_at: row.last_attempt_at,
            response_status: row.response_status,
            response_excerpt: row.response_excerpt,
            error: row.error,
            duration_ms: row.duration_ms,
            created_at: row.created_at,
            ended_at: row.ended_at,
        }
    }
}

const COLUMNS: &str =
    "number, id, message_id, event_id, event_type, status, attempts, next_at, last_attempt_at,
    response_status, response_excerpt, error, duration_ms, created_at, ended_at";

impl Delivery {
    /// A page of a webhook's deliveries, newest first, before `before`.
    pub async fn list(
        tx: &mut Tx,
        webhook: Uuid,
        status: Option<DeliveryStatus>,
        before: i64,
        limit: i64,
    ) -> Result<Vec<Self>, Error> {
        let mut arguments = args![webhook, before, limit];
        let mut condition = "webhook_id = $1 AND number < $2".to_owned();
        if let Some(status) = status {
            arguments.push(status.into());
            condition.push_str(" AND status = $4");
        }
        let sql = format!(
            "SELECT {COLUMNS} FROM webhook_deliveries WHERE {condition} ORDER BY number DESC LIMIT $3"
        );
        tx.rows(sql, arguments).await
    }

    async fn find(tx: &mut Tx, webhook: Uuid, id: Uuid) -> Result<Self, Error> {
        tx.row(
            format!("SELECT {COLUMNS} FROM webhook_deliveries WHERE id = $1 AND webhook_id = $2"),
            args![id, webhook],
        )
        .await?
        .ok_or_else(|| Refusal::no_such_delivery().into())
    }
}

/// A delivery that is not written yet.
pub struct NewDelivery {
    pub id: Uuid,
    pub webhook: Uuid,
    pub event: Option<i64>,
    pub kind: String,
    pub body: String,
}

/// Writes deliveries, in their order. They are due at once.
pub async fn write<'a>(
    tx: &mut Tx,
    deliveries: impl Iterator<Item = &'a NewDelivery>,
    now: Time,
) -> Result<(), Error> {
    let mut rows = Rows::default();
    for one in deliveries {
        rows.push(vec![
            Arg::from(one.id),
            Arg::from(one.webhook),
            Arg::from(one.id),
            Arg::from(one.event),
            Arg::from(&one.kind),
            Arg::from(&one.body),
            Arg::from(DeliveryStatus::Pending),
            Arg::from(now),
            Arg::from(now),
        ]);
    }
    let into = "webhook_deliveries (id, webhook_id, message_id, event_id, event_type, body, status, next_at, created_at)";
    if !rows.is_empty() {
        tx.signal(Signal::Delivery);
    }
    tx.insert(into, rows, "").await
}

/// The body of the request.
pub fn body_of(event: &StoredEvent, with_owner: bool) -> String {
    let mut data = event.content();
    if with_owner && !event.user.is_empty() {
        // A webhook for the events of several users needs to know the owner.
        data.insert("tenantId".to_owned(), json!(event.tenant));
        data.insert("userId".to_owned(), json!(event.user));
    }
    json!({ "type": event.kind, "timestamp": event.at, "epoch": event.epoch, "data": data }).to_string()
}

/// Sends a test delivery, to see whether it arrives.
pub struct SendTest {
    pub caller: Caller,
    pub webhook: Uuid,
    pub id: Uuid,
    pub now: Time,
}

impl Write for SendTest {
    type Output = DeliveryView;

    async fn apply(&self, tx: &mut Tx) -> Result<DeliveryView, Error> {
        let webhook = Webhook::lock_for(tx, &self.caller, self.webhook).await?;
        check_and_end_backoff(tx, &webhook).await?;
        let data = json!({ "webhookId": webhook.id, "message": "It works" });
        let test = NewDelivery {
            id: self.id,
            webhook: webhook.id,
            event: None,
            kind: WEBHOOK_TEST.to_owned(),
            body: json!({ "type": WEBHOOK_TEST, "timestamp": self.now, "data": data }).to_string(),
        };
        write(tx, std::iter::once(&test), self.now).await?;
        Delivery::find(tx, webhook.id, self.id).await.map(DeliveryView::from)
    }
}

/// Sends a delivery again: at once if it still waits, or otherwise as a new entry, which is retried for a day of
/// its own and has the same message id.
pub struct Redeliver {
    pub caller: Caller,
    pub webhook: Uuid,
    pub delivery: Uuid,
    /// The id of the new entry.
    pub id: Uuid,
    pub now: Time,
}

impl Write for Redeliver {
    type Output = DeliveryView;

    async fn apply(&self, tx: &mut Tx) -> Result<DeliveryView, Error> {
        let webhook = Webhook::lock_for(tx, &self.caller, self.webhook).await?;
        let old = Delivery::find(tx, webhook.id, self.delivery).await?;
        check_and_end_backoff(tx, &webhook).await?;
        tx.signal(Signal::Delivery);
        let waiting = tx
            .execute(
                "UPDATE webhook_deliveries SET next_at = $2 WHERE id = $1 AND status = 'pending'",
                args![old.id, self.now],
            )
            .await?;
        if waiting == 1 {
            return Delivery::find(tx, webhook.id, old.id).await.map(DeliveryView::from);
        }
        tx.execute(
            "INSERT INTO webhook_deliveries (id, webhook_id, message_id, event_id, event_type, body, status, next_at,
                                             created_at)
             SELECT $2, webhook_id, message_id, event_id, event_type, body, 'pending', $3, $3
             FROM webhook_deliveries WHERE id = $1",
            args![old.id, self.id, self.now],
        )
        .await?;
        Delivery::find(tx, webhook.id, self.id).await.map(DeliveryView::from)
    }
}

/// The first delivery to a webhook that is due. One without an attempt always is: the clock of the process that made it may be
/// ahead by a moment, and a later event must not come first.
pub(super) async fn next_due(tx: &mut Tx, webhook: Uuid, now: Time) -> Result<Option<Due>, Error> {
    tx.row(
        "SELECT number, message_id, event_type, body, attempts, first_attempt_at FROM webhook_deliveries
         WHERE webhook_id = $1 AND next_at IS NOT NULL AND (next_at <= $2 OR attempts = 0) ORDER BY number LIMIT 1",
        args![webhook, now],
    )
    .await
}

/// A delivery that waits: its position in the log, its webhook, since when it waits, and until when.
type Waiting = (i64, Uuid, Time, Time);

/// Lets the waits that began later than `ahead`, a time that has not come yet, begin now. They last as long as they were meant
/// to; a back-off that began then ends. Up to `most`; returns how many.
pub async fn begin_waits_now(tx: &mut Tx, ahead: Time, most: usize, now: Time) -> Result<usize, Error> {
    let sql =
        "SELECT number, webhook_id, COALESCE(last_attempt_at, created_at), next_at FROM webhook_deliveries
               WHERE next_at > $1 AND COALESCE(last_attempt_at, created_at) > $1 ORDER BY number LIMIT $2";
    let waiting: Vec<Waiting> = tx.rows(sql, args![ahead, most]).await?;
    for (number, webhook, since, next_at) in &waiting {
        let sql =
            "UPDATE webhook_deliveries SET next_at = $4, last_attempt_at = CASE WHEN attempts > 0 THEN $5 END
                   WHERE number = $1 AND status = 'pending' AND next_at = $2
                     AND COALESCE(last_attempt_at, created_at) = $3";
        let next = now + (*next_at - *since);
        tx.execute(sql, args![*number, *next_at, *since, next, now]).await?;
        rows::end_backoff_after(tx, *webhook, ahead).await?;
    }
    if !waiting.is_empty() {
        tx.signal(Signal::Delivery);
    }
    Ok(waiting.len())
}

/// What an attempt leaves in the log.
pub(super) struct Attempt {
    pub status: DeliveryStatus,
    pub next_at: Option<Time>,
    pub started_at: Time,
    pub response_status: Option<i64>,
    pub response_excerpt: Option<String>,
    pub error: Option<String>,
    pub duration_ms: i64,
    pub ended_at: Option<Time>,
}

/// Notes an attempt at a delivery that is pending. Returns whether it was.
pub(super) async fn note_attempt(tx: &mut Tx, number: i64, attempt: Attempt) -> Result<bool, Error> {
    let noted = tx
        .execute(
            "UPDATE webhook_deliveries SET status = $2, next_at = $3, attempts = attempts + 1,
                 first_attempt_at = COALESCE(first_attempt_at, $4), last_attempt_at = $4, response_status = $5,
                 response_excerpt = $6, error = $7, duration_ms = $8, ended_at = $9
             WHERE number = $1 AND status = 'pending'",
            args![
                number,
                attempt.status,
                attempt.next_at,
                attempt.started_at,
                attempt.response_status,
                attempt.response_excerpt,
                attempt.error,
                attempt.duration_ms,
                attempt.ended_at,
            ],
        )
        .await?;
    Ok(noted > 0)
}

/// Removes up to `limit` deliveries to a webhook. Returns how many.
pub(super) async fn remove_of(tx: &mut Tx, webhook: Uuid, limit: i64) -> Result<u64, Error> {
    tx.execute(
        "DELETE FROM webhook_deliveries
         WHERE number IN (SELECT number FROM webhook_deliveries WHERE webhook_id = $1 LIMIT $2)",
        args![webhook, limit],
    )
    .await
}

/// Checks whether something can be sent there now. It also ends a back-off: a person wants to see the result.
async fn check_and_end_backoff(tx: &mut Tx, webhook: &Webhook) -> Result<(), Error> {
    if !webhook.enabled {
        let reason = webhook.disabled_reason.as_deref().unwrap_or_default();
        let message = format!("This webhook is disabled ({reason}); enable it first");
        return Err(Refusal::new(RefusalCode::WebhookDisabled, message).into());
    }
    if count_waiting(tx, webhook.id).await? >= MAX_WAITING + MAX_MANUAL {
        let message = "Too many deliveries wait for this endpoint already";
        return Err(Refusal::new(RefusalCode::TooManyDeliveries, message).retryable().into());
    }
    rows::end_backoff(tx, webhook.id).await
}

async fn count_waiting(tx: &mut Tx, webhook: Uuid) -> Result<i64, Error> {
    let sql = "SELECT COUNT(*) FROM webhook_deliveries WHERE webhook_id = $1 AND next_at IS NOT NULL";
    tx.number(sql, args![webhook]).await
}

/// Removes up to `limit` deliveries that ended before a time. Returns how many.
pub async fn remove_ended(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    // What a batch picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        "DELETE FROM webhook_deliveries WHERE (number) IN (SELECT number FROM webhook_deliveries WHERE ended_at < $1 LIMIT $2)
         AND ended_at < $1",
        args![before, limit],
    )
    .await
}

/// Removes up to `limit` deliveries from before a time whose webhook is gone. Returns how many.
pub async fn remove_lone(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    let lone = "created_at < $1 AND NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.id = webhook_deliveries.webhook_id)";
    // What a batch picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        format!(
            "DELETE FROM webhook_deliveries WHERE (number) IN (SELECT number FROM webhook_deliveries WHERE {lone} LIMIT $2)
             AND {lone}"
        ),
        args![before, limit],
    )
    .await
}
