use std::process::ExitCode;

use clap::Parser;
use landfall::cli::Cli;

fn main() -> ExitCode {
    landfall::cli::run(Cli::parse())
}
