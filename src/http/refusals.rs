//! Every way in which a request is refused: the status, the code, and what it means. The description of the API says
//! for each route which of them it has; `docs/errors.md` lists them all. Tests compare both with the code.

pub struct Known {
    pub status: u16,
    pub code: &'static str,
    pub meaning: &'static str,
}

macro_rules! known {
    ($($status:literal $code:literal $meaning:literal;)*) => {
        pub const KNOWN: &[Known] = &[$(Known { status: $status, code: $code, meaning: $meaning }),*];
    };
}

known! {
    400 "BODY_BROKEN" "The body broke off; send it again";
    400 "CHECKSUM_MISMATCH" "The bytes do not have the MD5 that was declared";
    400 "INVALID_CONTENT_TYPE" "The content type does not look like one";
    400 "INVALID_CURSOR" "The cursor is not one of ours";
    400 "INVALID_EVENT_TYPE" "There are no such events, or not for the caller";
    400 "INVALID_FILE_COUNT" "Too many files, or none";
    400 "INVALID_FILE_NAME" "A file cannot have this name";
    400 "INVALID_FILE_SIZE" "A file cannot have this size";
    400 "INVALID_IDEMPOTENCY_KEY" "The Idempotency-Key is empty, too long, or not plain text";
    400 "INVALID_JSON" "The body is not JSON";
    400 "INVALID_MAPPING" "The mapping is not an object or array, or too long";
    400 "INVALID_MD5" "The MD5 does not look like one";
    400 "INVALID_QUERY" "The question is empty or too long";
    400 "INVALID_REQUEST" "The body, the query or the path is not what is taken here";
    400 "INVALID_STATE" "The file is not on its way, so it cannot be stuck";
    400 "INVALID_UPGRADE" "The WebSocket cannot be opened like this";
    400 "INVALID_WEBHOOK_URL" "The address is not one that events could be sent to";
    400 "NOTHING_TO_FORCE" "Nothing holds the job back; run it without force";
    400 "NO_SCANNER" "There is no virus scanner here to begin with";
    400 "PRIVATE_WEBHOOK_ADDRESS" "The address leads to a private network";
    400 "SIZE_MISMATCH" "The bytes are not as many as were declared";
    400 "STAGE_NOT_REACHED" "The file did not come so far, and cannot begin there";
    400 "UNKNOWN_WEBHOOK_HOST" "Nobody knows where the address leads";
    400 "UPLOAD_BROKEN" "The upload broke off; send the bytes again";
    401 "INVALID_TICKET" "The ticket is not one that this server issued";
    401 "INVALID_TOKEN" "The token is not valid";
    401 "TICKET_EXPIRED" "The ticket has expired; get a fresh one";
    401 "TOKEN_EXPIRED" "The token has expired";
    401 "UNAUTHENTICATED" "There is no token with the request";
    403 "FORBIDDEN" "This is for others: for administrators, or for the owner";
    403 "INVALID_SIGNATURE" "The upload URL is not one that this server issued";
    403 "UPLOAD_URL_EXPIRED" "The upload URL has expired; ask for a fresh one";
    404 "BATCH_NOT_FOUND" "There is no such batch, or it is somebody else's";
    404 "DELIVERY_NOT_FOUND" "There is no such delivery, or it is somebody else's";
    404 "FILE_NOT_FOUND" "There is no such file, or it is somebody else's, or its bytes are gone";
    404 "JOB_NOT_FOUND" "There is no such job";
    404 "NOTIFICATION_NOT_FOUND" "There is no such notification, or it is somebody else's";
    404 "NOT_FOUND" "There is nothing at this address";
    404 "OPERATION_NOT_FOUND" "There is no such operation, or it is somebody else's";
    404 "QUEUE_NOT_FOUND" "There is no such queue";
    404 "WEBHOOK_NOT_FOUND" "There is no such webhook, or it is somebody else's";
    405 "METHOD_NOT_ALLOWED" "This address does not take that method";
    406 "NOT_ACCEPTABLE" "Events come as a WebSocket or as text/event-stream, and neither was asked for";
    408 "UPLOAD_STALLED" "No bytes arrived for too long; send them again";
    409 "BATCH_FULL" "The batch was opened for fewer files";
    409 "BATCH_NOT_ACTIVE" "The batch takes no more files";
    409 "INVALID_STATE" "The state that it is in does not allow this";
    409 "JOB_RUNNING" "The job runs already";
    409 "NOT_EXTRACTED" "There is no text of the file yet";
    409 "TOO_MANY_WEBHOOKS" "The caller has as many as one may have";
    409 "UPLOAD_CHANGED" "Another upload of the file arrived meanwhile; confirm again";
    409 "UPLOAD_MISSING" "The bytes of the file have not arrived";
    409 "WEBHOOK_DISABLED" "The webhook is disabled; enable it first";
    410 "FILE_DELETED" "The file was deleted";
    413 "BODY_TOO_LARGE" "The body is longer than any that is taken here";
    413 "QUOTA_EXCEEDED" "The tenant has no room for it";
    413 "TOO_LARGE" "The file is larger than one may be";
    422 "IDEMPOTENCY_KEY_REUSED" "The Idempotency-Key was used for another request";
    429 "TOO_MANY_DELIVERIES" "Too many deliveries wait for the webhook already";
    429 "TOO_MANY_EVENT_STREAMS" "The caller has as many streams open as one may have";
    500 "INTERNAL" "Something unexpected went wrong; it has been logged";
    503 "AUTH_UNAVAILABLE" "Tokens cannot be checked at the moment";
    503 "DATABASE_UNAVAILABLE" "The database does not answer";
    503 "EVENT_STREAMS_EXHAUSTED" "The process has as many streams open as it may have";
    503 "REQUEST_TIMEOUT" "The request took too long";
    503 "STORAGE_UNAVAILABLE" "The storage does not answer";
    503 "UPLOAD_INTERRUPTED" "The server was interrupted; send the bytes again";
    507 "STORAGE_FULL" "The storage is full";
}

impl Known {
    /// By its code; where two have the same, by its status too: `400/INVALID_STATE`.
    pub fn find(name: &str) -> Option<&'static Self> {
        match name.split_once('/') {
            Some((status, code)) => {
                KNOWN.iter().find(|known| known.code == code && known.status.to_string() == status)
            }
            None => KNOWN.iter().rfind(|known| known.code == name),
        }
    }
}
