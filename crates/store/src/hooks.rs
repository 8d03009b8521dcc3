//! What happens at the end of a transaction: the statements that belong right before its commit, and what follows
//! the commit.
//!
//! A change registers a hook on its [`Tx`] while it is applied. If an attempt is rolled back or repeated, the hooks
//! of the failed attempt do not run.

use std::any::Any;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::wake::{Signal, Wake};
use crate::{Error, Tx};

/// Work for the end of a transaction. A transaction has at most one hook of each type; see [`Tx::hook`].
pub trait CommitHook: Any + Send {
    /// The last statements of the change. Rows that they lock are held for the shortest time.
    fn before_commit<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), Error>> {
        let _ = tx;
        async { Ok(()) }.boxed()
    }

    /// Runs after the commit. It cannot fail.
    fn after_commit(self: Box<Self>) {}
}

/// The hooks and signals of one change.
#[derive(Default)]
pub(crate) struct Hooks {
    hooks: Vec<Box<dyn CommitHook>>,
    signals: Vec<Signal>,
}

impl Hooks {
    pub fn get<H: CommitHook + Default>(&mut self) -> &mut H {
        let found = self.hooks.iter().position(|hook| (&**hook as &dyn Any).is::<H>());
        let place = found.unwrap_or_else(|| {
            self.hooks.push(Box::<H>::default());
            self.hooks.len() - 1
        });
        let hook: &mut dyn Any = &mut *self.hooks[place];
        hook.downcast_mut().expect("the hook at this index has this type")
    }

    pub fn signal(&mut self, signal: Signal) {
        if !self.signals.contains(&signal) {
            self.signals.push(signal);
        }
    }

    pub async fn before_commit(&mut self, tx: &mut Tx) -> Result<(), Error> {
        for hook in &mut self.hooks {
            hook.before_commit(tx).await?;
        }
        Ok(())
    }

    pub fn after_commit(mut self, wake: &Wake) {
        for hook in std::mem::take(&mut self.hooks) {
            hook.after_commit();
        }
        self.send_signals(wake);
    }

    pub fn send_signals(self, wake: &Wake) {
        for signal in self.signals {
            wake.send(signal);
        }
    }
}
