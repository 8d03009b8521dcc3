//! What a claim and a settlement cost in an empty database and beside a million finished files. The two are measured
//! in turns, so that whatever else the machine does falls on both.

use std::sync::Arc;
use std::time::Duration;

use landfall::blobs::Blobs;
use landfall::clock::Clock;
use landfall::db::Db;
use landfall::file::File;
use landfall::lifecycle::Stage;
use landfall::queue::claim::{ClaimDue, Claims};
use landfall::queue::liveness::Liveness;
use landfall::queue::settle::{Owner, SettleGroup, Settlement, Verdict};
use landfall::queue::wake::Wake;
use landfall::stages::Output;

use super::databases::{Fresh, Kind, backends};
use super::figures::Figures;
use super::filling::{add_finished, queue_batch};
use super::measure::{Stopwatch, cpu_of, median};
use super::worker::default_config;

const ROUNDS: usize = 15;
const FILES_A_ROUND: usize = 160;
const GROUP: usize = 8;

pub async fn run(kind: Kind, finished: i64) -> anyhow::Result<Figures> {
    let mut empty = Place::open(kind, "empty").await?;
    let mut full = Place::open(kind, "full").await?;
    let watch = Stopwatch::start();
    add_finished(&full.db, finished).await?;
    eprintln!("  {finished} finished files were put into {} in {:.0?}", kind.name(), watch.elapsed());
    // The first round prepares the statements.
    for place in [&mut empty, &mut full] {
        place.round().await?;
        place.claims.clear();
        place.settlements.clear();
    }
    for _ in 0..ROUNDS {
        empty.round().await?;
        full.round().await?;
    }
    let mut figures = Figures::default();
    for (what, at_first, at_last) in
        [("claim", &empty.claims, &full.claims), ("settle", &empty.settlements, &full.settlements)]
    {
        let (at_first, at_last) = (median(at_first), median(at_last));
        figures.add(format!("{what}: CPU µs per file, empty database"), at_first);
        figures.add(format!("{what}: CPU µs per file, beside {finished} finished"), at_last);
        figures.add(format!("{what}: ratio"), at_last / at_first);
    }
    empty.close().await?;
    full.close().await?;
    Ok(figures)
}

struct Place {
    fresh: Fresh,
    db: Db,
    liveness: Arc<Liveness>,
    server: Vec<i64>,
    /// CPU µs per file of each round.
    claims: Vec<f64>,
    settlements: Vec<f64>,
}

impl Place {
    async fn open(kind: Kind, name: &str) -> anyhow::Result<Self> {
        let fresh = Fresh::create(kind, name).await?;
        let db = fresh.open(4).await?;
        let blobs = Blobs::open(fresh.path().join("blobs")).await?;
        let wake = Wake::start(&db, Clock::System);
        let liveness = Liveness::start(
            db.clone(),
            blobs,
            Clock::System,
            default_config()?.queue,
            "bench:1".to_owned(),
            "extract,chunk,embed".to_owned(),
            wake,
        )
        .await?;
        Ok(Self { server: Vec::new(), claims: Vec::new(), settlements: Vec::new(), fresh, db, liveness })
    }

    async fn round(&mut self) -> anyhow::Result<()> {
        queue_batch(&self.db, FILES_A_ROUND).await?;
        // The pool may have opened another connection since.
        self.server = backends(&self.db).await?;
        let mut groups = Vec::new();
        let before = self.used();
        for _ in 0..FILES_A_ROUND / GROUP {
            groups.push(self.claim().await?);
        }
        self.claims.push(per_file(self.used().saturating_sub(before), FILES_A_ROUND));

        let before = self.used();
        for stage in [Stage::Extract, Stage::Chunk, Stage::Embed] {
            for files in &groups {
                self.settle(files, stage).await?;
            }
        }
        self.settlements.push(per_file(self.used().saturating_sub(before), FILES_A_ROUND * 3));
        Ok(())
    }

    /// What this process has used, and the server for it.
    fn used(&self) -> Duration {
        let server = self.server.iter().filter_map(|process| cpu_of(*process));
        super::measure::own_cpu() + server.map(|process| process.own).sum::<Duration>()
    }

    async fn claim(&self) -> anyhow::Result<Vec<File>> {
        let claims = self
            .db
            .write(ClaimDue {
                worker: self.liveness.identity().id,
                worker_name: self.liveness.name().to_owned(),
                wants: vec![(Stage::Extract, GROUP), (Stage::Chunk, 5), (Stage::Embed, 5)],
                token: Clock::System.new_id(),
                now: Clock::System.now(),
            })
            .await?;
        match claims {
            Claims::Taken(files) if files.len() == GROUP => Ok(files),
            other => anyhow::bail!("{GROUP} files were to be claimed: {other:?}"),
        }
    }

    async fn settle(&self, files: &[File], stage: Stage) -> anyhow::Result<()> {
        let settlements = files
            .iter()
            .map(|file| Settlement {
                file: file.id,
                owner: Owner::of(file),
                claim: file.claim.expect("a claimed file has a claim"),
                stage,
                attempt: 1,
                verdict: Verdict::Advance {
                    output: Arc::new(Output::Nothing),
                    carry: stage.next().is_some(),
                },
            })
            .collect();
        let held = self
            .db
            .write(SettleGroup {
                settlements,
                worker_name: self.liveness.name().to_owned(),
                now: Clock::System.now(),
            })
            .await?;
        anyhow::ensure!(held.iter().all(|held| *held), "a claim was lost");
        Ok(())
    }

    async fn close(self) -> anyhow::Result<()> {
        self.fresh.remove(self.db).await
    }
}

fn per_file(used: Duration, files: usize) -> f64 {
    used.as_secs_f64() * 1e6 / files as f64
}
