use std::process::ExitCode;

use clap::Parser;
use landfall_cli::Cli;
use landfall_documents::sandbox;

#[global_allocator]
static ALLOCATOR: sandbox::Allocator = sandbox::Allocator;

fn main() -> ExitCode {
    // The server starts this program again to read documents and pictures.
    sandbox::run_if_child().unwrap_or_else(|| landfall_cli::run(Cli::parse()))
}
