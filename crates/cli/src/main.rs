use std::process::ExitCode;

use clap::Parser;
use landfall_cli::Cli;
use landfall_documents::sandbox::memory::Remembering;

#[global_allocator]
static ALLOCATOR: Remembering = Remembering;

fn main() -> ExitCode {
    landfall_cli::run(Cli::parse())
}
