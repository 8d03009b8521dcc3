//! What became of the files of one command.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::batches::SentBatch;
use super::sources::LeftOutCounts;
use super::{Fate, FileResult, Problem};
use crate::format::{count, printable, size};
use landfall_core::lifecycle::Status;

/// How many reasons are told apart. There are fewer codes than that.
const MAX_REASONS: usize = 100;

#[derive(Debug, Default)]
pub struct Report {
    /// Whether the result of each file is kept. Otherwise only the totals are, and a folder may have any number of files.
    pub keeps_all: bool,
    pub results: Vec<FileResult>,
    pub uploaded: usize,
    pub skipped: usize,
    pub failed: usize,
    /// What was sent, and what earlier commands had sent of the same files.
    pub sent_bytes: u64,
    pub resumed_bytes: u64,
    pub left_out: LeftOutCounts,
    pub reasons: BTreeMap<String, Reason>,
}

/// Files with the same problem.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    code: String,
    files: usize,
    /// The first of them.
    path: String,
    message: String,
    advice: Option<&'static str>,
}

impl Report {
    pub fn add(&mut self, result: FileResult, bytes: u64) {
        match result.outcome {
            Fate::Uploaded => {
                self.uploaded += 1;
                self.sent_bytes += bytes;
            }
            Fate::Skipped => self.skipped += 1,
            Fate::Failed => self.failed += 1,
        }
        if let Some(problem) = &result.error {
            self.count(&result.path, problem);
        }
        if self.keeps_all {
            self.results.push(result);
        }
    }

    /// Counts a problem for the summary.
    pub fn count(&mut self, path: &str, problem: &Problem) {
        if let Some(reason) = self.reasons.get_mut(&problem.code) {
            reason.files += 1;
        } else if self.reasons.len() < MAX_REASONS {
            let reason = Reason {
                code: problem.code.clone(),
                files: 1,
                path: path.to_owned(),
                message: problem.message.clone(),
                advice: advice(&problem.code),
            };
            self.reasons.insert(problem.code.clone(), reason);
        }
    }

    pub fn has_problems(&self) -> bool {
        !self.reasons.is_empty()
    }

    /// For programs. It refers to the results, so that a long list is not held twice.
    pub fn json<'a>(&'a self, batches: &'a [SentBatch]) -> impl Serialize + 'a {
        #[derive(Serialize)]
        struct Whole<'a> {
            batches: &'a [SentBatch],
            files: &'a [FileResult],
            summary: Value,
        }
        let summary = json!({
            "uploaded": self.uploaded,
            "skipped": self.skipped,
            "failed": self.failed,
            "sentBytes": self.sent_bytes,
            "resumedBytes": self.resumed_bytes,
            "leftOut": self.left_out,
            "reasons": self.reasons.values().collect::<Vec<_>>(),
        });
        Whole { batches, files: &self.results, summary }
    }

    /// The summary for people: totals, batches, and what to do about files that were not sent.
    pub fn print(&self, batches: &[SentBatch], waited: bool, ended_early: bool) {
        println!("{}", self.totals(waited));
        let left_out = [
            (self.left_out.links, "symbolic link"),
            (self.left_out.empty, "empty file"),
            (self.left_out.special, "special file"),
        ];
        let left_out = left_out.into_iter().filter(|(number, _)| *number > 0);
        let left_out: Vec<String> = left_out.map(|(number, what)| count(number, what)).collect();
        if !left_out.is_empty() {
            println!("left out: {}", left_out.join(", "));
        }
        for id in batches.iter().map(SentBatch::id) {
            if waited {
                println!("batch {id}");
            } else {
                println!("batch {id}: `landfall status {id}` shows its progress");
            }
        }
        for reason in self.reasons.values() {
            let others = match reason.files {
                1 => String::new(),
                files => format!(" and {}", count(files - 1, "other")),
            };
            println!(
                "{}: {}{others}: {}",
                printable(&reason.code),
                printable(&reason.path),
                printable(&reason.message)
            );
            if let Some(advice) = reason.advice {
                println!("  {advice}");
            }
        }
        if self.failed > 0 || ended_early {
            println!(
                "Run the same command again to send the rest: it skips what the server has and goes on with what was begun."
            );
        }
    }

    fn totals(&self, waited: bool) -> String {
        let named = self.uploaded + self.skipped + self.failed;
        let mut line = if waited {
            let states = || self.results.iter().filter_map(|result| result.status);
            let ready = states().filter(|status| *status == Status::Ready).count();
            let unfinished = states().filter(|status| !status.is_terminal()).count();
            let failed = states().count() - ready - unfinished;
            let mut line = format!("{}: {ready} ready, {failed} failed", count(named, "file"));
            for (number, what) in [(unfinished, "in progress"), (self.failed, "not sent")] {
                if number > 0 {
                    line.push_str(&format!(", {number} {what}"));
                }
            }
            line
        } else {
            let mut line = format!("{} of {} sent", self.uploaded, count(named, "file"));
            if self.failed > 0 {
                line.push_str(&format!(", {} failed", self.failed));
            }
            line
        };
        if self.skipped > 0 {
            line.push_str(&format!(", {} skipped because the server has the same bytes", self.skipped));
        }
        if self.sent_bytes > 0 {
            line.push_str(&format!(" ({})", size(self.sent_bytes)));
        }
        line
    }
}

/// What the user can do about a problem, if there is more than to run the command again.
fn advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "QUOTA_EXCEEDED" => {
            "Delete files that are not needed any more, or ask the administrator for a larger quota."
        }
        "TOO_LARGE" => "Split the file, or ask the operator for a larger MAX_FILE_BYTES.",
        "UNREADABLE" => "Check that the path is right and that you may read it.",
        "CHANGED" => "Send it when no program writes to it.",
        "INVALID_FILE_NAME" => "Rename it.",
        "NO_MATCH" | "INVALID_PATTERN" => "Check the pattern, or let the shell expand it.",
        "STORAGE_FULL" | "STORAGE_UNAVAILABLE" | "STORAGE_REFUSED" => {
            "Ask the operator: the server cannot store it."
        }
        "CONNECTION_BROKEN" | "UPLOAD_STALLED" | "UPLOAD_TOO_SLOW" => "Check the connection.",
        _ => return None,
    })
}
