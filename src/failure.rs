//! Why a stage did not finish: the codes, what each means for a retry, and the words a person reads.
//!
//! A [`Failure`] is made where the cause is known and travels typed from there to the wire. Nothing looks at the text
//! of a message to find out what happened.

use std::time::Duration;

use serde::Serialize;

/// Whether trying again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Never,
    Once,
    Always,
    /// It is not the file's fault and costs it no attempt: it waits for as long as it takes.
    Wait,
}

/// What kind of cause it was, for the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Class {
    Timeout,
    NetworkError,
    DbError,
    LlmError,
    StorageError,
    DocumentError,
    Unknown,
}

impl Class {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "TIMEOUT",
            Self::NetworkError => "NETWORK_ERROR",
            Self::DbError => "DB_ERROR",
            Self::LlmError => "LLM_ERROR",
            Self::StorageError => "STORAGE_ERROR",
            Self::DocumentError => "DOCUMENT_ERROR",
            Self::Unknown => "UNKNOWN",
        }
    }
}

macro_rules! codes {
    ($($variant:ident $name:literal $retry:ident $class:ident;)*) => {
        /// The code of a failure, as it stands in the database and on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($variant),* }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            pub const fn retry(self) -> Retry {
                match self { $(Self::$variant => Retry::$retry),* }
            }

            pub const fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class),* }
            }
        }
    };
}

codes! {
    UnsupportedType "UNSUPPORTED_TYPE" Never DocumentError;
    NotPdf "NOT_PDF" Never DocumentError;
    TooLarge "TOO_LARGE" Never DocumentError;
    InvalidMapping "INVALID_MAPPING" Never DocumentError;
    Infected "INFECTED" Never DocumentError;
    Gateway4xx "GW_4XX" Never NetworkError;
    Gateway5xx "GW_5XX" Always NetworkError;
    GatewayTimeout "GW_TIMEOUT" Always Timeout;
    GatewayUnavailable "GW_UNAVAILABLE" Always NetworkError;
    EmbedError "EMBED_ERROR" Always LlmError;
    IoError "IO_ERROR" Once StorageError;
    DbError "DB_ERROR" Always DbError;
    StageTimeout "STAGE_TIMEOUT" Always Timeout;
    MemoryError "MEMORY_ERROR" Never DocumentError;
    ParseError "PARSE_ERROR" Never DocumentError;
    ValidationError "VALIDATION_ERROR" Never DocumentError;
    NoText "NO_TEXT" Never DocumentError;
    Unscannable "UNSCANNABLE" Never DocumentError;
    ScannerUnavailable "SCANNER_UNAVAILABLE" Wait NetworkError;
    ChecksumMismatch "CHECKSUM_MISMATCH" Never StorageError;
    SizeMismatch "SIZE_MISMATCH" Never StorageError;
    WorkerLost "WORKER_LOST" Always Unknown;
    StuckExhausted "STUCK_EXHAUSTED" Never Timeout;
    Cancelled "CANCELLED" Never Unknown;
    Unknown "UNKNOWN" Once Unknown;
}

impl Code {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a stage did not finish.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    pub code: Code,
    pub message: String,
    /// Whether trying again can help: what the code says, unless whoever saw the cause knows better.
    pub retry: Retry,
    /// What the service that refused us asked for.
    pub retry_after: Option<Duration>,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        // A message is shown in lists and stored with every attempt: a parser that quotes a megabyte is cut short.
        const LONGEST: usize = 1_000;
        let mut message = message.into();
        if message.len() > LONGEST {
            let end = message.floor_char_boundary(LONGEST);
            message.truncate(end);
            message.push('…');
        }
        Self { code, message, retry: code.retry(), retry_after: None }
    }

    /// One that the same attempt would meet again, whatever its code says of others.
    #[must_use]
    pub fn for_good(mut self) -> Self {
        self.retry = Retry::Never;
        self
    }
}
