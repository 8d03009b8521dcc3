//! Runs the questions as searches: as a user does, and by one half of the search alone.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use landfall_api::search::SearchMode;
use landfall_core::caller::TenantUser;
use landfall_server::config::{Config, Variables};
use landfall_server::content::codes::Cache;
use landfall_server::content::narrowing::Narrowing;
use landfall_server::content::search::{self, Meaning, search};
use landfall_server::stages::embed::Embedder;
use landfall_store::Db;
use serde_json::json;
use uuid::Uuid;

use super::questions::Question;
use super::score::{Location, SearchResult};
use super::server::{Server, USER, database_url, stage_settings};
use crate::intake::Intake;

/// The default number of hits of a search.
const HITS: usize = 10;

pub struct SearchRun {
    pub results: Vec<SearchResult>,
    pub milliseconds: Vec<f64>,
}

/// Texts that no document has to do with. All should find nothing.
const NONSENSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/nonsense.json");
/// A file for all that was found, with which the scores can be fitted.
const FEATURES: &str = "BENCH_FEATURES";
/// As many as a search returns.
const MAX_HITS: usize = 50;

/// The queries without an answer that found something, with their best scores, and how many queries there were.
pub async fn nonsense(server: &Server) -> anyhow::Result<(Vec<(String, f64)>, usize)> {
    let queries: Vec<String> = serde_json::from_str(&std::fs::read_to_string(NONSENSE)?)?;
    let mut found = Vec::new();
    for query in &queries {
        let hits = server.post("/api/v2/search", &json!({ "query": query })).await?["hits"].take();
        if let Some(score) = hits[0]["score"].as_f64() {
            found.push((query.clone(), score));
        }
    }
    Ok((found, queries.len()))
}

/// Writes down what was found for every query, right or wrong.
pub async fn write_features(server: &Server, questions: &[Question], intake: &Intake) -> anyhow::Result<()> {
    let Ok(path) = std::env::var(FEATURES) else { return Ok(()) };
    let nonsense: Vec<String> = serde_json::from_str(&std::fs::read_to_string(NONSENSE)?)?;
    let asked = questions.iter().map(|question| (&question.question, Some(question)));
    let mut lines = String::new();
    for (query, question) in asked.chain(nonsense.iter().map(|query| (query, None))) {
        let body = json!({ "query": query, "explain": true, "limit": MAX_HITS });
        let mut found = server.post("/api/v2/search", &body).await?;
        for hit in found["hits"].as_array_mut().into_iter().flatten() {
            let file: Uuid = hit["fileId"].as_str().context("a hit has a file")?.parse()?;
            let at = location(intake, file, hit["page"].as_i64())?;
            let is_right = question.is_some_and(|question| {
                let right_page =
                    question.pages.is_empty() || at.page.is_some_and(|page| question.pages.contains(&page));
                question.files.contains(&at.file) && right_page
            });
            hit["right"] = json!(is_right);
        }
        found["query"] = json!(query);
        found["hasAnswer"] = json!(question.is_some());
        lines.push_str(&format!("{found}\n"));
    }
    Ok(std::fs::write(path, lines)?)
}

pub async fn over_the_wire(
    server: &Server,
    questions: &[Question],
    intake: &Intake,
) -> anyhow::Result<SearchRun> {
    let mut run = SearchRun { results: Vec::new(), milliseconds: Vec::new() };
    for question in questions {
        let began = Instant::now();
        let found =
            server.post("/api/v2/search", &json!({ "query": question.question, "explain": true })).await?;
        run.milliseconds.push(began.elapsed().as_secs_f64() * 1e3);
        let mut locations = Vec::new();
        for hit in found["hits"].as_array().context("a response has hits")? {
            let file: Uuid = hit["fileId"].as_str().context("a hit has a file")?.parse()?;
            locations.push(location(intake, file, hit["page"].as_i64())?);
        }
        run.results.push(SearchResult::judge(question, locations));
    }
    Ok(run)
}

fn location(intake: &Intake, file: Uuid, page: Option<i64>) -> anyhow::Result<Location> {
    let file = intake.names.get(&file).context("a hit in a file that was not uploaded")?.clone();
    Ok(Location { file, page })
}

#[derive(Debug, Clone, Copy)]
pub enum Half {
    Words,
    Meaning,
}

/// Searches the index that the server left directly: through the API the halves cannot be separated.
pub struct Halves<'a> {
    db: Db,
    embedder: Embedder,
    codes: Cache,
    intake: &'a Intake,
}

impl<'a> Halves<'a> {
    pub async fn open(folder: &Path, intake: &'a Intake) -> anyhow::Result<Self> {
        let mut variables = Variables::default();
        for (name, value) in stage_settings() {
            variables.set(&name, value);
        }
        let embedder = Embedder::open(&Config::from_variables(variables)?.embed).await?;
        let codes = Cache::new(1 << 28);
        Ok(Self { db: Db::open(&database_url(folder), 2).await?, embedder, codes, intake })
    }

    pub async fn search_half(&self, half: Half, questions: &[Question]) -> anyhow::Result<Vec<SearchResult>> {
        let mut results = Vec::with_capacity(questions.len());
        for question in questions {
            let found =
                search(&mut self.db.read().await?, &self.half_question(half, &question.question).await?)
                    .await?;
            let locations: anyhow::Result<Vec<Location>> =
                found.hits.into_iter().map(|hit| location(self.intake, hit.file_id, hit.page)).collect();
            results.push(SearchResult::judge(question, locations?));
        }
        Ok(results)
    }

    /// The question for one half alone.
    async fn half_question(&self, half: Half, text: &str) -> anyhow::Result<search::Question> {
        let (mode, meaning) = match half {
            Half::Words => (SearchMode::Words, None),
            Half::Meaning => {
                let (model, vector) = self.embedder.embed_question(text.to_owned()).await?;
                let scale = self.embedder.scale().await;
                let codes = self.codes.clone();
                (SearchMode::Meaning, Some(Meaning { model, vector, scale, codes }))
            }
        };
        Ok(search::Question {
            owner: TenantUser::new(USER, USER),
            text: text.to_owned(),
            mode,
            meaning,
            limit: HITS,
            offset: 0,
            narrowing: Narrowing::default(),
            explain: false,
        })
    }

    pub async fn close(self) {
        self.db.close().await;
    }
}
