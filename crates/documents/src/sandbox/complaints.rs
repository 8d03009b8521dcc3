//! What a process complains of: the beginning is kept, the rest is let pass, so that it never waits to be heard.

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// How much is kept.
const COMPLAINTS: usize = 8 * 1024;

/// Hears it to its end.
pub async fn hear(complaints: &mut pipe::Receiver, said: &mut Vec<u8>) {
    let mut heard = [0; 4096];
    while let Ok(1..) = complaints.read(&mut heard).await.inspect(|length| keep(said, &heard[..*length])) {}
}

/// The same, but never resolves: closing it is not against the rules.
pub async fn listen(complaints: &mut pipe::Receiver, said: &mut Vec<u8>) {
    hear(complaints, said).await;
    std::future::pending::<()>().await;
}

/// What there is to be heard without waiting.
pub fn take_complaints(complaints: &pipe::Receiver, said: &mut Vec<u8>) {
    let mut heard = [0; 4096];
    while said.len() < COMPLAINTS
        && let Ok(length @ 1..) = complaints.try_read(&mut heard)
    {
        keep(said, &heard[..length]);
    }
}

fn keep(said: &mut Vec<u8>, heard: &[u8]) {
    let room = COMPLAINTS.saturating_sub(said.len());
    said.extend(&heard[..heard.len().min(room)]);
}
