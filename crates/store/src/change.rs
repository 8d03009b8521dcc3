//! A [`Write`] that waits for its transaction, with its type erased.
//!
//! The code around a change is the same for all of them, so it is compiled once and not for each type.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_sync::oneshot;

use crate::hooks::Hooks;
use crate::{Durability, Error, Tx, Write};

pub trait Change: Send {
    fn durability(&self) -> Durability;

    fn apply<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), Error>>;

    /// Sends the outcome to the caller. The change also stands if the caller stopped waiting.
    fn acknowledge(self: Box<Self>, outcome: Result<(), Error>);
}

/// Receives the output. It is closed if the change is dropped before it is applied.
pub type Outcome<O> = oneshot::Receiver<Result<O, Error>>;

pub fn of<W: Write>(write: W) -> (Box<dyn Change>, Outcome<W::Output>) {
    let (reply, outcome) = oneshot::channel();
    (Box::new(Pending { write, output: None, reply }), outcome)
}

struct Pending<W: Write> {
    write: W,
    /// Of the last attempt.
    output: Option<W::Output>,
    reply: oneshot::Sender<Result<W::Output, Error>>,
}

impl<W: Write> Change for Pending<W> {
    fn durability(&self) -> Durability {
        self.write.durability()
    }

    fn apply<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), Error>> {
        async move {
            self.output = Some(self.write.apply(tx).await?);
            Ok(())
        }
        .boxed()
    }

    fn acknowledge(self: Box<Self>, outcome: Result<(), Error>) {
        let Self { output, reply, .. } = *self;
        let never_applied = || Error::Internal("a change was committed that was never applied".to_owned());
        drop(reply.send(outcome.and_then(|()| output.ok_or_else(never_applied))));
    }
}

/// Applies a change and runs its hooks up to the commit. Returns the hooks for after the commit.
pub async fn carry_out(change: &mut dyn Change, tx: &mut Tx) -> Result<Hooks, Error> {
    let applied = change.apply(tx).await;
    // The hooks of a failed change must not run with the next one on this connection.
    let mut hooks = std::mem::take(&mut tx.hooks);
    applied?;
    hooks.before_commit(tx).await?;
    Ok(hooks)
}
