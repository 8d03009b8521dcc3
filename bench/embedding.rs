//! What the vector of a chunk costs, with the built-in model and with one in a folder (`BENCH_MODEL_DIR`, or the one that
//! `make model` fetches), and how near that is to what the processor can do.

use std::ops::ControlFlow;
use std::path::PathBuf;

use landfall_core::caller::TenantUser;
use landfall_core::text::Extracted;
use landfall_models::chunk::chunk;
use landfall_models::encoder::Kernel;
use landfall_server::config::{Config, Variables};
use landfall_server::stages::cores::Cores;
use landfall_server::stages::embed::Embedder;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::figures::Figures;
use super::measure::Stopwatch;
use super::peak;

const FETCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/models/all-MiniLM-L6-v2");
const FOLDER: &str = "BENCH_MODEL_DIR";
const CHUNKS: usize = 200;
/// Each is measured this many times, and the best counts: other load on the machine only takes time away.
const ROUNDS: usize = 5;
const SENTENCES: &[&str] = &[
    "The harbour master writes down every ship that enters between the two lights, its draught and its cargo.",
    "When the barometer falls quickly, small boats stay in and the ferry sails only with half of its passengers.",
    "Invoices are due within thirty days; whoever pays within ten may keep two per cent of the amount.",
    "In the second quarter the repair of the eastern pier cost more than the whole of the year before.",
    "A model that was trained on newspapers knows little of tides, but it learns what stands beside them.",
];

/// Layers, dimensions, and dimensions between: what one token costs.
struct Shape {
    layers: f64,
    hidden: f64,
    wide: f64,
}

impl Shape {
    const BUILT_IN: Self = Self { layers: 3.0, hidden: 384.0, wide: 1536.0 };

    fn of_folder(folder: &str) -> anyhow::Result<Self> {
        let config: Value =
            serde_json::from_slice(&std::fs::read(PathBuf::from(folder).join("config.json"))?)?;
        let number = |name: &str| config[name].as_f64().unwrap_or(f64::NAN);
        Ok(Self {
            layers: number("num_hidden_layers"),
            hidden: number("hidden_size"),
            wide: number("intermediate_size"),
        })
    }

    /// Multiplications and additions with weights for one token.
    fn operations(&self) -> f64 {
        2.0 * self.layers * (4.0 * self.hidden * self.hidden + 2.0 * self.hidden * self.wide)
    }
}

pub async fn run() -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    eprintln!("  computed for {}", Kernel::best().name());
    let peak = peak::measure();
    if let Some(peak) = &peak {
        figures.add("embedding: this processor, f32, 10^9 operations per CPU second", peak.floats / 1e9);
        figures.add("embedding: this processor, bytes, 10^9 operations per CPU second", peak.bytes / 1e9);
    }
    let peak = peak.map(|peak| peak.bytes);
    measure(&mut figures, "built in", &[], &Shape::BUILT_IN, peak).await?;
    let folder = std::env::var(FOLDER).unwrap_or_else(|_| FETCHED.to_owned());
    if PathBuf::from(&folder).is_dir() {
        let shape = Shape::of_folder(&folder)?;
        let name = PathBuf::from(&folder);
        let name = name.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let short = [("EMBED_MODEL_DIR", folder.as_str()), ("CHUNK_SIZE", "120")];
        measure(&mut figures, &name, &short, &shape, peak).await?;
        measure(&mut figures, &name, &short[..1], &shape, peak).await?;
    } else {
        eprintln!("  only the built-in model; `make model` fetches another");
    }
    Ok(figures)
}

async fn measure(
    figures: &mut Figures,
    name: &str,
    variables: &[(&str, &str)],
    shape: &Shape,
    peak: Option<f64>,
) -> anyhow::Result<()> {
    let mut all = Variables::default();
    // What is measured is the computation.
    all.set("EMBED_CACHE_BYTES", "0");
    for (variable, value) in variables {
        all.set(variable, *value);
    }
    let config = Config::from_variables(all)?;
    let embedder = Embedder::open(&config.embed).await?;
    // The day makes every chunk different from all others.
    let text: Vec<String> = SENTENCES
        .iter()
        .cycle()
        .take(2_000)
        .enumerate()
        .map(|(day, sentence)| format!("On day {day}: {sentence}"))
        .collect();
    let extracted = Extracted::plain(text.join(" "));
    let (cancel, cores) =
        (CancellationToken::new(), Cores::of_this_machine().of_user(TenantUser::new("bench", "bench")));
    let chunks = chunk(&extracted, config.chunks, embedder.tokens(), || ControlFlow::Continue(()))?;
    anyhow::ensure!(chunks.len() >= CHUNKS, "{} chunks", chunks.len());
    let texts: Vec<String> = chunks.iter().map(|chunk| chunk.text.clone()).take(CHUNKS).collect();
    // With the two special tokens around a text.
    let tokens: usize = chunks.iter().take(CHUNKS).map(|chunk| chunk.tokens + 2).sum();
    // The first texts warm the caches.
    embedder.embed("bench", &texts[..8], &cores, &cancel, || ()).await?;
    let (mut best, mut best_cpu) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let watch = Stopwatch::start();
        embedder.embed("bench", &texts, &cores, &cancel, || ()).await?;
        best = best.min(watch.elapsed().as_secs_f64());
        best_cpu = best_cpu.min(watch.cpu().as_secs_f64());
    }
    let of = format!("embedding: {name}, chunks of {} tokens", config.chunks.size_tokens);
    figures.add(format!("{of}, per CPU second"), CHUNKS as f64 / best_cpu);
    figures.add(format!("{of}, per second"), CHUNKS as f64 / best);
    if let Some(peak) = peak {
        let share = tokens as f64 * shape.operations() / best_cpu / peak;
        figures.add(format!("{of}, % of what the processor can do"), 100.0 * share);
    }
    Ok(())
}
