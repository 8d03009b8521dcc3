//! Runs the questions as searches: as a user does, and by one half of the search alone.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use landfall_core::caller::TenantUser;
use landfall_server::config::{Config, Variables};
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

pub async fn over_the_wire(
    server: &Server,
    questions: &[Question],
    intake: &Intake,
) -> anyhow::Result<SearchRun> {
    let mut run = SearchRun { results: Vec::new(), milliseconds: Vec::new() };
    for question in questions {
        let began = Instant::now();
        let found = server.post("/api/v2/search", &json!({ "query": question.question })).await?;
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
    intake: &'a Intake,
}

impl<'a> Halves<'a> {
    pub async fn open(folder: &Path, intake: &'a Intake) -> anyhow::Result<Self> {
        let mut variables = Variables::default();
        for (name, value) in stage_settings() {
            variables.set(&name, value);
        }
        let embedder = Embedder::open(&Config::from_variables(variables)?.embed).await?;
        Ok(Self { db: Db::open(&database_url(folder), 2).await?, embedder, intake })
    }

    pub async fn search_half(&self, half: Half, questions: &[Question]) -> anyhow::Result<Vec<SearchResult>> {
        let mut results = Vec::with_capacity(questions.len());
        for question in questions {
            let hits =
                search(&mut self.db.read().await?, &self.half_question(half, &question.question).await?)
                    .await?;
            let locations: anyhow::Result<Vec<Location>> =
                hits.into_iter().map(|hit| location(self.intake, hit.file_id, hit.page)).collect();
            results.push(SearchResult::judge(question, locations?));
        }
        Ok(results)
    }

    /// The question without the other half.
    async fn half_question(&self, half: Half, text: &str) -> anyhow::Result<search::Question> {
        let (text, meaning) = match half {
            Half::Words => (text.to_owned(), None),
            Half::Meaning => {
                let (model, vector) = self.embedder.embed_question(text.to_owned()).await?;
                (String::new(), Some(Meaning { model, vector }))
            }
        };
        Ok(search::Question {
            owner: TenantUser::new(USER, USER),
            text,
            meaning,
            limit: HITS,
            batch: None,
            file: None,
        })
    }

    pub async fn close(self) {
        self.db.close().await;
    }
}
