//! Why a document has no text.

/// Why a document could not be read: a kind for the program and a sentence for a person.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use landfall_documents::{Document, ErrorKind, Limits, read};
///
/// let document = Document { bytes: b"only text", name: "report.pdf", content_type: None };
/// let error = read(document, &Limits::default(), &|| ControlFlow::Continue(())).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotPdf);
/// assert_eq!(error.to_string(), "The name or type says PDF, but it is not a PDF");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    detail: Option<String>,
}

impl Error {
    /// An error of this kind. The message is a sentence about the document.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), detail: None }
    }

    /// The same with what the parser said, which is for a log and not for the person.
    #[must_use]
    pub fn with_detail(self, detail: impl std::fmt::Display) -> Self {
        const MAX_LENGTH: usize = 2_000;
        let mut detail = detail.to_string();
        detail.truncate(detail.floor_char_boundary(MAX_LENGTH));
        Self { detail: Some(detail), ..self }
    }

    /// What the parser said, for a log.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// What kind of error it is.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// A sentence for the person whose document it is.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same sentence, owned.
    pub fn into_message(self) -> String {
        self.message
    }
}

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no reader for this kind of file.
    UnsupportedType,
    /// The name or type of the file says PDF, but it is not one.
    NotPdf,
    /// The file, or its unpacked content, exceeds a limit.
    TooLarge,
    /// Reading it needs more memory than the sandbox allows.
    OutOfMemory,
    /// The document is damaged.
    Damaged,
    /// The document is encrypted, or built in a way that only hostile documents are.
    Invalid,
    /// There is no text in it.
    NoText,
    /// The caller asked the reader to stop.
    Stopped,
    /// It took too long, or made no progress. A busy machine can cause this, so another attempt may succeed.
    TimedOut,
    /// It used more processor time than allowed, or computed for long without any progress. Another attempt would use as
    /// much.
    ComputingLimit,
    /// The sandbox process was killed from outside. Another attempt may succeed.
    Killed,
    /// The sandbox process could not be started.
    NotStarted,
    /// The bytes of the document could not be read from their source.
    Source,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
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

    /// A short stable name, such as `no-text`.
    pub const fn name(self) -> &'static str {
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

    #[cfg(feature = "sandbox")]
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}
