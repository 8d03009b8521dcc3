//! Changes of one kind that wait for the same row are made together: by the same statements, in one transaction.
//!
//! A hundred confirmations of one tenant would otherwise hold the tenant's row one after the other, each until its commit is on
//! disk. Here those that arrive while one is written wait for its end, and are then written as one. A change that comes alone
//! does not wait.

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError};

use landfall_sync::atomic::{AtomicBool, Ordering};
use landfall_sync::{Mutex, MutexGuard, oneshot, spawn};
use tracing::Instrument;

use crate::{Db, Durability, Error, Tx, Write};

/// The maximum number of changes that are made together, and of rows that they write.
const MAX_GROUP: usize = 64;
const MAX_ROWS: usize = 1_000;
/// The maximum number of changes that wait for one row. A further one is refused.
const MAX_WAITING: usize = 1_024;

/// A change that can be made together with others of its kind.
pub trait Joint: Send + Sync + Sized + 'static {
    type Output: Send + 'static;

    /// Only changes with the same key are made together: those that would wait for one another.
    fn key(&self) -> &str;

    /// About how many rows it writes. Large changes are made alone, so that small ones do not wait for many of them.
    fn rows(&self) -> usize {
        1
    }

    fn durability(&self) -> Durability {
        Durability::Synced
    }

    /// Makes all of these changes, or none. Returns an output for each, in their order.
    ///
    /// If one of several is refused, each is made by itself. So an error need not say which of them it is about.
    fn apply_all(
        these: &[&Self],
        tx: &mut Tx,
    ) -> impl Future<Output = Result<Vec<Self::Output>, Error>> + Send;
}

/// Makes one change alone, in a transaction that is open already.
pub async fn apply_alone<J: Joint>(change: &J, tx: &mut Tx) -> Result<J::Output, Error> {
    let output = J::apply_all(&[change], tx).await?.pop();
    output.ok_or_else(no_output)
}

fn no_output() -> Error {
    Error::Internal("a change has no output".to_owned())
}

/// The changes that wait, by their kind.
#[derive(Clone, Default)]
pub(crate) struct Queues(Arc<Mutex<HashMap<TypeId, Box<dyn Any + Send>>>>);

/// The changes of one kind that wait, by key. A key is there as long as a task writes its changes.
type ByKey<J> = HashMap<String, VecDeque<Waiting<J>>>;

struct Waiting<J: Joint> {
    change: J,
    span: tracing::Span,
    reply: oneshot::Sender<Result<J::Output, Error>>,
}

/// Whether there is a task that writes the changes of the key.
#[derive(PartialEq, Eq)]
enum Entered {
    First,
    Behind,
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, HashMap<TypeId, Box<dyn Any + Send>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<J: Joint, T>(&self, use_them: impl FnOnce(&mut ByKey<J>) -> T) -> T {
        let mut all = self.lock();
        let queues = all.entry(TypeId::of::<J>()).or_insert_with(|| Box::new(ByKey::<J>::new()));
        use_them(queues.downcast_mut().expect("each kind has queues of its own type"))
    }

    fn enter<J: Joint>(&self, waiting: Waiting<J>) -> Result<Entered, Error> {
        self.with(|queues: &mut ByKey<J>| {
            if let Some(queue) = queues.get_mut(waiting.change.key()) {
                if queue.len() >= MAX_WAITING {
                    return Err(Error::no_connection());
                }
                queue.push_back(waiting);
                return Ok(Entered::Behind);
            }
            queues.insert(waiting.change.key().to_owned(), VecDeque::from([waiting]));
            Ok(Entered::First)
        })
    }

    /// The next changes to make together. If there are none, the key is forgotten.
    fn next<J: Joint>(&self, key: &str) -> Vec<Waiting<J>> {
        self.with(|queues: &mut ByKey<J>| {
            let Some(queue) = queues.get_mut(key) else { return Vec::new() };
            let (mut group, mut rows) = (Vec::new(), 0_usize);
            let fits = |next: &Waiting<J>, count: usize, rows: usize| {
                count == 0 || count < MAX_GROUP && rows.saturating_add(next.change.rows()) <= MAX_ROWS
            };
            while let Some(waiting) = queue.pop_front_if(|next| fits(next, group.len(), rows)) {
                // A change that has not begun is dropped if its caller has stopped waiting.
                if !waiting.reply.is_closed() {
                    rows = rows.saturating_add(waiting.change.rows());
                    group.push(waiting);
                }
            }
            if group.is_empty() {
                queues.remove(key);
            }
            group
        })
    }
}

impl Db {
    /// Makes a change together with others of its kind that wait at the same time. When this returns `Ok`, the change is on
    /// disk, unless its durability asks for less.
    pub async fn write_jointly<J: Joint>(&self, change: J) -> Result<J::Output, Error> {
        let (reply, outcome) = oneshot::channel();
        let key = change.key().to_owned();
        let waiting = Waiting { change, span: tracing::Span::current(), reply };
        if self.queues().enter(waiting)? == Entered::First {
            spawn(write_all::<J>(self.clone(), key));
        }
        outcome.await.map_err(|_| Error::Internal("a write panicked".to_owned()))?
    }
}

/// Makes the changes of a key until none is left.
async fn write_all<J: Joint>(db: Db, key: String) {
    loop {
        let mut group = db.queues().next::<J>(&key);
        let Some(first) = group.first_mut() else { return };
        let span = std::mem::replace(&mut first.span, tracing::Span::none());
        write_group(&db, group).instrument(span).await;
    }
}

async fn write_group<J: Joint>(db: &Db, group: Vec<Waiting<J>>) {
    let (changes, replies): (Vec<J>, Vec<_>) =
        group.into_iter().map(|waiting| (waiting.change, waiting.reply)).unzip();
    let group = Arc::new(Group { changes, is_applied: AtomicBool::new(false) });
    let count = group.changes.len();
    match db.write(Part { group: group.clone(), from: 0, to: count }).await {
        Ok(outputs) => {
            for (reply, output) in replies.into_iter().zip(outputs) {
                drop(reply.send(Ok(output)));
            }
        }
        // Nothing was committed, so each can be made by itself.
        Err(_) if count > 1 && !group.is_applied.load(Ordering::Acquire) => {
            let alone = replies.into_iter().enumerate().map(|(place, reply)| {
                let part = Part { group: group.clone(), from: place, to: place + 1 };
                async move {
                    let written = db.write(part).await;
                    let output = written.and_then(|mut outputs| outputs.pop().ok_or_else(no_output));
                    drop(reply.send(output));
                }
            });
            futures_util::future::join_all(alone).await;
        }
        // Of a commit that failed it may be unknown whether the changes stand.
        Err(error) => {
            let mut replies = replies.into_iter();
            if let Some(last) = replies.next_back() {
                for reply in replies {
                    drop(reply.send(Err(error.again())));
                }
                drop(last.send(Err(error)));
            }
        }
    }
}

/// Changes that were taken from a queue together.
struct Group<J> {
    changes: Vec<J>,
    /// Whether all of them were made in one transaction. Only its commit can fail after that.
    is_applied: AtomicBool,
}

/// Some of the changes of a group, in one transaction.
struct Part<J> {
    group: Arc<Group<J>>,
    from: usize,
    to: usize,
}

impl<J: Joint> Write for Part<J> {
    type Output = Vec<J::Output>;

    fn durability(&self) -> Durability {
        let changes = &self.group.changes[self.from..self.to];
        changes.iter().map(Joint::durability).max().unwrap_or(Durability::Synced)
    }

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        self.group.is_applied.store(false, Ordering::Release);
        let changes: Vec<&J> = self.group.changes[self.from..self.to].iter().collect();
        let outputs = J::apply_all(&changes, tx).await?;
        self.group.is_applied.store(true, Ordering::Release);
        Ok(outputs)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::{Semaphore, mpsc};

    use super::Joint;
    use crate::{Db, Error, FaultInjector, Step, Tx, args};
    use landfall_core::refusal::{Refusal, RefusalCode};

    /// Creates an account. Waits for a permit before it ends, and says how many it is made together with.
    struct Open {
        name: String,
        rows: usize,
        begins: mpsc::UnboundedSender<usize>,
        may_end: Arc<Semaphore>,
    }

    impl Joint for Open {
        type Output = String;

        fn key(&self) -> &'static str {
            "accounts"
        }

        fn rows(&self) -> usize {
            self.rows
        }

        async fn apply_all(these: &[&Self], tx: &mut Tx) -> Result<Vec<String>, Error> {
            these[0].begins.send(these.len()).unwrap();
            these[0].may_end.acquire().await.unwrap().forget();
            for one in these {
                let sql = "INSERT INTO tenants (id) VALUES ($1) ON CONFLICT DO NOTHING";
                if tx.execute(sql, args![&one.name]).await? == 0 {
                    return Err(Refusal::new(RefusalCode::InvalidState, one.name.clone()).into());
                }
            }
            Ok(these.iter().map(|one| one.name.clone()).collect())
        }
    }

    struct Accounts {
        db: Db,
        begins: mpsc::UnboundedSender<usize>,
        begun: mpsc::UnboundedReceiver<usize>,
        may_end: Arc<Semaphore>,
        _folder: tempfile::TempDir,
    }

    impl Accounts {
        async fn new(faults: Option<Arc<dyn FaultInjector>>) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let url = format!("sqlite://{}/a.db", folder.path().display());
            let db = Db::open_with(&url, 4, faults).await.unwrap();
            let (begins, begun) = mpsc::unbounded_channel();
            Self { db, begins, begun, may_end: Arc::new(Semaphore::new(0)), _folder: folder }
        }

        /// Begins to open an account. It waits in the queue when this returns.
        async fn open(&self, name: &str) -> tokio::task::JoinHandle<Result<String, Error>> {
            self.open_large(name, 1).await
        }

        async fn open_large(
            &self,
            name: &str,
            rows: usize,
        ) -> tokio::task::JoinHandle<Result<String, Error>> {
            let (db, begins, may_end) = (self.db.clone(), self.begins.clone(), self.may_end.clone());
            let open = Open { name: name.to_owned(), rows, begins, may_end };
            let (entered, is_in) = tokio::sync::oneshot::channel();
            let opening = tokio::spawn(async move {
                let mut writing = std::pin::pin!(db.write_jointly(open));
                // The first poll puts it into the queue.
                let polled = futures_util::poll!(&mut writing);
                entered.send(()).unwrap();
                match polled {
                    std::task::Poll::Ready(done) => done,
                    std::task::Poll::Pending => writing.await,
                }
            });
            is_in.await.unwrap();
            opening
        }

        async fn names(&self) -> Vec<String> {
            let mut tx = self.db.read().await.unwrap();
            let names: Vec<(String,)> = tx.rows("SELECT id FROM tenants ORDER BY id", args![]).await.unwrap();
            names.into_iter().map(|(name,)| name).collect()
        }
    }

    #[tokio::test]
    async fn changes_that_wait_at_the_same_time_are_made_together() {
        let mut accounts = Accounts::new(None).await;
        let first = accounts.open("first").await;
        assert_eq!(accounts.begun.recv().await, Some(1), "one that comes alone does not wait");
        let others = [accounts.open("b").await, accounts.open("c").await, accounts.open("d").await];
        accounts.may_end.add_permits(2);
        assert_eq!(accounts.begun.recv().await, Some(3));
        assert_eq!(first.await.unwrap().unwrap(), "first");
        for (opened, name) in others.into_iter().zip(["b", "c", "d"]) {
            assert_eq!(opened.await.unwrap().unwrap(), name, "each gets its own output");
        }
        assert_eq!(accounts.names().await, ["b", "c", "d", "first"]);
    }

    #[tokio::test]
    async fn large_changes_are_not_made_together() {
        let mut accounts = Accounts::new(None).await;
        let first = accounts.open("first").await;
        assert_eq!(accounts.begun.recv().await, Some(1));
        let others = [
            accounts.open("b").await,
            accounts.open_large("large", 1_000).await,
            accounts.open_large("larger", 5_000).await,
            accounts.open("c").await,
            accounts.open("d").await,
        ];
        accounts.may_end.add_permits(10);
        first.await.unwrap().unwrap();
        for opened in others {
            opened.await.unwrap().unwrap();
        }
        let mut groups = Vec::new();
        while let Ok(size) = accounts.begun.try_recv() {
            groups.push(size);
        }
        assert_eq!(groups, [1, 1, 1, 2], "in their order");
    }

    #[tokio::test]
    async fn one_that_is_refused_refuses_no_other() {
        let mut accounts = Accounts::new(None).await;
        let first = accounts.open("taken").await;
        accounts.begun.recv().await;
        let others = [accounts.open("b").await, accounts.open("taken").await, accounts.open("d").await];
        accounts.may_end.add_permits(10);
        first.await.unwrap().unwrap();
        let [b, taken, d] = others;
        assert_eq!(b.await.unwrap().unwrap(), "b");
        assert_eq!(d.await.unwrap().unwrap(), "d");
        let refused = taken.await.unwrap();
        assert!(
            matches!(&refused, Err(Error::Refused(refusal)) if refusal.message == "taken"),
            "{refused:?}"
        );
        assert_eq!(accounts.names().await, ["b", "d", "taken"]);
    }

    #[tokio::test]
    async fn a_change_whose_caller_left_before_it_began_is_not_made() {
        let mut accounts = Accounts::new(None).await;
        let first = accounts.open("first").await;
        accounts.begun.recv().await;
        let left = accounts.open("left").await;
        let stays = accounts.open("stays").await;
        left.abort();
        assert!(left.await.unwrap_err().is_cancelled());
        accounts.may_end.add_permits(10);
        first.await.unwrap().unwrap();
        stays.await.unwrap().unwrap();
        assert_eq!(accounts.names().await, ["first", "stays"]);
    }

    /// Breaks the commit of the second transaction with accounts.
    #[derive(Default)]
    struct BrokenCommit(AtomicUsize);

    impl FaultInjector for BrokenCommit {
        fn inject<'a>(&'a self, step: Step<'a>) -> futures_util::future::BoxFuture<'a, Result<(), Error>> {
            let broken = matches!(step, Step::Commit) && self.0.fetch_add(1, Ordering::SeqCst) == 1;
            Box::pin(async move {
                if broken { Err(Error::Internal("the connection is lost".to_owned())) } else { Ok(()) }
            })
        }
    }

    #[tokio::test]
    async fn after_a_commit_that_failed_nothing_is_made_again() {
        let mut accounts = Accounts::new(Some(Arc::new(BrokenCommit::default()))).await;
        let first = accounts.open("first").await;
        accounts.begun.recv().await;
        let others = [accounts.open("b").await, accounts.open("c").await];
        accounts.may_end.add_permits(10);
        first.await.unwrap().unwrap();
        assert_eq!(accounts.begun.recv().await, Some(2));
        for other in others {
            let failed = other.await.unwrap();
            assert!(matches!(&failed, Err(error) if error.database_is_away()), "{failed:?}");
        }
        assert!(accounts.begun.try_recv().is_err(), "its callers must find out whether it stands");
        assert_eq!(accounts.names().await, ["first"]);
    }
}
