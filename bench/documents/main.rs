//! How well real documents are found, and what taking them in costs: `cargo bench --bench documents`.
//!
//! The real program takes in a folder of real documents. Then every question of `bench/questions.json` is asked as a
//! user asks it, by words and meaning together, and once more by each of the two alone. Each question knows the files
//! that answer it and, where they have pages or slides, the page.
//!
//!     LANDFALL_CORPUS=folder cargo bench --bench documents
//!
//! Settings of the stages (`EXTRACT_…`, `CHUNK_…`, `EMBED_…`) in the environment count, so that choices can be compared.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
#![expect(clippy::cast_precision_loss, reason = "counts of questions and documents are small")]

mod asking;
mod corpus;
mod intake;
mod process;
mod questions;
mod report;
mod score;
mod server;

use std::time::Instant;

use asking::{Half, Halves};
use corpus::Corpus;
use report::Cost;
use server::Server;

fn main() -> anyhow::Result<()> {
    let Some(corpus) = Corpus::find()? else {
        eprintln!(
            "documents: left out, because LANDFALL_CORPUS is not set and ../shared/corpus is not there"
        );
        return Ok(());
    };
    let questions = questions::about(&corpus)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let folder = tempfile::Builder::new().prefix("landfall-bench-").tempdir()?;
        let mut server = Server::start(folder.path())?;
        eprintln!("{} documents are taken in", corpus.documents.len());
        // What the program needs to start is not the documents' cost.
        let (began, cpu) = (Instant::now(), server.cpu()?);
        let taken = intake::take_in(&server, &corpus).await?;
        let cost = Cost {
            seconds: began.elapsed().as_secs_f64(),
            cpu_seconds: server.cpu()?.saturating_sub(cpu).as_secs_f64(),
            peak_mebibytes: server.peak_memory()?,
        };
        eprintln!("{} questions are asked", questions.len());
        let asked = asking::over_the_wire(&server, &questions, &taken).await?;
        server.stop()?;
        let halves = Halves::open(folder.path(), &taken).await?;
        let words = halves.ask(Half::Words, &questions).await?;
        let meaning = halves.ask(Half::Meaning, &questions).await?;
        halves.close().await;
        report::print(&corpus, &taken, &cost, &asked.milliseconds);
        report::print_ranks(&questions, [&asked.answers, &words, &meaning], &taken);
        Ok(())
    })
}
