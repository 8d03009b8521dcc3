//! What must be true when the faults are over and the world has come to rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use landfall_core::clock::{Ahead, Clock, Time};
use landfall_core::lifecycle::Stage;
use landfall_server::audit::audit;
use landfall_server::blobs::Blobs;
use landfall_server::content::search;
use landfall_server::queue::patience;
use landfall_store::{Arg, Db, Error, FaultInjector, FromRow, Step, args};

use crate::clients::{Account, Accounts, Known, caller, question};
use crate::history::{Readers, seen_by};
use crate::plan::FilePlan;
use crate::shared::Shared;
use crate::storage::Storage;
use crate::world::World;

/// Half of the time after which a worker looks for files that it was not told of.
const SOON: TimeDelta = TimeDelta::seconds(1);
/// The number of the connection that looks on, which no process has.
const OBSERVER: u32 = 1_000;

/// Looks at the database and the storage, without faults.
pub struct Observer {
    db: Db,
    blobs: Blobs,
}

/// Notes the statements of the observer, so that they can be prepared for the histories that follow.
struct Noted(Arc<Shared>);

impl FaultInjector for Noted {
    fn inject<'a>(&'a self, step: Step<'a>) -> BoxFuture<'a, Result<(), Error>> {
        if let Step::Statement(sql) = step {
            self.0.trace().looks_with(sql);
        }
        std::future::ready(Ok(())).boxed()
    }
}

#[derive(FromRow, Debug, Clone)]
struct FileRow {
    id: Uuid,
    tenant_id: String,
    file_name: String,
    file_size: i64,
    status: String,
    error_code: Option<String>,
    error_message: Option<String>,
    confirmed: bool,
    batch_id: Option<Uuid>,
    blob_key: Option<String>,
}

#[derive(FromRow, Debug, Clone)]
struct BatchRow {
    id: Uuid,
    status: String,
    registered_files: i64,
    ready_files: i64,
    failed_files: i64,
    cancelled_files: i64,
    /// Those that were never uploaded, too.
    gone_files: i64,
}

impl Observer {
    pub fn new(world: &World) -> Self {
        let storage = Storage::new(&world.bucket, &world.shared, None);
        let blobs = Blobs::made(std::sync::Arc::new(storage));
        let noted = Noted(world.shared.clone());
        let noted = world.shared.is_counted().then(|| Arc::new(noted) as Arc<dyn FaultInjector>);
        let db = world.clients.finish(async { world.database.connect(OBSERVER, Ahead::default(), noted) });
        Self { db, blobs }
    }

    fn rows<T: FromRow>(&self, world: &World, sql: &str) -> Vec<T> {
        self.rows_of(world, sql, args![])
    }

    fn rows_of<T: FromRow>(&self, world: &World, sql: &str, args: Vec<Arg>) -> Vec<T> {
        world.clients.finish(async {
            let mut tx = self.db.read().await.expect("the database is there");
            tx.rows(sql, args).await.expect("the statement is right")
        })
    }

    /// The events of a user from one on.
    fn events(&self, world: &World, user: &str, from: i64) -> Vec<i64> {
        let sql = "SELECT id FROM events WHERE user_id = $1 AND id >= $2 ORDER BY id";
        self.rows_of::<(i64,)>(world, sql, args![user, from]).into_iter().map(|(id,)| id).collect()
    }

    /// What the world still has to do.
    pub fn waits_for(&self, world: &World, readers: &Readers) -> Option<String> {
        for (what, sql) in [
            (
                "files in progress",
                "SELECT COUNT(*) FROM files WHERE status NOT IN ('ready', 'failed', 'cancelled', 'deleted')",
            ),
            ("deliveries", "SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'pending'"),
            (
                "files to delete",
                "SELECT COUNT(*) FROM files WHERE status = 'deleted' AND blob_key IS NOT NULL",
            ),
            ("open batches", "SELECT COUNT(*) FROM batches WHERE status = 'active'"),
            ("operations", "SELECT COUNT(*) FROM operations WHERE ended_at IS NULL"),
            ("resumable uploads", "SELECT COUNT(*) FROM resumable_uploads"),
            (
                "events to collect",
                "SELECT COUNT(*) FROM webhooks w WHERE EXISTS (SELECT 1 FROM events e
                 WHERE e.id > w.cursor_id AND e.tenant_id = w.tenant_id AND e.user_id = w.user_id)",
            ),
        ] {
            let (waiting,) = self.rows::<(i64,)>(world, sql)[0];
            if waiting > 0 {
                return Some(format!("{waiting} {what}"));
            }
        }
        for (tenant, seen) in readers {
            let last = self.events_of(world, *tenant).last().copied();
            if seen_by(seen).last().copied() < last {
                return Some(format!("the reader of tenant {tenant}"));
            }
        }
        let orphans = self.orphans(world);
        (!orphans.is_empty()).then(|| format!("objects without an owner: {orphans:?}"))
    }

    /// Whether no worker holds a file.
    pub fn none_is_worked_on(&self, world: &World) -> bool {
        let sql =
            "SELECT COUNT(*) FROM files WHERE status IN ('scanning', 'extracting', 'chunking', 'embedding')";
        self.rows::<(i64,)>(world, sql)[0].0 == 0
    }

    /// The events that belong to a tenant's user.
    fn events_of(&self, world: &World, tenant: usize) -> Vec<i64> {
        self.events(world, &caller(tenant).user, 0)
    }

    /// Objects that belong to no file.
    fn orphans(&self, world: &World) -> Vec<String> {
        let owned = self.rows::<(String,)>(world, "SELECT blob_key FROM files WHERE blob_key IS NOT NULL");
        let owned: Vec<String> = owned.into_iter().map(|(key,)| format!("blobs/{key}")).collect();
        let known = |key: &String| owned.contains(key) || key == "database-mark" || key == "probe";
        world.bucket.keys().into_iter().filter(|key| !known(key)).collect()
    }

    /// Counts which transitions the history has made.
    pub fn count_transitions(&self, world: &World) {
        let sql = "SELECT COALESCE(from_state, 'nothing'), to_state FROM events
                   WHERE kind = 'file:status-changed' AND to_state IS NOT NULL";
        for (from, to) in self.rows::<(String, String)>(world, sql) {
            world.shared.trace().reached(&format!("{from} → {to}"));
        }
    }
}

/// Everything that is wrong.
pub fn judge(world: &World, observer: &Observer, accounts: &Accounts, readers: &Readers) -> Vec<String> {
    let mut wrong = Vec::new();
    let files: Vec<FileRow> = observer.rows(
        world,
        "SELECT id, tenant_id, file_name, size_bytes AS file_size, status, error_code, error_message, confirmed_at IS NOT NULL AS confirmed,
                batch_id, blob_key
         FROM files",
    );
    judge_audit(world, observer, &mut wrong);
    for (planned, account) in world.shared.plan.files.iter().zip(accounts.all().iter()) {
        judge_file(&world.shared, planned, account, &files, &mut wrong);
        judge_content(world, observer, planned, &files, &mut wrong);
    }
    judge_lives(world, observer, &files, &mut wrong);
    if world.shared.plan.is_undisturbed() {
        world.shared.trace().reached("undisturbed");
        judge_promptness(world, observer, &mut wrong);
    }
    judge_quotas(world, observer, &files, &mut wrong);
    judge_batches(world, observer, &files, &mut wrong);
    judge_cancelled_batches(world, observer, &mut wrong);
    judge_index(world, observer, &mut wrong);
    for (tenant, seen) in readers {
        judge_reader(*tenant, &seen_by(seen), &observer.events_of(world, *tenant), &mut wrong);
    }
    judge_webhook(world, observer, &mut wrong);
    for key in observer.orphans(world) {
        wrong.push(format!("the object {key} belongs to no file"));
    }
    wrong
}

fn judge_audit(world: &World, observer: &Observer, wrong: &mut Vec<String>) {
    let report = world.clients.finish(async {
        let oldest = Clock::System.now() - TimeDelta::seconds(60);
        audit(&observer.db, &observer.blobs, oldest).await
    });
    match report {
        Ok(report) => wrong.extend(
            report.findings.into_iter().map(|found| format!("audit: {}: {}", found.invariant, found.what)),
        ),
        Err(error) => wrong.push(format!("the audit cannot run: {error}")),
    }
}

/// A file ends as its client was told, and as its document deserves.
fn judge_file(
    shared: &Shared,
    planned: &FilePlan,
    account: &Account,
    files: &[FileRow],
    wrong: &mut Vec<String>,
) {
    let name = &planned.name;
    let owner = caller(planned.tenant).tenant;
    let mut rows = files.iter().filter(|file| file.file_name == *name && file.tenant_id == owner);
    let (row, more) = (rows.next(), rows.next());
    if more.is_some() {
        wrong.push(format!("{name} was registered more than once"));
    }
    let status = row.map(|row| row.status.as_str());
    if account.found_deleted {
        wrong.push(format!("{name} was found after it was deleted"));
    }
    if let (Some(id), Some(row)) = (account.id, row)
        && row.id != id
    {
        wrong.push(format!("{name} has another id than its client was told"));
    }
    if account.registered == Known::Done && row.is_none() && account.confirmed == Known::Done {
        wrong.push(format!("{name} was confirmed and is gone"));
    }
    if account.deleted == Known::Done {
        if !matches!(status, None | Some("deleted")) {
            wrong.push(format!("{name} was deleted and is {status:?}"));
        }
        return;
    }
    if account.confirmed != Known::Done || account.deleted == Known::Asked {
        return;
    }
    let may_be_cancelled = account.cancelled != Known::NotAsked || account.batch_cancelled;
    let cancelled = may_be_cancelled && status == Some("cancelled");
    if account.cancelled == Known::Done && !cancelled {
        wrong.push(format!("{name} was cancelled and is {status:?}"));
    }
    if cancelled {
        return;
    }
    let reason = row.and_then(|row| row.error_code.as_deref());
    if status == Some("failed") && reason.is_some_and(|reason| shared.plan.may_give_up_for(reason)) {
        shared.trace().reached("patience over");
        return;
    }
    let message = row.and_then(|row| row.error_message.as_deref()).unwrap_or_default();
    if status == Some("failed")
        && message.ends_with(patience::ADVICE)
        && !shared.plan.has_short_patience()
        && !shared.plan.may_keep_a_circuit_open()
    {
        wrong.push(format!(
            "{name} waited for a service for as long as files wait, and no outage lasts that long: {message}"
        ));
    }
    let reasons = planned.kind.reasons();
    if reasons.is_empty() && status != Some("ready") {
        wrong.push(format!("{name} is innocent and is {status:?} for {reason:?}"));
    }
    let is_right = status == Some("failed") && reason.is_some_and(|reason| reasons.contains(&reason));
    if !reasons.is_empty() && !is_right {
        wrong.push(format!("{name} should have failed for {reasons:?} and is {status:?} for {reason:?}"));
    }
}

/// A tenant is charged for the files that it has, and for no others.
fn judge_quotas(world: &World, observer: &Observer, files: &[FileRow], wrong: &mut Vec<String>) {
    let sql = "SELECT id, used_bytes, used_files, reserved_bytes, reserved_files FROM tenants";
    let charged: Vec<(String, i64, i64, i64, i64)> = observer.rows(world, sql);
    for tenant in [caller(0).tenant, caller(1).tenant] {
        let own = files.iter().filter(|file| file.tenant_id == tenant && file.status != "deleted");
        let (used, reserved): (Vec<&FileRow>, Vec<&FileRow>) = own.partition(|file| file.confirmed);
        let owed = |files: &[&FileRow]| {
            (files.iter().map(|file| file.file_size).sum::<i64>(), i64::try_from(files.len()).unwrap_or(0))
        };
        let owed = (owed(&used), owed(&reserved));
        let is = charged.iter().find(|row| row.0 == tenant);
        let is = is.map_or(((0, 0), (0, 0)), |row| ((row.1, row.2), (row.3, row.4)));
        if is != owed {
            wrong.push(format!("{tenant} is charged {is:?} and owes {owed:?}"));
        }
    }
}

/// A file that is ready is found by its word, and no other is. Its bytes are those that were sent.
fn judge_content(
    world: &World,
    observer: &Observer,
    planned: &FilePlan,
    files: &[FileRow],
    wrong: &mut Vec<String>,
) {
    let (name, owner) = (&planned.name, caller(planned.tenant).owner());
    let row = files.iter().find(|file| file.file_name == *name && file.tenant_id == owner.tenant);
    let status = row.map(|row| row.status.as_str());
    let question = question(owner, planned.word());
    let found = world.clients.finish(async {
        let mut tx = observer.db.read().await?;
        search::search(&mut tx, &question).await
    });
    match found {
        Ok(found) if found.hits.is_empty() == (status == Some("ready")) => {
            let hits = found.hits.len();
            wrong.push(format!("{name} is {status:?}, and a search for its word has {hits} hits"));
        }
        Ok(_) => {}
        Err(error) => wrong.push(format!("a search for {name} fails: {error}")),
    }
    let Some(key) = row.filter(|row| row.status == "ready").map(|row| row.blob_key.as_deref()) else {
        return;
    };
    let stored = key.and_then(|key| world.bucket.bytes(&format!("blobs/{key}")));
    if stored.as_deref() != Some(&planned.bytes()[..]) {
        wrong.push(format!("{name} is ready, and its bytes are not those that were sent"));
    }
}

/// A line in the history of a file: the file, from where to where, and the worker.
type Moved = (Uuid, Option<String>, String, Option<String>);

/// The history of each file is one way through its states, from its registration to where it is. From the claim of a worker on, no
/// other worker writes in it.
fn judge_lives(world: &World, observer: &Observer, files: &[FileRow], wrong: &mut Vec<String>) {
    let sql = "SELECT file_id, from_state, to_state, worker FROM events
               WHERE kind = 'file:status-changed' AND file_id IS NOT NULL AND to_state IS NOT NULL ORDER BY id";
    let mut at: BTreeMap<Uuid, String> = BTreeMap::new();
    let mut held_by: BTreeMap<Uuid, String> = BTreeMap::new();
    for (file, from, to, worker) in observer.rows::<Moved>(world, sql) {
        let before = at.insert(file, to.clone());
        if before != from {
            wrong.push(format!("the file {file} was {before:?} and came from {from:?} to {to}"));
        }
        let Some(worker) = worker else { continue };
        if from.as_deref() == Some("queued") {
            held_by.insert(file, worker);
        } else if let Some(holder) = held_by.get(&file).filter(|holder| **holder != worker) {
            wrong.push(format!("the file {file} was held by {holder}, and {worker} made it {to}"));
        }
    }
    for file in files {
        let last = at.get(&file.id);
        if last != Some(&file.status) {
            wrong.push(format!("{} is {}, and its history ends with {last:?}", file.file_name, file.status));
        }
    }
}

/// A file that was confirmed is taken sooner than a worker would look for it by itself, unless every slot is taken: storage that is
/// throttled keeps files at the first stage.
fn judge_promptness(world: &World, observer: &Observer, wrong: &mut Vec<String>) {
    let sql = "SELECT file_id, from_state, to_state, at FROM events
               WHERE kind = 'file:status-changed' AND file_id IS NOT NULL AND to_state IS NOT NULL ORDER BY id";
    let (mut confirmed, mut entered): (BTreeMap<Uuid, Time>, BTreeMap<Uuid, Time>) = Default::default();
    let (mut waited, mut at_first_stage) = (Vec::new(), Vec::new());
    for (file, from, to, at) in observer.rows::<(Uuid, Option<String>, String, Time)>(world, sql) {
        if let Some(since) = entered.remove(&file) {
            at_first_stage.push((since, at));
        }
        let is_new = matches!(from.as_deref(), Some("registered" | "uploaded"));
        if to == "queued" && is_new {
            confirmed.insert(file, at);
        } else if let Some(since) = confirmed.remove(&file)
            && at - since >= SOON
        {
            waited.push((file, since, at));
        }
        if to == Stage::Scan.running().name() {
            entered.insert(file, at);
        }
    }
    let slots = world.slots_at(Stage::Scan);
    for (file, since, at) in waited {
        let held = at_first_stage.iter().filter(|(from, to)| *from <= since && *to >= since).count();
        if held >= slots {
            world.shared.trace().reached("every slot taken");
            continue;
        }
        let waited = (at - since).num_milliseconds();
        wrong.push(format!("the file {file} waited for a worker for {waited} ms, and nothing kept it"));
    }
}

/// A batch has counted each of its files once, where it is now.
fn judge_batches(world: &World, observer: &Observer, files: &[FileRow], wrong: &mut Vec<String>) {
    let sql = "SELECT id, status, registered_files, ready_files, failed_files, cancelled_files,
                      deleted_files AS gone_files FROM batches";
    for batch in observer.rows::<BatchRow>(world, sql) {
        world.shared.trace().reached(&format!("batch {}", batch.status));
        let own: Vec<&str> = files
            .iter()
            .filter(|file| file.batch_id == Some(batch.id))
            .map(|file| file.status.as_str())
            .collect();
        let number =
            |of: &str| i64::try_from(own.iter().filter(|status| **status == of).count()).unwrap_or(0);
        let counted = [batch.ready_files, batch.failed_files, batch.cancelled_files, batch.gone_files];
        let there = ["ready", "failed", "cancelled", "deleted"].map(number);
        if counted != there || batch.registered_files != i64::try_from(own.len()).unwrap_or(0) {
            let registered = batch.registered_files;
            wrong.push(format!(
                "a batch of {own:?} counted {registered} files, and {counted:?} of them at rest"
            ));
        }
        if batch.status == "completed" && there.iter().sum::<i64>() < batch.registered_files {
            wrong.push("a completed batch has unfinished files".to_owned());
        }
    }
}

/// When a batch was cancelled, none of its files goes on, unless its owner retries it.
fn judge_cancelled_batches(world: &World, observer: &Observer, wrong: &mut Vec<String>) {
    let sql = "SELECT e.file_id, e.from_state, e.to_state, NULL FROM events e
               JOIN events c ON c.batch_id = e.batch_id AND c.kind = 'batch:cancelled' AND c.id < e.id
               WHERE e.kind = 'file:status-changed' AND e.file_id IS NOT NULL AND e.to_state IS NOT NULL
               ORDER BY e.id";
    let mut retried: BTreeSet<Uuid> = BTreeSet::new();
    for (file, from, to, _) in observer.rows::<Moved>(world, sql) {
        if to == "queued" && matches!(from.as_deref(), Some("failed" | "cancelled")) {
            retried.insert(file);
        }
        if !matches!(to.as_str(), "cancelled" | "deleted") && !retried.contains(&file) {
            wrong.push(format!("the batch of the file {file} was cancelled, and then the file became {to}"));
        }
    }
}

/// Only ready files are in the index.
fn judge_index(world: &World, observer: &Observer, wrong: &mut Vec<String>) {
    let sql = "SELECT f.file_name FROM chunks c JOIN files f ON f.id = c.file_id WHERE f.status = 'deleted'";
    for (name,) in observer.rows::<(String,)>(world, sql) {
        wrong.push(format!("{name} is deleted and still has chunks"));
    }
}

/// A reader saw each event once, in their order.
fn judge_reader(tenant: usize, seen: &[i64], events: &[i64], wrong: &mut Vec<String>) {
    if seen != events {
        let missed: Vec<&i64> = events.iter().filter(|id| !seen.contains(id)).collect();
        let unknown: Vec<&i64> = seen.iter().filter(|id| !events.contains(id)).collect();
        wrong.push(format!(
            "the reader of tenant {tenant} missed {missed:?}, saw unknown ones {unknown:?}, in order: {}",
            seen.is_sorted()
        ));
    }
}

/// The endpoint accepted each event at least once, and the first attempts came in the order of the events.
fn judge_webhook(world: &World, observer: &Observer, wrong: &mut Vec<String>) {
    let sql = "SELECT message_id, event_id, status FROM webhook_deliveries WHERE event_id IS NOT NULL";
    let deliveries: Vec<(Uuid, i64, String)> = observer.rows(world, sql);
    let event_of: BTreeMap<Uuid, i64> = deliveries.iter().map(|(id, event, _)| (*id, *event)).collect();
    let (attempts, accepted) = (world.received.attempts(), world.received.accepted());
    for (id, event, status) in &deliveries {
        if status != "delivered" || !accepted.contains(id) {
            wrong.push(format!("the event {event} is {status} and was not received"));
        }
    }
    let mut first: Vec<i64> = Vec::new();
    for event in attempts.iter().filter_map(|id| event_of.get(id)) {
        if !first.contains(event) {
            first.push(*event);
        }
    }
    if !first.is_sorted() {
        wrong.push(format!("the webhook got its events in the order {first:?}"));
    }
    let cursors = observer.rows::<(i64, String)>(world, "SELECT 0, user_id FROM webhooks");
    for (_, user) in cursors {
        let made: Vec<i64> = event_of.values().copied().collect();
        // It gets the events after its registration, the first of which is the first that a delivery was made of.
        let Some(from) = made.iter().min().copied() else { continue };
        for event in observer.events(world, &user, from) {
            if !made.contains(&event) {
                wrong.push(format!("no delivery was made of the event {event}"));
            }
        }
    }
}
