//! A [`Write`] on its way to the database, as something that does not know its type any more.
//!
//! Everything around a change is the same for all of them, and is compiled once instead of once for each.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::{Durability, Tx, Write};
use crate::error::Error;
use crate::observe::aftermath::{Aftermath, Counts};

pub trait Change: Send {
    fn durability(&self) -> Durability;

    fn apply<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), Error>>;

    /// Tells whoever waits for it how it ended; nobody may, and then it stands all the same.
    fn acknowledge(self: Box<Self>, outcome: Result<(), Error>);
}

/// Where the answer comes out. It is closed if the change is dropped on its way.
pub type Answered<A> = oneshot::Receiver<Result<A, Error>>;

pub fn of<W: Write>(write: W) -> (Box<dyn Change>, Answered<W::Answer>) {
    let (reply, answered) = oneshot::channel();
    (Box::new(Pending { write, answer: None, reply }), answered)
}

struct Pending<W: Write> {
    write: W,
    /// Of the last time that it was applied.
    answer: Option<W::Answer>,
    reply: oneshot::Sender<Result<W::Answer, Error>>,
}

impl<W: Write> Change for Pending<W> {
    fn durability(&self) -> Durability {
        self.write.durability()
    }

    fn apply<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), Error>> {
        async move {
            self.answer = Some(self.write.apply(tx).await?);
            Ok(())
        }
        .boxed()
    }

    fn acknowledge(self: Box<Self>, outcome: Result<(), Error>) {
        let Self { answer, reply, .. } = *self;
        let never_applied = || Error::Internal("a change stands that was never applied".to_owned());
        drop(reply.send(outcome.and_then(|()| answer.ok_or_else(never_applied))));
    }
}

/// Applies a change, and then what it left to the end of the transaction. Answers what is to be counted after the commit.
pub async fn carry_out(change: &mut dyn Change, tx: &mut Tx) -> Result<Counts, Error> {
    let applied = change.apply(tx).await;
    // Of a change that failed nothing may stay for the next one on this connection.
    let Aftermath { totals, counts } = std::mem::take(&mut tx.aftermath);
    applied?;
    totals.write(tx).await?;
    Ok(counts)
}
