//! A channel with many senders.

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::{SendError, TryRecvError, TrySendError};

use crate::point;

pub fn channel<T>(size: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel(size);
    (Sender(sender), Receiver(receiver))
}

#[derive(Debug)]
pub struct Sender<T>(mpsc::Sender<T>);

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Sender<T> {
    pub async fn send(&self, value: T) -> Result<(), SendError<T>> {
        point();
        let sent = self.0.send(value).await;
        point();
        sent
    }

    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        point();
        self.0.try_send(value)
    }
}

#[derive(Debug)]
pub struct Receiver<T>(mpsc::Receiver<T>);

impl<T> Receiver<T> {
    pub async fn recv(&mut self) -> Option<T> {
        point();
        let received = self.0.recv().await;
        point();
        received
    }

    pub async fn recv_many(&mut self, into: &mut Vec<T>, limit: usize) -> usize {
        point();
        let received = self.0.recv_many(into, limit).await;
        point();
        received
    }

    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        point();
        self.0.try_recv()
    }
}
