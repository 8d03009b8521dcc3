//! Claims and settlements one by one in its own database, without a worker around them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use landfall_core::clock::Clock;
use landfall_core::lifecycle::Stage;
use landfall_server::blobs::Blobs;
use landfall_server::process::liveness::Liveness;
use landfall_server::queue::claim::{ClaimDue, Claims, Taken, Want};
use landfall_server::queue::config::QueueConfig;
use landfall_server::queue::config::describe;
use landfall_server::queue::fairness::Rounds;
use landfall_server::queue::isolation::Next;
use landfall_server::queue::settle::{SettleGroup, Settlement, Verdict};
use landfall_server::records::file::File;
use landfall_server::recovery::abandoned_uploads::RescueDead;
use landfall_server::stages::Output;
use landfall_store::Db;

use super::databases::{Fresh, Kind, backends};
use super::measure::{cpu_of, own_cpu};
use super::worker::default_config;

pub struct ClaimHarness {
    pub db: Db,
    fresh: Fresh,
    liveness: Arc<Liveness>,
    config: QueueConfig,
    rounds: Mutex<Arc<Rounds>>,
    server: Vec<i64>,
}

impl ClaimHarness {
    pub async fn open(kind: Kind, name: &str) -> anyhow::Result<Self> {
        let fresh = Fresh::create(kind, name).await?;
        let db = fresh.open(4).await?;
        let blobs = Blobs::open(fresh.path().join("blobs")).await?;
        let config = default_config()?.queue;
        let on_death = Arc::new(RescueDead { db: db.clone(), blobs: blobs.clone() });
        let description = describe("bench:1".to_owned(), &config.stages);
        let liveness =
            Liveness::start(db.clone(), Clock::System, config.liveness, description, on_death).await?;
        Ok(Self { server: Vec::new(), rounds: Mutex::default(), fresh, db, liveness, config })
    }

    /// Call this before each measurement: the pool may have opened another connection since the last.
    pub async fn begin(&mut self) -> anyhow::Result<()> {
        self.server = backends(&self.db).await?;
        Ok(())
    }

    /// The CPU time that this process and the server for it have used.
    pub fn used(&self) -> Duration {
        let server = self.server.iter().filter_map(|process| cpu_of(*process));
        own_cpu() + server.map(|process| process.own).sum::<Duration>()
    }

    /// Claims exactly so many files of the first stage.
    pub async fn claim(&self, files: usize) -> anyhow::Result<Vec<File>> {
        let taken = self.try_claim(files).await?;
        anyhow::ensure!(taken.len() == files, "{files} files were to be claimed, not {}", taken.len());
        Ok(taken)
    }

    /// Claims as many files as it gets.
    pub async fn try_claim(&self, files: usize) -> anyhow::Result<Vec<File>> {
        let wants = [(Stage::Extract, files), (Stage::Chunk, 5), (Stage::Embed, 5)].map(|(stage, room)| {
            let config = self.config.stages.iter().find(|config| config.stage == stage);
            Want { stage, room, services: config.map_or(&[], |config| config.services) }
        });
        let rounds = self.rounds.lock().expect("not poisoned").clone();
        let claims = self
            .db
            .write(ClaimDue {
                worker: self.liveness.identity().id,
                worker_name: self.liveness.name().to_owned(),
                wants: wants.to_vec(),
                held: landfall_server::queue::tenant_share::Held::default(),
                token: Clock::System.new_id(),
                rounds,
                limits: self.config.limits.clone(),
                breaker: self.config.breaker,
                next: Next::Many,
                makes_way: false,
                now: Clock::System.now(),
            })
            .await?;
        let Claims::Taken(Taken { files, served, .. }) = claims else {
            anyhow::bail!("the worker was declared dead");
        };
        let mut rounds = self.rounds.lock().expect("not poisoned");
        let rounds = Arc::make_mut(&mut rounds);
        for (stage, lanes) in served {
            rounds.served(stage, lanes);
        }
        Ok(files)
    }

    pub async fn settle(&self, files: &[File], stage: Stage) -> anyhow::Result<()> {
        let settlements = files
            .iter()
            .map(|file| Settlement {
                file: file.id,
                owner: file.owner(),
                claim: file.claim.expect("a claimed file has a claim"),
                finished_before: Vec::new(),
                stage,
                attempt: 1,
                at: Clock::System.now(),
                verdict: Verdict::Advance {
                    output: Arc::new(Output::Nothing),
                    carry: stage.next().is_some(),
                },
                calls: Vec::new(),
            })
            .collect();
        let endings = self
            .db
            .write(SettleGroup {
                settlements,
                worker_name: self.liveness.name().to_owned(),
                breaker: self.config.breaker,
                now: Clock::System.now(),
            })
            .await?;
        anyhow::ensure!(endings.iter().all(Option::is_some), "a claim was lost");
        Ok(())
    }

    pub async fn close(self) -> anyhow::Result<()> {
        self.fresh.remove(self.db).await
    }
}

pub fn per_file(used: Duration, files: usize) -> f64 {
    used.as_secs_f64() * 1e6 / files as f64
}
