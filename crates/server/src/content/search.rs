//! Finds the passages for a question: by their words and by their meaning. Each passage gets one score from both.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use super::chunks::{stored_headings, stored_places};
use super::codes;
use super::fusion::{Evidence, Scale, floor};
use super::index::{vector_bytes, vector_text};
use super::narrowing::Narrowing;
use super::passages::{Passage, merge_neighbours};
use super::snippet::snippet;
use super::terms::ChunkTerms;
use super::words::{self, WordsQuestion};
use landfall_api::search::{ExplainedTerm, Explanation, Hit, HitExplanation, MatchedBy, SearchMode};
use landfall_core::caller::TenantUser;
use landfall_models::wording::wording;
use landfall_store::Error;
use landfall_store::{Arg, Tx, args, places};

/// How many candidates each of the two searches may return. So many passages can be paged through.
pub const CANDIDATES: usize = 200;

#[derive(Debug, Clone)]
pub struct Question {
    pub owner: TenantUser,
    pub text: String,
    pub mode: SearchMode,
    /// Without it, only the words are searched.
    pub meaning: Option<Meaning>,
    pub limit: usize,
    pub offset: usize,
    pub narrowing: Narrowing,
    pub explain: bool,
}

/// The vector of a question, and the model that made it: it can only be compared with vectors of that model.
#[derive(Debug, Clone)]
pub struct Meaning {
    pub model: String,
    pub vector: Vec<f32>,
    pub scale: Scale,
    /// The codes that this process has in memory.
    pub codes: codes::Cache,
}

/// The passages that were found, best first.
#[derive(Debug, Default)]
pub struct Found {
    pub hits: Vec<Hit>,
    /// Whether there are more behind these.
    pub has_more: bool,
    pub explanation: Option<Explanation>,
}

#[derive(landfall_store::FromRow)]
struct ChunkRow {
    id: i64,
    file_id: Uuid,
    file_name: String,
    batch_id: Option<Uuid>,
    ordinal: i64,
    page: Option<i64>,
    heading: Option<String>,
    headings: Option<serde_json::Value>,
    places: Option<serde_json::Value>,
    char_start: i64,
    char_end: i64,
    text: String,
}

/// A chunk that fits, and why.
struct Ranked {
    chunk: i64,
    score: f64,
    evidence: Evidence,
    similarity: Option<f64>,
    terms: Option<ChunkTerms>,
}

pub async fn search(tx: &mut Tx, question: &Question) -> Result<Found, Error> {
    let Question { owner, text, narrowing, mode, .. } = question;
    // Also if only the meaning is compared: whether the files have any word of the question says whether it is one.
    let by_words = words::search(tx, owner, text, narrowing, CANDIDATES).await?;
    let floor = floor(*mode, !by_words.best.is_empty());
    let by_words = (*mode != SearchMode::Meaning).then_some(by_words);
    let meaning = question.meaning.as_ref().filter(|_| question.mode != SearchMode::Words);
    let by_meaning = match meaning {
        Some(meaning) => by_meaning(tx, question, meaning).await?,
        None => Vec::new(),
    };
    let (words, best) = by_words.map_or((None, Vec::new()), |found| (Some(found.question), found.best));
    let mut terms: BTreeMap<i64, ChunkTerms> = best.into_iter().collect();
    let mut distances: BTreeMap<i64, f64> = by_meaning.into_iter().collect();
    // What one of the two found is judged by the other as well.
    if let Some(meaning) = meaning {
        let missing: Vec<i64> =
            terms.keys().filter(|chunk| !distances.contains_key(chunk)).copied().collect();
        distances.extend(distances_of(tx, meaning, &missing).await?);
    }
    if words.as_ref().is_some_and(|words| !words.terms.is_empty()) {
        let missing: Vec<i64> =
            distances.keys().filter(|chunk| !terms.contains_key(chunk)).copied().collect();
        terms.extend(words::terms_of(tx, &missing).await?);
    }
    let scale = meaning.map_or_else(Scale::default, |meaning| meaning.scale);
    let ranked = rank((*mode, floor), words.as_ref(), terms, &distances, scale);
    let mut rows = fetch(tx, question, &ranked).await?;
    let passages = ranked.into_iter().filter_map(|ranked| {
        let row = rows.remove(&ranked.chunk)?;
        Some(Passage::new(row.file_id, row.ordinal, (row.char_start, row.char_end), (ranked, row)))
    });
    let merged = merge_neighbours(passages.collect());
    let has_more = merged.len() > question.offset + question.limit;
    let page = merged.into_iter().skip(question.offset).take(question.limit);
    let words = words.as_ref();
    let hits = page.map(|passage| hit(passage, words, question.explain)).collect();
    let explanation = question.explain.then(|| explanation((*mode, floor), words, meaning));
    Ok(Found { hits, has_more, explanation })
}

/// The candidates that are good enough, best first.
fn rank(
    (mode, floor): (SearchMode, f64),
    words: Option<&WordsQuestion>,
    mut terms: BTreeMap<i64, ChunkTerms>,
    distances: &BTreeMap<i64, f64>,
    scale: Scale,
) -> Vec<Ranked> {
    let mut chunks: Vec<i64> = terms.keys().chain(distances.keys()).copied().collect();
    chunks.sort_unstable();
    chunks.dedup();
    let mut ranked: Vec<Ranked> = chunks
        .into_iter()
        .map(|chunk| {
            let terms = terms.remove(&chunk);
            let by_words = words.zip(terms.as_ref());
            let similarity = distances.get(&chunk).map(|distance| 1.0 - distance);
            let evidence = Evidence {
                words: by_words.map_or(0.0, |(words, terms)| words.score(terms)),
                coverage: by_words.map_or(0.0, |(words, terms)| words.coverage(terms)),
                meaning: similarity.and_then(|similarity| scale.relative(similarity)),
            };
            Ranked { chunk, score: evidence.score(mode), evidence, similarity, terms }
        })
        .filter(|ranked| ranked.score >= floor)
        .collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
    ranked
}

fn hit(passage: Passage<(Ranked, ChunkRow)>, words: Option<&WordsQuestion>, explain: bool) -> Hit {
    let Passage { ordinals, characters, content: (ranked, row), .. } = passage;
    let by_words: Vec<&words::Weighed> = words
        .zip(ranked.terms.as_ref())
        .map(|(words, terms)| words.matched(terms).collect())
        .unwrap_or_default();
    let written: Vec<String> = by_words.iter().map(|weighed| weighed.term.written.clone()).collect();
    let mut matched = Vec::new();
    if !by_words.is_empty() {
        matched.push(MatchedBy::Words);
    }
    if ranked.evidence.meaning.is_some_and(|relative| relative >= CLOSE) {
        matched.push(MatchedBy::Meaning);
    }
    Hit {
        snippet: snippet(&wording(&row.text), &written),
        file_id: row.file_id,
        file_name: row.file_name,
        batch_id: row.batch_id,
        ordinal: row.ordinal,
        first_ordinal: ordinals.0,
        last_ordinal: ordinals.1,
        page: row.page,
        headings: stored_headings(row.headings, row.heading.as_ref()),
        heading: row.heading,
        places: stored_places(row.places),
        char_start: characters.0,
        char_end: characters.1,
        score: ranked.score,
        matched,
        explanation: explain.then_some(HitExplanation {
            words: ranked.evidence.words,
            coverage: ranked.evidence.coverage,
            terms: written,
            similarity: ranked.similarity,
            meaning: ranked.evidence.meaning,
        }),
    }
}

/// From here on the scale of a model, a passage counts as found by its meaning.
const CLOSE: f64 = 0.4;

fn explanation(
    (mode, floor): (SearchMode, f64),
    words: Option<&WordsQuestion>,
    meaning: Option<&Meaning>,
) -> Explanation {
    let terms = words.map(|words| words.terms.as_slice()).unwrap_or_default();
    Explanation {
        mode,
        floor,
        terms: terms
            .iter()
            .map(|weighed| ExplainedTerm {
                term: weighed.term.written.clone(),
                chunks: weighed.chunks.round(),
                weight: weighed.weight,
            })
            .collect(),
        model: meaning.map(|meaning| meaning.model.clone()),
        unrelated: meaning.map(|meaning| meaning.scale.unrelated),
        related: meaning.map(|meaning| meaning.scale.related),
    }
}

/// The chunks with the nearest vectors, each with the cosine distance, nearest first.
async fn by_meaning(tx: &mut Tx, question: &Question, meaning: &Meaning) -> Result<Vec<(i64, f64)>, Error> {
    let narrow = |sql: &str, arguments: Vec<Arg>| narrow(sql, question, arguments);
    let narrow: Option<codes::Narrow<'_>> = if question.narrowing.is_empty() { None } else { Some(&narrow) };
    let scope = codes::Scope::new(&question.owner, &meaning.model);
    codes::nearest(tx, &meaning.codes, &scope, &meaning.vector, narrow, CANDIDATES).await
}

/// The expression for the distance of a vector in the index from that of a question, which is the argument `$1`.
fn distance_to(tx: &Tx, meaning: &Meaning) -> (&'static str, Arg) {
    if tx.is_postgres() {
        ("landfall_distance(i.embedding, landfall_embedding($1))", vector_text(&meaning.vector).into())
    } else {
        ("vec_distance_cosine(i.embedding, $1)", vector_bytes(&meaning.vector).into())
    }
}

/// The distances of these chunks, as far as they have vectors of the same model.
async fn distances_of(tx: &mut Tx, meaning: &Meaning, chunks: &[i64]) -> Result<Vec<(i64, f64)>, Error> {
    if chunks.is_empty() {
        return Ok(Vec::new());
    }
    let (distance, vector) = distance_to(tx, meaning);
    let mut arguments = vec![vector, Arg::from(&meaning.model)];
    let places = places(chunks.iter().copied(), &mut arguments);
    let sql = format!(
        "SELECT i.chunk_id, {distance} FROM chunk_index i WHERE i.chunk_id IN ({places}) AND i.model = $2"
    );
    tx.rows(sql, arguments).await
}

/// Adds the conditions on the files.
fn narrow(sql: &str, question: &Question, mut arguments: Vec<Arg>) -> (String, Vec<Arg>) {
    let narrowed = question.narrowing.condition(&question.owner, &mut arguments);
    (sql.replace("{narrowed}", &narrowed), arguments)
}

async fn fetch(tx: &mut Tx, question: &Question, ranked: &[Ranked]) -> Result<HashMap<i64, ChunkRow>, Error> {
    if ranked.is_empty() {
        return Ok(HashMap::new());
    }
    let mut arguments = args![&question.owner.tenant, &question.owner.user];
    let places = places(ranked.iter().map(|ranked| ranked.chunk), &mut arguments);
    // Checks the owner and the state again: the candidates may be a moment old.
    let sql = format!(
        "SELECT c.id, c.file_id, f.file_name, f.batch_id, c.ordinal, c.page, c.heading, c.headings, c.places,
             c.char_start, c.char_end, c.text
         FROM chunks c JOIN files f ON f.id = c.file_id
         WHERE f.tenant_id = $1 AND f.user_id = $2 AND f.status = 'ready' AND c.id IN ({places})"
    );
    let found: Vec<ChunkRow> = tx.rows(sql, arguments).await?;
    Ok(found.into_iter().map(|chunk| (chunk.id, chunk)).collect())
}
