//! Real object stores, each test in a bucket of its own.
//!
//! What is sent here is signed by hand: a test that looks into a bucket must not believe the code that it tests.

use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use landfall_core::clock::Clock;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::network::Network;

/// `make test` starts them with scripts/with-object-stores.
const S3: &str = "LANDFALL_TEST_S3";
const AZURE: &str = "LANDFALL_TEST_AZURE";
const GCS: &str = "LANDFALL_TEST_GCS";
const GCS_ACCOUNT: &str = "LANDFALL_TEST_GCS_ACCOUNT";

const S3_KEY: (&str, &str) = ("landfall-test", "landfall-test-secret");
/// May read and list, and nothing else.
pub const S3_READER: (&str, &str) = ("landfall-reader", "landfall-reader-secret");
const S3_REGION: &str = "us-east-1";

/// Azurite's well-known account.
pub const AZURE_ACCOUNT: &str = "devstoreaccount1";
pub const AZURE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const AZURE_VERSION: &str = "2023-11-03";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectStore {
    S3,
    Azure,
    Gcs,
}

pub const ALL: [ObjectStore; 3] = [ObjectStore::S3, ObjectStore::Azure, ObjectStore::Gcs];

/// A bucket (a container on Azure) that only this test knows.
pub struct Bucket {
    pub store: ObjectStore,
    pub name: String,
    pub http: Client,
    endpoint: String,
}

impl ObjectStore {
    /// A fresh bucket. A plain `cargo test` has no stores; `make test` starts them.
    pub async fn bucket(self) -> Option<Bucket> {
        let bucket = self.name_a_bucket()?;
        bucket.create().await;
        Some(bucket)
    }

    /// The same, but it is not created.
    pub fn name_a_bucket(self) -> Option<Bucket> {
        let variable = match self {
            Self::S3 => S3,
            Self::Azure => AZURE,
            Self::Gcs => GCS,
        };
        let Ok(endpoint) = std::env::var(variable) else {
            eprintln!("not run: {variable} is not set; `make test` starts the object stores");
            return None;
        };
        let name = format!("test-{}", Uuid::new_v4().simple());
        // Installs the cryptography that all clients use.
        drop(landfall_server::outbound::client());
        // A connection for each request: a client repeats a request by itself if an old connection breaks.
        let http = Client::builder().pool_max_idle_per_host(0).build().expect("a client");
        Some(Bucket { store: self, name, endpoint, http })
    }
}

impl Bucket {
    /// A network in front of the store.
    pub async fn network(&self) -> Network {
        Network::before(&self.endpoint).await
    }

    /// The same bucket behind a network that the test may break.
    pub fn through(&self, network: &Network) -> Self {
        Self { name: self.name.clone(), endpoint: network.url(), http: self.http.clone(), ..*self }
    }

    /// The settings for a server on this bucket.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let (name, endpoint) = (&self.name, &self.endpoint);
        match self.store {
            ObjectStore::S3 => vec![
                ("STORAGE_URL", format!("s3://{name}")),
                ("AWS_ENDPOINT_URL", endpoint.clone()),
                ("AWS_REGION", S3_REGION.to_owned()),
                ("AWS_ACCESS_KEY_ID", S3_KEY.0.to_owned()),
                ("AWS_SECRET_ACCESS_KEY", S3_KEY.1.to_owned()),
                ("AWS_ALLOW_HTTP", "true".to_owned()),
            ],
            ObjectStore::Azure => vec![
                ("STORAGE_URL", format!("az://{name}")),
                ("AZURE_STORAGE_ENDPOINT", format!("{endpoint}/{AZURE_ACCOUNT}")),
                ("AZURE_STORAGE_ACCOUNT_NAME", AZURE_ACCOUNT.to_owned()),
                ("AZURE_STORAGE_ACCOUNT_KEY", AZURE_KEY.to_owned()),
                ("AZURE_ALLOW_HTTP", "true".to_owned()),
            ],
            ObjectStore::Gcs => vec![
                ("STORAGE_URL", format!("gs://{name}")),
                ("GOOGLE_BASE_URL", endpoint.clone()),
                ("GOOGLE_SERVICE_ACCOUNT", std::env::var(GCS_ACCOUNT).expect("it comes with the endpoint")),
                ("GOOGLE_ALLOW_HTTP", "true".to_owned()),
            ],
        }
    }

    async fn create(&self) {
        let request = match self.store {
            ObjectStore::S3 => self.request(Method::PUT, "", &[], &[], b""),
            ObjectStore::Azure => self.request(Method::PUT, "", &[("restype", "container")], &[], b""),
            ObjectStore::Gcs => self
                .http
                .post(format!("{}/storage/v1/b?project=landfall-test", self.endpoint))
                .bearer_auth(gcs_token())
                .json(&json!({ "name": self.name })),
        };
        answered(request).await;
    }

    /// Writes an object behind the server's back.
    pub async fn put(&self, key: &str, content: &[u8]) {
        answered(self.upload(key, content)).await;
    }

    pub fn upload(&self, key: &str, content: &[u8]) -> RequestBuilder {
        let headers: &[_] =
            if self.store == ObjectStore::Azure { &[("x-ms-blob-type", "BlockBlob")] } else { &[] };
        self.request(Method::PUT, key, &[], headers, content)
    }

    /// The content of an object, if there is one.
    pub async fn get(&self, key: &str) -> Option<Vec<u8>> {
        let response = self.request(Method::GET, key, &[], &[], b"").send().await.expect("an answer");
        match response.status().as_u16() {
            200 => Some(response.bytes().await.expect("a body").into()),
            404 => None,
            other => panic!("{other} {}", response.text().await.unwrap_or_default()),
        }
    }

    pub async fn remove(&self, key: &str) {
        answered(self.request(Method::DELETE, key, &[], &[], b"")).await;
    }

    /// All keys, in their order. At most a thousand.
    pub async fn keys(&self) -> Vec<String> {
        let (query, element): (&[_], _) = match self.store {
            ObjectStore::Azure => (&[("comp", "list"), ("restype", "container")], "Name"),
            _ => (&[("list-type", "2")], "Key"),
        };
        let listed = answered(self.request(Method::GET, "", query, &[], b"")).await;
        elements(&listed, element)
    }

    /// The rules for browsers, as the store shows them.
    pub async fn bucket_cors(&self) -> String {
        match self.store {
            ObjectStore::S3 => {
                let response = self.request(Method::GET, "", &[("cors", "")], &[], b"").send().await;
                response.expect("an answer").text().await.expect("text")
            }
            ObjectStore::Azure => {
                // Of the whole account.
                let query = [("comp", "properties"), ("restype", "service")];
                let url = format!("{}/{AZURE_ACCOUNT}/", self.endpoint);
                answered(self.azure(Method::GET, url, &format!("/{AZURE_ACCOUNT}/"), &query, &[], b"")).await
            }
            ObjectStore::Gcs => {
                let url = format!("{}/storage/v1/b/{}?fields=cors", self.endpoint, self.name);
                let bucket: Value =
                    serde_json::from_str(&answered(self.http.get(url).bearer_auth(gcs_token())).await)
                        .expect("JSON");
                bucket["cors"].to_string()
            }
        }
    }

    /// A signed request about an object, or about the bucket if there is no key. The query must be in its order.
    pub fn request(
        &self,
        method: Method,
        key: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> RequestBuilder {
        let path = if key.is_empty() { format!("/{}", self.name) } else { format!("/{}/{key}", self.name) };
        match self.store {
            ObjectStore::S3 => self.s3(method, &path, query, headers, body),
            ObjectStore::Azure => {
                let path = format!("/{AZURE_ACCOUNT}{path}");
                self.azure(method, format!("{}{path}", self.endpoint), &path, query, headers, body)
            }
            ObjectStore::Gcs => {
                let request = self.http.request(method, format!("{}{path}", self.endpoint)).query(query);
                with(request, headers, body).bearer_auth(gcs_token())
            }
        }
    }

    /// Signature version 4.
    fn s3(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> RequestBuilder {
        let now = Clock::System.now();
        let (date, time) = (now.format("%Y%m%d").to_string(), now.format("%Y%m%dT%H%M%SZ").to_string());
        let host = self.endpoint.strip_prefix("http://").expect("plain");
        let digest = hex(&Sha256::digest(body));
        let parameters: Vec<_> =
            query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let canonical = format!(
            "{method}\n{path}\n{}\nhost:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{time}\n\n\
             host;x-amz-content-sha256;x-amz-date\n{digest}",
            parameters.join("&")
        );
        let scope = format!("{date}/{S3_REGION}/s3/aws4_request");
        let hashed = hex(&Sha256::digest(canonical.as_bytes()));
        let mut key = format!("AWS4{}", S3_KEY.1).into_bytes();
        for part in [date.as_str(), S3_REGION, "s3", "aws4_request"] {
            key = hmac(&key, part.as_bytes());
        }
        let signature = hex(&hmac(&key, format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashed}").as_bytes()));
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, \
             Signature={signature}",
            S3_KEY.0
        );
        let request = self.http.request(method, format!("{}{path}?{}", self.endpoint, parameters.join("&")));
        with(request, headers, body)
            .header("x-amz-date", time)
            .header("x-amz-content-sha256", digest)
            .header("authorization", authorization)
    }

    /// Shared key.
    fn azure(
        &self,
        method: Method,
        url: String,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> RequestBuilder {
        let date = http_date(Clock::System.now());
        let mut signed = headers.to_vec();
        signed.extend([("x-ms-date", date.as_str()), ("x-ms-version", AZURE_VERSION)]);
        signed.retain(|(name, _)| name.starts_with("x-ms-"));
        signed.sort_unstable();
        let length = if body.is_empty() { String::new() } else { body.len().to_string() };
        let kind = headers.iter().find(|(name, _)| *name == "content-type").map_or("", |(_, value)| value);
        let signed: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let parameters: String = query.iter().map(|(name, value)| format!("\n{name}:{value}")).collect();
        let text = format!(
            "{method}\n\n\n{length}\n\n{kind}\n\n\n\n\n\n\n{signed}/{AZURE_ACCOUNT}{path}{parameters}"
        );
        let key = BASE64_STANDARD.decode(AZURE_KEY).expect("it is base64");
        let signature = BASE64_STANDARD.encode(hmac(&key, text.as_bytes()));
        with(self.http.request(method, url).query(query), headers, body)
            .header("x-ms-date", &date)
            .header("x-ms-version", AZURE_VERSION)
            .header("authorization", format!("SharedKey {AZURE_ACCOUNT}:{signature}"))
    }
}

fn with(mut request: RequestBuilder, headers: &[(&str, &str)], body: &[u8]) -> RequestBuilder {
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    // Every store wants to know the length, also of nothing.
    request.header("content-length", body.len()).body(body.to_vec())
}

/// A token that the service account signed itself.
fn gcs_token() -> &'static str {
    static TOKEN: LazyLock<String> = LazyLock::new(|| {
        let path = std::env::var(GCS_ACCOUNT).expect("it comes with the endpoint");
        let account: Value =
            serde_json::from_slice(&std::fs::read(path).expect("it was written")).expect("it is JSON");
        let now = Clock::System.now().timestamp();
        let claims = json!({
            "iss": account["client_email"], "sub": account["client_email"], "iat": now, "exp": now + 3600,
            "scope": "https://www.googleapis.com/auth/devstorage.full_control",
        });
        let key = account["private_key"].as_str().expect("a key");
        let key = jsonwebtoken::EncodingKey::from_rsa_pem(key.as_bytes()).expect("a key");
        let header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::RS256);
        jsonwebtoken::encode(&header, &claims, &key).expect("a token")
    });
    &TOKEN
}

async fn answered(request: RequestBuilder) -> String {
    let response = request.send().await.expect("an answer");
    let status = response.status();
    let text = response.text().await.expect("text");
    assert!(status.is_success(), "{status} {text}");
    text
}

/// The texts of all elements with this name.
fn elements(xml: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    xml.split(&open).skip(1).filter_map(|rest| Some(rest.split_once(&close)?.0.to_owned())).collect()
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn http_date(time: DateTime<Utc>) -> String {
    time.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
