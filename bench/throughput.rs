//! A batch of files that are all queued when the worker starts, until the batch is complete.

use super::databases::{Fresh, Kind, postmaster};
use super::figures::Figures;
use super::measure::{Stopwatch, cpu_of_family, milliseconds, peak_memory};
use super::seed_rows::queue_batch;
use super::worker::Running;

pub async fn run(kind: Kind, files: usize) -> anyhow::Result<Figures> {
    let fresh = Fresh::create(kind, "flows").await?;
    let mut running = Running::prepare(&fresh).await?;
    let batch = queue_batch(&running.db, files).await?;
    let postmaster = postmaster(&running.db).await?;
    let server_before = postmaster.map(cpu_of_family);

    let watch = Stopwatch::start();
    running.start();
    running.finished(files).await?;
    running.until("batches", batch, "completed").await?;
    let (elapsed, cpu) = (watch.elapsed(), watch.cpu());

    let count = files as f64;
    let what = |figure: &str| format!("{files} files: {figure}");
    let mut figures = Figures::default();
    figures.add(what("flows/s"), count / elapsed.as_secs_f64());
    figures.add(what("CPU ms per flow"), milliseconds(cpu) / count);
    if let (Some(postmaster), Some(before)) = (postmaster, server_before) {
        let server = cpu_of_family(postmaster).saturating_sub(before);
        figures.add(what("server's CPU ms per flow"), milliseconds(server) / count);
    }
    // Four if the worker carries each file through its stages: a claim and three settlements. More if it hands over.
    let steps = running
        .db
        .read()
        .await?
        .number("SELECT COUNT(*) FROM events WHERE worker IS NOT NULL", vec![])
        .await?;
    figures.add(what("steps per flow"), steps as f64 / count);
    figures.add(what("peak memory, MiB"), peak_memory());
    running.end(fresh).await?;
    Ok(figures)
}
