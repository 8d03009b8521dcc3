//! Both sides of the protocol, for the fuzz targets.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::protocol::Header;
use super::{SandboxConfig, response};

/// Reads bytes as the parent reads those of a process: a hello and a response.
pub fn read_response(mut bytes: &[u8]) {
    let config = SandboxConfig::default();
    let reading = async {
        if response::read_hello(&mut bytes).await.is_ok() {
            // A response that cannot be decoded is an error, which is an answer.
            _ = response::read_response(&mut bytes, &config, None, &|| {}).await;
        }
    };
    // Bytes in memory are always there, so there is nothing to wait for.
    let ended = pin!(reading).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(ended, Poll::Ready(())), "it waits for more than there is");
}

/// Reads bytes as a process reads the header of a document, which follows its length.
pub fn read_request(bytes: &[u8]) {
    // Any header or error is right.
    _ = Header::decode(bytes);
}
