use std::process::ExitCode;

use clap::Parser;
use landfall::cli::Cli;
use landfall::stages::sandbox::memory::Remembering;

#[global_allocator]
static ALLOCATOR: Remembering = Remembering;

fn main() -> ExitCode {
    landfall::cli::run(Cli::parse())
}
