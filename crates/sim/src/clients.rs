//! The clients: each file has one, which registers it, sends its bytes, confirms it, and does something with it later. A client
//! repeats what it got no answer to. The readers of events are here as well.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use landfall_api::search::SearchMode;
use landfall_api::uploads::ConfirmRequest;
use landfall_core::caller::{Caller, Role, TenantUser};
use landfall_core::clock::Clock;
use landfall_core::refusal::Refusal;
use landfall_server::app::App;
use landfall_server::content::narrowing::Narrowing;
use landfall_server::content::search::{self, Question};
use landfall_server::delivery::fan_out::{Filter, Next};
use landfall_server::delivery::tail;
use landfall_server::delivery::webhooks::register::RegisterWebhook;
use landfall_server::delivery::webhooks::signature::Secret;
use landfall_server::intake::announce::Announced;
use landfall_server::intake::batches::OpenBatch;
use landfall_server::intake::idempotency::{Idempotent, Key};
use landfall_server::intake::register::{Register, Tickets};
use landfall_server::intake::upload::{Upload, WHOLE_WITHIN};
use landfall_server::intake::{confirm, delete};
use landfall_store::Error;

use crate::plan::{Confirming, FilePlan, Sending, Then};
use crate::shared::Shared;
use crate::storage::Bucket;
use crate::world::Directory;

/// How long a slow client waits between two pieces of a request, in milliseconds.
const BETWEEN_PIECES: u64 = 400;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a client knows of what it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Known {
    #[default]
    NotAsked,
    /// Asked for, without an answer so far.
    Asked,
    Done,
    Refused,
}

/// What the client of a file knows at the end.
#[derive(Debug, Clone, Default)]
pub struct Account {
    pub id: Option<Uuid>,
    pub registered: Known,
    pub sent: Known,
    pub confirmed: Known,
    pub cancelled: Known,
    /// Whether someone asked to cancel its batch.
    pub batch_cancelled: bool,
    pub deleted: Known,
    /// Files that a search found although they were deleted before it began.
    pub found_deleted: bool,
    pub is_over: bool,
}

/// The accounts of all clients, in the order of the plan.
#[derive(Clone)]
pub struct Accounts(Arc<Mutex<Vec<Account>>>);

impl Accounts {
    pub fn new(files: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![Account::default(); files])))
    }

    pub fn all(&self) -> MutexGuard<'_, Vec<Account>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, file: usize, note: impl FnOnce(&mut Account)) {
        note(&mut self.all()[file]);
    }
}

pub fn caller(tenant: usize) -> Caller {
    let name = ["anna", "bert"][tenant];
    Caller { tenant: format!("{name}s"), user: name.to_owned(), role: Role::Member }
}

/// Why a request has no result.
#[derive(Debug)]
pub enum NoResult {
    Refused(Refusal),
    /// The answer did not come, or says nothing about what was done.
    Unknown,
}

#[derive(Clone)]
pub struct Client {
    pub shared: Arc<Shared>,
    pub directory: Directory,
    pub accounts: Accounts,
    /// Where some clients send their bytes themselves.
    pub bucket: Arc<Bucket>,
}

impl Client {
    /// Sends a request to one of the processes.
    pub async fn ask<T, F>(&self, what: &str, request: impl FnOnce(App) -> F) -> Result<T, NoResult>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let Some((process, handle, app)) = self.directory.choose(&self.shared) else {
            return Err(NoResult::Unknown);
        };
        let answer = tokio::time::timeout(PATIENCE, handle.spawn(request(app))).await;
        let lost = self.shared.happens(self.shared.plan.mix.lost_answers, "answer to a client lost");
        let (result, said) = match answer {
            _ if lost => (Err(NoResult::Unknown), "answer lost".to_owned()),
            Ok(Ok(Ok(done))) => (Ok(done), "done".to_owned()),
            Ok(Ok(Err(Error::Refused(refusal)))) => {
                let said = format!("refused: {}", refusal.code.code());
                (Err(NoResult::Refused(refusal)), said)
            }
            Ok(Ok(Err(error))) => (Err(NoResult::Unknown), format!("error: {error}")),
            Ok(Err(_)) => (Err(NoResult::Unknown), "connection lost".to_owned()),
            Err(_) => (Err(NoResult::Unknown), "no answer".to_owned()),
        };
        self.shared.tell(|| format!("client: {what} (process {process}): {said}"));
        result
    }

    /// Asks until there is a definite answer.
    pub async fn insist<T, F, R>(&self, what: &str, request: R) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
        R: Fn(App) -> F,
    {
        loop {
            match self.ask(what, &request).await {
                Ok(done) => return Ok(done),
                Err(NoResult::Refused(refusal)) if !refusal.retryable => return Err(refusal),
                Err(_) => self.pause(300 + self.shared.number(1_500)).await,
            }
        }
    }

    /// Asks once, if the client of the file vanishes then, or until there is a definite answer. `None` without one.
    pub(crate) async fn ask_for<T, F, R>(
        &self,
        file: &FilePlan,
        what: &str,
        request: R,
    ) -> Option<Result<T, Refusal>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
        R: Fn(App) -> F,
    {
        if !file.asks_once {
            return Some(self.insist(what, request).await);
        }
        match self.ask(what, &request).await {
            Ok(done) => Some(Ok(done)),
            Err(NoResult::Refused(refusal)) => Some(Err(refusal)),
            Err(NoResult::Unknown) => None,
        }
    }

    pub async fn pause(&self, milliseconds: u64) {
        Clock::System.sleep(Duration::from_millis(milliseconds)).await;
    }

    /// The life of one file, as its client sees it.
    pub async fn handle(self, place: usize, file: FilePlan) {
        self.pause(file.begins).await;
        self.try_to_handle(place, &file).await;
        self.accounts.note(place, |account| account.is_over = true);
    }

    async fn try_to_handle(&self, place: usize, file: &FilePlan) -> Option<()> {
        let caller = caller(file.tenant);
        if file.sending == Sending::Resumable {
            let id = self.send_resumable(place, file, &caller).await?;
            self.pause(file.wait).await;
            self.then(place, file, id, &caller).await;
            return None;
        }
        let id = self.register(place, file, &caller).await?;
        let sent = self.send(place, file, id).await;
        if sent.is_none() || file.confirming == Confirming::Never {
            if file.then.needs_no_confirmation() {
                self.pause(file.wait).await;
                self.then(place, file, id, &caller).await;
            }
            return None;
        }
        let confirms = if file.confirming == Confirming::Twice { 2 } else { 1 };
        for _ in 0..confirms {
            self.accounts.note(place, |account| account.confirmed = account.confirmed.max_asked());
            let of = caller.clone();
            let direct = (file.sending == Sending::Direct).then(|| (self.clone(), file.bytes()));
            let confirm = move |app: App| {
                let (of, direct) = (of.clone(), direct.clone());
                async move {
                    let request = ConfirmRequest::default();
                    // The store takes no second object, also if the first was too short.
                    if let Some((client, bytes)) = direct {
                        client.put(id, bytes);
                    }
                    confirm::confirm(&app.db, &app.blobs, &of, id, None, &request, &app.clock).await.map(drop)
                }
            };
            let confirmed = self.insist(&format!("confirm {}", file.name), confirm).await;
            self.accounts.note(place, |account| account.confirmed = Known::of(confirmed.is_ok()));
            confirmed.ok()?;
        }
        self.pause(file.wait).await;
        self.then(place, file, id, &caller).await;
        None
    }

    /// Opens the batch of a file, and says what the file is, before it is registered.
    pub(crate) async fn announce(
        &self,
        place: usize,
        file: &FilePlan,
        caller: &Caller,
    ) -> Option<(Option<Uuid>, Announced)> {
        let batch = if file.in_batch { Some(self.open_batch(file.tenant, caller).await?) } else { None };
        self.accounts.note(place, |account| account.registered = Known::Asked);
        let announced = Announced {
            name: file.name.clone(),
            size: i64::try_from(file.bytes().len()).ok()?,
            ..Announced::default()
        };
        Some((batch, announced))
    }

    async fn register(&self, place: usize, file: &FilePlan, caller: &Caller) -> Option<Uuid> {
        let (batch, announced) = self.announce(place, file, caller).await?;
        let (of, name) = (caller.clone(), file.name.clone());
        let is_direct = file.sending == Sending::Direct;
        let register = move |app: App| {
            let (of, announced, name) = (of.clone(), announced.clone(), name.clone());
            async move {
                let key = Some(Key::new(of.owner(), &name, "", b"")?);
                let now = app.clock.now();
                let files = vec![(app.clock.new_id(), announced)];
                let config = app.config.intake.clone();
                let tickets = Tickets::for_files(&files, &app.signer, &config, now);
                let change = Register {
                    caller: of,
                    batch,
                    priority: None,
                    files,
                    now,
                    config,
                    tickets,
                    direct: is_direct.then_some(i64::MAX),
                    trace: None,
                };
                let tickets = app.db.write_jointly(Idempotent { key, now, change }).await?;
                Ok(tickets[0].file_id)
            }
        };
        let registered = self.insist(&format!("register {}", file.name), register).await;
        self.accounts.note(place, |account| {
            account.registered = Known::of(registered.is_ok());
            account.id = registered.as_ref().ok().copied();
        });
        registered.ok()
    }

    pub async fn open_batch(&self, tenant: usize, caller: &Caller) -> Option<Uuid> {
        let files =
            self.shared.plan.files.iter().filter(|file| file.in_batch && file.tenant == tenant).count();
        let of = caller.clone();
        let open = move |app: App| {
            let of = of.clone();
            async move {
                let key = Some(Key::new(of.owner(), "batch", "", b"")?);
                let now = app.clock.now();
                let batch = serde_json::from_value(json!({ "fileCount": files })).expect("a good batch");
                let (id, config) = (app.clock.new_id(), app.config.intake.clone());
                let change = OpenBatch { caller: of, id, batch, now, config };
                Ok(app.db.write(Idempotent { key, now, change }).await?.batch_id)
            }
        };
        self.insist("open a batch", open).await.ok()
    }

    /// Sends the bytes. `None` if the client gives up.
    async fn send(&self, place: usize, file: &FilePlan, id: Uuid) -> Option<()> {
        if file.sending == Sending::Never {
            return None;
        }
        self.accounts.note(place, |account| account.sent = Known::Asked);
        if file.sending == Sending::Direct {
            self.send_direct(file, id);
            return Some(());
        }
        if file.sending == Sending::ShortFirst {
            let bytes = file.bytes();
            let part = bytes[1..].to_vec();
            let what = format!("send {} too short", file.name);
            // It is refused, or lost.
            drop(self.ask(&what, upload(id, bytes.len(), vec![part], 0)).await);
        }
        let times = if file.sending == Sending::Twice { 2 } else { 1 };
        for time in 0..times {
            let bytes = file.bytes();
            let pieces = if file.sending == Sending::InPieces { 4 } else { 1 };
            let parts: Vec<Vec<u8>> =
                bytes.chunks(bytes.len().div_ceil(pieces)).map(<[u8]>::to_vec).collect();
            let send = |app: App| upload(id, bytes.len(), parts.clone(), BETWEEN_PIECES)(app);
            let sent = self.insist(&format!("send {}", file.name), send).await;
            if time == 0 {
                self.accounts.note(place, |account| account.sent = Known::of(sent.is_ok()));
            }
            // Bytes that an earlier attempt stored are refused the second time, or the file has moved on.
            if sent.is_err() {
                break;
            }
        }
        Some(())
    }

    async fn then(&self, place: usize, file: &FilePlan, id: Uuid, caller: &Caller) {
        let (name, of) = (&file.name, caller.clone());
        match file.then {
            Then::Nothing => {}
            Then::Cancel => self.cancel(place, file, id, &of).await,
            Then::CancelBatch => self.cancel_batch(place, file, id, &of).await,
            Then::CancelAndRetry => {
                self.cancel(place, file, id, &of).await;
                self.pause(file.wait / 4).await;
                // A request to cancel that got no answer may come to its end after the retry.
                self.accounts.note(place, |account| account.cancelled = Known::Asked);
                self.retry(file, id, &of).await;
            }
            Then::Delete => {
                self.accounts.note(place, |account| account.deleted = Known::Asked);
                let delete = move |app: App| {
                    let of = of.clone();
                    async move { delete::delete(&app.db, &app.blobs, &of, id, app.clock.now()).await }
                };
                let Some(deleted) = self.ask_for(file, &format!("delete {name}"), delete).await else {
                    return;
                };
                // The second attempt finds nothing to delete.
                let gone = deleted.is_ok() || deleted.is_err_and(|refusal| refusal.code.status() == 404);
                self.accounts.note(place, |account| account.deleted = Known::of(gone));
                if gone && self.finds(file).await {
                    self.accounts.note(place, |account| account.found_deleted = true);
                }
            }
            Then::Retry => self.retry(file, id, &of).await,
            Then::Search => drop(self.finds(file).await),
            Then::DeleteAmongMany => self.delete_among_many(place, file, id, &of).await,
        }
    }

    /// Whether a search for the word that only this file has finds it.
    pub async fn finds(&self, file: &FilePlan) -> bool {
        let (owner, text) = (caller(file.tenant).owner(), file.word());
        let search = move |app: App| {
            let question = question(owner.clone(), text.clone());
            async move { Ok(!search::search(&mut app.db.read().await?, &question).await?.hits.is_empty()) }
        };
        self.insist(&format!("search for {}", file.name), search).await.unwrap_or(false)
    }

    /// Registers a webhook for the first tenant.
    pub async fn register_webhook(self) {
        let register = |app: App| async move {
            let key = Some(Key::new(caller(0).owner(), "webhook", "", b"")?);
            let cursor = tail::settled_up_to(&app.db).await?;
            let now = app.clock.now();
            let webhook = serde_json::from_value(json!({ "url": "https://receiver.example/" }));
            let change = RegisterWebhook {
                caller: caller(0),
                id: app.clock.new_id(),
                webhook: webhook.expect("a good webhook"),
                secret: Secret::random(),
                key: app.secret.clone(),
                cursor,
                most: app.config.webhooks.per_user,
                now,
            };
            app.db.write(Idempotent { key, now, change }).await.map(drop)
        };
        drop(self.insist("register a webhook", register).await);
    }

    /// Reads the events of a tenant's user, and resumes where it was when the stream ends.
    pub async fn read_events(self, tenant: usize, seen: Arc<Mutex<Vec<i64>>>) {
        loop {
            let last = seen.lock().unwrap_or_else(PoisonError::into_inner).last().copied().unwrap_or(0);
            if let Some(mut events) = self.open_stream(tenant, last) {
                // Some readers leave in the middle.
                let mut left = if self.shared.is_calm() { u64::MAX } else { 1 + self.shared.number(40) };
                while left > 0
                    && let Some(id) = events.recv().await
                {
                    left -= 1;
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(id);
                }
            }
            self.pause(200 + self.shared.number(2_000)).await;
        }
    }

    fn open_stream(&self, tenant: usize, after: i64) -> Option<mpsc::Receiver<i64>> {
        let (_, handle, app) = self.directory.choose(&self.shared)?;
        let owner = caller(tenant).owner();
        let reach = landfall_core::caller::Reach::User(owner.clone());
        let mut stream = app.fan_out.listen(owner, reach, Filter::default(), Some(after)).ok()?;
        let (events, received) = mpsc::channel(4);
        let shared = self.shared.clone();
        handle.spawn(async move {
            loop {
                let messages = match stream.next().await {
                    Ok(Next::Messages(messages)) => messages,
                    Ok(Next::CaughtUp) => continue,
                    Ok(Next::TooSlow) | Err(_) => return,
                };
                for message in messages {
                    let event: Value = serde_json::from_slice(&message.json()).unwrap_or_default();
                    match event["type"].as_str().unwrap_or_default() {
                        "stream:open" => {}
                        other if other.starts_with("stream:") => {
                            shared.tell(|| format!("a reader is told {other}"));
                        }
                        _ if events.send(message.id).await.is_err() => return,
                        _ => {}
                    }
                }
            }
        });
        Some(received)
    }
}

/// A search for a word among the files of an owner.
pub fn question(owner: TenantUser, text: String) -> Question {
    Question {
        owner,
        text,
        mode: SearchMode::Words,
        meaning: None,
        limit: 5,
        offset: 0,
        narrowing: Narrowing::default(),
        explain: false,
    }
}

impl Known {
    pub fn of(done: bool) -> Self {
        if done { Self::Done } else { Self::Refused }
    }

    fn max_asked(self) -> Self {
        if self == Self::Done { Self::Done } else { Self::Asked }
    }
}

/// Sends these pieces for a file that was registered with this size, with so many milliseconds between them.
fn upload(
    file: Uuid,
    size: usize,
    parts: Vec<Vec<u8>>,
    between: u64,
) -> impl FnOnce(App) -> futures_util::future::BoxFuture<'static, Result<(), Error>> {
    move |app: App| {
        Box::pin(async move {
            let upload = Upload {
                db: app.db.clone(),
                blobs: app.blobs.clone(),
                clock: app.clock.clone(),
                owner: app.liveness.identity().id,
                tasks: app.uploads.clone(),
                arrivals: app.arrivals.clone(),
                disk: app.disk.clone(),
                confirm_window: app.config.intake.confirm_window,
                stall: Duration::from_mins(1),
                min_rate: 1,
                whole_within: WHOLE_WITHIN,
                file,
                size: i64::try_from(size).unwrap_or(i64::MAX),
                md5: None,
            };
            let body = stream::iter(parts.into_iter().enumerate()).then(move |(place, part)| async move {
                if place > 0 {
                    Clock::System.sleep(Duration::from_millis(between)).await;
                }
                Ok::<_, &'static str>(Bytes::from(part))
            });
            upload.receive(body.boxed()).await.map(drop)
        })
    }
}
