//! Finds the chunks for a question: by their words and by their meaning. The two rankings are fused.

use std::collections::HashMap;

use uuid::Uuid;

use super::index::{owner_query, vector_bytes, vector_text};
use super::snippet::snippet;
use super::terms::{Term, terms};
use landfall_api::search::{Hit, MatchedBy};
use landfall_core::caller::TenantUser;
use landfall_store::Error;
use landfall_store::{Arg, Tx, args};

/// How many candidates each of the two searches may return.
const CANDIDATES: i64 = 60;
/// The constant of reciprocal rank fusion: the larger it is, the less the first ranks differ. With the usual 60, a
/// chunk that both searches rank last would come before the first result of one search; `bench/documents` measures
/// it.
const FUSION: f64 = 10.0;

#[derive(Debug, Clone)]
pub struct Question {
    pub owner: TenantUser,
    pub text: String,
    /// Without it, only the words are searched.
    pub meaning: Option<Meaning>,
    pub limit: usize,
    pub batch: Option<Uuid>,
    pub file: Option<Uuid>,
}

/// The vector of a question, and the model that made it: it can only be compared with vectors of that model.
#[derive(Debug, Clone)]
pub struct Meaning {
    pub model: String,
    pub vector: Vec<f32>,
}

#[derive(sqlx::FromRow)]
struct ChunkRow {
    id: i64,
    file_id: Uuid,
    file_name: String,
    batch_id: Option<Uuid>,
    ordinal: i64,
    page: Option<i64>,
    heading: Option<String>,
    char_start: i64,
    char_end: i64,
    text: String,
}

pub async fn search(tx: &mut Tx, question: &Question) -> Result<Vec<Hit>, Error> {
    let terms = terms(&question.text);
    let by_words = if terms.is_empty() { Vec::new() } else { by_words(tx, question, &terms).await? };
    let by_meaning = match &question.meaning {
        Some(meaning) => by_meaning(tx, question, meaning).await?,
        None => Vec::new(),
    };
    let as_written: Vec<String> = terms.iter().map(Term::as_written).collect();
    let ranked = fuse(&by_words, &by_meaning, question.limit);
    let mut found = fetch(tx, question, &ranked).await?;
    Ok(ranked
        .into_iter()
        .filter_map(|ranked| {
            let chunk = found.remove(&ranked.chunk)?;
            Some(Hit {
                snippet: snippet(&chunk.text, &as_written),
                file_id: chunk.file_id,
                file_name: chunk.file_name,
                batch_id: chunk.batch_id,
                ordinal: chunk.ordinal,
                page: chunk.page,
                heading: chunk.heading,
                char_start: chunk.char_start,
                char_end: chunk.char_end,
                score: ranked.score,
                matched: ranked.matched,
            })
        })
        .collect())
}

/// In SQLite, CROSS JOIN fixes the join order. Otherwise it would start with the user's chunks and search the words
/// once for each of them.
const WORDS_ON_SQLITE: &str = "SELECT i.chunk_id FROM chunk_words
    CROSS JOIN chunk_index i ON i.chunk_id = chunk_words.rowid CROSS JOIN files f ON f.id = i.file_id
    WHERE chunk_words MATCH $1 AND i.tenant_id = $2 AND i.user_id = $3 {narrowed}
    ORDER BY bm25(chunk_words, 1.0, 0.0), i.chunk_id LIMIT $4";

/// Chunks with any of the words, those with more and rarer ones first.
async fn by_words(tx: &mut Tx, question: &Question, terms: &[Term]) -> Result<Vec<i64>, Error> {
    let (sql, query) = if tx.is_postgres() {
        (
            "SELECT i.chunk_id FROM chunk_index i JOIN files f ON f.id = i.file_id
             WHERE i.words @@ to_tsquery('english', $1) AND i.tenant_id = $2 AND i.user_id = $3 {narrowed}
             ORDER BY ts_rank_cd(i.words, to_tsquery('english', $1), 1) DESC, i.chunk_id LIMIT $4",
            terms.iter().map(Term::for_postgres).collect::<Vec<_>>().join(" | "),
        )
    } else {
        let words: Vec<String> = terms.iter().map(Term::for_sqlite).collect();
        (
            WORDS_ON_SQLITE,
            format!("owner : ({}) AND text : ({})", owner_query(&question.owner), words.join(" OR ")),
        )
    };
    let (sql, arguments) =
        narrow(sql, question, args![query, &question.owner.tenant, &question.owner.user, CANDIDATES]);
    Ok(tx.rows::<(i64,)>(sql, arguments).await?.into_iter().map(|(id,)| id).collect())
}

/// The chunks with the nearest vectors.
async fn by_meaning(tx: &mut Tx, question: &Question, meaning: &Meaning) -> Result<Vec<i64>, Error> {
    let (distance, vector) = if tx.is_postgres() {
        ("landfall_distance(i.embedding, landfall_embedding($1))", Arg::from(vector_text(&meaning.vector)))
    } else {
        ("vec_distance_cosine(i.embedding, $1)", Arg::from(vector_bytes(&meaning.vector)))
    };
    let sql = format!(
        "SELECT i.chunk_id FROM chunk_index i JOIN files f ON f.id = i.file_id
         WHERE i.tenant_id = $2 AND i.user_id = $3 AND i.model = $5 {{narrowed}}
         ORDER BY {distance}, i.chunk_id LIMIT $4"
    );
    let mut arguments = vec![vector];
    arguments.extend(args![&question.owner.tenant, &question.owner.user, CANDIDATES, &meaning.model]);
    let (sql, arguments) = narrow(&sql, question, arguments);
    Ok(tx.rows::<(i64,)>(sql, arguments).await?.into_iter().map(|(id,)| id).collect())
}

/// Adds the conditions on the batch and the file.
fn narrow(sql: &str, question: &Question, mut arguments: Vec<Arg>) -> (String, Vec<Arg>) {
    let mut narrowed = String::new();
    for (column, id) in [("f.batch_id", question.batch), ("f.id", question.file)] {
        if let Some(id) = id {
            arguments.push(id.into());
            narrowed.push_str(&format!(" AND {column} = ${}", arguments.len()));
        }
    }
    (sql.replace("{narrowed}", &narrowed), arguments)
}

struct Ranked {
    chunk: i64,
    score: f64,
    matched: Vec<MatchedBy>,
}

/// Reciprocal rank fusion: a chunk that both searches rank high comes before one that only one search does.
fn fuse(by_words: &[i64], by_meaning: &[i64], limit: usize) -> Vec<Ranked> {
    let mut scores: HashMap<i64, Ranked> = HashMap::new();
    for (search, chunks) in [(MatchedBy::Words, by_words), (MatchedBy::Meaning, by_meaning)] {
        for (rank, chunk) in chunks.iter().enumerate() {
            #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
            let score = 1.0 / (FUSION + rank as f64 + 1.0);
            let entry = scores.entry(*chunk).or_insert_with(|| Ranked {
                chunk: *chunk,
                score: 0.0,
                matched: Vec::new(),
            });
            entry.score += score;
            entry.matched.push(search);
        }
    }
    let mut ranked: Vec<Ranked> = scores.into_values().collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
    ranked.truncate(limit);
    ranked
}

async fn fetch(tx: &mut Tx, question: &Question, ranked: &[Ranked]) -> Result<HashMap<i64, ChunkRow>, Error> {
    if ranked.is_empty() {
        return Ok(HashMap::new());
    }
    let mut arguments = args![&question.owner.tenant, &question.owner.user];
    let mut places = Vec::with_capacity(ranked.len());
    for ranked in ranked {
        arguments.push(ranked.chunk.into());
        places.push(format!("${}", arguments.len()));
    }
    // Checks the owner and the state again: the candidates may be a moment old.
    let sql = format!(
        "SELECT c.id, c.file_id, f.file_name, f.batch_id, c.ordinal, c.page, c.heading, c.char_start, c.char_end, c.text
         FROM chunks c JOIN files f ON f.id = c.file_id
         WHERE f.tenant_id = $1 AND f.user_id = $2 AND f.status = 'ready' AND c.id IN ({})",
        places.join(", ")
    );
    let found: Vec<ChunkRow> = tx.rows(sql, arguments).await?;
    Ok(found.into_iter().map(|chunk| (chunk.id, chunk)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_searches_find_comes_first() {
        let ranked = fuse(&[1, 2, 3], &[4, 3, 5], 10);
        let order: Vec<i64> = ranked.iter().map(|one| one.chunk).collect();
        assert_eq!(order, [3, 1, 4, 2, 5]);
        assert_eq!(ranked[0].matched, [MatchedBy::Words, MatchedBy::Meaning]);
    }

    #[test]
    fn the_first_of_one_search_comes_before_the_last_of_both() {
        let (words, meaning): (Vec<i64>, Vec<i64>) =
            ((1..CANDIDATES).collect(), (101..100 + CANDIDATES).collect());
        let last_of_both = 1_000;
        let ranked = fuse(&[words, vec![last_of_both]].concat(), &[meaning, vec![last_of_both]].concat(), 10);
        let order: Vec<i64> = ranked.iter().take(2).map(|one| one.chunk).collect();
        assert_eq!(order, [1, 101]);
    }

    #[tokio::test]
    async fn the_words_are_searched_once_and_not_for_every_chunk() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/landfall.db", folder.path().display());
        let db = landfall_store::Db::open(&url, 4).await.unwrap();
        crate::content::index::install(&db).await.unwrap();
        let (file, batch) = (Some(Uuid::nil()), Some(Uuid::nil()));
        for (file, batch) in [(None, None), (file, None), (None, batch)] {
            let owner = TenantUser::new("acme", "alice");
            let question = Question { owner, text: String::new(), meaning: None, batch, file, limit: 10 };
            let (sql, arguments) =
                narrow(WORDS_ON_SQLITE, &question, args!["text : tide", "acme", "alice", 10]);
            let sql = format!("EXPLAIN QUERY PLAN {sql}");
            let plan: Vec<(i64, i64, i64, String)> =
                db.read().await.unwrap().rows(sql, arguments).await.unwrap();
            assert!(plan[0].3.starts_with("SCAN chunk_words VIRTUAL TABLE"), "{plan:?}");
        }
    }
}
