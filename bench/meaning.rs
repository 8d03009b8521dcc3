//! Search by meaning in many chunks: how long it takes, and how much of what is nearest it finds.
//!
//! The vectors are like those of texts: each file is about something within a topic, and its passages vary around that.
//! The questions are near passages. What is exactly nearest is computed here, from all vectors of the user.

use landfall_core::caller::TenantUser;
use landfall_core::clock::{Clock, Time};
use landfall_core::text::Embedded;
use landfall_server::content::codes::{self, Cache, Scope};
use landfall_store::{Arg, Db, Error, Rows, Tx, Write, args};
use uuid::Uuid;

use super::databases::{Fresh, Kind};
use super::figures::Figures;
use super::measure::{Stopwatch, median, milliseconds, quantile};
use super::seed_rows::TENANT;

const DIMENSIONS: usize = 384;
const MODEL: &str = "bench/384";
const CHUNKS_A_FILE: usize = 100;
const FILES_AT_ONCE: usize = 20;
const TOPICS: u64 = 2_000;
/// How much a file differs from its topic, a passage from its file, and a question from its passage.
const SPREAD: [f32; 3] = [0.9, 0.7, 0.7];
const QUERIES: usize = 300;
/// For so many of them, all vectors are compared.
const EXACT: usize = 20;
/// What a search of the API asks for.
const CANDIDATES: usize = 60;
const CACHE_BYTES: usize = 256 << 20;

pub async fn run(kind: Kind, chunks: usize, users: usize) -> anyhow::Result<Figures> {
    let fresh = Fresh::create(kind, "meaning").await?;
    let db = fresh.open(4).await?;
    let watch = Stopwatch::start();
    let owners: Vec<TenantUser> =
        (0..users).map(|user| TenantUser::new(TENANT, format!("user{user}"))).collect();
    let each = chunks / users;
    let mut written = 0;
    for (number, owner) in owners.iter().enumerate() {
        let mut vectors = Vectors::of(number);
        for _ in 0..each.div_ceil(CHUNKS_A_FILE * FILES_AT_ONCE) {
            let files = (0..FILES_AT_ONCE).map(|_| vectors.file()).collect();
            let first = written + 1;
            written += FILES_AT_ONCE * CHUNKS_A_FILE;
            db.write(Files { owner: owner.clone(), first, files, now: Clock::System.now() }).await?;
        }
        if number % 100 == 0 {
            eprintln!("{written} chunks after {:.0} s", watch.elapsed().as_secs_f64());
        }
    }
    let seeded = watch.elapsed().as_secs_f64();
    let cache = Cache::new(CACHE_BYTES);
    let what = |figure: &str| format!("meaning in {chunks} chunks of {users}: {figure}");
    let mut figures = Figures::default();
    let (mut first, mut times, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    let (mut right, mut expected) = (0, 0);
    let mut random = Random(99);
    for number in 0..QUERIES {
        let user = if number == 0 { 0 } else { random.next() as usize % users };
        let (owner, mut vectors) = (&owners[user], Vectors::of(user));
        let question = vectors.question(&mut random);
        let before = cache.bytes();
        let watch = Stopwatch::start();
        let found = ask(&db, &cache, owner, &question).await?;
        let (took, used) = (milliseconds(watch.elapsed()), milliseconds(watch.cpu()));
        if cache.bytes() == before {
            times.push(took);
            cpu.push(used);
        } else {
            first.push(took);
        }
        if number < EXACT {
            let exact = vectors.exact(&question, each, 10);
            let base = user * each.div_ceil(CHUNKS_A_FILE * FILES_AT_ONCE) * CHUNKS_A_FILE * FILES_AT_ONCE;
            let nearest: Vec<usize> = found.iter().take(10).map(|(id, _)| *id as usize - 1 - base).collect();
            right += exact.iter().filter(|chunk| nearest.contains(chunk)).count();
            expected += exact.len();
        }
    }
    if times.is_empty() {
        times.clone_from(&first);
    }
    figures.add(what("s to write"), seeded);
    figures.add(what("codes not in memory, p50 ms"), median(&first));
    figures.add(what("codes not in memory, p99 ms"), quantile(&first, 0.99));
    figures.add(what("p50 ms"), median(&times));
    figures.add(what("p99 ms"), quantile(&times, 0.99));
    if !cpu.is_empty() {
        figures.add(what("p50 ms of processor time"), median(&cpu));
    }
    figures.add(what("recall of the nearest 10"), right as f64 / expected as f64);
    figures.add(what("MiB of codes in memory"), cache.bytes() as f64 / f64::from(1 << 20));
    fresh.remove(db).await?;
    Ok(figures)
}

async fn ask(
    db: &Db,
    cache: &Cache,
    owner: &TenantUser,
    question: &[f32],
) -> anyhow::Result<Vec<(i64, f64)>> {
    let mut tx = db.read().await?;
    Ok(codes::nearest(&mut tx, cache, &Scope::new(owner, MODEL), question, None, CANDIDATES).await?)
}

/// Ready files with their vectors in the index.
struct Files {
    owner: TenantUser,
    first: usize,
    files: Vec<Vec<Vec<f32>>>,
    now: Time,
}

impl Write for Files {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let TenantUser { tenant, user } = &self.owner;
        let mut id = i64::try_from(self.first).expect("a small number");
        for vectors in &self.files {
            let file: Uuid = Clock::System.new_id();
            tx.execute(
                "INSERT INTO files (id, tenant_id, user_id, file_name, size_bytes, blob_key, status, next_stage,
                                    chunk_count, created_at, updated_at, confirmed_at, ready_at)
                 VALUES ($1, $2, $3, 'report.txt', 1000, 'ab/c', 'ready', 'embed', $4, $5, $5, $5, $5)",
                args![file, tenant, user, vectors.len(), self.now],
            )
            .await?;
            let embedded = Embedded { model: MODEL.to_owned(), vectors: vectors.clone() };
            let mut rows = Rows::default();
            let first = id;
            for vector in vectors {
                let stored: Arg = if tx.is_postgres() { text(vector).into() } else { bytes(vector).into() };
                let mut row = args![id, file, tenant, user, MODEL];
                row.push(stored);
                rows.push(row);
                id += 1;
            }
            insert(tx, rows).await?;
            let vectors = embedded.vectors.iter().zip(first..).map(|(vector, id)| (id, &vector[..]));
            codes::add(tx, file, Scope::new(&self.owner, MODEL), vectors)?;
        }
        Ok(())
    }
}

/// Only the vectors: the words of so many chunks would take longer to write than all the rest.
async fn insert(tx: &mut Tx, rows: Rows) -> Result<(), Error> {
    if !tx.is_postgres() {
        return tx
            .insert("chunk_index (chunk_id, file_id, tenant_id, user_id, model, embedding)", rows, "")
            .await;
    }
    for part in rows.batches() {
        let (values, args) = part.into_values(tx);
        let sql = format!(
            "INSERT INTO chunk_index (chunk_id, file_id, tenant_id, user_id, model, embedding)
             SELECT column1, column2, column3, column4, column5, landfall_embedding(column6)
             FROM ({values}) AS v WHERE column1 IS NOT NULL"
        );
        tx.execute(sql, args).await?;
    }
    Ok(())
}

fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn text(vector: &[f32]) -> String {
    let values: Vec<String> = vector.iter().map(f32::to_string).collect();
    format!("[{}]", values.join(","))
}

/// The vectors of a user, the same in every run.
struct Vectors {
    user: u64,
    random: Random,
}

impl Vectors {
    fn of(user: usize) -> Self {
        let user = user as u64;
        Self { user, random: Random(user.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1) }
    }

    fn file(&mut self) -> Vec<Vec<f32>> {
        let mut topic = Random((self.random.next() % TOPICS + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1);
        let center = near(&topic.direction(), SPREAD[0], &mut self.random);
        (0..CHUNKS_A_FILE).map(|_| near(&center, SPREAD[1], &mut self.random)).collect()
    }

    /// Near a passage of the user.
    fn question(&mut self, random: &mut Random) -> Vec<f32> {
        let mut file = Vec::new();
        for _ in 0..=random.next() % 20 {
            file = self.file();
        }
        near(&file[random.next() as usize % CHUNKS_A_FILE], SPREAD[2], random)
    }

    /// The numbers of the user's nearest chunks, in the order in which they were written.
    fn exact(&mut self, question: &[f32], chunks: usize, how_many: usize) -> Vec<usize> {
        *self = Self::of(self.user as usize);
        let files = chunks.div_ceil(CHUNKS_A_FILE * FILES_AT_ONCE) * FILES_AT_ONCE;
        let mut all: Vec<(f32, usize)> = Vec::with_capacity(files * CHUNKS_A_FILE);
        for _ in 0..files {
            for vector in self.file() {
                let product = vector.iter().zip(question).map(|(a, b)| a * b).sum();
                all.push((product, all.len()));
            }
        }
        all.select_nth_unstable_by(how_many - 1, |a, b| b.0.total_cmp(&a.0));
        all.truncate(how_many);
        all.into_iter().map(|(_, chunk)| chunk).collect()
    }
}

/// A vector of length one that differs from `center` by about `spread` of its length.
fn near(center: &[f32], spread: f32, random: &mut Random) -> Vec<f32> {
    let other = random.direction();
    unit(center.iter().zip(other).map(|(a, b)| a + b * spread).collect())
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    for value in &mut vector {
        *value /= length;
    }
    vector
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

    fn direction(&mut self) -> Vec<f32> {
        unit((0..DIMENSIONS).map(|_| (self.next() >> 40) as f32 / 8_388_608.0 - 1.0).collect())
    }
}
