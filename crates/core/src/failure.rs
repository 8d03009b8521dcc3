//! Why a stage did not finish: the codes, what each means for a retry, and the message for people.
//!
//! A [`Failure`] is made where the cause is known and stays typed until it is serialized. No code reads the text of
//! a message to find out what happened.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::service::{Report, Service};

/// Whether a retry can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Never,
    Once,
    Always,
    /// The file did not cause it. The retry costs no attempt, and the file waits as long as it takes.
    Wait,
}

/// The class of the cause, for the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = FailureClass))]
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

/// What helps a file that failed. A retry by itself ([`Retry`]) has not helped any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    /// A person retries it.
    Retry,
    /// The same bytes would fail again: another copy is uploaded.
    Upload,
}

macro_rules! codes {
    ($($variant:ident $name:literal $retry:ident $class:ident $meaning:literal => $help:ident $advice:literal;)*) => {
        /// The code of a failure, as the database and the API have it.
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

            /// What the code means, for people. The message of a failure says more.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }

            /// What helps a file that failed with this code.
            pub const fn help(self) -> Help {
                match self { $(Self::$variant => Help::$help),* }
            }

            /// What the owner of a file that failed with this code can do.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice),* }
            }
        }
    };
}

codes! {
    UnsupportedType "UNSUPPORTED_TYPE" Never DocumentError "This kind of file is not supported"
        => Upload "Upload it in a supported format";
    NotPdf "NOT_PDF" Never DocumentError "The file is declared as a PDF, but it is not one"
        => Upload "Upload the PDF itself, or give the file the name and type of what it is";
    TooLarge "TOO_LARGE" Never DocumentError "The file, or its unpacked content, exceeds a limit"
        => Upload "Upload it in smaller parts";
    InvalidMapping "INVALID_MAPPING" Never DocumentError "The mapping is not valid"
        => Upload "Correct the mapping and upload it again";
    Infected "INFECTED" Never DocumentError "The virus scanner found something; the bytes were removed"
        => Upload "Upload a clean copy";
    Gateway4xx "GW_4XX" Never NetworkError "The extraction service refused the file or its configuration"
        => Upload "Correct the file or its mapping and upload it again, or ask the operator";
    Gateway5xx "GW_5XX" Always NetworkError "The extraction service failed"
        => Retry "Retry it when the extraction service works again";
    GatewayTimeout "GW_TIMEOUT" Always Timeout "The extraction service took too long"
        => Retry "Retry it when the extraction service works again";
    GatewayUnavailable "GW_UNAVAILABLE" Always NetworkError "The extraction service cannot be reached, or is busy"
        => Retry "Retry it when the extraction service works again";
    EmbedError "EMBED_ERROR" Always LlmError "The embedding service failed"
        => Retry "Retry it when the embedding service works again";
    IoError "IO_ERROR" Once StorageError "The storage failed"
        => Retry "Retry it; if its bytes are gone, upload it again";
    DbError "DB_ERROR" Always DbError "The database failed"
        => Retry "Retry it; if its bytes are gone, upload it again";
    StageTimeout "STAGE_TIMEOUT" Once Timeout "The stage took longer than its limit; a document that computes all that time without progress is not tried again"
        => Retry "Retry it when the server is less busy, or upload it in smaller parts";
    MemoryError "MEMORY_ERROR" Never DocumentError "The document needs more memory than allowed"
        => Upload "Upload it in smaller parts";
    ParseError "PARSE_ERROR" Never DocumentError "The document cannot be read: it is damaged"
        => Upload "Save it again with the program that made it, and upload that copy";
    ValidationError "VALIDATION_ERROR" Never DocumentError "The document cannot be read: it is encrypted, or it exceeds the limits for documents"
        => Upload "Upload a plain copy of it, without protection and with less in it";
    NoText "NO_TEXT" Never DocumentError "There is no text in the document"
        => Upload "Upload a copy with text in it";
    ArchiveFailed "ARCHIVE_FAILED" Never DocumentError "None of the files in the archive could be read"
        => Retry "Retry it to try its files again, or replace those that are damaged";
    QuotaExceeded "QUOTA_EXCEEDED" Never DocumentError "The files in the archive do not fit into the quota; none of them was kept"
        => Retry "Retry it when there is room in the quota, or upload fewer files";
    Unscannable "UNSCANNABLE" Never DocumentError "The virus scanner could not check the file, so it was rejected"
        => Upload "Upload a copy that is neither encrypted nor packed";
    ScannerUnavailable "SCANNER_UNAVAILABLE" Wait NetworkError "The virus scanner cannot be reached; the file waits until it is back"
        => Retry "Retry it when the virus scanner works again";
    ChecksumMismatch "CHECKSUM_MISMATCH" Never StorageError "The stored bytes do not match the declared MD5"
        => Upload "Upload it again";
    SizeMismatch "SIZE_MISMATCH" Never StorageError "The number of stored bytes does not match the declared size"
        => Upload "Upload it again";
    BlobDamaged "BLOB_DAMAGED" Never StorageError "The stored bytes are not those that were uploaded; upload the file again, or restore the storage from a backup and retry"
        => Upload "Upload it again, or retry it when the operator has restored its bytes";
    BlobChanged "BLOB_CHANGED" Never StorageError "The object in the object store was replaced after it was confirmed; upload the file again, or restore the object and retry"
        => Upload "Upload it again, or retry it when the operator has restored the object";
    WorkerLost "WORKER_LOST" Always Unknown "The worker died while it held the file; a file that kills its worker twice when it is worked on alone fails"
        => Retry "Retry it; if it fails again, tell the operator";
    StuckExhausted "STUCK_EXHAUSTED" Never Timeout "The file was stuck, was recovered the maximum number of times, and never finished"
        => Retry "Retry it; if it fails again, tell the operator";
    Cancelled "CANCELLED" Never Unknown "A person cancelled the file"
        => Retry "Retry it if you still need it";
    Unknown "UNKNOWN" Once Unknown "Something unexpected went wrong"
        => Retry "Retry it; if it fails again, tell the operator";
}

impl Code {
    /// The service that is down when a stage fails with this code and is retried.
    pub const fn service(self) -> Option<Service> {
        match self {
            Self::Gateway5xx | Self::GatewayTimeout | Self::GatewayUnavailable => Some(Service::Gateway),
            Self::EmbedError => Some(Service::Embeddings),
            Self::ScannerUnavailable => Some(Service::Scanner),
            Self::IoError => Some(Service::Storage),
            _ => None,
        }
    }

    /// The code of a file that waited in vain for a service that is down.
    pub const fn of_outage(service: Service) -> Self {
        match service {
            Service::Gateway => Self::GatewayUnavailable,
            Service::Embeddings => Self::EmbedError,
            Service::Scanner => Self::ScannerUnavailable,
            Service::Storage => Self::IoError,
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl Retry {
    /// The text in `docs/errors.md`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Never => "no",
            Self::Once => "once",
            Self::Always => "yes",
            Self::Wait => "waits, at no cost",
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// How far a document came to the service that failed it. It decides whether the document can be the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contact {
    /// The service had the document, or may have had it.
    Reached,
    /// The service answered that it is not available. The attempt counts only if it works for other files.
    Unavailable,
    /// No connection was made, so the document was not sent.
    NotReached,
}

/// Why a stage did not finish.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    pub code: Code,
    pub message: String,
    /// Whether a retry can help: what the code says, unless the code that saw the cause knows more.
    pub retry: Retry,
    /// The delay that the service asked for.
    pub retry_after: Option<Duration>,
    pub contact: Contact,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        // A message is shown in lists and stored with every attempt, so a very long one is cut.
        const MAX_LENGTH: usize = 1_000;
        let mut message = message.into();
        if message.len() > MAX_LENGTH {
            let end = message.floor_char_boundary(MAX_LENGTH);
            message.truncate(end);
            message.push('…');
        }
        Self { code, message, retry: code.retry(), retry_after: None, contact: Contact::Reached }
    }

    /// What the failure says about one of the services that its stage needs.
    pub fn report(&self, service: Service) -> Option<Report> {
        match (self.code.service(), self.retry) {
            (Some(failed), Retry::Once | Retry::Always | Retry::Wait) => match service {
                _ if service == failed => Some(Report::Down),
                Service::Storage if self.shows_storage() => Some(Report::Up),
                _ => None,
            },
            // The service replied: the problem is the document.
            (Some(replied), Retry::Never) => (replied == service).then_some(Report::Up),
            (None, _) => (self.code.class() == Class::DocumentError || self.code == Code::Gateway4xx)
                .then_some(Report::Up),
        }
    }

    /// Whether the storage had returned the document when another service failed: a stage opens it before it calls the
    /// service. What broke off or took too long may have waited for the storage.
    fn shows_storage(&self) -> bool {
        self.contact != Contact::Reached || self.code == Code::Gateway5xx
    }

    /// A passing failure that the file did not cause: the file waits, and the attempt does not count.
    #[must_use]
    pub fn at_no_cost(mut self) -> Self {
        self.retry = Retry::Wait;
        self
    }

    /// The service answered that it is not available.
    #[must_use]
    pub fn unavailable(mut self) -> Self {
        self.contact = Contact::Unavailable;
        self
    }

    /// No connection to the service was made. The file waits for it.
    #[must_use]
    pub fn not_reached(mut self) -> Self {
        self.contact = Contact::NotReached;
        self.at_no_cost()
    }

    /// A failure that another attempt would meet again, even if its code is usually retried.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.retry = Retry::Never;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_answers_shows_that_the_storage_works() {
        let of_storage = |failure: Failure| failure.report(Service::Storage);
        let failed = |code| Failure::new(code, "It failed");
        assert_eq!(of_storage(failed(Code::Gateway5xx)), Some(Report::Up));
        for code in [Code::GatewayUnavailable, Code::ScannerUnavailable] {
            assert_eq!(of_storage(failed(code).unavailable()), Some(Report::Up), "{code}");
            assert_eq!(of_storage(failed(code).not_reached()), Some(Report::Up), "{code}");
        }
        for code in [Code::GatewayTimeout, Code::GatewayUnavailable, Code::ScannerUnavailable] {
            assert_eq!(of_storage(failed(code)), None, "{code} may be the storage");
        }
        assert_eq!(of_storage(failed(Code::IoError)), Some(Report::Down));
        assert_eq!(failed(Code::IoError).report(Service::Gateway), None);
    }

    #[test]
    fn the_advice_names_what_helps() {
        for code in Code::ALL {
            let advice = code.advice();
            assert!(advice.starts_with(char::is_uppercase) && !advice.ends_with('.'), "{code}: {advice}");
            match code.help() {
                Help::Retry => assert!(advice.starts_with("Retry it"), "{code}: {advice}"),
                Help::Upload => assert!(advice.contains("pload"), "{code}: {advice}"),
            }
            // A code that stands for a passing failure is one that a retry helps.
            assert!(code.retry() == Retry::Never || code.help() == Help::Retry, "{code}");
        }
    }
}
