//! Search by meaning with codes of one bit for each dimension: they find what a comparison of all vectors finds, and
//! never what was deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use landfall_core::caller::TenantUser;
use landfall_core::clock::Clock;
use landfall_core::text::{Chunk, Embedded};
use landfall_server::content::codes::uncoded::{CodeAgain, code_all};
use landfall_server::content::codes::{self, Cache, Narrow, Scope, check};
use landfall_server::content::{chunks, index};
use landfall_store::{Arg, Db, Error, Tx, Write, args};
use uuid::Uuid;

use crate::support::fault_injector::{Break, PlannedFaults};
use crate::support::{TestDb, on_each_database};

const DIMENSIONS: usize = 96;
const MODEL: &str = "tests/96";
const PLENTY: usize = 1 << 30;

fn owner() -> TenantUser {
    TenantUser::new("acme", "alice")
}

fn scope() -> Scope {
    Scope::new(&owner(), MODEL)
}

/// The same vectors in every run: around a few directions, as the passages of a document are.
struct Vectors(u64);

impl Vectors {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        f32::from(u16::try_from(self.0 >> 48).unwrap()) / 32_768.0 - 1.0
    }

    fn around(&mut self, direction: usize) -> Vec<f32> {
        let mut center = Vectors(0x1234_5678_9abc + direction as u64 * 7_919);
        let raw: Vec<f32> = (0..DIMENSIONS).map(|_| center.next() + self.next()).collect();
        let length = raw.iter().map(|value| value * value).sum::<f32>().sqrt();
        raw.into_iter().map(|value| value / length).collect()
    }
}

/// A ready file with these vectors. Returns the ids of its chunks.
#[derive(Clone)]
struct Put {
    file: Uuid,
    name: String,
    vectors: Vec<Vec<f32>>,
}

impl Put {
    fn new(name: &str, vectors: Vec<Vec<f32>>) -> Self {
        Self { file: Uuid::new_v4(), name: name.to_owned(), vectors }
    }
}

impl Write for Put {
    type Output = Vec<i64>;

    async fn apply(&self, tx: &mut Tx) -> Result<Vec<i64>, Error> {
        tx.execute(
            "INSERT INTO files (id, tenant_id, user_id, file_name, size_bytes, blob_key, status, next_stage,
                                chunk_count, created_at, updated_at, confirmed_at, ready_at)
             VALUES ($1, 'acme', 'alice', $2, 1000, 'ab/c', 'ready', 'embed', $3, $4, $4, $4, $4)",
            args![self.file, &self.name, self.vectors.len(), Clock::System.now()],
        )
        .await?;
        let texts: Vec<Chunk> = (0..self.vectors.len())
            .map(|number| Chunk {
                text: format!("passage {number}"),
                page: None,
                heading: None,
                headings: Vec::new(),
                places: Vec::new(),
                char_start: number,
                char_end: number + 1,
                tokens: 2,
            })
            .collect();
        chunks::keep(tx, self.file, &texts).await?;
        let embedded = Embedded { model: MODEL.to_owned(), vectors: self.vectors.clone() };
        index::replace(tx, self.file, &owner(), &embedded).await?;
        chunks::ids(tx, self.file).await
    }
}

/// Removes a file, and then fails if it is told to.
struct Remove {
    files: Vec<Uuid>,
    fails: bool,
}

impl Write for Remove {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        for file in &self.files {
            index::remove(tx, *file).await?;
            chunks::remove(tx, *file).await?;
            tx.execute("DELETE FROM files WHERE id = $1", args![*file]).await?;
        }
        if self.fails { Err(Error::Internal("it fails".to_owned())) } else { Ok(()) }
    }
}

fn remove(files: &[Uuid]) -> Remove {
    Remove { files: files.to_vec(), fails: false }
}

/// What is in a database, as the tests expect it.
struct Library {
    db: Db,
    vectors: BTreeMap<i64, Vec<f32>>,
    files: Vec<(Uuid, Vec<i64>)>,
    random: Vectors,
}

impl Library {
    async fn open(db: &TestDb) -> Self {
        let db = Db::open(&db.url, 6).await.unwrap();
        Self { db, vectors: BTreeMap::new(), files: Vec::new(), random: Vectors(42) }
    }

    /// So many files with so many chunks, around the directions in turn.
    async fn fill(db: &TestDb, files: usize, chunks: usize) -> Self {
        let mut library = Self::open(db).await;
        for number in 0..files {
            library.put(number % 10, chunks).await;
        }
        library
    }

    async fn put(&mut self, direction: usize, chunks: usize) -> Uuid {
        let vectors: Vec<Vec<f32>> = (0..chunks).map(|_| self.random.around(direction)).collect();
        let put = Put::new(&format!("direction {direction}"), vectors);
        let ids = self.db.write(put.clone()).await.unwrap();
        self.vectors.extend(ids.iter().copied().zip(put.vectors));
        self.files.push((put.file, ids));
        put.file
    }

    async fn remove(&mut self, file: Uuid) {
        self.db.write(remove(&[file])).await.unwrap();
        let place = self.files.iter().position(|(one, _)| *one == file).unwrap();
        for chunk in self.files.remove(place).1 {
            self.vectors.remove(&chunk);
        }
    }

    fn exact(&self, question: &[f32], how_many: usize, is_wanted: impl Fn(i64) -> bool) -> BTreeSet<i64> {
        let product = |vector: &[f32]| vector.iter().zip(question).map(|(a, b)| a * b).sum::<f32>();
        let mut all: Vec<(i64, f32)> = self
            .vectors
            .iter()
            .filter(|(chunk, _)| is_wanted(**chunk))
            .map(|(chunk, vector)| (*chunk, product(vector)))
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.into_iter().take(how_many).map(|(chunk, _)| chunk).collect()
    }

    /// The part of the exactly nearest ten that a search finds, over some questions.
    async fn recall(&mut self, cache: &Cache) -> f64 {
        let (mut found, mut expected) = (0, 0);
        for direction in 0..10 {
            let question = self.random.around(direction);
            let nearest = search(&self.db, cache, &question, None).await;
            let exact = self.exact(&question, 10, |_| true);
            found += nearest.iter().filter(|chunk| exact.contains(chunk)).count();
            expected += exact.len();
        }
        f64::from(u32::try_from(found).unwrap()) / f64::from(u32::try_from(expected).unwrap())
    }

    async fn assert_codes_are_right(&self) {
        assert_eq!(wrong(&self.db).await, [] as [String; 0]);
    }

    async fn number(&self, sql: &str) -> i64 {
        self.db.read().await.unwrap().number(sql, args![]).await.unwrap()
    }
}

async fn wrong(db: &Db) -> Vec<String> {
    let mut found = Vec::new();
    check::check(&mut db.snapshot().await.unwrap(), |wrong| found.push(wrong.what)).await.unwrap();
    found
}

/// The nearest ten chunks.
async fn search(db: &Db, cache: &Cache, question: &[f32], narrow: Option<Narrow<'_>>) -> Vec<i64> {
    let mut tx = db.read().await.unwrap();
    let nearest = codes::nearest(&mut tx, cache, &scope(), question, narrow, 10).await.unwrap();
    assert!(nearest.is_sorted_by(|a, b| a.1 <= b.1), "{nearest:?}");
    nearest.into_iter().map(|(chunk, _)| chunk).collect()
}

#[on_each_database]
async fn codes_find_what_a_comparison_of_all_vectors_finds(db: TestDb) {
    let mut library = Library::fill(&db, 60, 40).await;
    let cache = Cache::new(PLENTY).rescoring(300);
    let recall = library.recall(&cache).await;
    assert!(recall >= 0.99, "{recall}");
    assert!(cache.bytes() > 2_400 * (8 + DIMENSIONS / 8), "all codes are in memory: {}", cache.bytes());
    assert!(library.number("SELECT COUNT(*) FROM code_segments").await < 30, "small segments are merged");
    assert_eq!(library.number("SELECT CAST(SUM(entries) AS BIGINT) FROM code_segments").await, 2_400);
    // A large file takes several segments.
    library.put(3, 5_000).await;
    let recall = library.recall(&Cache::new(PLENTY).rescoring(1_500)).await;
    assert!(recall >= 0.97, "{recall}");
    library.assert_codes_are_right().await;
}

#[on_each_database]
async fn what_is_deleted_is_not_found_from_the_same_transaction_on(db: TestDb) {
    let mut library = Library::fill(&db, 20, 10).await;
    let cache = Cache::new(PLENTY).rescoring(30);
    let (file, ids) = library.files[4].clone();
    let question = library.vectors[&ids[0]].clone();
    assert_eq!(search(&library.db, &cache, &question, None).await[0], ids[0]);
    let broken = Remove { files: vec![file], fails: true };
    library.db.write(broken).await.expect_err("it fails after the removal");
    assert_eq!(search(&library.db, &cache, &question, None).await[0], ids[0], "nothing was removed");
    library.assert_codes_are_right().await;
    library.remove(file).await;
    assert!(search(&library.db, &cache, &question, None).await.iter().all(|chunk| !ids.contains(chunk)));
    library.assert_codes_are_right().await;
    assert_eq!(library.number("SELECT CAST(SUM(entries) AS BIGINT) FROM code_segments").await, 190);
    // All at once, over several segments.
    let all: Vec<Uuid> = library.files.iter().map(|(file, _)| *file).collect();
    library.db.write(remove(&all)).await.unwrap();
    assert!(search(&library.db, &cache, &question, None).await.is_empty());
    for table in ["code_segments", "coded_files", "uncoded_files"] {
        assert_eq!(library.number(&format!("SELECT COUNT(*) FROM {table}")).await, 0, "{table}");
    }
    assert_eq!(cache.bytes(), 0);
}

struct Reembed {
    file: Uuid,
    chunks: Vec<i64>,
    vectors: Vec<Vec<f32>>,
}

impl Write for Reembed {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let embedded = Embedded { model: "other/3".to_owned(), vectors: self.vectors.clone() };
        index::replace_vectors(tx, self.file, &owner(), &self.chunks, &embedded).await
    }
}

#[on_each_database]
async fn after_re_embedding_only_the_new_model_finds_a_file(db: TestDb) {
    let library = Library::fill(&db, 20, 10).await;
    let cache = Cache::new(PLENTY).rescoring(50);
    let (file, ids) = library.files[7].clone();
    let question = library.vectors[&ids[0]].clone();
    assert_eq!(search(&library.db, &cache, &question, None).await[0], ids[0]);
    let vectors = ids.iter().map(|_| vec![0.0, 0.6, 0.8]).collect();
    library.db.write(Reembed { file, chunks: ids.clone(), vectors }).await.unwrap();
    assert!(search(&library.db, &cache, &question, None).await.iter().all(|chunk| !ids.contains(chunk)));
    let other = Scope::new(&owner(), "other/3");
    let mut tx = library.db.read().await.unwrap();
    let found = codes::nearest(&mut tx, &cache, &other, &[0.0, 0.6, 0.8], None, 60).await.unwrap();
    assert_eq!(found.into_iter().map(|(chunk, _)| chunk).collect::<Vec<_>>(), ids);
    drop(tx);
    library.assert_codes_are_right().await;
}

#[on_each_database]
async fn conditions_leave_nothing_out_that_fulfils_them(db: TestDb) {
    let mut library = Library::fill(&db, 40, 40).await;
    // Few candidates, so that conditions make a search look at more of them.
    let cache = Cache::new(PLENTY).rescoring(48);
    for (names, directions) in [
        ("direction 4", vec![4]),
        // More than are compared without codes, the nearest among them or the farthest.
        ("direction 2|direction 3|direction 4", vec![2, 3, 4]),
        ("direction 0|direction 1|direction 5|direction 6|direction 7", vec![0, 1, 5, 6, 7]),
    ] {
        let wanted: BTreeSet<i64> = library
            .files
            .iter()
            .enumerate()
            .filter(|(number, _)| directions.contains(&(number % 10)))
            .flat_map(|(_, (_, ids))| ids.clone())
            .collect();
        let narrow = |sql: &str, mut arguments: Vec<Arg>| {
            let mut places = Vec::new();
            for name in names.split('|') {
                arguments.push(name.into());
                places.push(format!("${}", arguments.len()));
            }
            let condition = format!("AND f.file_name IN ({})", places.join(", "));
            (sql.replace("{narrowed}", &condition), arguments)
        };
        for direction in [2, 9] {
            let question = library.random.around(direction);
            let found = search(&library.db, &cache, &question, Some(&narrow)).await;
            let exact = library.exact(&question, 10, |chunk| wanted.contains(&chunk));
            assert_eq!(found.len(), 10, "{names} {direction}");
            assert!(found.iter().all(|chunk| wanted.contains(chunk)), "{names} {direction}");
            // Far from the question all are about as far, and any ten will do.
            let right = found.iter().filter(|chunk| exact.contains(chunk)).count();
            assert!(right >= 6 || !directions.contains(&direction), "{names} {direction}: {right}");
        }
    }
}

#[on_each_database]
async fn files_without_codes_are_found_and_get_their_codes(db: TestDb) {
    let mut library = Library::fill(&db, 20, 10).await;
    let cache = Cache::new(PLENTY).rescoring(300);
    // As after the migration of a database from before there were codes.
    library.db.write(CodeAgain { scope: scope() }).await.unwrap();
    assert_eq!(library.number("SELECT COUNT(*) FROM uncoded_files").await, 20);
    library.assert_codes_are_right().await;
    assert!(library.recall(&cache).await >= 0.999);
    let gone = library.files[3].0;
    library.remove(gone).await;
    library.put(5, 30).await;
    assert_eq!(library.number("SELECT COUNT(*) FROM uncoded_files").await, 19);
    assert!(library.recall(&cache).await >= 0.999, "some have codes and some do not");
    library.assert_codes_are_right().await;
    assert_eq!(code_all(&library.db).await.unwrap(), 19);
    assert_eq!(library.number("SELECT COUNT(*) FROM uncoded_files").await, 0);
    assert_eq!(library.number("SELECT CAST(SUM(entries) AS BIGINT) FROM code_segments").await, 220);
    library.assert_codes_are_right().await;
    assert!(library.recall(&cache).await >= 0.999);
    assert_eq!(code_all(&library.db).await.unwrap(), 0);
}

#[on_each_database]
async fn the_memory_for_codes_is_bounded(db: TestDb) {
    let mut library = Library::fill(&db, 30, 40).await;
    let (all, most) = (Cache::new(PLENTY).rescoring(200), 8_000);
    let recall = library.recall(&all).await;
    assert!(all.bytes() > most * 2, "{}", all.bytes());
    for bytes in [0, most] {
        let cache = Cache::new(bytes).rescoring(200);
        assert!(library.recall(&cache).await >= recall - 0.05, "what does not fit is read from the database");
        assert!(cache.bytes() <= bytes, "{} of {bytes}", cache.bytes());
    }
}

#[on_each_database]
async fn a_transaction_that_breaks_leaves_codes_and_vectors_alike(db: TestDb) {
    let faults = PlannedFaults::new();
    let mut library = Library::fill(&db, 14, 10).await;
    let db = Db::open_with(&db.url, 4, Some(faults.clone())).await.unwrap();
    // The first changes of each kind are of a full run: how many steps there are. The fifteenth file merges segments.
    let mut random = Vectors(7);
    for round in 0_usize.. {
        let put = Put::new("broken", vec![random.around(1); 10]);
        let gone = library.files[round % 7].0;
        faults.break_at(round + 1, Break::Once);
        let written = db.write(put.clone()).await;
        let (steps, _) = faults.steps();
        faults.reset();
        assert_eq!(wrong(&db).await, [] as [String; 0], "after step {round} of adding a file");
        // A connection that broke at the commit may have committed.
        drop(written);
        db.write(remove(&[put.file])).await.unwrap();
        faults.break_at(round + 1, Break::Once);
        let removed = db.write(remove(&[gone])).await;
        let (steps_of_removal, _) = faults.steps();
        faults.reset();
        assert_eq!(wrong(&db).await, [] as [String; 0], "after step {round} of removing a file");
        drop(removed);
        db.write(remove(&[gone])).await.unwrap();
        library.files.retain(|(file, _)| *file != gone);
        library.put(2, 10).await;
        if round > steps.max(steps_of_removal) {
            break;
        }
    }
    db.close().await;
    library.assert_codes_are_right().await;
}

#[on_each_database]
async fn searches_beside_writers_never_find_what_was_deleted(db: TestDb) {
    const WRITERS: usize = 4;
    let library = Library::fill(&db, 8, 10).await;
    let cache = Cache::new(PLENTY).rescoring(40);
    let deleted: Arc<Mutex<BTreeSet<i64>>> = Arc::default();
    let writers = (0..WRITERS).map(|writer| {
        let (db, deleted) = (library.db.clone(), deleted.clone());
        tokio::spawn(async move {
            let mut random = Vectors(1_000 + writer as u64);
            let mut own = Vec::new();
            for round in 0..24 {
                let put = Put::new("beside", (0..7).map(|_| random.around(1)).collect());
                own.push((put.file, db.write(put).await.unwrap()));
                if round % 3 == 2 {
                    // Two at once: their codes may be in two segments, which other writers also want.
                    let gone: Vec<(Uuid, Vec<i64>)> = own.drain(..2).collect();
                    let files: Vec<Uuid> = gone.iter().map(|(file, _)| *file).collect();
                    db.write(remove(&files)).await.unwrap();
                    deleted.lock().unwrap().extend(gone.into_iter().flat_map(|(_, ids)| ids));
                }
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut random = Vectors(5);
    let mut searches = 0;
    while writers.iter().any(|writer| !writer.is_finished()) || searches < 20 {
        let before = deleted.lock().unwrap().clone();
        let found = search(&library.db, &cache, &random.around(1), None).await;
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|chunk| !before.contains(chunk)), "{found:?}");
        searches += 1;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    library.assert_codes_are_right().await;
    let living = 8 * 10 + i64::try_from(WRITERS).unwrap() * 7 * (24 - 16);
    assert_eq!(library.number("SELECT CAST(SUM(entries) AS BIGINT) FROM code_segments").await, living);
}

#[on_each_database]
async fn a_file_that_is_coded_while_it_is_deleted_leaves_no_codes(db: TestDb) {
    let library = Library::fill(&db, 20, 10).await;
    for _ in 0..4 {
        library.db.write(CodeAgain { scope: scope() }).await.unwrap();
        let (file, _) = library.files[0].clone();
        let (coding, other) = (library.db.clone(), library.db.clone());
        let (coded, removed) = tokio::join!(
            tokio::spawn(async move { code_all(&coding).await }),
            tokio::spawn(async move { other.write(remove(&[file])).await })
        );
        coded.unwrap().unwrap();
        removed.unwrap().unwrap();
        code_all(&library.db).await.unwrap();
        library.assert_codes_are_right().await;
    }
}

#[on_each_database]
async fn wrong_codes_are_noticed(db: TestDb) {
    let library = Library::fill(&db, 20, 10).await;
    for damage in [
        "DELETE FROM code_segments",
        "DELETE FROM coded_files",
        "UPDATE coded_files SET entries = entries + 1",
        "UPDATE code_segments SET entries = entries + 1",
        "UPDATE code_segments SET codes = chunks",
        "UPDATE code_segments SET user_id = 'bob'",
        "INSERT INTO uncoded_files (file_id, tenant_id, user_id) SELECT id, tenant_id, user_id FROM files",
    ] {
        library.db.write(Sql(damage)).await.unwrap();
        let found = wrong(&library.db).await;
        assert!(!found.is_empty(), "{damage}");
        library.db.write(Sql("DELETE FROM code_segments")).await.unwrap();
        library.db.write(CodeAgain { scope: scope() }).await.unwrap();
        code_all(&library.db).await.unwrap();
        library.assert_codes_are_right().await;
    }
}

struct Sql(&'static str);

impl Write for Sql {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute(self.0, args![]).await.map(drop)
    }
}
