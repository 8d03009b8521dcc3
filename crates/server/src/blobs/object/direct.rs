//! Requests that clients send straight to the object store, signed by this server.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use object_store::aws::AmazonS3ConfigKey;
use object_store::path::Path;
use object_store::signer::{HeaderName, HeaderValue, Method, SignedUrlOptions};
use url::Url;

use super::azure_sas::{Account, Blob};
use super::sigv4::Presigned;
use super::store::Store;
use super::{Objects, failed};
use crate::blobs::Pin;
use landfall_core::clock::{Clock, to_delta};
use landfall_store::Error;

/// The largest object that one request stores: 5 GB on S3, 5,000 MiB on Azure, more on Google Cloud Storage.
const MAX_PUT: u64 = 5_000_000_000;

/// How a client sends the bytes of a file to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectUpload {
    pub url: String,
    /// What the request must have. A store that binds them refuses any other.
    pub headers: Vec<(String, String)>,
}

/// A request about a multipart upload, as the API of S3 has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartsRequest {
    Begin,
    Send { id: String, number: u32 },
    List { id: String },
    Complete { id: String },
    Abort { id: String },
}

impl PartsRequest {
    fn method_and_query(&self) -> (&'static str, Vec<(String, String)>) {
        let upload = |id: &str| ("uploadId".to_owned(), id.to_owned());
        match self {
            Self::Begin => ("POST", vec![("uploads".to_owned(), String::new())]),
            Self::Send { id, number } => {
                ("PUT", vec![("partNumber".to_owned(), number.to_string()), upload(id)])
            }
            Self::List { id } => ("GET", vec![upload(id)]),
            Self::Complete { id } => ("POST", vec![upload(id)]),
            Self::Abort { id } => ("DELETE", vec![upload(id)]),
        }
    }
}

/// What a download has in its headers.
pub struct Download<'a> {
    pub disposition: &'a str,
    pub content_type: &'a str,
}

/// What the bytes of an upload must be.
pub struct Declared<'a> {
    pub size: u64,
    /// In hexadecimal digits.
    pub md5: Option<&'a str>,
    pub sha256: Option<&'a str>,
}

impl Objects {
    pub const fn max_direct() -> u64 {
        MAX_PUT
    }

    /// A request that stores exactly these bytes under a key that has no blob yet, as far as the store can bind that.
    pub async fn sign_upload(
        &self,
        key: &str,
        declared: &Declared<'_>,
        ttl: Duration,
    ) -> Result<DirectUpload, Error> {
        let path = self.blob_path(key);
        let (url, headers) = match &self.inner.public {
            Store::S3(_) => {
                let mut headers = vec![
                    ("Content-Length".to_owned(), declared.size.to_string()),
                    ("If-None-Match".to_owned(), "*".to_owned()),
                ];
                headers.extend(declared.md5.map(|md5| ("Content-MD5".to_owned(), in_base64(md5))));
                let sha256 = declared.sha256.map(in_base64);
                headers.extend(sha256.map(|sha256| ("x-amz-checksum-sha256".to_owned(), sha256)));
                headers.extend(self.encryption_headers());
                (self.presign_s3("PUT", &path, Vec::new(), &headers, ttl).await?, headers)
            }
            Store::Gcs(store) => {
                use object_store::signer::Signer;
                let range = format!("{0},{0}", declared.size);
                let mut signed = vec![
                    ("x-goog-if-generation-match".to_owned(), "0".to_owned()),
                    ("x-goog-content-length-range".to_owned(), range),
                ];
                signed.extend(declared.md5.map(|md5| ("Content-MD5".to_owned(), in_base64(md5))));
                let options = signed_headers(&signed)?;
                let url = store.signed_url_opts(Method::PUT, &path, ttl, &options).await;
                let url = url.map_err(|error| failed("sign an upload of", key, error))?;
                signed.insert(0, ("Content-Length".to_owned(), declared.size.to_string()));
                (url, signed)
            }
            Store::Azure(_) => {
                let mut headers = vec![
                    ("Content-Length".to_owned(), declared.size.to_string()),
                    ("x-ms-blob-type".to_owned(), "BlockBlob".to_owned()),
                    ("If-None-Match".to_owned(), "*".to_owned()),
                ];
                headers.extend(declared.md5.map(|md5| ("Content-MD5".to_owned(), in_base64(md5))));
                (self.sign_azure(&path, Method::PUT, "c", None, ttl).await?, headers)
            }
            Store::Made(_) => return Err(Error::Internal("clients cannot reach this store".to_owned())),
        };
        Ok(DirectUpload { url: url.to_string(), headers })
    }

    /// A request about a multipart upload. That its completion replaces no object is not bound: the clients for which this is
    /// made send no headers of ours with it. The confirmation pins what there is then.
    pub async fn sign_parts(
        &self,
        key: &str,
        request: &PartsRequest,
        ttl: Duration,
    ) -> Result<DirectUpload, Error> {
        let (method, query) = request.method_and_query();
        let headers = match request {
            PartsRequest::Begin => self.encryption_headers(),
            _ => Vec::new(),
        };
        let url = self.presign_s3(method, &self.blob_path(key), query, &headers, ttl).await?;
        Ok(DirectUpload { url: url.to_string(), headers })
    }

    /// An address from which a client loads exactly this blob, with these headers.
    pub async fn sign_download(
        &self,
        pin: &Pin,
        download: &Download<'_>,
        ttl: Duration,
    ) -> Result<Option<String>, Error> {
        let path = self.blob_path(&pin.key);
        let mut query = vec![
            ("response-content-disposition".to_owned(), download.disposition.to_owned()),
            ("response-content-type".to_owned(), download.content_type.to_owned()),
        ];
        let url = match &self.inner.public {
            Store::S3(_) => {
                query.extend(pin.revision.version.clone().map(|version| ("versionId".to_owned(), version)));
                self.presign_s3("GET", &path, query, &[], ttl).await?
            }
            Store::Gcs(store) => {
                use object_store::signer::Signer;
                query.extend(pin.revision.version.clone().map(|version| ("generation".to_owned(), version)));
                let options = SignedUrlOptions::default().with_query(query);
                let url = store.signed_url_opts(Method::GET, &path, ttl, &options).await;
                url.map_err(|error| failed("sign a download of", &pin.key, error))?
            }
            Store::Azure(_) => {
                // Without the account's key the name of the file cannot be signed, and the bytes go through this server.
                if Account::of(&self.inner.options).is_none() {
                    return Ok(None);
                }
                self.sign_azure(&path, Method::GET, "r", Some(download), ttl).await?
            }
            Store::Made(_) => return Ok(None),
        };
        Ok(Some(url.to_string()))
    }

    /// Azure cannot bind a checksum to a URL, but it counts the MD5 of what it takes in.
    pub async fn md5_of(&self, key: &str) -> Result<Option<String>, Error> {
        if !matches!(self.store(), Store::Azure(_)) {
            return Ok(None);
        }
        let url =
            self.sign_azure(&self.blob_path(key), Method::GET, "r", None, Duration::from_mins(1)).await?;
        let failed = |error: reqwest::Error| Error::Storage {
            what: format!("read the metadata of {key}"),
            source: error.without_url().into(),
        };
        let answer =
            self.inner.http.head(url).timeout(Duration::from_secs(30)).send().await.map_err(failed)?;
        let answer = answer.error_for_status().map_err(failed)?;
        let md5 = answer.headers().get("content-md5").and_then(|md5| STANDARD.decode(md5).ok());
        Ok(md5.map(hex::encode))
    }

    /// Signs any request of a client for an object of S3. Those for parts of a multipart upload have a query.
    pub async fn presign_s3(
        &self,
        method: &str,
        path: &Path,
        query: Vec<(String, String)>,
        headers: &[(String, String)],
        ttl: Duration,
    ) -> Result<Url, Error> {
        let url = self.address(path).await?;
        self.sign_s3(Presigned { method, url, query, headers, seconds: ttl.as_secs().max(1) }).await
    }

    /// Signs a request of this server for the bucket itself.
    pub(super) async fn presign_bucket(
        &self,
        method: &str,
        query: Vec<(String, String)>,
        headers: &[(String, String)],
        ttl: Duration,
    ) -> Result<Url, Error> {
        let object = "x";
        let mut url = address_in(self.store(), &Path::from(object)).await?;
        let bucket = url.path().strip_suffix(object).unwrap_or_default().to_owned();
        url.set_path(&bucket);
        self.sign_s3(Presigned { method, url, query, headers, seconds: ttl.as_secs().max(1) }).await
    }

    async fn sign_s3(&self, presigned: Presigned<'_>) -> Result<Url, Error> {
        let Store::S3(store) = &self.inner.store else {
            return Err(Error::Internal("only S3 has such requests".to_owned()));
        };
        let credential = store.credentials().get_credential().await;
        let credential = credential.map_err(|error| failed("sign", "a request", error))?;
        Ok(presigned.sign(&credential, &self.region(), Clock::System.now()))
    }

    pub async fn client_origin(&self) -> Option<String> {
        let address = self.address(&Path::from("x")).await.ok()?;
        Some(address.origin().ascii_serialization())
    }

    /// Where clients find an object.
    async fn address(&self, path: &Path) -> Result<Url, Error> {
        address_in(&self.inner.public, path).await
    }

    async fn sign_azure(
        &self,
        path: &Path,
        method: Method,
        permissions: &str,
        download: Option<&Download<'_>>,
        ttl: Duration,
    ) -> Result<Url, Error> {
        let Some(account) = Account::of(&self.inner.options) else {
            let signed = self.inner.public.signer().signed_url(method, path, ttl).await;
            return signed.map_err(|error| failed("sign a request for", path.as_ref(), error));
        };
        let (mut url, now) = (self.address(path).await?, Clock::System.now());
        let blob = Blob {
            container: &self.inner.bucket.name,
            path: path.as_ref(),
            permissions,
            disposition: download.map(|download| download.disposition),
            content_type: download.map(|download| download.content_type),
        };
        account.sign(&mut url, &blob, now + to_delta(ttl), now);
        Ok(url)
    }

    fn s3_option(&self, wanted: AmazonS3ConfigKey) -> Option<&str> {
        let is_wanted = |name: &str| name.to_ascii_lowercase().parse().ok() == Some(wanted);
        self.inner.options.iter().find(|(name, _)| is_wanted(name)).map(|(_, value)| value.as_str())
    }

    fn region(&self) -> String {
        let region = self
            .s3_option(AmazonS3ConfigKey::Region)
            .or_else(|| self.s3_option(AmazonS3ConfigKey::DefaultRegion));
        region.unwrap_or("us-east-1").to_owned()
    }

    /// The same encryption as for what this server stores itself.
    fn encryption_headers(&self) -> Vec<(String, String)> {
        let encryption = |name: &str| {
            let option = self.inner.options.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            option.map(|(_, value)| value.clone())
        };
        let mut headers = Vec::new();
        if let Some(algorithm) = encryption("AWS_SERVER_SIDE_ENCRYPTION") {
            let is_kms = algorithm.starts_with("aws:kms") || algorithm == "sse-kms";
            let algorithm = if is_kms { "aws:kms".to_owned() } else { algorithm };
            headers.push(("x-amz-server-side-encryption".to_owned(), algorithm));
        }
        if let Some(key) = encryption("AWS_SSE_KMS_KEY_ID") {
            headers.push(("x-amz-server-side-encryption-aws-kms-key-id".to_owned(), key));
        }
        headers
    }
}

pub(super) async fn address_in(store: &Store, path: &Path) -> Result<Url, Error> {
    let signed = store.signer().signed_url(Method::GET, path, Duration::from_mins(1)).await;
    let mut url = signed.map_err(|error| failed("find the address of", path.as_ref(), error))?;
    url.set_query(None);
    Ok(url)
}

fn signed_headers(headers: &[(String, String)]) -> Result<SignedUrlOptions, Error> {
    let invalid = |what: &str| Error::Internal(format!("{what} is not valid in a header"));
    let mut options = SignedUrlOptions::default();
    for (name, value) in headers {
        let header = HeaderName::try_from(name.as_str()).map_err(|_| invalid(name))?;
        let value = HeaderValue::try_from(value.as_str()).map_err(|_| invalid(value))?;
        options = options.with_signed_header(header, value);
    }
    Ok(options)
}

/// From hexadecimal digits, as the rows have them.
fn in_base64(digits: &str) -> String {
    STANDARD.encode(hex::decode(digits).unwrap_or_default())
}
