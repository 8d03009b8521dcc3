//! `landfall text`: prints the text of a file.

use std::io::Write;

use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, Connection};
use landfall_api::files::{TextFormat, TextQuery};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file.
    #[arg(value_name = "ID")]
    file: Uuid,
    /// Markdown, or plain text without the marks of headings, tables and links.
    #[arg(long, value_name = "FORMAT", default_value = "markdown")]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    Markdown,
    Plain,
}

impl Format {
    const fn asked(self) -> TextFormat {
        match self {
            Self::Markdown => TextFormat::Markdown,
            Self::Plain => TextFormat::Plain,
        }
    }
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let query = TextQuery { format: Some(args.format.asked()) };
    let text = client.text(args.file, &query).await?;
    if as_json {
        println!("{}", json!({ "fileId": args.file, "text": text }));
        return Ok(Outcome::Good);
    }
    let mut out = std::io::stdout().lock();
    out.write_all(without_controls(&text).as_bytes())?;
    if !text.ends_with('\n') {
        writeln!(out)?;
    }
    Ok(Outcome::Good)
}

/// The text of a document comes from other people, and must not control the terminal.
fn without_controls(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_does_not_control_the_terminal() {
        assert_eq!(without_controls("a\tb\n\u{1b}[31mred\u{7}\r\n"), "a\tb\n[31mred\n");
    }
}
