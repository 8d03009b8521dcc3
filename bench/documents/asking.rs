//! Asks the questions: as a user does, and by one half of the search alone.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use landfall_server::config::{Config, Variables};
use landfall_server::content::search::{self, Meaning, search};
use landfall_server::stages::embed::Embedder;
use landfall_store::Db;
use serde_json::json;
use uuid::Uuid;

use super::questions::Question;
use super::score::{Answer, Place};
use super::server::{Server, USER, database_url, settings_of_the_stages};
use crate::intake::Taken;

/// As many hits as a search answers when nobody says how many.
const HITS: usize = 10;

pub struct Asked {
    pub answers: Vec<Answer>,
    pub milliseconds: Vec<f64>,
}

pub async fn over_the_wire(server: &Server, questions: &[Question], taken: &Taken) -> anyhow::Result<Asked> {
    let mut asked = Asked { answers: Vec::new(), milliseconds: Vec::new() };
    for question in questions {
        let began = Instant::now();
        let found = server.post("/api/v2/search", &json!({ "query": question.question })).await?;
        asked.milliseconds.push(began.elapsed().as_secs_f64() * 1e3);
        let mut places = Vec::new();
        for hit in found["hits"].as_array().context("an answer has hits")? {
            let file: Uuid = hit["fileId"].as_str().context("a hit has a file")?.parse()?;
            places.push(place(taken, file, hit["page"].as_i64())?);
        }
        asked.answers.push(Answer::judge(question, places));
    }
    Ok(asked)
}

fn place(taken: &Taken, file: Uuid, page: Option<i64>) -> anyhow::Result<Place> {
    let file = taken.names.get(&file).context("a hit in a file that nobody uploaded")?.clone();
    Ok(Place { file, page })
}

#[derive(Debug, Clone, Copy)]
pub enum Half {
    Words,
    Meaning,
}

/// The index that the server left, asked directly: on the wire the halves cannot be told apart.
pub struct Halves<'a> {
    db: Db,
    embedder: Embedder,
    taken: &'a Taken,
}

impl<'a> Halves<'a> {
    pub async fn open(folder: &Path, taken: &'a Taken) -> anyhow::Result<Self> {
        let mut variables = Variables::default();
        for (name, value) in settings_of_the_stages() {
            variables.set(&name, value);
        }
        let embedder = Embedder::open(&Config::from_variables(variables)?.embed).await?;
        Ok(Self { db: Db::open(&database_url(folder), 2).await?, embedder, taken })
    }

    pub async fn ask(&self, half: Half, questions: &[Question]) -> anyhow::Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(questions.len());
        for question in questions {
            let hits = search(&mut self.db.read().await?, &self.put(half, &question.question).await?).await?;
            let places: anyhow::Result<Vec<Place>> =
                hits.into_iter().map(|hit| place(self.taken, hit.file_id, hit.page)).collect();
            answers.push(Answer::judge(question, places?));
        }
        Ok(answers)
    }

    /// The question with one half of it taken away.
    async fn put(&self, half: Half, text: &str) -> anyhow::Result<search::Question> {
        let (text, meaning) = match half {
            Half::Words => (text.to_owned(), None),
            Half::Meaning => {
                let (model, vector) = self.embedder.embed_question(text.to_owned()).await?;
                (String::new(), Some(Meaning { model, vector }))
            }
        };
        Ok(search::Question { user: USER.to_owned(), text, meaning, limit: HITS, batch: None, file: None })
    }

    pub async fn close(self) {
        self.db.close().await;
    }
}
