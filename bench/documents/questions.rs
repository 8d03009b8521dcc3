//! Questions about the documents, and where their answers are.

use anyhow::Context;
use serde::Deserialize;

use super::corpus::Corpus;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub question: String,
    /// Explains the question to a reader who doubts it.
    #[serde(rename = "answer")]
    _answer: String,
    /// More than one if several documents say the same.
    pub files: Vec<String>,
    /// Empty if the format has no pages.
    pub pages: Vec<i64>,
    /// Whether it uses other words than the document does.
    pub paraphrase: bool,
}

pub fn about(corpus: &Corpus) -> anyhow::Result<Vec<Question>> {
    let questions: Vec<Question> =
        serde_json::from_str(include_str!("../questions.json")).context("bench/questions.json")?;
    for question in &questions {
        anyhow::ensure!(!question.files.is_empty(), "nothing answers: {}", question.question);
        for file in &question.files {
            anyhow::ensure!(corpus.has(file), "{file} is not in the corpus; asked: {}", question.question);
        }
    }
    Ok(questions)
}
