//! What only an object store has: requests that clients send there themselves, signed by this server.

use std::time::Duration;

use uuid::Uuid;

pub use super::object::{AbandonedParts, Declared, DirectUpload, Download, Marker, PartsRequest};
use super::{Backend, Blobs, Pin, StoreKind};
use landfall_store::Error;

impl Blobs {
    /// The key of the bytes that a client sends straight to the object store. There is one for each file.
    pub fn direct_key(file: Uuid) -> String {
        format!("{}/direct", Self::prefix_of(file))
    }

    /// The size of the largest file that a client can send straight to the storage in one request. `None` for a folder.
    pub fn max_direct(&self) -> Option<u64> {
        match &self.backend {
            Backend::Local(_) => None,
            Backend::Objects(_) => Some(super::object::Objects::max_direct()),
        }
    }

    /// A request that stores a file's bytes. `None` for a folder.
    pub async fn sign_upload(
        &self,
        file: Uuid,
        declared: &Declared<'_>,
        ttl: Duration,
    ) -> Result<Option<DirectUpload>, Error> {
        match &self.backend {
            Backend::Local(_) => Ok(None),
            Backend::Objects(objects) => {
                objects.sign_upload(&Self::direct_key(file), declared, ttl).await.map(Some)
            }
        }
    }

    /// The origin of the addresses that clients get. `None` for a folder, and while the store's credentials cannot be had.
    pub async fn client_origin(&self) -> Option<String> {
        match &self.backend {
            Backend::Local(_) => None,
            Backend::Objects(objects) => objects.client_origin().await,
        }
    }

    /// Whether the storage is an object store with the API of S3.
    pub fn speaks_s3(&self) -> bool {
        match &self.backend {
            Backend::Local(_) => false,
            Backend::Objects(objects) => objects.bucket().kind == StoreKind::S3,
        }
    }

    /// A request about a multipart upload of a file's bytes. `None` for a folder.
    pub async fn sign_parts(
        &self,
        file: Uuid,
        request: &PartsRequest,
        ttl: Duration,
    ) -> Result<Option<DirectUpload>, Error> {
        match &self.backend {
            Backend::Local(_) => Ok(None),
            Backend::Objects(objects) => {
                objects.sign_parts(&Self::direct_key(file), request, ttl).await.map(Some)
            }
        }
    }

    /// The MD5 that the store counted for an object which it took in itself, in hexadecimal digits, where it is needed: a store
    /// that binds the declared one to the upload need not be asked.
    pub async fn md5_of(&self, key: &str) -> Result<Option<String>, Error> {
        match &self.backend {
            Backend::Local(_) => Ok(None),
            Backend::Objects(objects) => objects.md5_of(key).await,
        }
    }

    /// An address from which a client loads a blob. `None` where the bytes must go through this server.
    pub async fn sign_download(
        &self,
        pin: &Pin,
        download: &Download<'_>,
        ttl: Duration,
    ) -> Result<Option<String>, Error> {
        match &self.backend {
            Backend::Local(_) => Ok(None),
            Backend::Objects(objects) => objects.sign_download(pin, download, ttl).await,
        }
    }

    /// Fails if the object store has no longer the bytes that were confirmed.
    pub async fn must_be_unchanged(&self, pin: &Pin) -> Result<(), Error> {
        match &self.backend {
            Backend::Local(_) => Ok(()),
            Backend::Objects(objects) => objects.must_be_unchanged(pin).await,
        }
    }

    /// The rules for pages of these origins that send bytes straight to the object store, as the command line of the store's
    /// vendor takes them. `None` for a folder.
    pub fn cors_rules(&self, origins: &[String]) -> Option<serde_json::Value> {
        match &self.backend {
            Backend::Local(_) => None,
            Backend::Objects(objects) => Some(super::object::cors_rules(objects.bucket().kind, origins)),
        }
    }

    /// Sets these rules. Rules for other origins stay.
    pub async fn set_cors(&self, origins: &[String]) -> Result<(), Error> {
        match &self.backend {
            Backend::Local(_) => Err(Error::Internal("a folder has no CORS rules".to_owned())),
            Backend::Objects(objects) => objects.set_cors(origins).await,
        }
    }

    /// The key of the blob that an object of the bucket is. `None` if it is none, or the storage is a folder.
    pub fn key_of_object(&self, bucket: &str, object: &str) -> Option<String> {
        match &self.backend {
            Backend::Local(_) => None,
            Backend::Objects(objects) => {
                (objects.bucket().name == bucket).then(|| objects.key_of(object)).flatten()
            }
        }
    }

    /// A page of the uploads in parts that have not ended, and where the next page begins.
    pub async fn unfinished_parts(
        &self,
        marker: &Marker,
    ) -> Result<(Vec<AbandonedParts>, Option<Marker>), Error> {
        match &self.backend {
            Backend::Local(_) => Ok((Vec::new(), None)),
            Backend::Objects(objects) => objects.unfinished_parts(marker).await,
        }
    }

    /// Removes the parts of an upload that has not ended.
    pub async fn abort_parts(&self, parts: &AbandonedParts) -> Result<(), Error> {
        match &self.backend {
            Backend::Local(_) => Ok(()),
            Backend::Objects(objects) => objects.abort(&parts.key, &parts.id).await,
        }
    }
}
