//! A [`Write`] on its way to the database, with its type erased.
//!
//! Everything around a change is the same for all of them, so it is compiled once instead of once for each type.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::hooks::Hooks;
use crate::{Durability, Error, Tx, Write};

pub trait Change: Send {
    fn durability(&self) -> Durability;

    fn apply<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), Error>>;

    /// Sends the outcome to the caller. A caller that stopped waiting changes nothing: the change stands.
    fn acknowledge(self: Box<Self>, outcome: Result<(), Error>);
}

/// Receives the output. It is closed if the change is dropped on its way.
pub type Outcome<O> = oneshot::Receiver<Result<O, Error>>;

pub fn of<W: Write>(write: W) -> (Box<dyn Change>, Outcome<W::Output>) {
    let (reply, outcome) = oneshot::channel();
    (Box::new(Pending { write, output: None, reply }), outcome)
}

struct Pending<W: Write> {
    write: W,
    /// Of the last time that it was applied.
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
        let never_applied = || Error::Internal("a change stands that was never applied".to_owned());
        drop(reply.send(outcome.and_then(|()| output.ok_or_else(never_applied))));
    }
}

/// Applies a change and runs its hooks up to the commit. Returns what is left to run after it.
pub async fn carry_out(change: &mut dyn Change, tx: &mut Tx) -> Result<Hooks, Error> {
    let applied = change.apply(tx).await;
    // The hooks of a change that failed must not stay for the next one on this connection.
    let mut hooks = std::mem::take(&mut tx.hooks);
    applied?;
    hooks.before_commit(tx).await?;
    Ok(hooks)
}
