//! Signs URLs for S3 (Signature Version 4 in the query).
//!
//! The client library signs no `Content-Length`, and a URL that does not bind the length lets a client store any number of
//! bytes.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use object_store::aws::AwsCredential;
use sha2::{Digest, Sha256};
use url::Url;

use landfall_core::clock::Time;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// A request that another program may send.
pub struct Presigned<'a> {
    pub method: &'a str,
    /// The address of the object, without a query.
    pub url: Url,
    pub query: Vec<(String, String)>,
    /// The request must have exactly these.
    pub headers: &'a [(String, String)],
    pub seconds: u64,
}

impl Presigned<'_> {
    pub fn sign(self, credential: &AwsCredential, region: &str, now: Time) -> Url {
        let (date, at) = (now.format("%Y%m%d").to_string(), now.format("%Y%m%dT%H%M%SZ").to_string());
        let scope = format!("{date}/{region}/s3/aws4_request");
        let mut url = self.url;
        let host = url[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
        let mut headers = vec![("host".to_owned(), host)];
        headers.extend(
            self.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())),
        );
        headers.sort();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");

        let mut query = self.query;
        query.extend([
            ("X-Amz-Algorithm".to_owned(), ALGORITHM.to_owned()),
            ("X-Amz-Credential".to_owned(), format!("{}/{scope}", credential.key_id)),
            ("X-Amz-Date".to_owned(), at.clone()),
            ("X-Amz-Expires".to_owned(), self.seconds.to_string()),
            ("X-Amz-SignedHeaders".to_owned(), names.clone()),
        ]);
        if let Some(token) = &credential.token {
            query.push(("X-Amz-Security-Token".to_owned(), token.clone()));
        }
        let mut pairs: Vec<String> =
            query.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        pairs.sort();
        let query = pairs.join("&");
        let canonical_headers =
            headers.iter().fold(String::new(), |text, (name, value)| text + name + ":" + value + "\n");
        let request = format!(
            "{}\n{}\n{query}\n{canonical_headers}\n{names}\nUNSIGNED-PAYLOAD",
            self.method,
            url.path()
        );
        let digest = hex::encode(Sha256::digest(request.as_bytes()));
        let to_sign = format!("{ALGORITHM}\n{at}\n{scope}\n{digest}");
        let mut key = hmac(format!("AWS4{}", credential.secret_key).as_bytes(), &date);
        for part in [region, "s3", "aws4_request"] {
            key = hmac(&key, part);
        }
        let signature = hex::encode(hmac(&key, &to_sign));
        url.set_query(Some(&format!("{query}&X-Amz-Signature={signature}")));
        url
    }
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Percent-encodes all but the unreserved characters, as the signature demands.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("a string takes everything");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the documentation of S3, "Authenticating Requests: Using Query Parameters".
    #[test]
    fn the_published_example_has_its_signature() {
        let credential = AwsCredential {
            key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            token: None,
        };
        let presigned = Presigned {
            method: "GET",
            url: Url::parse("https://examplebucket.s3.amazonaws.com/test.txt").unwrap(),
            query: Vec::new(),
            headers: &[],
            seconds: 86_400,
        };
        let now = "2013-05-24T00:00:00Z".parse().unwrap();
        let signed = presigned.sign(&credential, "us-east-1", now);
        let signature = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        assert!(signed.query().unwrap().ends_with(&format!("X-Amz-Signature={signature}")), "{signed}");
    }
}
