//! How well real documents are found, and what processing them costs: `cargo bench --bench documents`.
//!
//! The real program processes a folder of real documents. Then every question of `bench/questions.json` is searched as
//! a user does it, by words and meaning together, and once more by each of the two alone. Each question lists the files
//! that answer it and, if they have pages or slides, the page.
//!
//!     LANDFALL_CORPUS=folder cargo bench --bench documents
//!
//! Settings of the stages (`EXTRACT_…`, `CHUNK_…`, `EMBED_…`) in the environment apply, so that they can be compared.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
#![expect(clippy::cast_precision_loss, reason = "counts of questions and documents are small")]

mod searching;
mod corpus;
mod intake;
mod process;
mod questions;
mod report;
mod score;
mod server;

use std::time::Instant;

use corpus::Corpus;
use report::Cost;
use searching::{Half, Halves};
use server::Server;

fn main() -> anyhow::Result<()> {
    let Some(corpus) = Corpus::find()? else {
        eprintln!(
            "documents: left out, because LANDFALL_CORPUS is not set and ../shared/corpus does not exist"
        );
        return Ok(());
    };
    let questions = questions::about(&corpus)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let folder = tempfile::Builder::new().prefix("landfall-bench-").tempdir()?;
        let mut server = Server::start(folder.path())?;
        eprintln!("{} documents are uploaded", corpus.documents.len());
        // The start of the program is not part of the cost.
        let (began, cpu) = (Instant::now(), server.cpu()?);
        let intake = intake::upload_all(&server, &corpus).await?;
        let cost = Cost {
            seconds: began.elapsed().as_secs_f64(),
            cpu_seconds: server.cpu()?.saturating_sub(cpu).as_secs_f64(),
            peak_mebibytes: server.peak_memory()?,
        };
        eprintln!("{} questions are asked", questions.len());
        let run = searching::over_the_wire(&server, &questions, &intake).await?;
        let nonsense = searching::nonsense(&server).await?;
        searching::write_features(&server, &questions, &intake).await?;
        server.stop()?;
        let halves = Halves::open(folder.path(), &intake).await?;
        let words = halves.search_half(Half::Words, &questions).await?;
        let meaning = halves.search_half(Half::Meaning, &questions).await?;
        halves.close().await;
        report::print(&corpus, &intake, &cost, &run.milliseconds);
        report::print_ranks(&questions, [&run.results, &words, &meaning], &intake);
        report::print_floor(&run.results, &nonsense);
        Ok(())
    })
}
