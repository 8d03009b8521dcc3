//! Why a stage did not finish: the codes, what each means for a retry, and the words a person reads.
//!
//! A [`Failure`] is made where the cause is known and travels typed from there to the wire. Nothing looks at the text
//! of a message to find out what happened.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::service::{Report, Service};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = FailureClass)]
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
    ($($variant:ident $name:literal $retry:ident $class:ident $meaning:literal;)*) => {
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

            /// What it means, for a person. A failure's own message says more.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }
        }
    };
}

codes! {
    UnsupportedType "UNSUPPORTED_TYPE" Never DocumentError "This kind of file is not supported";
    NotPdf "NOT_PDF" Never DocumentError "The file is declared as a PDF, but it is not one";
    TooLarge "TOO_LARGE" Never DocumentError "The file, or its unpacked content, exceeds a limit";
    InvalidMapping "INVALID_MAPPING" Never DocumentError "The mapping is not valid";
    Infected "INFECTED" Never DocumentError "The virus scanner found something; the bytes were removed";
    Gateway4xx "GW_4XX" Never NetworkError "The extraction service refused the file or its configuration";
    Gateway5xx "GW_5XX" Always NetworkError "The extraction service failed";
    GatewayTimeout "GW_TIMEOUT" Always Timeout "The extraction service took too long";
    GatewayUnavailable "GW_UNAVAILABLE" Always NetworkError "The extraction service cannot be reached, or is busy";
    EmbedError "EMBED_ERROR" Always LlmError "The embedding service failed";
    IoError "IO_ERROR" Once StorageError "The storage failed";
    DbError "DB_ERROR" Always DbError "The database failed";
    StageTimeout "STAGE_TIMEOUT" Always Timeout "The stage took longer than its limit";
    MemoryError "MEMORY_ERROR" Never DocumentError "The document needs more memory than allowed";
    ParseError "PARSE_ERROR" Never DocumentError "The document cannot be read: it is damaged";
    ValidationError "VALIDATION_ERROR" Never DocumentError "The document cannot be read: it is encrypted, or it exceeds the limits for documents";
    NoText "NO_TEXT" Never DocumentError "There is no text in the document";
    Unscannable "UNSCANNABLE" Never DocumentError "The virus scanner could not check the file, so it was rejected";
    ScannerUnavailable "SCANNER_UNAVAILABLE" Wait NetworkError "The virus scanner cannot be reached; the file waits until it is back";
    ChecksumMismatch "CHECKSUM_MISMATCH" Never StorageError "The stored bytes do not match the declared MD5; the upload can be confirmed again";
    SizeMismatch "SIZE_MISMATCH" Never StorageError "The number of stored bytes does not match the declared size; the upload can be confirmed again";
    WorkerLost "WORKER_LOST" Always Unknown "The worker died while it held the file; after three such deaths the file fails";
    StuckExhausted "STUCK_EXHAUSTED" Never Timeout "The file was stuck, was recovered the maximum number of times, and never finished";
    Cancelled "CANCELLED" Never Unknown "A person cancelled the file";
    Unknown "UNKNOWN" Once Unknown "Something unexpected went wrong";
}

impl Code {
    /// The service that is down when this is retried.
    pub const fn service(self) -> Option<Service> {
        match self {
            Self::Gateway5xx | Self::GatewayTimeout | Self::GatewayUnavailable => Some(Service::Gateway),
            Self::EmbedError => Some(Service::Embeddings),
            Self::ScannerUnavailable => Some(Service::Scanner),
            Self::IoError => Some(Service::Storage),
            _ => None,
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl Retry {
    /// In words, as `docs/errors.md` has it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Never => "no",
            Self::Once => "once",
            Self::Always => "yes",
            Self::Wait => "waits, at no cost",
        }
    }
}

/// As the API's description has it.
impl utoipa::PartialSchema for Code {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        let names = Self::ALL.iter().map(|code| code.name());
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::Type::String)
            .enum_values(Some(names))
            .into()
    }
}

impl utoipa::ToSchema for Code {
    fn name() -> std::borrow::Cow<'static, str> {
        "FailureCode".into()
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

    /// What it says about one of the services that its stage needs.
    pub fn report(&self, service: Service) -> Option<Report> {
        match (self.code.service(), self.retry) {
            (Some(failed), Retry::Once | Retry::Always | Retry::Wait) => {
                (failed == service).then_some(Report::Down)
            }
            // It answered, and it was the document that it did not like.
            (Some(answered), Retry::Never) => (answered == service).then_some(Report::Up),
            (None, _) => (self.code.class() == Class::DocumentError || self.code == Code::Gateway4xx)
                .then_some(Report::Up),
        }
    }

    /// One that the file has nothing to do with and that passes: it waits, and its attempt does not count.
    #[must_use]
    pub fn at_no_cost(mut self) -> Self {
        self.retry = Retry::Wait;
        self
    }

    /// One that the same attempt would meet again, whatever its code says of others.
    #[must_use]
    pub fn for_good(mut self) -> Self {
        self.retry = Retry::Never;
        self
    }
}
