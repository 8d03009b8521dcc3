//! The rules of a bucket that say which pages may send bytes to it from a browser (CORS).

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use object_store::azure::{AzureAuthorizer, AzureConfigKey};
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::path::Path;
use object_store::signer::{HeaderValue, Method};
use serde_json::{Value, json};

use super::direct::address_in;
use super::explain::{Action, between};
use super::store::Store;
use super::{Objects, failed};
use crate::blobs::StoreKind;
use crate::outbound::response;
use landfall_store::Error;

/// A client sends the parts of a large file by signed requests of all these methods.
const METHODS: [&str; 5] = ["GET", "HEAD", "PUT", "POST", "DELETE"];
/// What the script of a page has to read of a response: the mark of a part.
pub const EXPOSED: &str = "ETag";
/// Google Cloud Storage has one list for the headers of requests and of responses, and no sign for all of them.
const GCS_HEADERS: [&str; 6] = [
    EXPOSED,
    "Content-Type",
    "Content-MD5",
    "Content-Range",
    "x-goog-if-generation-match",
    "x-goog-content-length-range",
];
const MAX_AGE_SECONDS: u32 = 3_600;
/// Rules are short; a bucket has a hundred at the most.
const MAX_RULES_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

/// The rules for pages of these origins, as the command line of the store's vendor takes them.
pub fn rules(kind: StoreKind, origins: &[String]) -> Value {
    match kind {
        StoreKind::S3 => json!({ "CORSRules": [{
            "AllowedOrigins": origins, "AllowedMethods": METHODS, "AllowedHeaders": ["*"],
            "ExposeHeaders": [EXPOSED], "MaxAgeSeconds": MAX_AGE_SECONDS,
        }] }),
        StoreKind::Azure => json!({ "cors": { "corsRules": [{
            "allowedOrigins": origins, "allowedMethods": METHODS, "allowedHeaders": ["*"],
            "exposedHeaders": [EXPOSED], "maxAgeInSeconds": MAX_AGE_SECONDS,
        }] } }),
        StoreKind::Gcs => json!([gcs_rule(origins)]),
    }
}

fn gcs_rule(origins: &[String]) -> Value {
    json!({
        "origin": origins, "method": METHODS, "responseHeader": GCS_HEADERS, "maxAgeSeconds": MAX_AGE_SECONDS,
    })
}

impl Objects {
    /// Sets the rules for pages of these origins. Rules for other origins stay.
    pub async fn set_cors(&self, origins: &[String]) -> Result<(), Error> {
        match self.store() {
            Store::S3(_) => self.set_s3_cors(origins).await,
            Store::Azure(_) => self.set_azure_cors(origins).await,
            Store::Gcs(_) => self.set_gcs_cors(origins).await,
            Store::Made(_) => Ok(()),
        }
    }

    async fn set_s3_cors(&self, origins: &[String]) -> Result<(), Error> {
        let query = || vec![("cors".to_owned(), String::new())];
        let url = self.presign_bucket("GET", query(), &[], TIMEOUT).await?;
        let existing = self.ask(self.inner.http.get(url)).await;
        // A bucket without rules answers with an error.
        let existing = match existing {
            Err(Answer { text, .. }) if text.contains("NoSuchCORSConfiguration") => String::new(),
            other => other.map_err(|answer| self.refused(Action::ReadRules, &answer))?,
        };
        let kept = kept_rules(&existing, "CORSRule", "AllowedOrigin", origins);
        let ours = [
            elements("AllowedOrigin", origins),
            elements("AllowedMethod", &METHODS),
            elements("AllowedHeader", &["*"]),
            elements("ExposeHeader", &[EXPOSED]),
            elements("MaxAgeSeconds", &[MAX_AGE_SECONDS.to_string()]),
        ];
        let body = format!(
            "<CORSConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><CORSRule>{}</CORSRule>{}\
             </CORSConfiguration>",
            ours.concat(),
            kept.concat()
        );
        // S3 demands it for this request.
        let headers = [("Content-MD5".to_owned(), STANDARD.encode(Md5::digest(body.as_bytes())))];
        let url = self.presign_bucket("PUT", query(), &headers, TIMEOUT).await?;
        let [(name, md5)] = headers;
        let request =
            self.inner.http.put(url).header(name, md5).header("content-type", "application/xml").body(body);
        self.ask(request).await.map(drop).map_err(|answer| self.refused(Action::WriteRules, &answer))
    }

    /// The rules are those of all containers of the account.
    async fn set_azure_cors(&self, origins: &[String]) -> Result<(), Error> {
        let request = self.azure_service(Method::GET, String::new()).await?;
        let existing = self.ask(request).await;
        let existing = existing.map_err(|answer| self.refused(Action::ReadRules, &answer))?;
        let kept = kept_rules(&existing, "CorsRule", "AllowedOrigins", origins);
        let ours = [
            elements("AllowedOrigins", &[origins.join(",")]),
            elements("AllowedMethods", &[METHODS.join(",")]),
            elements("AllowedHeaders", &["*"]),
            elements("ExposedHeaders", &[EXPOSED]),
            elements("MaxAgeInSeconds", &[MAX_AGE_SECONDS.to_string()]),
        ];
        // What is not named here stays as it is.
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Cors><CorsRule>{}</CorsRule>{}</Cors>\
             </StorageServiceProperties>",
            ours.concat(),
            kept.concat()
        );
        let request = self.azure_service(Method::PUT, body).await?;
        self.ask(request).await.map(drop).map_err(|answer| self.refused(Action::WriteRules, &answer))
    }

    /// A signed request about the properties of the account's blob service.
    async fn azure_service(&self, method: Method, body: String) -> Result<reqwest::RequestBuilder, Error> {
        let Store::Azure(store) = self.store() else {
            return Err(Error::Internal("only Azure has such requests".to_owned()));
        };
        let object = Path::from("x");
        let mut url = address_in(self.store(), &object).await?;
        let container = format!("{}/x", self.inner.bucket.name);
        let root = url.path().strip_suffix(&container).unwrap_or("/").to_owned();
        url.set_path(&root);
        url.set_query(Some("restype=service&comp=properties"));
        let invalid = |_| Error::Internal("the address of the store is not valid".to_owned());
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = method.clone();
        *request.uri_mut() = url.as_str().parse().map_err(invalid)?;
        let length = HeaderValue::from(body.len());
        request.headers_mut().insert("content-length", length);
        if !body.is_empty() {
            request.headers_mut().insert("content-type", HeaderValue::from_static("application/xml"));
        }
        let credential = store.credentials().get_credential().await;
        let credential = credential.map_err(|error| failed("sign", "a request", error))?;
        let account = self.azure_option(AzureConfigKey::AccountName).unwrap_or("devstoreaccount1");
        AzureAuthorizer::new(&credential, account)
            .try_authorize(&mut request)
            .map_err(|error| failed("sign", "a request", error))?;
        let request_to = self.inner.http.request(method, request.uri().to_string());
        Ok(request_to.headers(request.headers().clone()).body(body))
    }

    async fn set_gcs_cors(&self, origins: &[String]) -> Result<(), Error> {
        let Store::Gcs(store) = self.store() else {
            return Err(Error::Internal("only Google Cloud Storage has such requests".to_owned()));
        };
        let credential = store.credentials().get_credential().await;
        let bearer = &credential.map_err(|error| failed("sign", "a request", error))?.bearer;
        let mut url = address_in(self.store(), &Path::from("x")).await?;
        url.set_path(&format!("/storage/v1/b/{}", self.inner.bucket.name));
        url.set_query(Some("fields=cors"));
        let existing = self.ask(self.inner.http.get(url.clone()).bearer_auth(bearer)).await;
        let existing = existing.map_err(|answer| self.refused(Action::ReadRules, &answer))?;
        // An answer that cannot be read must not count as no rules: all others would be lost.
        let existing: Value = serde_json::from_str(&existing).map_err(|error| Error::Storage {
            what: "read the CORS rules".to_owned(),
            source: error.into(),
        })?;
        let is_ours = |rule: &Value| {
            let list = rule["origin"].as_array().cloned().unwrap_or_default();
            list.iter().all(|origin| origins.iter().any(|ours| origin == ours.as_str()))
        };
        let existing = existing["cors"].as_array().cloned().unwrap_or_default();
        let mut rules = vec![gcs_rule(origins)];
        rules.extend(existing.into_iter().filter(|rule| !is_ours(rule)));
        let request = self.inner.http.patch(url).bearer_auth(bearer).json(&json!({ "cors": rules }));
        self.ask(request).await.map(drop).map_err(|answer| self.refused(Action::WriteRules, &answer))
    }

    /// What is wrong with the rules of the bucket for a page of this origin that sends this request. `None` if nothing is.
    pub(super) async fn preflight(
        &self,
        url: &str,
        method: &str,
        headers: &[(String, String)],
        origin: &str,
    ) -> Result<Option<String>, reqwest::Error> {
        // The browser sets this one itself.
        let names: Vec<String> = headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        let names: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| *name != "content-length").collect();
        let answer = self
            .inner
            .http
            .request(Method::OPTIONS, url)
            .header("Origin", asking(origin))
            .header("Access-Control-Request-Method", method)
            .header("Access-Control-Request-Headers", names.join(","))
            .timeout(TIMEOUT)
            .send()
            .await
            .map_err(reqwest::Error::without_url)?;
        let allowed = |name: &str| {
            let values = answer.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
            values
                .flat_map(|value| value.split(','))
                .map(|value| value.trim().to_ascii_lowercase())
                .collect::<Vec<_>>()
        };
        let has = |list: &[String], wanted: &str| {
            list.iter().any(|one| one == "*" || *one == wanted.to_ascii_lowercase())
        };
        if !answer.status().is_success() || !has(&allowed("access-control-allow-origin"), asking(origin)) {
            return Ok(Some(format!(
                "The bucket has no CORS rule that lets pages of {origin} send {method} requests"
            )));
        }
        if !has(&allowed("access-control-allow-methods"), method) {
            return Ok(Some(format!("The CORS rule of the bucket for {origin} lacks the method {method}")));
        }
        let listed = allowed("access-control-allow-headers");
        let missing: Vec<&str> = names.into_iter().filter(|name| !has(&listed, name)).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Ok(Some(format!(
                "The CORS rule of the bucket for {origin} does not allow the headers {missing}"
            )));
        }
        Ok(None)
    }

    /// Sends a request about the bucket itself.
    async fn ask(&self, request: reqwest::RequestBuilder) -> Result<String, Answer> {
        let sent = request.timeout(TIMEOUT).send().await;
        let answer = sent.map_err(Answer::none)?;
        let status = answer.status();
        let body = response::read(answer, MAX_RULES_BYTES).await.map_err(Answer::none)?.0;
        let text = String::from_utf8_lossy(&body).into_owned();
        if status.is_success() {
            Ok(text)
        } else {
            Err(Answer { text: format!("{} {text}", status.as_u16()) })
        }
    }

    fn refused(&self, action: Action, answer: &Answer) -> Error {
        Error::Storage {
            what: "set the CORS rules".to_owned(),
            source: self.subject(&self.host()).explain(action, &answer.text).sentence.into(),
        }
    }

    fn azure_option(&self, wanted: AzureConfigKey) -> Option<&str> {
        let is_wanted = |name: &str| name.to_ascii_lowercase().parse().ok() == Some(wanted);
        self.inner.options.iter().find(|(name, _)| is_wanted(name)).map(|(_, value)| value.as_str())
    }
}

/// The origin that stands for a page: any, where all may come.
pub(super) fn asking(origin: &str) -> &str {
    if origin == "*" { "https://any.invalid" } else { origin }
}

/// Why a request did not succeed.
struct Answer {
    text: String,
}

impl Answer {
    fn none(error: reqwest::Error) -> Self {
        Self { text: super::trial::chain(&error.without_url()) }
    }
}

fn elements(name: &str, values: &[impl AsRef<str>]) -> String {
    values
        .iter()
        .map(|value| format!("<{name}>{}</{name}>", quick_xml::escape::escape(value.as_ref())))
        .collect()
}

/// The rules that are for any other origin than ours, as they were.
fn kept_rules(existing: &str, rule: &str, origin: &str, origins: &[String]) -> Vec<String> {
    let (open, close) = (format!("<{rule}>"), format!("</{rule}>"));
    let (from, to) = (format!("<{origin}>"), format!("</{origin}>"));
    let mut kept = Vec::new();
    let mut rest = existing;
    while let Some(inner) = between(rest, &open, &close) {
        let mut listed = Vec::new();
        let mut within = inner;
        while let Some(value) = between(within, &from, &to) {
            listed.extend(value.split(',').map(|value| value.trim().to_owned()));
            within = within.split_once(&to).map_or("", |(_, after)| after);
        }
        if !listed.iter().all(|origin| origins.contains(origin)) {
            kept.push(format!("{open}{inner}{close}"));
        }
        rest = rest.split_once(&close).map_or("", |(_, after)| after);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_for_other_origins_stay_as_they_are() {
        let ours = ["https://a.example".to_owned(), "https://b.example".to_owned()];
        let rule = |origins: &str| {
            format!("<CORSRule><ID>x</ID>{origins}<AllowedMethod>GET</AllowedMethod></CORSRule>")
        };
        let other = rule(
            "<AllowedOrigin>https://a.example</AllowedOrigin><AllowedOrigin>https://c.example</AllowedOrigin>",
        );
        let existing = format!(
            "<CORSConfiguration>{}{other}{}</CORSConfiguration>",
            rule("<AllowedOrigin>https://a.example</AllowedOrigin>"),
            rule(
                "<AllowedOrigin>https://b.example</AllowedOrigin><AllowedOrigin>https://a.example</AllowedOrigin>"
            ),
        );
        assert_eq!(kept_rules(&existing, "CORSRule", "AllowedOrigin", &ours), [other]);
        assert_eq!(kept_rules("", "CORSRule", "AllowedOrigin", &ours), [] as [&str; 0]);
        let azure =
            "<CorsRule><AllowedOrigins>https://a.example, https://c.example</AllowedOrigins></CorsRule>";
        assert_eq!(kept_rules(azure, "CorsRule", "AllowedOrigins", &ours), [azure]);
        let all = "<CorsRule><AllowedOrigins>*</AllowedOrigins></CorsRule>";
        assert_eq!(kept_rules(all, "CorsRule", "AllowedOrigins", &ours), [all]);
    }
}
