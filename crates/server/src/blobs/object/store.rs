//! The client of an object store, made from its bucket's settings.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::signer::Signer;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use super::super::place::{Bucket, StoreKind};
use super::aws_profile;
use landfall_store::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// One request, with its body. Bodies are parts and ranges, so none takes long.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// A store that throttles or restarts is asked again for so long. After that the caller's own patience counts.
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);
const MAX_RETRIES: usize = 4;
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LAST_BACKOFF: Duration = Duration::from_secs(3);

#[derive(Debug, Clone)]
pub enum Store {
    S3(Arc<AmazonS3>),
    Azure(Arc<MicrosoftAzure>),
    Gcs(Arc<GoogleCloudStorage>),
    /// One that a simulation made.
    Made(Arc<dyn MadeStore>),
}

/// An object store that is not reached by HTTP: a simulation makes one. Clients cannot send requests to it themselves.
pub trait MadeStore: ObjectStore + MultipartStore + PaginatedListStore + Signer {}

impl<S: ObjectStore + MultipartStore + PaginatedListStore + Signer> MadeStore for S {}

impl Store {
    /// Connects to nothing yet: a store that is away is noticed by the first request.
    pub fn open(bucket: &Bucket, endpoint: Option<&str>) -> Result<Self, Error> {
        let options = options_of(bucket)?;
        let built = match bucket.kind {
            StoreKind::S3 => s3(bucket, &options, endpoint).map(|store| Self::S3(Arc::new(store))),
            StoreKind::Azure => azure(bucket, &options, endpoint).map(|store| Self::Azure(Arc::new(store))),
            StoreKind::Gcs => gcs(bucket, &options, endpoint).map(|store| Self::Gcs(Arc::new(store))),
        };
        built.map_err(|error| Error::Storage {
            what: format!("use the bucket {}", bucket.name),
            source: Box::new(error),
        })
    }

    pub fn objects(&self) -> &dyn ObjectStore {
        match self {
            Self::S3(store) => store.as_ref(),
            Self::Azure(store) => store.as_ref(),
            Self::Gcs(store) => store.as_ref(),
            Self::Made(store) => store.as_ref(),
        }
    }

    pub fn parts(&self) -> &dyn MultipartStore {
        match self {
            Self::S3(store) => store.as_ref(),
            Self::Azure(store) => store.as_ref(),
            Self::Gcs(store) => store.as_ref(),
            Self::Made(store) => store.as_ref(),
        }
    }

    pub fn pages(&self) -> &dyn PaginatedListStore {
        match self {
            Self::S3(store) => store.as_ref(),
            Self::Azure(store) => store.as_ref(),
            Self::Gcs(store) => store.as_ref(),
            Self::Made(store) => store.as_ref(),
        }
    }

    pub fn signer(&self) -> &dyn Signer {
        match self {
            Self::S3(store) => store.as_ref(),
            Self::Azure(store) => store.as_ref(),
            Self::Gcs(store) => store.as_ref(),
            Self::Made(store) => store.as_ref(),
        }
    }
}

/// The options, with those of an AWS profile behind them.
pub(super) fn options_of(bucket: &Bucket) -> Result<Vec<(String, String)>, Error> {
    let mut options = bucket.options.clone();
    if bucket.kind == StoreKind::S3 {
        for (name, value) in aws_profile::read(&options)? {
            if !options.iter().any(|(known, _)| *known == name) {
                options.push((name, value));
            }
        }
    }
    Ok(options)
}

fn s3(
    bucket: &Bucket,
    options: &[(String, String)],
    endpoint: Option<&str>,
) -> Result<AmazonS3, object_store::Error> {
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&bucket.name)
        .with_retry(retries())
        .with_client_options(client());
    for (name, value) in options {
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
    }
    builder.build()
}

fn azure(
    bucket: &Bucket,
    options: &[(String, String)],
    endpoint: Option<&str>,
) -> Result<MicrosoftAzure, object_store::Error> {
    let mut builder = MicrosoftAzureBuilder::new()
        .with_container_name(&bucket.name)
        .with_retry(retries())
        .with_client_options(client());
    for (name, value) in options {
        if let Ok(key) = name.to_ascii_lowercase().parse::<AzureConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint.to_owned()).with_allow_http(endpoint.starts_with("http://"));
    }
    builder.build()
}

fn gcs(
    bucket: &Bucket,
    options: &[(String, String)],
    endpoint: Option<&str>,
) -> Result<GoogleCloudStorage, object_store::Error> {
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&bucket.name)
        .with_retry(retries())
        .with_client_options(client());
    for (name, value) in options {
        // The name of Google's own libraries is not among those that the client reads as a key.
        let name = name.to_ascii_lowercase();
        if let Ok(key) = name.parse::<GoogleConfigKey>() {
            builder = builder.with_config(key, value);
        } else if name == "google_allow_http" && value == "true" {
            builder = builder.with_client_options(client().with_allow_http(true));
        }
    }
    if let Some(endpoint) = endpoint {
        builder = builder.with_base_url(endpoint);
    }
    builder.build()
}

fn client() -> ClientOptions {
    ClientOptions::new().with_connect_timeout(CONNECT_TIMEOUT).with_timeout(REQUEST_TIMEOUT)
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { init_backoff: FIRST_BACKOFF, max_backoff: LAST_BACKOFF, base: 2.0 },
        max_retries: MAX_RETRIES,
        retry_timeout: RETRY_TIMEOUT,
    }
}
