//! What it costs to read a document in a separate process: `cargo bench --bench sandbox`.
//!
//! Each document is read in this process, by the pool, and by a process started for it alone. The documents are a few
//! typical ones and every readable file of the corpus (`LANDFALL_CORPUS`, or `../shared/corpus` beside the
//! checkout, if it exists). If `pdftotext` of poppler is installed, it reads the PDFs for comparison.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use landfall_documents::sandbox::{Document, Pool, Program, SandboxConfig};
use landfall_documents::{Error, Limits, Reading};
use landfall_server::config::{Config, Variables};

const ROUNDS: usize = 21;
const ROUNDS_ALONE: usize = 5;

struct Sample {
    name: String,
    bytes: Vec<u8>,
}

impl Sample {
    fn is(&self, extension: &str) -> bool {
        Path::new(&self.name).extension().is_some_and(|own| own == extension)
    }
}

/// The medians for one sample.
struct Times {
    here: Duration,
    pool: Duration,
    alone: Duration,
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let config = Config::from_variables(Variables::default())?.sandbox;
    let program = Program { path: env!("CARGO_BIN_EXE_landfall").into(), arguments: Vec::new() };
    let pool = Pool::new(program.clone(), config.clone());
    let alone = Pool::new(program, SandboxConfig { documents: 1, idle: 0, ..config });
    println!(
        "{:<34} {:>10} {:>10} {:>10} {:>10} {:>8}",
        "µs, median", "bytes", "here", "pool", "alone", "pool/here"
    );
    let show = |name: &str, bytes: usize, times: &Times| {
        let [here, pool, alone] = [times.here, times.pool, times.alone].map(|time| time.as_secs_f64() * 1e6);
        println!("{name:<34} {bytes:>10} {here:>10.0} {pool:>10.0} {alone:>10.0} {:>8.2}", pool / here);
    };
    for sample in typical() {
        show(&sample.name, sample.bytes.len(), &measure(&sample, &pool, &alone).await?);
    }
    let beside = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("../shared/corpus");
    let folder = std::env::var_os("LANDFALL_CORPUS").map_or(beside, PathBuf::from);
    if !folder.is_dir() {
        println!("the corpus is left out: there is no folder {}", folder.display());
        return Ok(());
    }
    let poppler = Command::new("pdftotext").arg("-v").stderr(Stdio::null()).status().is_ok();
    let (mut pdfs, mut by_poppler, mut by_us) = (0, Duration::ZERO, Duration::ZERO);
    let mut all = Times { here: Duration::ZERO, pool: Duration::ZERO, alone: Duration::ZERO };
    let (mut documents, mut bytes) = (0, 0);
    for sample in corpus(&folder)? {
        let times = measure(&sample, &pool, &alone).await?;
        all.here += times.here;
        all.pool += times.pool;
        all.alone += times.alone;
        documents += 1;
        bytes += sample.bytes.len();
        if poppler && sample.is("pdf") {
            // A document that it cannot read is not compared.
            if let Some(theirs) = pdftotext(&sample)? {
                pdfs += 1;
                by_poppler += theirs;
                by_us += times.pool;
            }
        }
    }
    show(&format!("corpus: all {documents} together"), bytes, &all);
    if poppler {
        let [poppler, us] = [by_poppler, by_us].map(|time| time.as_secs_f64() * 1e3);
        println!("{pdfs} PDFs: pdftotext, a process each {poppler:.0} ms; the pool {us:.0} ms");
    } else {
        println!("pdftotext is not installed (poppler-utils), so nothing is compared with it");
    }
    Ok(())
}

async fn measure(sample: &Sample, pool: &Pool, alone: &Pool) -> anyhow::Result<Times> {
    let (mut here, mut pooled, mut by_itself) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let began = Instant::now();
        let read = read_here(sample)?;
        here.push(began.elapsed());
        drop(read);
        pooled.push(read_by(pool, sample).await?);
        if round < ROUNDS_ALONE {
            by_itself.push(read_by(alone, sample).await?);
        }
    }
    Ok(Times { here: median(here), pool: median(pooled), alone: median(by_itself) })
}

fn read_here(sample: &Sample) -> Result<Reading, Error> {
    let document =
        landfall_documents::Document { bytes: &sample.bytes, name: &sample.name, content_type: None };
    landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Continue(()))
}

fn pdftotext(sample: &Sample) -> anyhow::Result<Option<Duration>> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(&sample.bytes)?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS_ALONE {
        let began = Instant::now();
        let output = Command::new("pdftotext").arg(file.path()).arg("-").output()?;
        times.push(began.elapsed());
        if !output.status.success() {
            return Ok(None);
        }
    }
    Ok(Some(median(times)))
}

async fn read_by(pool: &Pool, sample: &Sample) -> anyhow::Result<Duration> {
    let document = Document {
        label: &sample.name,
        owner: "bench",
        name: &sample.name,
        content_type: None,
        size: sample.bytes.len() as u64,
    };
    let began = Instant::now();
    pool.read(&document, sample.bytes.as_slice()).await?;
    Ok(began.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn typical() -> Vec<Sample> {
    let sentence = "The barometer falls and the swell grows heavier by the hour. ";
    let page = |paragraphs: usize| {
        let body: String =
            (0..paragraphs).map(|n| format!("<h2>Day {n}</h2><p>{sentence}<b>{n}</b></p>\n")).collect();
        format!("<html><body>{body}</body></html>")
    };
    let table: String = (0..2_000).map(|n| format!("{n},Nemo,{sentence}\n")).collect();
    [
        ("note.txt", sentence.repeat(20)),
        ("page.html", page(20)),
        ("long-page.html", page(2_000)),
        ("table.csv", table),
        ("book.txt", sentence.repeat(16_000)),
        ("library.txt", sentence.repeat(320_000)),
    ]
    .into_iter()
    .map(|(name, text)| Sample { name: name.to_owned(), bytes: text.into_bytes() })
    .collect()
}

/// The readable files below a folder. Refusals cost nothing.
fn corpus(folder: &Path) -> anyhow::Result<Vec<Sample>> {
    let (mut folders, mut samples): (Vec<PathBuf>, _) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let bytes = std::fs::read(&path)?;
            let sample = Sample { name, bytes };
            if !sample.is("txt") && read_here(&sample).is_ok_and(|reading| !reading.extracted.text.is_empty())
            {
                samples.push(sample);
            }
        }
    }
    Ok(samples)
}
