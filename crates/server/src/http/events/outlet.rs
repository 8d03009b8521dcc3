//! The two kinds of connection to a client.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use bytes::Bytes;
use serde_json::json;
use tokio::sync::mpsc;

use super::delivery::Ending;
use crate::delivery::fan_out::Delivery;
use crate::http::connections::CutOff;
use landfall_core::clock::Clock;

/// How long a client has to receive the reason for the end of its stream.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// A comment, which clients ignore.
const BEAT: Bytes = Bytes::from_static(b": \n\n");

pub enum Outlet {
    WebSocket(Box<WebSocket>),
    ServerSent { frames: mpsc::Sender<Bytes>, cut_off: CutOff },
}

impl Outlet {
    pub fn web_socket(socket: WebSocket) -> Self {
        Self::WebSocket(Box::new(socket))
    }

    pub fn server_sent(frames: mpsc::Sender<Bytes>, cut_off: CutOff) -> Self {
        Self::ServerSent { frames, cut_off }
    }

    /// Sends a message as soon as there is room for it. Returns whether the client is still there.
    pub async fn send(&mut self, message: &Delivery) -> bool {
        match self {
            Self::WebSocket(socket) => {
                let text = Utf8Bytes::try_from(message.json()).expect("JSON is UTF-8");
                socket.send(Message::Text(text)).await.is_ok()
            }
            Self::ServerSent { frames, .. } => frames.send(message.frame()).await.is_ok(),
        }
    }

    /// A sign of life.
    pub async fn beat(&mut self) -> bool {
        match self {
            Self::WebSocket(socket) => socket.send(Message::Ping(Bytes::new())).await.is_ok(),
            Self::ServerSent { frames, .. } => frames.send(BEAT).await.is_ok(),
        }
    }

    /// Whether the client replies to signs of life. With server-sent events it cannot; there the kernel detects
    /// unacknowledged data.
    pub fn must_answer(&self) -> bool {
        matches!(self, Self::WebSocket(_))
    }

    /// Resolves when the client sends something: `false` when it is gone.
    pub async fn heard(&mut self) -> bool {
        match self {
            Self::WebSocket(socket) => {
                matches!(socket.recv().await, Some(Ok(message)) if !matches!(message, Message::Close(_)))
            }
            Self::ServerSent { frames, .. } => {
                frames.closed().await;
                false
            }
        }
    }

    /// Sends the reason for the end to the client, if it is still there.
    pub async fn end(self, ending: Ending) {
        let say = async {
            match self {
                Self::WebSocket(mut socket) => {
                    let frame = CloseFrame { code: ending.close_code(), reason: ending.code().into() };
                    if ending != Ending::Gone && socket.send(Message::Close(Some(frame))).await.is_ok() {
                        // Until the client has received it and confirmed that.
                        while let Some(Ok(_)) = socket.recv().await {}
                    }
                }
                // A client that does not read cannot be told, and its connection must not stay open.
                Self::ServerSent { cut_off, .. } if ending == Ending::TooSlow => cut_off.cut(),
                Self::ServerSent { frames, .. } => {
                    let data = json!({ "type": "stream:end", "data": { "code": ending.code() } });
                    let frame = Bytes::from(format!("event: stream:end\ndata: {data}\n\n"));
                    // An error means that the client is gone.
                    drop(frames.send(frame).await);
                }
            }
        };
        tokio::select! {
            () = say => {}
            () = Clock::System.sleep(CLOSE_TIMEOUT) => {}
        }
    }
}
