//! A value that is watched.

use tokio::sync::watch;
use tokio::sync::watch::Ref;
use tokio::sync::watch::error::RecvError;

use crate::point;

#[derive(Debug, Default)]
pub struct Sender<T>(watch::Sender<T>);

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Sender<T> {
    pub fn new(value: T) -> Self {
        Self(watch::Sender::new(value))
    }

    pub fn subscribe(&self) -> Receiver<T> {
        point();
        Receiver(self.0.subscribe())
    }

    pub fn send_replace(&self, value: T) -> T {
        point();
        let before = self.0.send_replace(value);
        point();
        before
    }

    /// Nothing else may run while the result is held: it is a lock of Tokio's own.
    pub fn borrow(&self) -> Ref<'_, T> {
        point();
        self.0.borrow()
    }
}

#[derive(Debug, Clone)]
pub struct Receiver<T>(watch::Receiver<T>);

impl<T> Receiver<T> {
    pub fn mark_unchanged(&mut self) {
        point();
        self.0.mark_unchanged();
    }

    pub async fn changed(&mut self) -> Result<(), RecvError> {
        point();
        let changed = self.0.changed().await;
        point();
        changed
    }

    /// The value once it is as wanted. Unlike Tokio's, it returns no reference to it: nothing else may run while one is held.
    pub async fn wait_for(&mut self, is_wanted: impl FnMut(&T) -> bool) -> Result<(), RecvError> {
        point();
        let found = self.0.wait_for(is_wanted).await.map(drop);
        point();
        found
    }
}
