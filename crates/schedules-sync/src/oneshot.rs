//! A channel for one value.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;

use crate::point;

pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = oneshot::channel();
    (Sender(sender), Receiver(receiver))
}

#[derive(Debug)]
pub struct Sender<T>(oneshot::Sender<T>);

impl<T> Sender<T> {
    pub fn is_closed(&self) -> bool {
        point();
        self.0.is_closed()
    }

    pub fn send(self, value: T) -> Result<(), T> {
        point();
        let sent = self.0.send(value);
        point();
        sent
    }
}

#[derive(Debug)]
pub struct Receiver<T>(oneshot::Receiver<T>);

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        point();
        Pin::new(&mut self.0).poll(context)
    }
}
