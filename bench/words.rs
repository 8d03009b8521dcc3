//! What a search by words costs one user with many chunks. The words are as frequent as in real texts (Zipf): the most
//! common are in nearly every chunk, and most are in a few.

use landfall_api::search::SearchMode;
use landfall_core::caller::TenantUser;
use landfall_core::clock::{Clock, Time};
use landfall_core::text::Embedded;
use landfall_server::content::index;
use landfall_server::content::narrowing::Narrowing;
use landfall_server::content::search::{Question, search};
use landfall_store::{Db, Error, Rows, Tx, Write, args};
use uuid::Uuid;

use super::databases::{Fresh, Kind};
use super::figures::Figures;
use super::measure::{Stopwatch, median, milliseconds};
use super::seed_rows::{TENANT, USER};

const CHUNKS: usize = 400_000;
const CHUNKS_A_FILE: usize = 100;
const WORDS_A_CHUNK: usize = 100;
const VOCABULARY: usize = 50_000;
const QUERIES: usize = 20;

/// Each kind of query: its name, and the ranks of its words among the most common.
const KINDS: [(&str, &[(usize, usize)]); 6] = [
    ("one rare word", &[(20_000, 40_000)]),
    ("one common word", &[(10, 60)]),
    ("a rare and two common words", &[(20_000, 40_000), (10, 200), (10, 200)]),
    ("three common words", &[(10, 60), (10, 60), (10, 60)]),
    (
        "a question of eight words",
        &[
            (20, 100),
            (50, 500),
            (100, 1_000),
            (200, 3_000),
            (500, 5_000),
            (500, 5_000),
            (1_000, 9_000),
            (5, 50),
        ],
    ),
    (
        "sixteen of the most common words",
        &[
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
            (0, 100),
        ],
    ),
];

pub async fn run(kind: Kind) -> anyhow::Result<Figures> {
    let chunks = std::env::var("BENCH_CHUNKS").ok().and_then(|number| number.parse().ok()).unwrap_or(CHUNKS);
    let fresh = Fresh::create(kind, "words").await?;
    let db = fresh.open(4).await?;
    let mut random = Zipf::new(42);
    let watch = Stopwatch::start();
    for number in 0..chunks / CHUNKS_A_FILE {
        db.write(Indexed::make(number * CHUNKS_A_FILE, &mut random)).await?;
    }
    let mut figures = Figures::default();
    figures.add(format!("words of {chunks} chunks: seconds to index"), watch.elapsed().as_secs_f64());
    db.write(Settle).await?;
    let mut worst: f64 = 0.0;
    for (name, ranks) in KINDS {
        let mut times = Vec::new();
        for number in 0..=QUERIES {
            let words: Vec<String> =
                ranks.iter().map(|(from, to)| word(random.between(*from, *to))).collect();
            let time = ask(&db, &words.join(" ")).await?;
            // The first query warms the caches.
            if number > 0 {
                times.push(time);
            }
        }
        worst = times.iter().copied().fold(worst, f64::max);
        figures.add(format!("search in the words of {chunks} chunks: {name}, ms"), median(&times));
    }
    figures.add(format!("search in the words of {chunks} chunks: the slowest, ms"), worst);
    fresh.remove(db).await?;
    Ok(figures)
}

async fn ask(db: &Db, text: &str) -> anyhow::Result<f64> {
    let question = Question {
        owner: TenantUser::new(TENANT, USER),
        text: text.to_owned(),
        mode: SearchMode::Words,
        meaning: None,
        limit: 10,
        offset: 0,
        narrowing: Narrowing::default(),
        explain: false,
    };
    let watch = Stopwatch::start();
    let found = search(&mut db.read().await?, &question).await?;
    let time = milliseconds(watch.elapsed());
    anyhow::ensure!(!found.hits.is_empty(), "no hits for {text}");
    Ok(time)
}

/// What the databases do by themselves from time to time.
struct Settle;

impl Write for Settle {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        if tx.is_postgres() { tx.script("ANALYZE").await } else { Ok(()) }
    }
}

/// A ready file and its chunks in the index.
struct Indexed {
    file: Uuid,
    now: Time,
    /// The id and the text of each chunk.
    chunks: Vec<(usize, String)>,
}

impl Indexed {
    fn make(first: usize, random: &mut Zipf) -> Self {
        let text = |random: &mut Zipf| {
            let words: Vec<String> = (0..WORDS_A_CHUNK).map(|_| word(random.next())).collect();
            words.join(" ")
        };
        Self {
            file: Clock::System.new_id(),
            now: Clock::System.now(),
            chunks: (0..CHUNKS_A_FILE).map(|number| (first + number + 1, text(random))).collect(),
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
        let mut chunks = Rows::default();
        for (ordinal, (id, text)) in self.chunks.iter().enumerate() {
            chunks.push(args![*id, self.file, ordinal, text, 0_i64, text.len(), WORDS_A_CHUNK]);
        }
        tx.insert("chunks (id, file_id, ordinal, text, char_start, char_end, tokens)", chunks, "").await?;
        let embedded =
            Embedded { model: "bench/2".to_owned(), vectors: vec![vec![0.6, 0.8]; self.chunks.len()] };
        index::replace(tx, self.file, &TenantUser::new(TENANT, USER), &embedded).await
    }
}

/// The word of a rank: letters that are no ending of any language.
fn word(rank: usize) -> String {
    let mut rest = rank;
    let mut word = String::from("k");
    for _ in 0..4 {
        word.push(
            ['b', 'c', 'd', 'f', 'g', 'h', 'j', 'k', 'm', 'p', 'q', 'v', 'w', 'x', 'z', 'o'][rest % 16],
        );
        rest /= 16;
    }
    word.push('k');
    word
}

/// Ranks that are as frequent as those of words, the same in every run.
struct Zipf {
    state: u64,
    cumulated: Vec<f64>,
}

impl Zipf {
    fn new(state: u64) -> Self {
        let mut sum = 0.0;
        let cumulated = (0..VOCABULARY)
            .map(|rank| {
                sum += 1.0 / (rank as f64 + 2.7);
                sum
            })
            .collect();
        Self { state, cumulated }
    }

    fn number(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn next(&mut self) -> usize {
        let share = (self.number() >> 11) as f64 / (1_u64 << 53) as f64;
        let wanted = share * self.cumulated[VOCABULARY - 1];
        self.cumulated.partition_point(|sum| *sum < wanted).min(VOCABULARY - 1)
    }

    fn between(&mut self, from: usize, to: usize) -> usize {
        from + (self.number() % (to - from) as u64) as usize
    }
}
