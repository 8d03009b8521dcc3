//! Why a file did not get on, as sentences for its owner: what happened, what to do, and whether it is tried again by
//! itself.
//!
//! They are written when they are shown, from the code, what the stage said, and where the file is then. So a file that
//! failed never promises another attempt, and one that waits for its next attempt always does.

use crate::failure::Code;
use crate::lifecycle::Status;

/// What becomes of the file after the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prospect {
    /// It waits for its next attempt.
    Waiting,
    /// Its next attempt runs.
    Running,
    Failed,
    Cancelled,
    /// It has ended in another way.
    Over,
}

impl Prospect {
    pub const fn of(status: Status) -> Self {
        match status {
            Status::Registered | Status::Uploaded | Status::Queued => Self::Waiting,
            Status::Scanning | Status::Extracting | Status::Chunking | Status::Embedding => Self::Running,
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
            Status::Ready | Status::Deleted => Self::Over,
        }
    }

    const fn sentence(self) -> Option<&'static str> {
        match self {
            Self::Waiting => Some("Landfall tries it again by itself; you need not do anything"),
            Self::Running => Some("Landfall is trying it again now"),
            Self::Failed => Some("Landfall does not try it again by itself"),
            Self::Cancelled | Self::Over => None,
        }
    }
}

/// The sentences about a failure. `said` is what the stage said about it, without a full stop at its end.
pub fn sentences(code: &str, said: &str, status: Status) -> String {
    let (code, prospect) = (Code::parse(code), Prospect::of(status));
    let said = for_people(said, code);
    // More than one sentence: the stage knows best what to do about it.
    let has_advice = said.contains(". ");
    let ends_here = matches!(prospect, Prospect::Failed | Prospect::Cancelled);
    let advice = code.filter(|_| ends_here && !has_advice).map(Code::advice);
    let all = [Some(said), advice, prospect.sentence()];
    all.into_iter()
        .flatten()
        .map(|sentence| format!("{}.", sentence.trim_end_matches('.')))
        .collect::<Vec<_>>()
        .join(" ")
}

/// What a stage said, unless it is not meant for people: 0.1.0 stored what parsers said, and promises to retry.
fn for_people(said: &str, code: Option<Code>) -> &str {
    let said = said.split_once("; will retry").map_or(said, |(said, _)| said).trim();
    let is_of_a_parser = said.contains(['{', '}']);
    match code {
        // What follows in the meaning is about the code in general.
        Some(code) if said.is_empty() || is_of_a_parser => {
            code.meaning().split(';').next().unwrap_or_default()
        }
        _ => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stages say, and what 0.1.0 stored.
    fn sayings(code: Code) -> Vec<String> {
        let own = [
            code.meaning(),
            "",
            "The extraction service took too long; will retry automatically",
            "This PDF is damaged and cannot be read: Parsing Error: Error { input: [91, 49, 32], code: Tag }",
            "This file is protected by a password. Upload a copy without one",
        ];
        own.map(str::to_owned).into()
    }

    #[test]
    fn every_code_in_every_state_says_what_is_true() {
        for code in Code::ALL {
            for said in sayings(*code) {
                for status in Status::ALL {
                    let text = sentences(code.name(), &said, status);
                    let promises = text.contains("tries it again by itself");
                    let waits = Prospect::of(status) == Prospect::Waiting;
                    assert_eq!(promises, waits, "{code} {status}: {text}");
                    assert!(!text.contains("will retry"), "{code} {status}: {text}");
                    assert!(!text.contains(['{', '}', '[', ']']), "{code} {status}: {text}");
                    assert!(text.ends_with('.') && !text.contains(".."), "{code} {status}: {text}");
                    assert!(text.starts_with(char::is_uppercase), "{code} {status}: {text}");
                    if status == Status::Failed {
                        assert!(text.contains("does not try it again by itself"), "{code}: {text}");
                        assert!(text.matches(". ").count() >= 2, "it says what to do: {code}: {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_stage_that_knows_what_to_do_is_not_contradicted() {
        let said = "This PDF is protected by a password. Upload a copy without one";
        assert_eq!(
            sentences("VALIDATION_ERROR", said, Status::Failed),
            "This PDF is protected by a password. Upload a copy without one. Landfall does not try it again by itself."
        );
    }

    #[test]
    fn a_code_of_a_newer_version_is_shown_with_what_was_said() {
        assert_eq!(
            sentences("NEW_CODE", "Something new happened", Status::Queued),
            "Something new happened. Landfall tries it again by itself; you need not do anything."
        );
    }
}
