//! Reads a part of a file for the body of a request, and knows afterwards how far that came.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream;

use super::Problem;
use super::candidates::{changed, unreadable};
use super::progress::Screen;
use landfall_core::clock::Clock;

const READ_BYTES: u64 = 256 * 1024;
/// How long no byte may move before the connection is given up. The server's own timeout is shorter, and ends with a
/// response.
const STALL_TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Default)]
pub struct Reading {
    bytes: AtomicU64,
    problem: Mutex<Option<Problem>>,
}

impl Reading {
    /// The bytes in a range, of a file that had `size` bytes. They are read while they are sent.
    pub fn body(
        self: &Arc<Self>,
        screen: &Screen,
        file: &Arc<File>,
        range: Range<u64>,
        size: u64,
    ) -> reqwest::Body {
        let (reading, screen, file, to) = (self.clone(), screen.clone(), file.clone(), range.end);
        reqwest::Body::wrap_stream(stream::try_unfold(range.start, move |at| {
            let (reading, screen, file) = (reading.clone(), screen.clone(), file.clone());
            async move {
                if at >= to {
                    return Ok(None);
                }
                let part = tokio::task::spawn_blocking(move || read(&file, at..to, size)).await;
                match part.unwrap_or_else(|error| Err(unreadable(&io::Error::other(error)))) {
                    Ok(part) => {
                        let length = part.len() as u64;
                        reading.bytes.fetch_add(length, Ordering::Relaxed);
                        screen.advance(length);
                        Ok(Some((part, at + length)))
                    }
                    Err(problem) => {
                        let error = io::Error::other(problem.message.clone());
                        *reading.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
                        Err(error)
                    }
                }
            }
        }))
    }

    /// How many bytes were read.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Why reading failed, if it did.
    pub fn take_problem(&self) -> Option<Problem> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends when no byte was read for too long.
    pub async fn stalled(&self) {
        let mut before = u64::MAX;
        loop {
            let now = self.bytes();
            if now == before {
                return;
            }
            before = now;
            Clock::System.sleep(STALL_TIMEOUT).await;
        }
    }
}

fn read(file: &File, range: Range<u64>, size: u64) -> Result<Vec<u8>, Problem> {
    let length = READ_BYTES.min(range.end - range.start);
    let mut part = vec![0; usize::try_from(length).unwrap_or_default()];
    loop {
        match file.read_at(&mut part, range.start) {
            // It was longer before.
            Ok(0) => return Err(changed(size, range.start)),
            Ok(read) => {
                part.truncate(read);
                return Ok(part);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(&error)),
        }
    }
}
