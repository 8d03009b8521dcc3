//! What a search costs on SQLite, compared with the virtual table of sqlite-vec for the same vectors. These are random,
//! which is the worst case for codes of one bit for each dimension; `bench/meaning.rs` has vectors like those of texts.

use landfall_api::search::SearchMode;
use landfall_core::caller::TenantUser;
use landfall_core::clock::{Clock, Time};
use landfall_core::text::Embedded;
use landfall_server::content::codes::Cache;
use landfall_server::content::fusion::Scale;
use landfall_server::content::index;
use landfall_server::content::narrowing::Narrowing;
use landfall_server::content::search::{Meaning, Question, search};
use landfall_store::Error;
use landfall_store::{Db, Rows, Tx, Write, args};
use uuid::Uuid;

use super::databases::{Fresh, Kind};
use super::figures::Figures;
use super::measure::{Stopwatch, median, milliseconds};
use super::seed_rows::{TENANT, USER};

const DIMENSIONS: usize = 384;
const MODEL: &str = "bench";
const CHUNKS_A_FILE: usize = 100;
const WORDS_A_CHUNK: usize = 60;
const VOCABULARY: u64 = 2_000;
const QUERIES: usize = 15;
const CANDIDATES: i64 = 60;

pub async fn run(chunks: usize) -> anyhow::Result<Figures> {
    let fresh = Fresh::create(Kind::Sqlite, "vectors").await?;
    let db = fresh.open(4).await?;
    db.write(VirtualTable).await?;
    let mut random = Random(42);
    for number in 0..chunks / CHUNKS_A_FILE {
        db.write(Indexed::make(number * CHUNKS_A_FILE, &mut random)).await?;
    }
    let cache = Cache::new(1 << 28);
    let (mut whole, mut meaning, mut virtual_table) = (Vec::new(), Vec::new(), Vec::new());
    // The first query warms the caches.
    for number in 0..=QUERIES {
        let vector = random.vector();
        let samples = [
            ask(&db, &cache, &random.words(3), &vector).await?,
            ask(&db, &cache, "", &vector).await?,
            ask_virtual_table(&db, &vector).await?,
        ];
        if number > 0 {
            for (times, sample) in [&mut whole, &mut meaning, &mut virtual_table].into_iter().zip(samples) {
                times.push(sample);
            }
        }
    }
    let what = |figure: &str| format!("search in {chunks} chunks: {figure}");
    let mut figures = Figures::default();
    figures.add(what("ms"), median(&whole));
    figures.add(what("by meaning alone, ms"), median(&meaning));
    figures.add(what("sqlite-vec's vec0, ms"), median(&virtual_table));
    figures.add(what("by meaning : vec0"), median(&meaning) / median(&virtual_table));
    fresh.remove(db).await?;
    Ok(figures)
}

async fn ask(db: &Db, cache: &Cache, words: &str, vector: &[f32]) -> anyhow::Result<f64> {
    let question = Question {
        owner: TenantUser::new(TENANT, USER),
        text: words.to_owned(),
        mode: if words.is_empty() { SearchMode::Meaning } else { SearchMode::Hybrid },
        // All random vectors are unrelated; this scale lets them be found.
        meaning: Some(Meaning {
            model: MODEL.to_owned(),
            vector: vector.to_vec(),
            scale: Scale { unrelated: -0.5, related: 0.0 },
            codes: cache.clone(),
        }),
        limit: 10,
        offset: 0,
        narrowing: Narrowing::default(),
        explain: false,
    };
    let watch = Stopwatch::start();
    let hits = search(&mut db.read().await?, &question).await?.hits;
    anyhow::ensure!(hits.len() == 10, "{} hits", hits.len());
    Ok(milliseconds(watch.elapsed()))
}

async fn ask_virtual_table(db: &Db, vector: &[f32]) -> anyhow::Result<f64> {
    let watch = Stopwatch::start();
    let nearest: Vec<(i64,)> = db
        .read()
        .await?
        .rows(
            "SELECT chunk_id FROM bench_vectors WHERE user_id = $1 AND embedding MATCH $2 AND k = $3 ORDER BY distance",
            args![USER, bytes(vector), CANDIDATES],
        )
        .await?;
    anyhow::ensure!(nearest.len() == 60, "{} neighbours", nearest.len());
    Ok(milliseconds(watch.elapsed()))
}

struct VirtualTable;

impl Write for VirtualTable {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.script(
            "CREATE VIRTUAL TABLE bench_vectors USING vec0(
                 chunk_id INTEGER PRIMARY KEY, user_id TEXT PARTITION KEY,
                 embedding FLOAT[384] DISTANCE_METRIC=cosine)",
        )
        .await
    }
}

/// A ready file and its chunks in the index.
struct Indexed {
    file: Uuid,
    now: Time,
    /// The id, the text and the vector of each chunk.
    chunks: Vec<(usize, String, Vec<f32>)>,
}

impl Indexed {
    fn make(first: usize, random: &mut Random) -> Self {
        Self {
            file: Clock::System.new_id(),
            now: Clock::System.now(),
            chunks: (0..CHUNKS_A_FILE)
                .map(|number| (first + number + 1, random.words(WORDS_A_CHUNK), random.vector()))
                .collect(),
        }
    }
}

impl Write for Indexed {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute(
            "INSERT INTO files (id, tenant_id, user_id, file_name, size_bytes, blob_key, status, next_stage,
                                created_at, updated_at, confirmed_at, ready_at)
             VALUES ($1, $2, $3, 'report.txt', 1000, 'ab/c', 'ready', 'embed', $4, $4, $4, $4)",
            args![self.file, TENANT, USER, self.now],
        )
        .await?;
        let (mut chunks, mut virtual_table) = (Rows::default(), Rows::default());
        for (ordinal, (id, text, vector)) in self.chunks.iter().enumerate() {
            chunks.push(args![*id, self.file, ordinal, text, 0_i64, text.len(), WORDS_A_CHUNK]);
            virtual_table.push(args![*id, USER, bytes(vector)]);
        }
        for (into, rows) in [
            ("chunks (id, file_id, ordinal, text, char_start, char_end, tokens)", chunks),
            ("bench_vectors (chunk_id, user_id, embedding)", virtual_table),
        ] {
            tx.insert(into, rows, "").await?;
        }
        let vectors = self.chunks.iter().map(|(.., vector)| vector.clone()).collect();
        let embedded = Embedded { model: MODEL.to_owned(), vectors };
        index::replace(tx, self.file, &TenantUser::new(TENANT, USER), &embedded).await
    }
}

fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The same numbers in every run (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<String> = (0..count).map(|_| format!("word{}", self.next() % VOCABULARY)).collect();
        words.join(" ")
    }

    /// A vector of length one.
    fn vector(&mut self) -> Vec<f32> {
        let raw: Vec<f32> = (0..DIMENSIONS).map(|_| (self.next() >> 40) as f32 / 8_388_608.0 - 1.0).collect();
        let length = raw.iter().map(|value| value * value).sum::<f32>().sqrt();
        raw.into_iter().map(|value| value / length).collect()
    }
}
