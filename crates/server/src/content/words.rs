//! The table `chunk_terms`: the terms of every chunk in the index, and the search by them.
//!
//! Both databases hold the same terms and match them; which chunks are read, and how they are ranked, is decided here. So
//! both return the same. Every statement reads a bounded number of rows:
//!
//! 1. A sample of the owner's chunks says how many chunks there are, how long they are, and how common each term is.
//! 2. Chunks with any of the rare terms are read, as many terms as fit the bound.
//! 3. Chunks with all of the common terms are read; if there are few, those with all but the most common.
//! 4. What was read is ranked by BM25 over all terms.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::language::Language;
use super::narrowing::Narrowing;
use super::terms::{self, ChunkTerms, OwnerCode, Term};
use landfall_core::caller::TenantUser;
use landfall_store::{Arg, Error, Rows, Tx, args, places};

/// The form of the terms. Files with terms of another form are indexed again.
pub const FORMAT: i64 = 1;

pub(super) const SQLITE: &str = "
    CREATE TABLE chunk_terms (
        chunk_id INTEGER PRIMARY KEY,
        file_id  UUID NOT NULL,
        owner    BIGINT NOT NULL,
        language BIGINT NOT NULL,
        -- A number without relation to the chunk: the chunks with the smallest are a random sample.
        sample   BIGINT NOT NULL,
        terms    BLOB NOT NULL
    );
    CREATE INDEX chunk_terms_by_file ON chunk_terms (file_id);
    CREATE INDEX chunk_terms_by_sample ON chunk_terms (owner, sample);
    CREATE INDEX chunk_terms_by_language ON chunk_terms (owner, language);
    -- Which chunks have a term. The terms are numbers in letters and digits, each a word.
    CREATE VIRTUAL TABLE chunk_postings USING fts5(
        terms, content='', contentless_delete=1, detail=none, tokenize='ascii');
    DROP TABLE IF EXISTS chunk_words;
    ALTER TABLE indexed_files ADD COLUMN terms_format BIGINT NOT NULL DEFAULT 0;
    CREATE INDEX indexed_files_by_format ON indexed_files (terms_format, file_id);";

pub(super) const POSTGRES: &str = "
    CREATE TABLE chunk_terms (
        chunk_id BIGINT PRIMARY KEY,
        file_id  UUID NOT NULL,
        owner    BIGINT NOT NULL,
        language BIGINT NOT NULL,
        sample   BIGINT NOT NULL,
        terms    BYTEA NOT NULL,
        postings INTEGER[] NOT NULL
    );
    CREATE INDEX chunk_terms_by_file ON chunk_terms (file_id);
    CREATE INDEX chunk_terms_by_sample ON chunk_terms (owner, sample);
    CREATE INDEX chunk_terms_by_language ON chunk_terms (owner, language);
    -- A search reads all entries that are not merged yet, so there may not be many.
    CREATE INDEX chunk_terms_by_term ON chunk_terms USING GIN (postings) WITH (gin_pending_list_limit = 512);
    ALTER TABLE chunk_index DROP COLUMN words;
    ALTER TABLE indexed_files ADD COLUMN terms_format BIGINT NOT NULL DEFAULT 0;
    CREATE INDEX indexed_files_by_format ON indexed_files (terms_format, file_id);";

/// The range of the numbers that choose a sample.
const SAMPLE_RANGE: i64 = 1 << 40;
/// How many chunks the sample has.
const SAMPLE: usize = 512;
/// How many chunks with rare terms are read.
const MAX_RARE_ROWS: usize = 3_000;
/// How many chunks with common terms are read, and with how many a search ends.
const MAX_COMMON_ROWS: usize = 1_000;
const ENOUGH: usize = 200;
/// If so large a part of the chunks has all terms, the best of a larger sample are returned: reading that is faster than
/// collecting all chunks with the terms.
const MANY: f64 = 0.2;
const MANY_ROWS: usize = 2_500;
/// How many common terms are searched together. More do not make the result smaller.
const MAX_COMMON_TERMS: usize = 8;

/// The parameters of BM25: how soon more of a term counts no more, and how much the length of a chunk counts.
const K1: f64 = 1.2;
const B: f64 = 0.5;

/// Adds the terms of these chunks of a file.
pub(super) async fn add(
    tx: &mut Tx,
    file: Uuid,
    owner: &TenantUser,
    chunks: &[(i64, String)],
) -> Result<(), Error> {
    let language = Language::of_document(chunks.iter().map(|(_, text)| text.as_str()));
    let code = OwnerCode::of(owner);
    let (mut rows, mut postings) = (Rows::default(), Rows::default());
    for (id, text) in chunks {
        let terms = ChunkTerms::of(text, language, code);
        let mut row =
            args![*id, file, code.number(), language.number(), sample_number(*id), terms.to_bytes()];
        if tx.is_postgres() {
            row.push(array(terms.hashes()).into());
        } else {
            let words: Vec<String> = terms.hashes().map(word).collect();
            postings.push(args![*id, words.join(" ")]);
        }
        rows.push(row);
    }
    if !tx.is_postgres() {
        tx.insert("chunk_terms (chunk_id, file_id, owner, language, sample, terms)", rows, "").await?;
        return tx.insert("chunk_postings (rowid, terms)", postings, "").await;
    }
    for part in rows.batches() {
        let (values, args) = part.into_values(tx);
        let sql = format!(
            "INSERT INTO chunk_terms (chunk_id, file_id, owner, language, sample, terms, postings)
             SELECT column1, column2, column3, column4, column5, column6, CAST(column7 AS INTEGER[])
             FROM ({values}) AS v WHERE column1 IS NOT NULL"
        );
        tx.execute(sql, args).await?;
    }
    Ok(())
}

/// Removes the terms of a file.
pub(super) async fn remove(tx: &mut Tx, file: Uuid) -> Result<(), Error> {
    if !tx.is_postgres() {
        tx.execute(
            "DELETE FROM chunk_postings WHERE rowid IN (SELECT chunk_id FROM chunk_terms WHERE file_id = $1)",
            args![file],
        )
        .await?;
    }
    tx.execute("DELETE FROM chunk_terms WHERE file_id = $1", args![file]).await.map(drop)
}

/// Removes the terms of a chunk.
pub(super) async fn remove_chunk(tx: &mut Tx, chunk: i64) -> Result<(), Error> {
    if !tx.is_postgres() {
        tx.execute("DELETE FROM chunk_postings WHERE rowid = $1", args![chunk]).await?;
    }
    tx.execute("DELETE FROM chunk_terms WHERE chunk_id = $1", args![chunk]).await.map(drop)
}

/// The term as a word for FTS5: letters and digits.
fn word(hash: u32) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    (0..7).map(|place| char::from(DIGITS[(hash >> (place * 5) & 31) as usize])).collect()
}

/// An array in the text form of PostgreSQL, whose integers have a sign.
fn array(hashes: impl Iterator<Item = u32>) -> String {
    let numbers: Vec<String> = hashes.map(|hash| hash.cast_signed().to_string()).collect();
    format!("{{{}}}", numbers.join(","))
}

/// Spreads the ids of chunks over the range, the same on every database.
fn sample_number(chunk: i64) -> i64 {
    let mut mixed = chunk.cast_unsigned().wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 24).cast_signed()
}

/// What a sample tells about an owner's chunks.
struct Statistics {
    /// How many chunks there are.
    chunks: f64,
    /// How many words a chunk has.
    length: f64,
    sample: Vec<ChunkTerms>,
}

impl Statistics {
    /// The part of the chunks that have one of each of these groups of terms. It is not known of few chunks.
    fn share(&self, all_of: &[Vec<u32>]) -> f64 {
        let found = self.sample.iter().filter(|chunk| chunk.has_all(all_of)).count();
        if self.sample.len() < SAMPLE { 0.0 } else { number(found) / number(SAMPLE) }
    }

    async fn load(tx: &mut Tx, owner: OwnerCode) -> Result<Self, Error> {
        let rows: Vec<(i64, Vec<u8>)> = tx
            .rows(
                "SELECT sample, terms FROM chunk_terms WHERE owner = $1 ORDER BY sample LIMIT $2",
                args![owner.number(), SAMPLE],
            )
            .await?;
        let last = rows.last().map_or(1, |(sample, _)| (*sample).max(1));
        let sample: Vec<ChunkTerms> = rows.iter().map(|(_, terms)| ChunkTerms::from_bytes(terms)).collect();
        // The more chunks there are, the closer together are their numbers.
        let chunks = if sample.len() < SAMPLE {
            number(sample.len())
        } else {
            number(SAMPLE - 1) / part_of_range(last)
        };
        let words: usize = sample.iter().map(|chunk| usize::from(chunk.length)).sum();
        let length = (number(words) / number(sample.len().max(1))).max(1.0);
        Ok(Self { chunks, length, sample })
    }

    /// In how many chunks a term is, as the sample says. A term that the sample lacks may still be in a few.
    fn expected(&self, term: &Term) -> f64 {
        let found = self.sample.iter().filter(|chunk| chunk.count(&term.hashes) > 0).count();
        if self.sample.len() < SAMPLE {
            return number(found);
        }
        (number(found) / number(SAMPLE)).max(0.5 / number(SAMPLE)) * self.chunks
    }
}

/// Which part of the range is below this number.
#[expect(clippy::cast_precision_loss, reason = "the range has 40 bits")]
fn part_of_range(sample: i64) -> f64 {
    sample as f64 / SAMPLE_RANGE as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts of chunks and terms are small")]
const fn number(count: usize) -> f64 {
    count as f64
}

/// A term of a question in the scope of the search.
#[derive(Debug, Clone)]
pub struct Weighed {
    pub term: Term,
    /// In how many chunks it is.
    pub chunks: f64,
    /// The rarer it is, the more it counts.
    pub weight: f64,
}

/// A question by its words: what ranks any chunk.
pub struct WordsQuestion {
    pub terms: Vec<Weighed>,
    length: f64,
}

impl WordsQuestion {
    /// How well a chunk fits: from 0, without any term, to about 1, with all of them.
    pub fn score(&self, chunk: &ChunkTerms) -> f64 {
        let norm = K1 * (1.0 - B + B * f64::from(chunk.length) / self.length);
        let all: f64 = self.terms.iter().map(|term| term.weight).sum();
        let found: f64 = self
            .terms
            .iter()
            .map(|weighed| {
                let count = f64::from(chunk.count(&weighed.term.hashes));
                weighed.weight * count * (K1 + 1.0) / (count + norm)
            })
            .sum();
        if all > 0.0 { found / all } else { 0.0 }
    }

    /// The share of the terms that a chunk has, by their weights.
    pub fn coverage(&self, chunk: &ChunkTerms) -> f64 {
        let all: f64 = self.terms.iter().map(|term| term.weight).sum();
        let found: f64 = self.matched(chunk).map(|term| term.weight).sum();
        if all > 0.0 { found / all } else { 0.0 }
    }

    pub fn matched(&self, chunk: &ChunkTerms) -> impl Iterator<Item = &Weighed> {
        self.terms.iter().filter(|weighed| chunk.count(&weighed.term.hashes) > 0)
    }
}

/// The chunks that fit a question by their words, best first, and what ranks any other chunk.
pub struct WordsResult {
    pub question: WordsQuestion,
    pub best: Vec<(i64, ChunkTerms)>,
}

pub async fn search(
    tx: &mut Tx,
    owner: &TenantUser,
    text: &str,
    narrowing: &Narrowing,
    limit: usize,
) -> Result<WordsResult, Error> {
    let code = OwnerCode::of(owner);
    let languages = languages(tx, code).await?;
    let terms = if languages.is_empty() { Vec::new() } else { terms::of_question(text, &languages, code) };
    if terms.is_empty() {
        let question = WordsQuestion { terms: Vec::new(), length: 1.0 };
        return Ok(WordsResult { question, best: Vec::new() });
    }
    let statistics = Statistics::load(tx, code).await?;
    let mut terms: Vec<(f64, Term)> =
        terms.into_iter().map(|term| (statistics.expected(&term), term)).collect();
    terms.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let scope = Scope { owner, code, narrowing };
    let (found, exact) = scope.candidates(tx, &terms, &statistics).await?;
    let weighed = terms.into_iter().enumerate().map(|(place, (expected, term))| {
        // All chunks with a rare term were read, unless only some files are searched.
        let read = || number(found.values().filter(|chunk| chunk.count(&term.hashes) > 0).count());
        let chunks = if place < exact { read() } else { expected.min(statistics.chunks) };
        let others = (statistics.chunks - chunks).max(0.0);
        Weighed { term, chunks, weight: (1.0 + (others + 0.5) / (chunks + 0.5)).ln() }
    });
    let question = WordsQuestion { terms: weighed.collect(), length: statistics.length };
    let mut best: Vec<(f64, i64, ChunkTerms)> =
        found.into_iter().map(|(id, chunk)| (question.score(&chunk), id, chunk)).collect();
    best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    best.truncate(limit);
    Ok(WordsResult { question, best: best.into_iter().map(|(_, id, chunk)| (id, chunk)).collect() })
}

/// The languages of an owner's chunks, each by one look into the index.
async fn languages(tx: &mut Tx, owner: OwnerCode) -> Result<Vec<Language>, Error> {
    let numbers: Vec<(i64,)> = tx
        .rows(
            "WITH RECURSIVE found(language) AS (
                 SELECT MIN(language) FROM chunk_terms WHERE owner = $1
                 UNION ALL
                 SELECT (SELECT MIN(t.language) FROM chunk_terms t WHERE t.owner = $1 AND t.language > found.language)
                 FROM found WHERE found.language IS NOT NULL
             ) SELECT language FROM found WHERE language IS NOT NULL",
            args![owner.number()],
        )
        .await?;
    Ok(numbers.into_iter().map(|(number,)| Language::from_number(number)).collect())
}

/// The terms of these chunks.
pub async fn terms_of(tx: &mut Tx, chunks: &[i64]) -> Result<Vec<(i64, ChunkTerms)>, Error> {
    let mut found = Vec::with_capacity(chunks.len());
    for part in chunks.chunks(Rows::MAX) {
        let mut arguments = args![];
        let places = places(part.iter().copied(), &mut arguments);
        let sql = format!("SELECT chunk_id, terms FROM chunk_terms WHERE chunk_id IN ({places})");
        let rows: Vec<(i64, Vec<u8>)> = tx.rows(sql, arguments).await?;
        found.extend(rows.into_iter().map(|(id, terms)| (id, ChunkTerms::from_bytes(&terms))));
    }
    Ok(found)
}

/// Whose chunks are searched.
struct Scope<'a> {
    owner: &'a TenantUser,
    code: OwnerCode,
    narrowing: &'a Narrowing,
}

/// In SQLite, CROSS JOIN fixes the join order. Otherwise it would start with the owner's chunks and search the
/// postings once for each of them.
const ON_SQLITE: &str = "SELECT t.chunk_id, t.terms FROM chunk_postings
    CROSS JOIN chunk_terms t ON t.chunk_id = chunk_postings.rowid {files}
    WHERE chunk_postings MATCH {query} AND t.owner = {owner} {narrowed} LIMIT {limit}";

/// The sum keeps PostgreSQL from reading all chunks of the owner instead of those with the terms.
const ON_POSTGRES: &str = "SELECT t.chunk_id, t.terms FROM chunk_terms t {files}
    WHERE {query} AND t.owner + 0 = {owner} {narrowed} LIMIT {limit}";

impl Scope<'_> {
    /// The chunks that may be among the best, and of how many of the first terms all chunks were read. The terms are in
    /// the order of how rare they are.
    async fn candidates(
        &self,
        tx: &mut Tx,
        terms: &[(f64, Term)],
        statistics: &Statistics,
    ) -> Result<(BTreeMap<i64, ChunkTerms>, usize), Error> {
        let mut found = BTreeMap::new();
        let mut expected = 0.0;
        let is_rare = |(chunks, _): &&(f64, Term)| {
            expected += chunks;
            expected <= number(MAX_RARE_ROWS)
        };
        let rare = terms.iter().take_while(is_rare).count();
        let (rare_terms, common) = terms.split_at(rare);
        let (mut exact, mut any_of) = (0, rare);
        while any_of > 0 {
            let any: BTreeSet<u32> =
                rare_terms[..any_of].iter().flat_map(|(_, term)| term.hashes.clone()).collect();
            let any = [any.into_iter().collect::<Vec<u32>>()];
            let read = self.read(tx, &any, MAX_RARE_ROWS, &mut found).await?;
            if read < MAX_RARE_ROWS {
                exact = if self.narrowing.is_empty() { any_of } else { 0 };
                break;
            }
            // The sample was wrong about one of them. The chunks with the rarest must be among those that are read.
            any_of /= 2;
        }
        let common: Vec<Vec<u32>> =
            common.iter().take(MAX_COMMON_TERMS).map(|(_, term)| term.hashes.clone()).collect();
        let mut together = common.len();
        // Of enough chunks with rare terms, none with common terms alone is better, unless it has all of them.
        let with_all_only = found.len() >= ENOUGH;
        while together > usize::from(with_all_only) && (with_all_only || found.len() < ENOUGH) {
            let all_of = &common[..together];
            if self.narrowing.is_empty() && statistics.share(all_of) >= MANY {
                self.read_sample(tx, all_of, &mut found).await?;
            } else {
                self.read(tx, all_of, MAX_COMMON_ROWS, &mut found).await?;
            }
            together = if with_all_only { 0 } else { together / 2 };
        }
        Ok((found, exact))
    }

    /// Reads a larger sample of all chunks, and keeps those that have one of each of these groups of terms.
    async fn read_sample(
        &self,
        tx: &mut Tx,
        all_of: &[Vec<u32>],
        found: &mut BTreeMap<i64, ChunkTerms>,
    ) -> Result<(), Error> {
        let rows: Vec<(i64, Vec<u8>)> = tx
            .rows(
                "SELECT chunk_id, terms FROM chunk_terms WHERE owner = $1 ORDER BY sample LIMIT $2",
                args![self.code.number(), MANY_ROWS],
            )
            .await?;
        let chunks = rows.into_iter().map(|(id, terms)| (id, ChunkTerms::from_bytes(&terms)));
        found.extend(chunks.filter(|(_, chunk)| chunk.has_all(all_of)));
        Ok(())
    }

    /// Reads chunks that have one of each of these groups of terms. Returns how many were read.
    async fn read(
        &self,
        tx: &mut Tx,
        all_of: &[Vec<u32>],
        limit: usize,
        found: &mut BTreeMap<i64, ChunkTerms>,
    ) -> Result<usize, Error> {
        let (sql, arguments) = self.statement(tx.is_postgres(), all_of, limit);
        let rows: Vec<(i64, Vec<u8>)> = tx.rows(sql, arguments).await?;
        let read = rows.len();
        found.extend(rows.into_iter().map(|(id, terms)| (id, ChunkTerms::from_bytes(&terms))));
        Ok(read)
    }

    fn statement(&self, postgres: bool, all_of: &[Vec<u32>], limit: usize) -> (String, Vec<Arg>) {
        let mut arguments: Vec<Arg> = Vec::new();
        let mut place = |argument: Arg| {
            arguments.push(argument);
            format!("${}", arguments.len())
        };
        let query = if postgres {
            let any_of = |any: &Vec<u32>| {
                format!("t.postings && CAST({} AS INTEGER[])", place(array(any.iter().copied()).into()))
            };
            all_of.iter().map(any_of).collect::<Vec<_>>().join(" AND ")
        } else {
            let any_of = |any: &Vec<u32>| any.iter().map(|hash| word(*hash)).collect::<Vec<_>>().join(" OR ");
            let groups: Vec<String> = all_of.iter().map(|any| format!("({})", any_of(any))).collect();
            place(groups.join(" AND ").into())
        };
        let (owner, limit) = (place(self.code.number().into()), place(limit.into()));
        let narrowed = self.narrowing.condition(self.owner, &mut arguments);
        let files = match (narrowed.is_empty(), postgres) {
            (true, _) => "",
            (false, true) => "JOIN files f ON f.id = t.file_id",
            (false, false) => "CROSS JOIN files f ON f.id = t.file_id",
        };
        let sql = if postgres { ON_POSTGRES } else { ON_SQLITE };
        let sql = sql.replace("{files}", files).replace("{query}", &query).replace("{owner}", &owner);
        (sql.replace("{limit}", &limit).replace("{narrowed}", &narrowed), arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(narrowing: &Narrowing) -> (String, Vec<Arg>) {
        let owner = TenantUser::new("acme", "alice");
        let scope = Scope { owner: &owner, code: OwnerCode::of(&owner), narrowing };
        scope.statement(false, &[vec![1, 2], vec![3]], 10)
    }

    #[tokio::test]
    async fn the_postings_are_searched_once_and_not_for_every_chunk() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/landfall.db", folder.path().display());
        let db = landfall_store::Db::open(&url, 4).await.unwrap();
        crate::content::index::install(&db).await.unwrap();
        let by_file = Narrowing { files: vec![Uuid::nil()], ..Narrowing::default() };
        let by_attribute =
            Narrowing { attributes: vec![("year".to_owned(), "2026".to_owned())], ..Narrowing::default() };
        for narrowing in [Narrowing::default(), by_file, by_attribute] {
            let (sql, arguments) = statement(&narrowing);
            let plan: Vec<(i64, i64, i64, String)> =
                db.read().await.unwrap().rows(format!("EXPLAIN QUERY PLAN {sql}"), arguments).await.unwrap();
            assert!(plan[0].3.starts_with("SCAN chunk_postings VIRTUAL TABLE"), "{plan:?}");
            assert!(plan.iter().skip(1).all(|step| !step.3.starts_with("SCAN")), "{plan:?}");
        }
    }

    #[test]
    fn every_term_has_its_own_word() {
        let hashes = [0, 1, 31, 32, u32::MAX - 1, u32::MAX];
        let words: BTreeSet<String> = hashes.iter().map(|hash| word(*hash)).collect();
        assert_eq!(words.len(), hashes.len());
        assert_eq!(array([1, u32::MAX].into_iter()), "{1,-1}");
    }

    #[test]
    fn the_sample_is_spread_over_its_range() {
        let mut numbers: Vec<i64> = (1..=1_000).map(sample_number).collect();
        numbers.sort_unstable();
        assert!(numbers.iter().all(|number| (0..SAMPLE_RANGE).contains(number)));
        let middle = part_of_range(numbers[500]);
        assert!((0.4..0.6).contains(&middle), "{middle}");
    }
}
