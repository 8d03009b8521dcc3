//! What a claim and a settlement cost in an empty database and beside a million finished files. The two alternate, so
//! that other load on the machine affects both.

use landfall_core::lifecycle::Stage;

use super::claim_harness::{ClaimHarness, per_file};
use super::databases::Kind;
use super::figures::Figures;
use super::measure::{Stopwatch, median};
use super::seed_rows::{add_finished, queue_batch};

const ROUNDS: usize = 15;
const FILES_A_ROUND: usize = 160;
const GROUP: usize = 8;

pub async fn run(kind: Kind, finished: i64) -> anyhow::Result<Figures> {
    let mut empty = Instance::open(kind, "empty").await?;
    let mut full = Instance::open(kind, "full").await?;
    let watch = Stopwatch::start();
    add_finished(&full.harness.db, finished).await?;
    eprintln!("  {finished} finished files were put into {} in {:.0?}", kind.name(), watch.elapsed());
    // The first round prepares the statements.
    for instance in [&mut empty, &mut full] {
        instance.round().await?;
        instance.claims.clear();
        instance.settlements.clear();
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
    empty.harness.close().await?;
    full.harness.close().await?;
    Ok(figures)
}

struct Instance {
    harness: ClaimHarness,
    /// CPU µs per file of each round.
    claims: Vec<f64>,
    settlements: Vec<f64>,
}

impl Instance {
    async fn open(kind: Kind, name: &str) -> anyhow::Result<Self> {
        Ok(Self {
            harness: ClaimHarness::open(kind, name).await?,
            claims: Vec::new(),
            settlements: Vec::new(),
        })
    }

    async fn round(&mut self) -> anyhow::Result<()> {
        queue_batch(&self.harness.db, FILES_A_ROUND).await?;
        self.harness.begin().await?;
        let mut groups = Vec::new();
        let before = self.harness.used();
        for _ in 0..FILES_A_ROUND / GROUP {
            groups.push(self.harness.claim(GROUP).await?);
        }
        self.claims.push(per_file(self.harness.used().saturating_sub(before), FILES_A_ROUND));

        let before = self.harness.used();
        for stage in [Stage::Extract, Stage::Chunk, Stage::Embed] {
            for files in &groups {
                self.harness.settle(files, stage).await?;
            }
        }
        self.settlements.push(per_file(self.harness.used().saturating_sub(before), FILES_A_ROUND * 3));
        Ok(())
    }
}
