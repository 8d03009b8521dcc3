//! Takes all documents in and waits until each is searchable or failed.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use uuid::Uuid;

use super::corpus::{Corpus, Document};
use super::server::Server;

const AT_ONCE: usize = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// A document that takes longer is told of, not waited for.
const LONGEST_WAIT: Duration = Duration::from_mins(30);

#[derive(Default)]
pub struct Taken {
    /// Every file that was accepted, by the name that the questions know.
    pub names: HashMap<Uuid, String>,
    pub ready: Vec<String>,
    /// The names of those that are not, by what is said of them.
    pub failed: BTreeMap<String, Vec<String>>,
}

pub async fn take_in(server: &Server, corpus: &Corpus) -> anyhow::Result<Taken> {
    let batch =
        server.post("/api/v2/uploads/batches", &json!({ "fileCount": corpus.documents.len() })).await?;
    let batch = batch["batchId"].as_str().context("a batch has an id")?.to_owned();
    let uploads: Vec<(&Document, Result<Uuid, String>)> = stream::iter(&corpus.documents)
        .map(async |document| anyhow::Ok((document, upload(server, &batch, document).await?)))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let mut taken = Taken::default();
    for (document, upload) in uploads {
        match upload {
            Ok(id) => drop(taken.names.insert(id, document.name.clone())),
            Err(code) => taken.fail(&code, &document.name),
        }
    }
    wait(server, &batch, taken.names.len()).await?;
    let names: Vec<(Uuid, String)> = taken.names.iter().map(|(id, name)| (*id, name.clone())).collect();
    for (id, name) in names {
        let file = server.get(&format!("/api/v2/uploads/files/{id}")).await?;
        match file["status"].as_str() {
            Some("ready") => taken.ready.push(name),
            Some("failed") => taken.fail(file["error"]["code"].as_str().unwrap_or("without a code"), &name),
            other => taken.fail(&format!("still {}", other.unwrap_or("nowhere")), &name),
        }
    }
    Ok(taken)
}

impl Taken {
    fn fail(&mut self, why: &str, name: &str) {
        self.failed.entry(why.to_owned()).or_default().push(name.to_owned());
    }
}

/// The whole way in; answers the file's id, or the code with which the server would not have it.
async fn upload(server: &Server, batch: &str, document: &Document) -> anyhow::Result<Result<Uuid, String>> {
    let bytes = tokio::fs::read(&document.path).await?;
    let name = document.path.file_name().context("a document has a name")?.to_string_lossy();
    let announced = json!({ "fileName": name, "fileSize": bytes.len() });
    let path = format!("/api/v2/uploads/batches/{batch}/upload-urls");
    let ticket = match server.try_post(&path, &announced).await? {
        Ok(ticket) => ticket,
        Err(code) => return Ok(Err(code)),
    };
    let text = |field: &str| ticket[field].as_str().with_context(|| format!("a ticket has a {field}"));
    let (id, url) = (text("fileId")?, text("uploadUrl")?);
    if let Err(code) = server.try_put(url, bytes).await? {
        return Ok(Err(code));
    }
    match server.try_post(&format!("/api/v2/uploads/files/{id}/confirm"), &json!({})).await? {
        Ok(_) => Ok(Ok(id.parse()?)),
        Err(code) => Ok(Err(code)),
    }
}

async fn wait(server: &Server, batch: &str, files: usize) -> anyhow::Result<()> {
    let (began, path) = (Instant::now(), format!("/api/v2/uploads/batches/{batch}"));
    while began.elapsed() < LONGEST_WAIT {
        let summary: Value = server.get(&path).await?["summary"].take();
        let ended = ["ready", "failed"].map(|state| summary[state].as_u64().unwrap_or(0)).iter().sum::<u64>();
        if ended >= files as u64 {
            return Ok(());
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    eprintln!("some documents are still not through after {LONGEST_WAIT:?}");
    Ok(())
}
