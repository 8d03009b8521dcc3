//! The multipart uploads of a bucket that were begun and neither completed nor aborted. Their parts cost money and are in no
//! listing of objects.

use std::time::Duration;

use serde::Deserialize;

use super::store::Store;
use super::{BLOBS, Objects};
use crate::outbound::response;
use landfall_core::clock::Time;
use landfall_store::Error;

/// A page has at most 1,000 entries.
const MAX_BODY: usize = 4 << 20;
const TTL: Duration = Duration::from_mins(5);

/// A multipart upload that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbandonedParts {
    pub key: String,
    pub id: String,
    pub begun_at: Time,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    is_truncated: bool,
    #[serde(default)]
    next_key_marker: String,
    #[serde(default)]
    next_upload_id_marker: String,
    #[serde(default, rename = "Upload")]
    uploads: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    key: String,
    upload_id: String,
    initiated: Time,
}

/// Where the next page of the listing begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marker {
    key: String,
    id: String,
}

impl Objects {
    /// A page of the multipart uploads of blobs that have not ended, and where the next page begins. Only S3 lists them:
    /// Azure removes the blocks by itself after a week, and Google Cloud Storage by a rule of the bucket.
    pub async fn unfinished_parts(
        &self,
        marker: &Marker,
    ) -> Result<(Vec<AbandonedParts>, Option<Marker>), Error> {
        let Store::S3(_) = self.store() else { return Ok((Vec::new(), None)) };
        let mut query = vec![
            ("uploads".to_owned(), String::new()),
            ("prefix".to_owned(), self.prefixed(&format!("{BLOBS}/"))),
        ];
        if *marker != Marker::default() {
            query.push(("key-marker".to_owned(), marker.key.clone()));
            query.push(("upload-id-marker".to_owned(), marker.id.clone()));
        }
        let page = self.ask_s3(query).await?;
        let next =
            page.is_truncated.then_some(Marker { key: page.next_key_marker, id: page.next_upload_id_marker });
        let uploads = page.uploads.into_iter().filter_map(|entry| {
            let key = self.key_of(&entry.key)?;
            Some(AbandonedParts { key, id: entry.upload_id, begun_at: entry.initiated })
        });
        // A store that repeats a page would keep this going for ever.
        Ok((uploads.collect(), next.filter(|next| next != marker)))
    }

    async fn ask_s3(&self, query: Vec<(String, String)>) -> Result<Page, Error> {
        const WHAT: &str = "list the unfinished uploads";
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Storage {
            what: WHAT.to_owned(),
            source,
        };
        let url = self.presign_bucket("GET", query, &[], TTL).await?;
        let response = self.inner.http.get(url).timeout(TTL).send().await;
        let answer = response.map_err(|error| failed(error.without_url().into()))?;
        let status = answer.status();
        let (body, _) =
            response::read(answer, MAX_BODY).await.map_err(|error| failed(error.without_url().into()))?;
        let text = String::from_utf8_lossy(&body);
        if !status.is_success() {
            return Err(failed(format!("{status}: {}", text.chars().take(300).collect::<String>()).into()));
        }
        quick_xml::de::from_str(&text).map_err(|error| failed(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_listing_is_read() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Bucket>b</Bucket>
            <NextKeyMarker>blobs/b</NextKeyMarker><NextUploadIdMarker>2</NextUploadIdMarker><MaxUploads>2</MaxUploads>
            <IsTruncated>true</IsTruncated>
            <Upload><Key>blobs/a</Key><UploadId>1</UploadId><Initiator><ID>x</ID></Initiator>
                <Initiated>2026-01-02T03:04:05.000Z</Initiated></Upload>
            <Upload><Key>blobs/b</Key><UploadId>2</UploadId><Initiated>2026-01-02T03:04:06.000Z</Initiated></Upload>
            </ListMultipartUploadsResult>"#;
        let page: Page = quick_xml::de::from_str(text).unwrap();
        assert!(page.is_truncated);
        assert_eq!((&*page.next_key_marker, &*page.next_upload_id_marker), ("blobs/b", "2"));
        let ids: Vec<_> = page.uploads.iter().map(|upload| upload.upload_id.as_str()).collect();
        assert_eq!(ids, ["1", "2"]);
        let empty: Page = quick_xml::de::from_str("<ListMultipartUploadsResult/>").unwrap();
        assert!(!empty.is_truncated && empty.uploads.is_empty());
    }
}
