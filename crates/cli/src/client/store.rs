//! Sends bytes to the URL of a ticket: that of the server, or of an object store.

use reqwest::StatusCode;
use url::Url;

use super::{Client, ClientError, retry_after};
use crate::format::printable;
use landfall_api::refusal::RefusalView;
use landfall_api::uploads::UploadTicket;

/// How much of a response is looked at.
const MAX_RESPONSE_BYTES: usize = 16 * 1024;
/// How much of a storage's message is shown.
const MAX_SHOWN_CHARS: usize = 200;

impl Client {
    /// Sends the bytes of a file with exactly the headers of its ticket. The URL is the authorization: it may be that of
    /// another server, so no token goes with it.
    pub async fn send_bytes(&self, ticket: &UploadTicket, body: reqwest::Body) -> Result<(), ClientError> {
        let is_ours = self.is_server(&ticket.upload_url);
        let http = if is_ours { &self.http } else { &self.elsewhere };
        let mut request = http.put(&ticket.upload_url).body(body);
        for (name, value) in &ticket.headers {
            request = request.header(name, value.as_str().unwrap_or_default());
        }
        if is_ours {
            return self.send(request).await.map(drop);
        }
        let response = request.send().await.map_err(|error| unreachable(&ticket.upload_url, &error))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            // The object is there: an earlier attempt arrived, and its response was lost. The confirmation compares it.
            StatusCode::PRECONDITION_FAILED => Ok(()),
            status => match storage_refusal(status, response).await {
                // As Azure says it.
                ClientError::Storage { status: 409, message, .. }
                    if message.contains("BlobAlreadyExists") =>
                {
                    Ok(())
                }
                error => Err(error),
            },
        }
    }

    /// Whether a URL is one of the server's.
    fn is_server(&self, url: &str) -> bool {
        match (Url::parse(url), Url::parse(&self.server)) {
            (Ok(url), Ok(server)) => url.origin() == server.origin(),
            _ => false,
        }
    }
}

/// A storage that cannot be reached concerns the files that are sent to it, and not the server. The error names only where
/// it is: the rest of the URL is a secret.
fn unreachable(url: &str, error: &reqwest::Error) -> ClientError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let server =
        Url::parse(url).map_or_else(|_| "the storage".to_owned(), |url| url.origin().ascii_serialization());
    ClientError::Interrupted { server, why: printable(&cause.to_string()), retry_after: None }
}

async fn storage_refusal(status: StatusCode, mut response: reqwest::Response) -> ClientError {
    let retry_after = retry_after(response.headers());
    let mut body = Vec::new();
    while body.len() < MAX_RESPONSE_BYTES
        && let Ok(Some(part)) = response.chunk().await
    {
        body.extend_from_slice(&part);
    }
    // A server behind another name than the one that was called answers in its own form.
    if let Ok(RefusalView { error }) = serde_json::from_slice(&body) {
        return ClientError::Refused {
            status: status.as_u16(),
            code: error.code,
            message: error.message,
            retryable: error.retryable,
            retry_after,
            details: error.details,
            hint: "",
        };
    }
    let text = String::from_utf8_lossy(&body);
    let message = [element(&text, "Code"), element(&text, "Message")].into_iter().flatten();
    let message = message.collect::<Vec<_>>().join(": ");
    let message = printable(&message.chars().take(MAX_SHOWN_CHARS).collect::<String>());
    let message = if message.is_empty() { status.to_string() } else { format!("{status}, {message}") };
    ClientError::Storage { status: status.as_u16(), message, retry_after }
}

/// The text of an element in the XML that the stores send.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text.trim())
}
