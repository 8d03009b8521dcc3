//! `Upload-Metadata`: what a tus client says about a file, as a registration says it.

use axum::http::HeaderMap;
use base64::Engine;
use uuid::Uuid;

use super::{MAX_METADATA_BYTES, UPLOAD_METADATA, text};
use crate::http::request::batch_id;
use landfall_api::uploads::Announcement;
use landfall_core::refusal::{Refusal, RefusalCode};

/// What a client says about a file.
pub(super) struct Metadata {
    pub text: Option<String>,
    pairs: Vec<(String, String)>,
}

impl Metadata {
    pub fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        let refuse = |message: &str| Refusal::new(RefusalCode::InvalidMetadata, message);
        let Some(text) = text(headers, &UPLOAD_METADATA)?.filter(|text| !text.trim().is_empty()) else {
            return Ok(Self { text: None, pairs: Vec::new() });
        };
        if text.len() > MAX_METADATA_BYTES {
            return Err(refuse(&format!("Upload-Metadata has at most {MAX_METADATA_BYTES} bytes")));
        }
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in text.split(',') {
            let (name, value) = pair.trim().split_once(' ').unwrap_or((pair.trim(), ""));
            if name.is_empty() || pairs.iter().any(|(known, _)| known == name) {
                return Err(refuse(
                    "Upload-Metadata has names, each of them once, and their values in base64",
                ));
            }
            let bytes = base64::engine::general_purpose::STANDARD.decode(value.trim());
            let value = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let value = value.ok_or_else(|| refuse("A value in Upload-Metadata is text in base64"))?;
            pairs.push((name.to_owned(), value));
        }
        Ok(Self { text: Some(text.to_owned()), pairs })
    }

    /// The value of the first of these names that has one.
    fn value(&self, names: &[&str]) -> Option<&str> {
        let of = |name: &&str| self.pairs.iter().find(|(known, _)| known == name);
        let values = names.iter().filter_map(of).map(|(_, value)| value.as_str());
        values.into_iter().find(|value| !value.is_empty())
    }

    /// The same as in the registration of a file, and the batch that the file belongs to.
    pub fn announcement(&self, file_size: i64) -> Result<(Option<Uuid>, Announcement), Refusal> {
        let batch = self.value(&["batch"]).map(batch_id).transpose()?;
        let mapping = self.value(&["mapping"]).map(|text| {
            serde_json::from_str(text).map_err(|error| {
                Refusal::new(RefusalCode::InvalidMapping, format!("The mapping is not valid: {error}"))
            })
        });
        let attributes = self.value(&["attributes"]).map(|text| {
            serde_json::from_str(text).map_err(|error| {
                Refusal::new(RefusalCode::InvalidAttributes, format!("The attributes are not valid: {error}"))
            })
        });
        let announcement = Announcement {
            file_name: self.value(&["filename", "name"]).unwrap_or_default().to_owned(),
            file_size,
            content_type: self.value(&["filetype", "type"]).map(str::to_owned),
            md5: self.value(&["md5"]).map(str::to_owned),
            sha256: self.value(&["sha256"]).map(str::to_owned),
            attributes: attributes.transpose()?,
            mapping: mapping.transpose()?,
        };
        Ok((batch, announcement))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn metadata(text: &str) -> Result<Metadata, Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(UPLOAD_METADATA, HeaderValue::from_str(text).expect("plain text"));
        Metadata::of(&headers)
    }

    #[test]
    fn metadata_has_names_and_values_in_base64() {
        let read = metadata("filename YS50eHQ=,empty,  type dGV4dC9wbGFpbg== ,name Yi50eHQ=").expect("good");
        assert_eq!(read.value(&["filename", "name"]), Some("a.txt"));
        assert_eq!(read.value(&["filetype", "type"]), Some("text/plain"));
        assert_eq!(read.value(&["empty"]), None);
        for bad in ["filename !", "a YQ==,a YQ==", "a YQ==,", "name /w=="] {
            assert_eq!(
                metadata(bad).err().map(|refusal| refusal.code),
                Some(RefusalCode::InvalidMetadata),
                "{bad}"
            );
        }
    }
}
