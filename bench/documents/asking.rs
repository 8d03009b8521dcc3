//! Asks the questions: as a user does, and by one half of the search alone.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use landfall::db::Db;
use landfall::index::search::{self, search};
use landfall::stages::embed::Embedder;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::intake::Taken;
use super::questions::Question;
use super::score::{Answer, Place};
use super::server::{Server, USER, database_url};

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
        Ok(Self { db: Db::open(&database_url(folder), 2).await?, embedder: Embedder::new()?, taken })
    }

    pub async fn ask(&self, half: Half, questions: &[Question]) -> anyhow::Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(questions.len());
        for question in questions {
            let hits = search(&mut self.db.read().await?, &self.put(half, &question.question)?).await?;
            let places: anyhow::Result<Vec<Place>> =
                hits.into_iter().map(|hit| place(self.taken, hit.file_id, hit.page)).collect();
            answers.push(Answer::judge(question, places?));
        }
        Ok(answers)
    }

    /// The question with one half of it taken away.
    fn put(&self, half: Half, text: &str) -> anyhow::Result<search::Question> {
        let (text, vector, model) = match half {
            // No vector is of a model without a name, so none is compared.
            Half::Words => (text.to_owned(), Vec::new(), String::new()),
            Half::Meaning => {
                let vector =
                    self.embedder.embed(&[text.to_owned()], &CancellationToken::new())?.swap_remove(0);
                (String::new(), vector, self.embedder.model().to_owned())
            }
        };
        Ok(search::Question {
            user: USER.to_owned(),
            text,
            vector,
            model,
            limit: HITS,
            batch: None,
            file: None,
        })
    }

    pub async fn close(self) {
        self.db.close().await;
    }
}
