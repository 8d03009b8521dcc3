//! Why there is no text.

/// Why a document could not be read, with a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
}

/// What kind of cause it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// There is no reader for this kind of file.
    UnsupportedType,
    /// The file claims to be a PDF, and is not.
    NotPdf,
    /// The file, or what is packed in it, exceeds a limit.
    TooLarge,
    /// Reading it needs more memory than the sandbox allows.
    OutOfMemory,
    /// The document is damaged.
    Damaged,
    /// The document is encrypted, or built in a way that no honest document is.
    Invalid,
    /// There is no text in it.
    NoText,
    /// The caller asked the reader to stop.
    Stopped,
    /// It took too long, or made no progress. A busy machine can cause this, so another attempt may succeed.
    TimedOut,
    /// It used more processor time than allowed. Another attempt would use as much.
    ComputingLimit,
    /// The sandbox process was killed from outside. Another attempt may succeed.
    Killed,
    /// The sandbox process could not be started.
    NotStarted,
    /// The bytes of the document could not be read from their source.
    Source,
}

impl ErrorKind {
    const ALL: [Self; 13] = [
        Self::UnsupportedType,
        Self::NotPdf,
        Self::TooLarge,
        Self::OutOfMemory,
        Self::Damaged,
        Self::Invalid,
        Self::NoText,
        Self::Stopped,
        Self::TimedOut,
        Self::ComputingLimit,
        Self::Killed,
        Self::NotStarted,
        Self::Source,
    ];

    /// What it is called between the sandbox and its parent.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::UnsupportedType => "unsupported-type",
            Self::NotPdf => "not-pdf",
            Self::TooLarge => "too-large",
            Self::OutOfMemory => "out-of-memory",
            Self::Damaged => "damaged",
            Self::Invalid => "invalid",
            Self::NoText => "no-text",
            Self::Stopped => "stopped",
            Self::TimedOut => "timed-out",
            Self::ComputingLimit => "computing-limit",
            Self::Killed => "killed",
            Self::NotStarted => "not-started",
            Self::Source => "source",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
