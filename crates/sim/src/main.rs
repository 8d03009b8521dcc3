//! `landfall-sim --seed 42` repeats one history; `landfall-sim --seeds 3000` runs many, and tells the first that fails.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use landfall_core::clock::Stopwatch;
use landfall_core::mutants::{self, Mutant};
use landfall_sim::history::{self, Verdict};
use landfall_sim::plan::{Mix, Plan, Without};
use landfall_sim::report::Coverage;
use landfall_sim::trace::Detail;
use landfall_sim::{entropy, forks, shrink};

const HELP: &str =
    "landfall-sim --seed N [--without-faults A,B] [--without-files A,B] [--without-kinds A,B] [--log] [--brief]
landfall-sim --seeds N [--first N] [--jobs N] [--keep-going] [--coverage] [--mutant NAME] [--no-shrinking]
landfall-sim --regressions FOLDER";

#[expect(clippy::struct_excessive_bools, reason = "each is a word of the command line")]
struct Options {
    seed: Option<u64>,
    first: u64,
    seeds: u64,
    jobs: usize,
    without: Without,
    keeps_going: bool,
    shows_coverage: bool,
    logs: bool,
    /// A line for each history, with its hash.
    is_brief: bool,
    shrinks: bool,
    /// A folder with histories that once failed.
    regressions: Option<PathBuf>,
}

fn main() -> ExitCode {
    entropy::replace();
    let options = match options() {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("{wrong}\n{HELP}");
            return ExitCode::from(2);
        }
    };
    if options.logs {
        tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG).init();
    }
    let ground = history::prepare();
    if let Some(folder) = &options.regressions {
        return run_regressions(folder, &ground);
    }
    match options.seed {
        Some(seed) => {
            let detail = if options.is_brief { Detail::Nothing } else { Detail::Story };
            let verdict = forks::run_one(seed, &options.without, detail, &ground);
            if options.is_brief {
                println!("seed {seed}: {} steps, hash {:016x}", verdict.steps, verdict.hash);
            } else {
                tell(&verdict, &options.without);
            }
            if verdict.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        None => run_many(&options, &ground),
    }
}

fn run_many(options: &Options, ground: &Arc<landfall_sim::world::Ground>) -> ExitCode {
    let seeds = options.first..options.first + options.seeds;
    let (watch, mut coverage, mut failed) = (Stopwatch::start(), Coverage::default(), Vec::new());
    let detail = if options.shows_coverage { Detail::Statements } else { Detail::Nothing };
    forks::run_all(seeds, &options.without, detail, options.jobs, ground, |verdict| {
        coverage.add(&verdict);
        if options.is_brief {
            println!("seed {}: {} steps, hash {:016x}", verdict.seed, verdict.steps, verdict.hash);
        }
        if verdict.violations.is_empty() {
            return true;
        }
        println!("seed {}: {}", verdict.seed, verdict.violations.join("; "));
        failed.push(verdict);
        options.keeps_going
    });
    let seconds = watch.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "it is shown without digits")]
    let rate = coverage.histories as f64 / seconds;
    println!(
        "{} histories with {} steps in {seconds:.1} s, {rate:.0} a second; {} failed",
        coverage.histories,
        coverage.steps,
        failed.len()
    );
    if options.shows_coverage {
        println!("{}", coverage.lines().join("\n"));
    }
    println!("never reached: {}", coverage.never().join(", "));
    if !failed.is_empty() && !options.shrinks {
        return ExitCode::FAILURE;
    }
    if let Some(first) = failed.first() {
        let (without, verdict) = shrink::shrink(first, ground);
        tell(&verdict, &without);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Repeats the histories of a folder: each file has a sentence, and below it lines with a seed.
fn run_regressions(folder: &Path, ground: &Arc<landfall_sim::world::Ground>) -> ExitCode {
    let listed = std::fs::read_dir(folder).map(|entries| entries.filter_map(Result::ok).collect::<Vec<_>>());
    let Ok(mut entries) = listed else {
        eprintln!("{} cannot be read", folder.display());
        return ExitCode::from(2);
    };
    entries.sort_by_key(std::fs::DirEntry::path);
    let (mut run, mut failed) = (0, 0);
    for entry in entries {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        for seed in text.lines().filter_map(|line| line.strip_prefix("seed ")?.trim().parse().ok()) {
            let verdict = forks::run_one(seed, &Without::default(), Detail::Nothing, ground);
            run += 1;
            if !verdict.violations.is_empty() {
                failed += 1;
                println!("{}: seed {seed}: {}", entry.path().display(), verdict.violations.join("; "));
            }
        }
    }
    println!("{run} histories that once failed; {failed} fail");
    if failed == 0 && run > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tell(verdict: &Verdict, without: &Without) {
    let plan = Plan::draw(verdict.seed, without);
    println!("seed {} without {}", verdict.seed, listed(without));
    println!("{} processes, a tick of {} ms, {:?}", plan.processes, plan.tick, plan.mix);
    if let Some(patience) = plan.patience() {
        println!("  files wait for a service for {patience:?}");
    }
    for fault in &plan.faults {
        println!("  fault: {fault:?}");
    }
    for file in &plan.files {
        println!("  file: {file:?}");
    }
    println!("{}", verdict.story.join("\n"));
    println!("most often:\n{}", verdict.most_often.join("\n"));
    for violation in &verdict.violations {
        println!("VIOLATION: {violation}");
    }
    println!("{} steps, {} ms, hash {:016x}", verdict.steps, verdict.lasted, verdict.hash);
}

fn listed(without: &Without) -> String {
    let numbers = |of: &BTreeSet<usize>| of.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let kinds = without.kinds.iter().filter_map(|kind| Mix::NAMES.get(*kind)).copied().collect::<Vec<_>>();
    format!(
        "--without-faults '{}' --without-files '{}' --without-kinds '{}' ({})",
        numbers(&without.faults),
        numbers(&without.files),
        numbers(&without.kinds),
        kinds.join(", ")
    )
}

fn options() -> Result<Options, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        seed: None,
        first: 1,
        seeds: 100,
        jobs: cores,
        without: Without::default(),
        keeps_going: false,
        shows_coverage: false,
        logs: false,
        is_brief: false,
        shrinks: true,
        regressions: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text} is not a number"));
        match word.as_str() {
            "--seed" => options.seed = Some(number(value()?)?),
            "--first" => options.first = number(value()?)?,
            "--seeds" => options.seeds = number(value()?)?,
            "--jobs" => options.jobs = usize::try_from(number(value()?)?).unwrap_or(1).max(1),
            "--without-faults" => options.without.faults = list(&value()?)?,
            "--without-files" => options.without.files = list(&value()?)?,
            "--without-kinds" => options.without.kinds = list(&value()?)?,
            "--keep-going" => options.keeps_going = true,
            "--coverage" => options.shows_coverage = true,
            "--log" => options.logs = true,
            "--brief" => options.is_brief = true,
            "--no-shrinking" => options.shrinks = false,
            "--mutant" => {
                let name = value()?;
                let mutant = name.parse::<Mutant>().map_err(|_| {
                    let known: Vec<&str> = Mutant::ALL.iter().map(|mutant| mutant.name()).collect();
                    format!("{name} is not one of {}", known.join(", "))
                })?;
                mutants::bring_back(mutant);
            }
            "--regressions" => options.regressions = Some(value()?.into()),
            _ => return Err(format!("{word} is not known")),
        }
    }
    Ok(options)
}

fn list(text: &str) -> Result<BTreeSet<usize>, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().map_err(|_| format!("{part} is not a number"))).collect()
}
