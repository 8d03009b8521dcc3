//! Uploads all documents and waits until each is searchable or failed.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use uuid::Uuid;

use super::corpus::{Corpus, Document};
use super::server::Server;

const AT_ONCE: usize = 4;
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A document that takes longer is reported, not waited for.
const TIMEOUT: Duration = Duration::from_mins(30);

#[derive(Default)]
pub struct Intake {
    /// Every accepted file, by its name in the questions.
    pub names: HashMap<Uuid, String>,
    pub ready: Vec<String>,
    /// The names of the other files, by error code or status.
    pub failed: BTreeMap<String, Vec<String>>,
}

pub async fn upload_all(server: &Server, corpus: &Corpus) -> anyhow::Result<Intake> {
    let batch =
        server.post("/api/v2/uploads/batches", &json!({ "fileCount": corpus.documents.len() })).await?;
    let batch = batch["batchId"].as_str().context("a batch has an id")?.to_owned();
    let uploads: Vec<(&Document, Result<Uuid, String>)> = stream::iter(&corpus.documents)
        .map(async |document| anyhow::Ok((document, upload(server, &batch, document).await?)))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let mut intake = Intake::default();
    for (document, upload) in uploads {
        match upload {
            Ok(id) => drop(intake.names.insert(id, document.name.clone())),
            Err(code) => intake.fail(&code, &document.name),
        }
    }
    wait(server, &batch, intake.names.len()).await?;
    let names: Vec<(Uuid, String)> = intake.names.iter().map(|(id, name)| (*id, name.clone())).collect();
    for (id, name) in names {
        let file = server.get(&format!("/api/v2/uploads/files/{id}")).await?;
        match file["status"].as_str() {
            Some("ready") => intake.ready.push(name),
            Some("failed") => intake.fail(file["error"]["code"].as_str().unwrap_or("without a code"), &name),
            other => intake.fail(&format!("still {}", other.unwrap_or("nowhere")), &name),
        }
    }
    Ok(intake)
}

impl Intake {
    fn fail(&mut self, why: &str, name: &str) {
        self.failed.entry(why.to_owned()).or_default().push(name.to_owned());
    }
}

/// Registers, uploads and confirms a file; returns its id, or the code of the refusal.
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
    while began.elapsed() < TIMEOUT {
        let summary: Value = server.get(&path).await?["summary"].take();
        let ended = ["ready", "failed"].map(|state| summary[state].as_u64().unwrap_or(0)).iter().sum::<u64>();
        if ended >= files as u64 {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    eprintln!("some documents are not finished after {TIMEOUT:?}");
    Ok(())
}
