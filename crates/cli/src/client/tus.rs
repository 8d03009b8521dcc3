//! Uploads that come in several requests and go on where they were: the client of tus 1.0 (<https://tus.io>).

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::routes::UPLOADS;
use super::{Client, ClientError, RESPONSE_TIMEOUT, is_passing, retry_after};
use landfall_core::clock::Clock;

/// What the server is told about a file before the first byte.
#[derive(Debug)]
pub struct NewUpload<'a> {
    pub name: &'a str,
    pub size: u64,
    pub md5: &'a str,
    pub sha256: &'a str,
    pub batch: Uuid,
    pub attributes: Option<&'a Map<String, Value>>,
}

/// How far an upload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    At(u64),
    /// The server does not know the upload: it has expired, or was finished, or belongs to another user.
    Gone,
}

impl Client {
    /// Begins an upload and returns its id, which is that of the file.
    pub async fn create_upload(&self, upload: &NewUpload<'_>) -> Result<Uuid, ClientError> {
        let key = Clock::System.new_id().to_string();
        self.retry(async || {
            let request = self
                .tus(Method::POST, &format!("{UPLOADS}/tus"))?
                .header("Idempotency-Key", &key)
                .header("Upload-Length", upload.size)
                .header("Upload-Metadata", metadata(upload))
                .header(CONTENT_LENGTH, 0)
                .timeout(RESPONSE_TIMEOUT);
            let response = self.send(request).await?;
            let location = response.headers().get(LOCATION).and_then(|url| url.to_str().ok());
            // Only the id is taken from the address, so that the token never goes to another server.
            let id = location.and_then(|url| url.trim_end_matches('/').rsplit('/').next()?.parse().ok());
            id.ok_or_else(|| self.unexpected("an upload without an address".to_owned()))
        })
        .await
    }

    /// Asks how many bytes of an upload have arrived.
    pub async fn upload_offset(&self, id: Uuid) -> Result<Offset, ClientError> {
        let request = self.tus(Method::HEAD, &upload_path(id))?.timeout(RESPONSE_TIMEOUT);
        let response = request.send().await.map_err(|error| self.failed(&error))?;
        // A response to HEAD has no body that could say more.
        match response.status() {
            status if status.is_success() => match offset(response.headers()) {
                Some(offset) => Ok(Offset::At(offset)),
                None => Err(self.unexpected("an upload without an offset".to_owned())),
            },
            StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::FORBIDDEN => Ok(Offset::Gone),
            status if is_passing(status) => Err(self.turned_away(status, retry_after(response.headers()))),
            status => Err(ClientError::Refused {
                status: status.as_u16(),
                code: "UPLOAD_REFUSED".to_owned(),
                message: format!("The server does not go on with the upload (status {status})"),
                retryable: false,
                retry_after: None,
                details: Value::Null,
                hint: "",
            }),
        }
    }

    /// Sends bytes from an offset on. Returns the offset after them.
    pub async fn append(
        &self,
        id: Uuid,
        from: u64,
        length: u64,
        body: reqwest::Body,
    ) -> Result<u64, ClientError> {
        let request = self
            .tus(Method::PATCH, &upload_path(id))?
            .header(CONTENT_TYPE, "application/offset+octet-stream")
            .header("Upload-Offset", from)
            .header(CONTENT_LENGTH, length)
            .body(body);
        let response = self.send(request).await?;
        offset(response.headers()).ok_or_else(|| self.unexpected("an upload without an offset".to_owned()))
    }

    /// Gives an upload up, and with it the quota that it reserves.
    pub async fn terminate_upload(&self, id: Uuid) -> Result<(), ClientError> {
        self.send(self.tus(Method::DELETE, &upload_path(id))?.timeout(RESPONSE_TIMEOUT)).await.map(drop)
    }

    /// Where an upload is, for other tus clients.
    pub fn upload_url(&self, id: Uuid) -> String {
        format!("{}{}", self.server, upload_path(id))
    }

    /// The most bytes that the server takes in one file, if it says so.
    pub async fn max_upload_size(&self) -> Result<Option<u64>, ClientError> {
        let request = self.tus(Method::OPTIONS, &format!("{UPLOADS}/tus"))?.timeout(RESPONSE_TIMEOUT);
        let response = self.send(request).await?;
        Ok(response.headers().get("Tus-Max-Size").and_then(|size| size.to_str().ok()?.parse().ok()))
    }

    fn tus(&self, method: Method, path: &str) -> Result<RequestBuilder, ClientError> {
        Ok(self.request(method, path)?.header("Tus-Resumable", "1.0.0"))
    }
}

fn upload_path(id: Uuid) -> String {
    format!("{UPLOADS}/tus/{id}")
}

fn offset(headers: &HeaderMap) -> Option<u64> {
    headers.get("Upload-Offset")?.to_str().ok()?.parse().ok()
}

/// Names and values; the values are in base64.
fn metadata(upload: &NewUpload<'_>) -> String {
    use base64::Engine;
    let attributes = upload.attributes.map(|attributes| Value::Object(attributes.clone()).to_string());
    let batch = upload.batch.to_string();
    let pairs = [
        ("filename", Some(upload.name)),
        ("batch", Some(batch.as_str())),
        ("md5", Some(upload.md5)),
        ("sha256", Some(upload.sha256)),
        ("attributes", attributes.as_deref()),
    ];
    let encode = |value: &str| base64::engine::general_purpose::STANDARD.encode(value);
    let pairs = pairs.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", encode(value?))));
    pairs.collect::<Vec<_>>().join(",")
}
