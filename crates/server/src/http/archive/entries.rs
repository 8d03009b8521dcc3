//! Writes the files of an archive, one after another, a piece at a time.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use chrono::{Datelike, Timelike};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc::Sender;
use uuid::Uuid;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

use super::names::Names;
use crate::app::App;
use crate::blobs::Pin;
use crate::http::files::MAX_CHECKED_FIRST;
use crate::records::file::File;
use crate::records::files::listing;
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Status;
use landfall_store::Error;

/// The entry that names what is not in the archive.
const MISSING: &str = "MISSING.txt";
/// Bytes that are read and written at once.
const PIECE: usize = 64 * 1024;
/// Rows that are loaded at once.
const ROWS: usize = 100;
/// A storage that fails so often in a row is down, and the archive is given up.
const MAX_FAILURES: usize = 10;
/// Formats that are smaller when they are compressed. The others are compressed already.
const TEXTS: [&str; 16] = [
    "txt", "md", "csv", "tsv", "json", "jsonl", "xml", "html", "htm", "svg", "rtf", "eml", "log", "yaml",
    "yml", "tex",
];

/// What the archive's writer wrote and was not sent yet.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a file is not in the archive, or not whole.
enum Trouble {
    /// The archive goes on without it.
    Missing(String),
    /// So it does, unless that happens too often.
    Storage(String),
    /// The client is gone, or the archive cannot be written.
    Broken(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

pub struct Entries {
    app: App,
    caller: Caller,
    pieces: Sender<io::Result<Bytes>>,
    zip: ZipWriter<StreamWriter<Written>>,
    written: Written,
    names: Names,
    missing: String,
}

impl Entries {
    pub fn new(app: App, caller: Caller, pieces: Sender<io::Result<Bytes>>) -> Self {
        let written = Written::default();
        let zip = ZipWriter::new_stream(written.clone());
        Self { app, caller, pieces, zip, written, names: Names::new(MISSING), missing: String::new() }
    }

    /// Writes the whole archive.
    pub async fn write_all(mut self, ids: &[Uuid]) -> io::Result<()> {
        let mut failures = 0;
        for ids in ids.chunks(ROWS) {
            let mut files = self.load(ids).await.map_err(io::Error::other)?;
            for id in ids {
                let trouble = match files.remove(id) {
                    Some(file) => {
                        let name = self.names.take(&file.file_name);
                        let written = self.write(&name, &file).await;
                        written.err().map(|trouble| (format!("{name} ({id})"), trouble))
                    }
                    None => Some((id.to_string(), Trouble::Missing("There is no such file".to_owned()))),
                };
                failures = match &trouble {
                    Some((_, Trouble::Storage(why))) if failures + 1 >= MAX_FAILURES => {
                        return Err(io::Error::other(why.clone()));
                    }
                    Some((_, Trouble::Storage(_))) => failures + 1,
                    _ => 0,
                };
                match trouble {
                    None => {}
                    Some((_, Trouble::Broken(error))) => return Err(error),
                    Some((file, Trouble::Missing(why) | Trouble::Storage(why))) => {
                        self.missing.push_str(&format!("{file}: {why}\r\n"));
                    }
                }
            }
        }
        if !self.missing.is_empty() {
            let text = format!("These files are not in this archive, or not whole:\r\n\r\n{}", self.missing);
            self.zip.start_file(MISSING, options(CompressionMethod::Deflated, self.app.clock.now()))?;
            self.zip.write_all(text.as_bytes())?;
        }
        self.zip.finish()?;
        send(&self.written, &self.pieces).await
    }

    /// The files that the caller may see, by their ids.
    async fn load(&self, ids: &[Uuid]) -> Result<HashMap<Uuid, File>, Error> {
        let files = listing::find_all(&mut self.app.db.read().await?, ids).await?;
        let may_see = |file: &File| self.caller.may_access(&file.tenant_id, &file.user_id);
        Ok(files.into_iter().filter(may_see).map(|file| (file.id, file)).collect())
    }

    async fn write(&mut self, name: &str, file: &File) -> Result<(), Trouble> {
        let missing = |why: &str| Trouble::Missing(why.to_owned());
        if file.status == Status::Deleted {
            return Err(missing("It was deleted"));
        }
        let pin = Pin::of(file).ok_or_else(|| missing("Its bytes have not arrived, or were removed"))?;
        let blobs = self.app.blobs.clone();
        let damaged = "Its stored bytes are not those that were uploaded";
        let (mut blob, mut integrity) = blobs.read_pinned(&pin).await.map_err(of_storage)?;
        // Whether they are the right bytes is known when the last of them was read. What fits into the memory, or is known to
        // be damaged, is read before it is written.
        let is_small = pin.size <= MAX_CHECKED_FIRST;
        let mut first = Vec::new();
        let checked = if is_small {
            blob.read_to_end(&mut first).await.map(drop)
        } else if file.blob_damaged_at.is_some() {
            tokio::io::copy(&mut blob, &mut tokio::io::sink()).await.map(drop)
        } else {
            Ok(())
        };
        if integrity.is_broken() {
            return Err(missing(damaged));
        }
        checked.map_err(|error| Trouble::Storage(unread(&error)))?;
        if !is_small && file.blob_damaged_at.is_some() {
            (blob, integrity) = blobs.read_pinned(&pin).await.map_err(of_storage)?;
        }
        let options = options(method(&file.file_name), file.created_at);
        self.zip
            .start_file(name, options.large_file(pin.size >= u64::from(u32::MAX)))
            .map_err(io::Error::from)?;
        for piece in first.chunks(PIECE) {
            self.zip.write_all(piece)?;
            send(&self.written, &self.pieces).await?;
        }
        if is_small {
            return Ok(());
        }
        let mut piece = vec![0; PIECE];
        loop {
            let read = match blob.read(&mut piece).await {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) => {
                    let why = if integrity.is_broken() { damaged.to_owned() } else { unread(&error) };
                    return Err(Trouble::Missing(format!(
                        "{why}. What is in this archive of it is incomplete"
                    )));
                }
            };
            self.zip.write_all(&piece[..read])?;
            send(&self.written, &self.pieces).await?;
        }
    }
}

/// Sends what was written. Waits until the client has taken what came before.
async fn send(written: &Written, pieces: &Sender<io::Result<Bytes>>) -> io::Result<()> {
    let bytes = written.take();
    if bytes.is_empty() {
        return Ok(());
    }
    let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone");
    pieces.send(Ok(bytes.into())).await.map_err(gone)
}

/// Texts are compressed; for the rest that costs time and saves nothing.
fn method(name: &str) -> CompressionMethod {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
    if extension.is_some_and(|extension| TEXTS.contains(&extension.as_str())) {
        CompressionMethod::Deflated
    } else {
        CompressionMethod::Stored
    }
}

fn options(method: CompressionMethod, at: Time) -> SimpleFileOptions {
    let part = |number: u32| u8::try_from(number).unwrap_or(0);
    let at = zip::DateTime::from_date_and_time(
        u16::try_from(at.year()).unwrap_or(0),
        part(at.month()),
        part(at.day()),
        part(at.hour()),
        part(at.minute()),
        part(at.second()),
    );
    let level = (method == CompressionMethod::Deflated).then_some(LEVEL);
    SimpleFileOptions::default()
        .compression_method(method)
        .compression_level(level)
        .last_modified_time(at.unwrap_or_default())
        .unix_permissions(0o644)
}

/// Of the levels of the compression this one costs least.
const LEVEL: i64 = 1;

fn unread(error: &io::Error) -> String {
    tracing::warn!(%error, "a file could not be read for an archive");
    "It could not be read from the storage".to_owned()
}

fn of_storage(error: Error) -> Trouble {
    match error {
        Error::BlobMissing { .. } => Trouble::Missing("Its bytes are gone from the storage".to_owned()),
        Error::BlobChanged { .. } => {
            Trouble::Missing("Its object in the store was replaced after it was confirmed".to_owned())
        }
        error => {
            tracing::warn!(%error, "a file could not be read for an archive");
            Trouble::Storage("The storage did not answer".to_owned())
        }
    }
}
