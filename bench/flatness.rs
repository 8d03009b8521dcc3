//! What a claim and a settlement cost in an empty database and beside a million finished files. The two are measured
//! in turns, so that whatever else the machine does falls on both.

use landfall_core::lifecycle::Stage;

use super::databases::Kind;
use super::desk::{Desk, per_file};
use super::figures::Figures;
use super::filling::{add_finished, queue_batch};
use super::measure::{Stopwatch, median};

const ROUNDS: usize = 15;
const FILES_A_ROUND: usize = 160;
const GROUP: usize = 8;

pub async fn run(kind: Kind, finished: i64) -> anyhow::Result<Figures> {
    let mut empty = Place::open(kind, "empty").await?;
    let mut full = Place::open(kind, "full").await?;
    let watch = Stopwatch::start();
    add_finished(&full.desk.db, finished).await?;
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
    empty.desk.close().await?;
    full.desk.close().await?;
    Ok(figures)
}

struct Place {
    desk: Desk,
    /// CPU µs per file of each round.
    claims: Vec<f64>,
    settlements: Vec<f64>,
}

impl Place {
    async fn open(kind: Kind, name: &str) -> anyhow::Result<Self> {
        Ok(Self { desk: Desk::open(kind, name).await?, claims: Vec::new(), settlements: Vec::new() })
    }

    async fn round(&mut self) -> anyhow::Result<()> {
        queue_batch(&self.desk.db, FILES_A_ROUND).await?;
        self.desk.begin().await?;
        let mut groups = Vec::new();
        let before = self.desk.used();
        for _ in 0..FILES_A_ROUND / GROUP {
            groups.push(self.desk.claim(GROUP).await?);
        }
        self.claims.push(per_file(self.desk.used().saturating_sub(before), FILES_A_ROUND));

        let before = self.desk.used();
        for stage in [Stage::Extract, Stage::Chunk, Stage::Embed] {
            for files in &groups {
                self.desk.settle(files, stage).await?;
            }
        }
        self.settlements.push(per_file(self.desk.used().saturating_sub(before), FILES_A_ROUND * 3));
        Ok(())
    }
}
