//! What the vector of a chunk costs, with the built-in model and with the one that `make model` fetches.

use std::ops::ControlFlow;
use std::path::Path;

use landfall_core::caller::TenantUser;
use landfall_core::text::Extracted;
use landfall_models::chunk::chunk;
use landfall_server::config::{Config, Variables};
use landfall_server::stages::cores::Cores;
use landfall_server::stages::embed::Embedder;
use tokio_util::sync::CancellationToken;

use super::figures::Figures;
use super::measure::Stopwatch;

const FETCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/models/all-MiniLM-L6-v2");
const CHUNKS: usize = 100;
const SENTENCES: &[&str] = &[
    "The harbour master writes down every ship that enters between the two lights, its draught and its cargo.",
    "When the barometer falls quickly, small boats stay in and the ferry sails only with half of its passengers.",
    "Invoices are due within thirty days; whoever pays within ten may keep two per cent of the amount.",
    "In the second quarter the repair of the eastern pier cost more than the whole of the year before.",
    "A model that was trained on newspapers knows little of tides, but it learns what stands beside them.",
];

pub async fn run() -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    measure(&mut figures, "built in", &[]).await?;
    if Path::new(FETCHED).is_dir() {
        measure(&mut figures, "MiniLM-L6", &[("EMBED_MODEL_DIR", FETCHED), ("CHUNK_SIZE", "120")]).await?;
        measure(&mut figures, "MiniLM-L6", &[("EMBED_MODEL_DIR", FETCHED)]).await?;
    } else {
        eprintln!("embedding: only the built-in model; `make model` fetches another");
    }
    Ok(figures)
}

async fn measure(figures: &mut Figures, name: &str, variables: &[(&str, &str)]) -> anyhow::Result<()> {
    let mut all = Variables::default();
    for (variable, value) in variables {
        all.set(variable, *value);
    }
    let config = Config::from_variables(all)?;
    let embedder = Embedder::open(&config.embed).await?;
    let text = SENTENCES.iter().cycle().take(2_000).copied().collect::<Vec<_>>().join(" ");
    let extracted = Extracted::plain(text);
    let (cancel, cores) =
        (CancellationToken::new(), Cores::of_this_machine().of_user(TenantUser::new("bench", "bench")));
    let chunks = chunk(&extracted, config.chunks, embedder.tokens(), || ControlFlow::Continue(()))?;
    let texts: Vec<String> = chunks.into_iter().map(|chunk| chunk.text).take(CHUNKS).collect();
    anyhow::ensure!(texts.len() == CHUNKS, "{} chunks", texts.len());
    // The first texts warm the caches and start the threads.
    embedder.embed(&texts[..8], &cores, &cancel, || ()).await?;
    let watch = Stopwatch::start();
    embedder.embed(&texts, &cores, &cancel, || ()).await?;
    let (seconds, cpu_seconds) = (watch.elapsed().as_secs_f64(), watch.cpu().as_secs_f64());
    let of = format!("embedding: {name}, chunks of {} tokens", config.chunks.size_tokens);
    figures.add(format!("{of}, per CPU second"), CHUNKS as f64 / cpu_seconds);
    figures.add(format!("{of}, per second"), CHUNKS as f64 / seconds);
    Ok(())
}
