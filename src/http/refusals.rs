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
    400 "BODY_BROKEN" "The body ended early; send it again";
    400 "CHECKSUM_MISMATCH" "The bytes do not match the declared MD5";
    400 "INVALID_CONTENT_TYPE" "The content type is not valid";
    400 "INVALID_CURSOR" "The cursor is not valid";
    400 "INVALID_EVENT_TYPE" "The event type does not exist, or the caller may not see it";
    400 "INVALID_FILE_COUNT" "Too many files, or none";
    400 "INVALID_FILE_NAME" "A file cannot have this name";
    400 "INVALID_FILE_SIZE" "A file cannot have this size";
    400 "INVALID_IDEMPOTENCY_KEY" "The Idempotency-Key is empty, too long, or not plain text";
    400 "INVALID_JSON" "The body is not JSON";
    400 "INVALID_MAPPING" "The mapping is not an object or array, or is too long";
    400 "INVALID_MD5" "The MD5 is not valid";
    400 "INVALID_QUERY" "The search query is empty or too long";
    400 "INVALID_REQUEST" "The body, the query or the path is not valid for this route";
    400 "INVALID_STATE" "The file is not in progress, so it cannot be stuck";
    400 "INVALID_UPGRADE" "The WebSocket handshake is not valid";
    400 "INVALID_WEBHOOK_URL" "Events cannot be sent to this address";
    400 "NOTHING_TO_FORCE" "The job has no safety limit; run it without force";
    400 "NO_SCANNER" "No virus scanner is configured, so the file cannot start at scan";
    400 "PRIVATE_WEBHOOK_ADDRESS" "The address belongs to a private network";
    400 "SIZE_MISMATCH" "The number of bytes does not match the declared size";
    400 "STAGE_NOT_REACHED" "The file has not reached this stage before, so it cannot start there";
    400 "UNKNOWN_WEBHOOK_HOST" "The host name of the address cannot be resolved";
    400 "UPLOAD_BROKEN" "The upload ended early; send the bytes again";
    401 "INVALID_TICKET" "The ticket was not issued by this server";
    401 "INVALID_TOKEN" "The token is not valid";
    401 "TICKET_EXPIRED" "The ticket has expired; get a fresh one";
    401 "TOKEN_EXPIRED" "The token has expired";
    401 "UNAUTHENTICATED" "The request has no token";
    403 "FORBIDDEN" "Only administrators, or the owner, may do this";
    403 "INVALID_SIGNATURE" "The upload URL was not issued by this server";
    403 "UPLOAD_URL_EXPIRED" "The upload URL has expired; ask for a fresh one";
    404 "BATCH_NOT_FOUND" "There is no such batch, or it belongs to another user";
    404 "DELIVERY_NOT_FOUND" "There is no such delivery, or it belongs to another user";
    404 "FILE_NOT_FOUND" "There is no such file, or it belongs to another user, or its bytes are gone";
    404 "JOB_NOT_FOUND" "There is no such job";
    404 "NOTIFICATION_NOT_FOUND" "There is no such notification, or it belongs to another user";
    404 "NOT_FOUND" "There is nothing at this address";
    404 "OPERATION_NOT_FOUND" "There is no such operation, or it belongs to another user";
    404 "QUEUE_NOT_FOUND" "There is no such queue";
    404 "WEBHOOK_NOT_FOUND" "There is no such webhook, or it belongs to another user";
    405 "METHOD_NOT_ALLOWED" "This address does not support the method";
    406 "NOT_ACCEPTABLE" "Events are available as a WebSocket or as text/event-stream, and the request asks for neither";
    408 "UPLOAD_STALLED" "No bytes arrived for too long; send them again";
    409 "BATCH_FULL" "The batch was opened for fewer files";
    409 "BATCH_NOT_ACTIVE" "The batch accepts no more files";
    409 "INVALID_STATE" "The current state does not allow this";
    409 "JOB_RUNNING" "The job is already running";
    409 "NOT_EXTRACTED" "The text of the file is not extracted yet";
    409 "TOO_MANY_WEBHOOKS" "The caller has the maximum number of webhooks";
    409 "UPLOAD_CHANGED" "Another upload of the file arrived in the meantime; confirm again";
    409 "UPLOAD_MISSING" "The bytes of the file have not arrived";
    409 "WEBHOOK_DISABLED" "The webhook is disabled; enable it first";
    410 "FILE_DELETED" "The file was deleted";
    413 "BODY_TOO_LARGE" "The body is larger than the limit";
    413 "QUOTA_EXCEEDED" "The tenant's quota has no room for it";
    413 "TOO_LARGE" "The file is larger than the limit";
    422 "IDEMPOTENCY_KEY_REUSED" "The Idempotency-Key was used for another request";
    429 "TOO_MANY_DELIVERIES" "Too many deliveries already wait for the webhook";
    429 "TOO_MANY_EVENT_STREAMS" "The caller has the maximum number of open streams";
    500 "INTERNAL" "Something unexpected went wrong; the server has logged it";
    503 "AUTH_UNAVAILABLE" "Tokens cannot be checked at the moment";
    503 "DATABASE_UNAVAILABLE" "The database does not answer";
    503 "EVENT_STREAMS_EXHAUSTED" "The process has the maximum number of open streams";
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
