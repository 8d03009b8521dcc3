//! Every way in which a request is refused: the status, the code, and what it means.
//!
//! This is the only list of them. The description of the API lists for each route which of them it can return, and
//! `docs/errors.md` prints them all.

use std::time::Duration;

use serde_json::{Value, json};

use crate::lifecycle::{InvalidTransition, Status};

macro_rules! reasons {
    ($($variant:ident $status:literal $code:literal $meaning:literal;)*) => {
        /// Why a request is refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum RefusalCode { $($variant),* }

        impl RefusalCode {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),* }
            }

            /// The code in the response.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code),* }
            }

            /// What the code means, for people. The message of a refusal says more.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }
        }
    };
}

reasons! {
    BodyBroken 400 "BODY_BROKEN" "The body ended early; send it again";
    ChecksumMismatch 400 "CHECKSUM_MISMATCH" "The bytes do not match the declared MD5 or SHA-256";
    InvalidAttributes 400 "INVALID_ATTRIBUTES" "The attributes are not up to 16 short names with strings, numbers or booleans";
    InvalidContentType 400 "INVALID_CONTENT_TYPE" "The content type is not valid";
    InvalidCursor 400 "INVALID_CURSOR" "The cursor is not valid";
    InvalidEventType 400 "INVALID_EVENT_TYPE" "The event type does not exist, or the caller may not see it";
    InvalidFileCount 400 "INVALID_FILE_COUNT" "Too many files, or none";
    InvalidFileName 400 "INVALID_FILE_NAME" "A file cannot have this name";
    InvalidFileSize 400 "INVALID_FILE_SIZE" "A file cannot have this size";
    InvalidIdempotencyKey 400 "INVALID_IDEMPOTENCY_KEY" "The Idempotency-Key is empty, too long, or not plain text";
    InvalidJson 400 "INVALID_JSON" "The body is not JSON";
    InvalidMapping 400 "INVALID_MAPPING" "The mapping is not an object or array, has a NUL character, or is longer than 16 KB";
    InvalidMetadata 400 "INVALID_METADATA" "The metadata is not an object, has a NUL character, or is longer than 16 KB";
    InvalidMd5 400 "INVALID_MD5" "The MD5 is not valid";
    InvalidSha256 400 "INVALID_SHA256" "The SHA-256 is not valid";
    InvalidQuery 400 "INVALID_QUERY" "The search query is empty or too long";
    InvalidRequest 400 "INVALID_REQUEST" "The body, the query or the path is not valid for this route";
    NotInProgress 400 "INVALID_STATE" "The file is not in progress, so it cannot be stuck";
    InvalidUpgrade 400 "INVALID_UPGRADE" "The WebSocket handshake is not valid";
    InvalidUploadHeader 400 "INVALID_UPLOAD_HEADER" "A header of the resumable upload is missing or not valid";
    InvalidWebhookUrl 400 "INVALID_WEBHOOK_URL" "Events cannot be sent to this address";
    NothingToForce 400 "NOTHING_TO_FORCE" "The job has no safety limit; run it without force";
    NoScanner 400 "NO_SCANNER" "No virus scanner is configured, so the file cannot start at scan";
    PrivateWebhookAddress 400 "PRIVATE_WEBHOOK_ADDRESS" "The address belongs to a private network";
    SignInExpired 400 "SIGN_IN_EXPIRED" "The sign-in was not begun in this browser, or took too long; sign in again";
    SizeMismatch 400 "SIZE_MISMATCH" "The number of bytes does not match the declared size";
    StageNotReached 400 "STAGE_NOT_REACHED" "The file has not reached this stage before, so it cannot start there";
    UnknownWebhookHost 400 "UNKNOWN_WEBHOOK_HOST" "The host name of the address cannot be resolved";
    UnsupportedChecksum 400 "UNSUPPORTED_CHECKSUM" "The checksum of a part of the upload is of an unknown algorithm, or is not one";
    UploadBroken 400 "UPLOAD_BROKEN" "The upload ended early; send the bytes again";
    InvalidLink 401 "INVALID_LINK" "The link was used, has expired, or was never issued";
    InvalidTicket 401 "INVALID_TICKET" "The ticket was not issued by this server";
    InvalidToken 401 "INVALID_TOKEN" "The token is not valid";
    SessionExpired 401 "SESSION_EXPIRED" "The session has ended; sign in again";
    SignInRefused 401 "SIGN_IN_REFUSED" "The identity provider did not sign the person in, or its answer is not valid";
    TicketExpired 401 "TICKET_EXPIRED" "The ticket has expired; get a fresh one";
    TokenExpired 401 "TOKEN_EXPIRED" "The token has expired";
    Unauthenticated 401 "UNAUTHENTICATED" "The request has no token and no session";
    CrossSiteRequest 403 "CROSS_SITE_REQUEST" "The request uses a session, and a page of another site sent it or the header X-CSRF-Token is missing";
    Forbidden 403 "FORBIDDEN" "Only administrators, or the owner, may do this";
    InsufficientScope 403 "INSUFFICIENT_SCOPE" "The API key does not have the scope that this route needs";
    InvalidSignature 403 "INVALID_SIGNATURE" "The upload URL was not issued by this server";
    JoinedUpload 403 "JOINED_UPLOAD" "The upload is made of its parts, and takes no bytes of its own";
    UploadUrlExpired 403 "UPLOAD_URL_EXPIRED" "The upload URL has expired, and the registration has not; ask for a fresh URL";
    BatchNotFound 404 "BATCH_NOT_FOUND" "There is no such batch, or it belongs to another user";
    CircuitNotFound 404 "CIRCUIT_NOT_FOUND" "There is no such service";
    DeliveryNotFound 404 "DELIVERY_NOT_FOUND" "There is no such delivery, or it belongs to another user";
    FileNotFound 404 "FILE_NOT_FOUND" "There is no such file, or it belongs to another user, or its bytes are gone";
    JobNotFound 404 "JOB_NOT_FOUND" "There is no such job";
    KeyNotFound 404 "KEY_NOT_FOUND" "There is no such API key, or it belongs to another user";
    NotificationNotFound 404 "NOTIFICATION_NOT_FOUND" "There is no such notification, or it belongs to another user";
    NotFound 404 "NOT_FOUND" "There is nothing at this address";
    OperationNotFound 404 "OPERATION_NOT_FOUND" "There is no such operation, or it belongs to another user";
    QueueNotFound 404 "QUEUE_NOT_FOUND" "There is no such queue";
    UploadNotFound 404 "UPLOAD_NOT_FOUND" "There is no such resumable upload, or it belongs to another user";
    WebhookNotFound 404 "WEBHOOK_NOT_FOUND" "There is no such webhook, or it belongs to another user";
    MethodNotAllowed 405 "METHOD_NOT_ALLOWED" "This address does not support the method";
    NotAcceptable 406 "NOT_ACCEPTABLE" "Events are available as a WebSocket or as text/event-stream, and the request asks for neither";
    UploadStalled 408 "UPLOAD_STALLED" "No bytes arrived for too long; send them again";
    UploadTooSlow 408 "UPLOAD_TOO_SLOW" "The bytes arrived too slowly; send them again over a faster connection";
    AnotherSession 409 "ANOTHER_SESSION" "Another person is signed in in this browser; sign out first";
    BlobChanged 409 "BLOB_CHANGED" "The object in the object store was replaced after it was confirmed, so it is not read; upload the file again, or restore the object";
    BatchFull 409 "BATCH_FULL" "The batch was opened for fewer files";
    BatchNotActive 409 "BATCH_NOT_ACTIVE" "The batch accepts no more files";
    InvalidState 409 "INVALID_STATE" "The current state does not allow this";
    JobRunning 409 "JOB_RUNNING" "The job is already running";
    NoDirectUploads 409 "NO_DIRECT_UPLOADS" "The server has no object store that speaks S3, or takes bytes in itself; send them to the upload URL, or by tus";
    NotExtracted 409 "NOT_EXTRACTED" "The text of the file is not extracted yet";
    OffsetMismatch 409 "OFFSET_MISMATCH" "The upload is at another offset; ask for it with HEAD and go on from there";
    SignInUnavailable 409 "SIGN_IN_UNAVAILABLE" "This server does not offer this way to sign in";
    TooManyBatches 409 "TOO_MANY_BATCHES" "The tenant has the maximum number of active batches; close or cancel one first";
    TooManyKeys 409 "TOO_MANY_KEYS" "The user has the maximum number of API keys";
    TooManyWebhooks 409 "TOO_MANY_WEBHOOKS" "The caller has the maximum number of webhooks";
    UploadChanged 409 "UPLOAD_CHANGED" "Another upload of the file arrived in the meantime; confirm again";
    UploadInProgress 409 "UPLOAD_IN_PROGRESS" "Another upload of the file is arriving; wait for its end, or a few seconds if its connection was lost";
    UploadMissing 409 "UPLOAD_MISSING" "The bytes of the file have not arrived";
    WebhookDisabled 409 "WEBHOOK_DISABLED" "The webhook is disabled; enable it first";
    FileDeleted 410 "FILE_DELETED" "The file was deleted";
    UnsupportedTusVersion 412 "UNSUPPORTED_TUS_VERSION" "The header Tus-Resumable is missing or names another version than 1.0.0";
    BodyTooLarge 413 "BODY_TOO_LARGE" "The body is larger than the limit";
    QuotaExceeded 413 "QUOTA_EXCEEDED" "The tenant's quota has no room for it";
    TooLarge 413 "TOO_LARGE" "The file is larger than the limit";
    UnsupportedMediaType 415 "UNSUPPORTED_MEDIA_TYPE" "The bytes of a resumable upload must have the content type application/offset+octet-stream";
    UnknownHost 421 "UNKNOWN_HOST" "The request is for a host that is not this server's; use the address that the operator has set as PUBLIC_URL";
    IdempotencyKeyReused 422 "IDEMPOTENCY_KEY_REUSED" "The Idempotency-Key was used for another request";
    UploadLocked 423 "UPLOAD_LOCKED" "A newer request for the upload has taken its place, or an older one did not end in time; ask for the offset and go on from there";
    TooManyArchives 429 "TOO_MANY_ARCHIVES" "The caller has the maximum number of archives made at the same time; wait for the end of one";
    TooManyAuthFailures 429 "TOO_MANY_AUTH_FAILURES" "Too many wrong tokens or tickets came from this address; a valid one is accepted at any time";
    TooManyConnections 429 "TOO_MANY_CONNECTIONS" "Too many requests of this address are in progress";
    TooManyDeliveries 429 "TOO_MANY_DELIVERIES" "Too many deliveries already wait for the webhook";
    TooManyEventStreams 429 "TOO_MANY_EVENT_STREAMS" "The caller has the maximum number of open streams";
    TooManyRegistrations 429 "TOO_MANY_REGISTRATIONS" "The tenant has registered too many files and batches in a short time, deleted ones included; try again after Retry-After";
    TooManyWrites 429 "TOO_MANY_WRITES" "The caller has sent too many requests that change something; try again after Retry-After";
    PieceChecksumMismatch 460 "PIECE_CHECKSUM_MISMATCH" "The bytes of the request do not match its Upload-Checksum and were not kept; send them again";
    FileDamaged 500 "FILE_DAMAGED" "The stored bytes are not those that were uploaded, so they are not sent; upload the file again, or restore the storage from a backup";
    Internal 500 "INTERNAL" "Something unexpected went wrong; the server has logged it";
    AuthUnavailable 503 "AUTH_UNAVAILABLE" "Tokens cannot be checked at the moment";
    DatabaseFileGone 503 "DATABASE_FILE_GONE" "The file of the server's database was deleted or replaced, so nothing can be stored until an operator puts it back";
    DatabaseUnavailable 503 "DATABASE_UNAVAILABLE" "The database does not answer";
    EventStreamsExhausted 503 "EVENT_STREAMS_EXHAUSTED" "The process has the maximum number of open streams";
    RequestTimeout 503 "REQUEST_TIMEOUT" "The request took too long";
    ServerBusy 503 "SERVER_BUSY" "All connections of the server are in use; try again";
    StorageUnavailable 503 "STORAGE_UNAVAILABLE" "The storage does not answer";
    UploadInterrupted 503 "UPLOAD_INTERRUPTED" "The server was interrupted; send the bytes again";
    StorageFull 507 "STORAGE_FULL" "The storage is full";
}

impl RefusalCode {
    /// Finds a refusal by its code. Where two have the same code, prefix the status: `400/INVALID_STATE`.
    pub fn find(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        match name.split_once('/') {
            Some((status, code)) => {
                all.find(|reason| reason.code() == code && reason.status().to_string() == status)
            }
            None => all.rfind(|reason| reason.code() == name),
        }
    }
}

impl std::fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

/// A request that is refused, and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    pub code: RefusalCode,
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// How long to wait before the same request may succeed, where that is known.
    pub retry_after: Option<Duration>,
    pub details: Option<Value>,
    /// Whether the caller lacks a permission, also where the code says that there is nothing. The client does not see it.
    pub is_not_permitted: bool,
}

impl Refusal {
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        let is_not_permitted = code.status() == 403;
        let message = message.into();
        Self { code, message, retryable: false, retry_after: None, details: None, is_not_permitted }
    }

    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// The same request may succeed after this time.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self.retryable()
    }

    /// What is refused exists, and is not the caller's.
    #[must_use]
    pub fn not_permitted(mut self) -> Self {
        self.is_not_permitted = true;
        self
    }

    /// Also for a file that belongs to another user.
    pub fn no_such_file() -> Self {
        Self::new(RefusalCode::FileNotFound, "There is no such file")
    }

    /// Also for an upload that belongs to another user.
    pub fn no_such_upload() -> Self {
        Self::new(RefusalCode::UploadNotFound, "There is no such upload; begin a new one")
    }

    pub fn no_such_batch() -> Self {
        Self::new(RefusalCode::BatchNotFound, "There is no such batch")
    }

    pub fn no_such_operation() -> Self {
        Self::new(RefusalCode::OperationNotFound, "There is no such operation")
    }

    pub fn no_such_notification() -> Self {
        Self::new(RefusalCode::NotificationNotFound, "There is no such notification")
    }

    pub fn no_such_webhook() -> Self {
        Self::new(RefusalCode::WebhookNotFound, "There is no such webhook")
    }

    pub fn no_such_delivery() -> Self {
        Self::new(RefusalCode::DeliveryNotFound, "There is no such delivery")
    }

    pub fn nothing_here() -> Self {
        Self::new(RefusalCode::NotFound, "There is nothing at this address")
    }

    /// For a file that is not a dead letter.
    pub fn not_failed(status: Status) -> Self {
        Self::new(RefusalCode::InvalidState, format!("This file is {status}: it did not fail"))
            .details(json!({ "status": status }))
    }

    /// For a file that the server deleted. The reason is a sentence without its full stop.
    pub fn deleted_because(reason: &str) -> Self {
        let message = format!("This file was deleted: {reason}. Register it again to upload it");
        Self::new(RefusalCode::FileDeleted, message).details(json!({ "reason": reason }))
    }

    pub fn gone() -> Self {
        Self::new(RefusalCode::FileDeleted, "This file was deleted; register it again to upload it")
    }
}

impl From<InvalidTransition> for Refusal {
    fn from(invalid: InvalidTransition) -> Self {
        let from = invalid.from;
        Self::new(RefusalCode::InvalidState, format!("This file is {from}: {invalid}"))
            .details(json!({ "status": from }))
    }
}
