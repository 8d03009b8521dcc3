//! What a start, a deletion and an audit cost beside ten thousand finished files and beside a million. The two alternate, so
//! that other load on the machine affects both.

use std::time::Duration;

use landfall_core::caller::{Caller, Role};
use landfall_core::clock::Clock;
use landfall_server::app::{App, Replacements};
use landfall_server::audit::audit;
use landfall_server::config::Config;
use landfall_server::intake::delete::delete;
use landfall_store::args;
use uuid::Uuid;

use super::databases::{Kind, postmaster};
use super::figures::Figures;
use super::measure::{Stopwatch, cpu_of_family, median, memory, milliseconds};
use super::requests::{FEW, Instance};
use super::seed_rows::{TENANT, USER};

const STARTS: usize = 15;
const DELETIONS: usize = 300;

pub async fn run(kind: Kind, finished: i64) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    let instances = [
        Box::pin(Instance::open(kind, "few", FEW)).await?,
        Box::pin(Instance::open(kind, "many", finished)).await?,
    ];
    let mut compare = |what: &str, unit: &str, [at_few, at_many]: [f64; 2]| {
        figures.add(format!("{what}: {unit} beside {FEW} finished"), at_few);
        figures.add(format!("{what}: {unit} beside {finished} finished"), at_many);
        figures.add(format!("{what}: ratio"), at_many / at_few);
    };

    let mut starts = [Vec::new(), Vec::new()];
    for _ in 0..STARTS {
        for (instance, samples) in instances.iter().zip(&mut starts) {
            let watch = Stopwatch::start();
            let config = Config::from_variables(instance.variables.clone())?;
            let other = Box::pin(App::start(config, Replacements::default())).await?;
            samples.push(milliseconds(watch.elapsed()));
            other.db.close().await;
        }
    }
    compare("start", "ms", starts.map(|samples| median(&samples)));

    let mut deletions = [Vec::new(), Vec::new()];
    let caller = Caller { user: USER.to_owned(), tenant: TENANT.to_owned(), role: Role::Member };
    let mut files = Vec::new();
    for instance in &instances {
        let sql = "SELECT id FROM files WHERE status = 'ready' ORDER BY id LIMIT $1";
        let ids: Vec<(Uuid,)> = instance.app.db.read().await?.rows(sql, args![DELETIONS]).await?;
        files.push(ids);
    }
    for place in 0..DELETIONS {
        for ((instance, samples), ids) in instances.iter().zip(&mut deletions).zip(&files) {
            let watch = Stopwatch::start();
            delete(&instance.app.db, &instance.app.blobs, &caller, ids[place].0, Clock::System.now()).await?;
            samples.push(milliseconds(watch.elapsed()));
        }
    }
    compare("delete", "ms", deletions.map(|samples| median(&samples)));

    // None of the files has its bytes here, and each is looked for.
    let mut audits = [(0.0, 0.0, 0.0); 2];
    for ((instance, files), audited) in instances.iter().zip([FEW, finished]).zip(&mut audits) {
        let server = postmaster(&instance.app.db).await?;
        let server_before = server.map(cpu_of_family);
        let (watch, peak) = (Stopwatch::start(), Peak::watch());
        audit(&instance.app.db, &instance.app.blobs, Clock::System.now()).await?;
        let of_server =
            server.map(cpu_of_family).zip(server_before).map(|(after, before)| after.saturating_sub(before));
        let used = watch.cpu() + of_server.unwrap_or_default();
        *audited =
            (used.as_secs_f64() * 1e6 / files as f64, peak.grown().await, watch.elapsed().as_secs_f64());
    }
    compare("audit", "CPU µs per file", audits.map(|(cpu, ..)| cpu));
    figures.add(format!("audit: MiB that memory grew by beside {finished}"), audits[1].1);
    figures.add(format!("audit: s for {finished} files"), audits[1].2);
    for instance in instances {
        instance.close().await?;
    }
    Ok(figures)
}

/// The most memory that this process has from now on.
struct Peak {
    before: f64,
    highest: tokio::task::JoinHandle<f64>,
    stop: tokio_util::sync::CancellationToken,
}

impl Peak {
    const LOOKS: Duration = Duration::from_millis(20);

    fn watch() -> Self {
        let stop = tokio_util::sync::CancellationToken::new();
        let (before, ended) = (memory(), stop.clone());
        let highest = tokio::spawn(async move {
            let mut highest = memory();
            while tokio::time::timeout(Self::LOOKS, ended.cancelled()).await.is_err() {
                highest = highest.max(memory());
            }
            highest
        });
        Self { before, highest, stop }
    }

    async fn grown(self) -> f64 {
        self.stop.cancel();
        self.highest.await.unwrap_or(f64::NAN) - self.before
    }
}
