//! The standard error of a process: the beginning is kept and the rest is discarded, so that the process never
//! blocks.

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// How much is kept.
const MAX_KEPT: usize = 8 * 1024;

/// Reads to the end.
pub async fn drain(stderr: &mut pipe::Receiver, kept: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(1..) = stderr.read(&mut buffer).await.inspect(|length| keep(kept, &buffer[..*length])) {}
}

/// Reads to the end and never resolves: a process may close its standard error.
pub async fn drain_forever(stderr: &mut pipe::Receiver, kept: &mut Vec<u8>) {
    drain(stderr, kept).await;
    std::future::pending::<()>().await;
}

/// Reads what is there without waiting.
pub fn drain_available(stderr: &pipe::Receiver, kept: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while kept.len() < MAX_KEPT
        && let Ok(length @ 1..) = stderr.try_read(&mut buffer)
    {
        keep(kept, &buffer[..length]);
    }
}

fn keep(kept: &mut Vec<u8>, read: &[u8]) {
    let room = MAX_KEPT.saturating_sub(kept.len());
    kept.extend(&read[..read.len().min(room)]);
}
