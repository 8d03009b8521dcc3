//! Tries what Landfall needs of a bucket, and says what is wrong with it.

use std::time::Duration;

use md5::Md5;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use sha2::{Digest, Sha256};

use super::cors::{EXPOSED, asking};
use super::direct::{Declared, DirectUpload, Download, address_in};
use super::explain::{Action, Subject, Trouble};
use super::multipart_listing::Marker;
use super::store::Store;
use super::{Objects, is_missing};
use crate::blobs::trial::{Audience, CONDITIONAL_PUT, DELETE, LIST, PROBE, READ, Trial, Verdict, WRITE};
use crate::blobs::{Blobs, Pin, StoreKind};
use crate::outbound::response;
use landfall_core::clock::Clock;
use landfall_store::Error;

const CONNECT: &str = "connect";
const PARTS: &str = "upload in parts";
const SIGNED_URL: &str = "signed URL";
const CORS: &str = "CORS";

/// Stores refuse requests of clocks that differ by more than a quarter of an hour.
const MAX_SKEW: chrono::TimeDelta = chrono::TimeDelta::minutes(5);
const TTL: Duration = Duration::from_mins(5);
const TIMEOUT: Duration = Duration::from_secs(30);

/// What to say, or why the request failed.
type Tried = Result<Verdict, Trouble>;

impl Objects {
    pub async fn try_everything(&self, audience: &Audience) -> Vec<Trial> {
        let mut trials = Vec::new();
        let path = self.path(&format!("check/{}", landfall_core::random::new_uuid().simple()));
        let host = match self.try_connection(&path).await {
            Ok((host, verdict)) => {
                trials.push(Trial { name: CONNECT, verdict });
                host
            }
            Err(sentence) => {
                trials.push(Trial { name: CONNECT, verdict: Verdict::Failed(sentence) });
                return trials;
            }
        };
        let subject = self.subject(&host);
        let direct = Blobs::direct_key(landfall_core::random::new_uuid());
        let (mut is_written, mut is_hopeless) = (false, false);
        for name in [WRITE, READ, LIST, CONDITIONAL_PUT, PARTS, SIGNED_URL, CORS, DELETE] {
            // What was written is removed all the same.
            if is_hopeless && !(name == DELETE && is_written) {
                continue;
            }
            let tried = match name {
                WRITE => self.try_write(subject, &path).await,
                LIST => self.try_list(subject, is_written.then_some(&path)).await,
                PARTS => self.try_parts(subject).await,
                SIGNED_URL => self.try_signed_urls(subject, &direct, audience).await,
                CORS => self.try_cors(subject, audience).await,
                _ if !is_written => Ok(Verdict::Skipped("Nothing could be written".to_owned())),
                READ => self.try_read(subject, &path).await,
                CONDITIONAL_PUT => self.try_conditions(subject, &path).await,
                _ => self.try_delete(subject, &path, &direct).await,
            };
            let verdict = match tried {
                Ok(verdict) => verdict,
                Err(trouble) => {
                    is_hopeless |= trouble.is_general;
                    Verdict::Failed(trouble.sentence)
                }
            };
            is_written |= name == WRITE && verdict == Verdict::Passed;
            trials.push(Trial { name, verdict });
        }
        trials
    }

    pub(super) fn subject<'a>(&'a self, host: &'a str) -> Subject<'a> {
        Subject { kind: self.inner.bucket.kind, bucket: &self.inner.bucket.name, host }
    }

    /// The host of the store, and whether its clock agrees with this one.
    async fn try_connection(&self, path: &Path) -> Result<(String, Verdict), String> {
        let address = address_in(self.store(), path).await;
        let mut url = address
            .map_err(|error| self.subject("the store").explain(Action::Read, &error.to_string()).sentence)?;
        let host = url[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
        url.set_path("/");
        // Any answer will do, also that it cannot be read without a signature.
        let answer = self.inner.http.get(url).timeout(TIMEOUT).send().await;
        let answer = answer.map_err(|error| {
            let why = chain(&error.without_url());
            self.subject(&host).explain(Action::Read, &why).sentence
        })?;
        let said = answer.headers().get("date").and_then(|date| date.to_str().ok());
        let said = said
            .and_then(|date| httpdate::parse_http_date(date).ok())
            .map(chrono::DateTime::<chrono::Utc>::from);
        let verdict = match said.map(|said| Clock::System.now() - said).filter(|skew| skew.abs() > MAX_SKEW) {
            Some(skew) => Verdict::Failed(format!(
                "The clock of this machine is {} minutes {} that of {host}: synchronise it, because the store refuses \
                 requests of a wrong time",
                skew.num_minutes().abs(),
                if skew > chrono::TimeDelta::zero() { "ahead of" } else { "behind" },
            )),
            None => Verdict::Passed,
        };
        Ok((host, verdict))
    }

    async fn try_write(&self, subject: Subject<'_>, path: &Path) -> Tried {
        let put = self.store().objects().put(path, PutPayload::from_static(PROBE)).await;
        put.map_err(|error| explained(subject, Action::Write, &error))?;
        Ok(Verdict::Passed)
    }

    async fn try_read(&self, subject: Subject<'_>, path: &Path) -> Tried {
        let got = self.store().objects().get_range(path, 9..14).await;
        let got = got.map_err(|error| explained(subject, Action::Read, &error))?;
        if got != PROBE[9..14] {
            return Ok(Verdict::Failed(
                "The store does not give back the part that was asked for".to_owned(),
            ));
        }
        Ok(Verdict::Passed)
    }

    async fn try_list(&self, subject: Subject<'_>, written: Option<&Path>) -> Tried {
        let options = PaginatedListOptions::default();
        let listed = self.store().pages().list_paginated(Some(&self.prefixed("check/")), options).await;
        let listed = listed.map_err(|error| explained(subject, Action::List, &error))?;
        let is_listed = |path: &Path| listed.result.objects.iter().any(|object| object.location == *path);
        if written.is_some_and(|path| !is_listed(path)) && listed.page_token.is_none() {
            return Ok(Verdict::Failed("The store does not list what was written".to_owned()));
        }
        Ok(Verdict::Passed)
    }

    /// A blob must never be overwritten, and the mark of the database is replaced by compare-and-set.
    async fn try_conditions(&self, subject: Subject<'_>, path: &Path) -> Tried {
        const LOST: &str =
            "so two uploads could replace each other, or two databases could both take the bucket for theirs";
        let put = async |mode| {
            self.store()
                .objects()
                .put_opts(path, PutPayload::from_static(PROBE), PutOptions::from(mode))
                .await
        };
        match put(PutMode::Create).await {
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {}
            Ok(_) => {
                return Ok(Verdict::Failed(format!(
                    "The store ignores the condition \"only if there is no such object yet\", {LOST}"
                )));
            }
            Err(error) => return Err(without_conditions(subject, &error)),
        }
        let found = self.store().objects().head(path).await;
        let found = found.map_err(|error| explained(subject, Action::Read, &error))?;
        let version = UpdateVersion { e_tag: found.e_tag, version: found.version };
        let first = put(PutMode::Update(version.clone())).await;
        first.map_err(|error| without_conditions(subject, &error))?;
        // Another content, so that an ETag that is a checksum changes too.
        let changed = self.store().objects().put(path, PutPayload::from_static(b"changed")).await;
        changed.map_err(|error| explained(subject, Action::Write, &error))?;
        match put(PutMode::Update(version)).await {
            Err(object_store::Error::Precondition { .. }) => Ok(Verdict::Passed),
            Ok(_) => Ok(Verdict::Failed(format!(
                "The store ignores the condition \"only if the object is still the same\", {LOST}"
            ))),
            Err(error) => Err(without_conditions(subject, &error)),
        }
    }

    /// Large files are sent in parts, and abandoned parts have to be found.
    async fn try_parts(&self, subject: Subject<'_>) -> Tried {
        let key = Blobs::direct_key(landfall_core::random::new_uuid());
        let path = self.blob_path(&key);
        let explain = |error: &object_store::Error| explained(subject, Action::Parts, error);
        let parts = self.store().parts();
        let id = parts.create_multipart(&path).await.map_err(|error| explain(&error))?;
        let sent = parts.put_part(&path, &id, 0, PutPayload::from_static(PROBE)).await;
        let listed = self.unfinished_parts(&Marker::default()).await;
        let aborted = parts.abort_multipart(&path, &id).await;
        sent.map_err(|error| explain(&error))?;
        listed.map_err(|error| subject.explain(Action::Parts, &error.to_string()))?;
        aborted.map_err(|error| explain(&error))?;
        Ok(Verdict::Passed)
    }

    async fn signed_probe(&self, key: &str) -> Result<DirectUpload, Error> {
        let (md5, sha256) = (hex::encode(Md5::digest(PROBE)), hex::encode(Sha256::digest(PROBE)));
        let declared = Declared { size: PROBE.len() as u64, md5: Some(&md5), sha256: Some(&sha256) };
        self.sign_upload(key, &declared, TTL).await
    }

    /// Does with URLs what a client does with them.
    async fn try_signed_urls(&self, subject: Subject<'_>, key: &str, audience: &Audience) -> Tried {
        if !audience.is_direct {
            return Ok(Verdict::Skipped("All bytes go through this server (UPLOAD_MODE=proxy)".to_owned()));
        }
        let signed = self.signed_probe(key).await;
        let signed = signed.map_err(|error| subject.explain(Action::Write, &error.to_string()))?;
        let public = host_of(&signed.url);
        let public = Subject { host: &public, ..subject };
        let (status, text) =
            self.send(&signed, PROBE).await.map_err(|error| public.explain(Action::Write, &error))?;
        if !(200..300).contains(&status) {
            return Err(public.explain(Action::Write, &format!("{status} {text}")));
        }
        let again = self.send(&signed, PROBE).await.map_err(|error| public.explain(Action::Write, &error))?;
        let pin = Pin {
            key: key.to_owned(),
            size: PROBE.len() as u64,
            checksum: None,
            revision: crate::blobs::Revision::default(),
        };
        let download = Download { disposition: "attachment; filename=\"a.txt\"", content_type: "text/plain" };
        let address = self.sign_download(&pin, &download, TTL).await;
        let address = address.map_err(|error| subject.explain(Action::Read, &error.to_string()))?;
        if let Some(address) = address {
            let got = self.load(&address).await.map_err(|error| public.explain(Action::Read, &error))?;
            if got.0 != 200 || got.1 != PROBE {
                return Err(
                    public.explain(Action::Read, &format!("{} {}", got.0, String::from_utf8_lossy(&got.1)))
                );
            }
        }
        if (200..300).contains(&again.0) {
            return Ok(Verdict::Warning(
                "The store lets the URL of an upload be used twice: a client can replace the bytes until it confirms them, and \
                 reading them after a later change fails with BLOB_CHANGED"
                    .to_owned(),
            ));
        }
        Ok(Verdict::Passed)
    }

    async fn try_cors(&self, subject: Subject<'_>, audience: &Audience) -> Tried {
        if !audience.is_direct {
            return Ok(Verdict::Skipped("All bytes go through this server (UPLOAD_MODE=proxy)".to_owned()));
        }
        if audience.origins.is_empty() {
            return Ok(Verdict::Skipped(
                "No page is known that sends bytes from a browser: set PUBLIC_URL or CORS_ORIGINS, or name one with --origin"
                    .to_owned(),
            ));
        }
        let key = Blobs::direct_key(landfall_core::random::new_uuid());
        let signed = self.signed_probe(&key).await;
        let signed = signed.map_err(|error| subject.explain(Action::Write, &error.to_string()))?;
        let public = host_of(&signed.url);
        let public = Subject { host: &public, ..subject };
        // The client itself begins and ends uploads in parts only on S3.
        let methods: &[&str] =
            if subject.kind == StoreKind::S3 { &["PUT", "POST", "DELETE"] } else { &["PUT"] };
        for origin in &audience.origins {
            for method in methods {
                let headers: &[_] = if *method == "PUT" { &signed.headers } else { &[] };
                let complaint = self.preflight(&signed.url, method, headers, origin).await;
                let complaint = complaint.map_err(|error| public.explain(Action::Read, &chain(&error)))?;
                if let Some(complaint) = complaint {
                    return Ok(Verdict::Failed(format!("{complaint}: run `landfall storage cors --set`")));
                }
            }
            let exposed = self.exposed(&signed.url, origin).await;
            let exposed = exposed.map_err(|error| public.explain(Action::Read, &chain(&error)))?;
            if !exposed {
                return Ok(Verdict::Failed(format!(
                    "The CORS rule of the bucket for {origin} does not let the page read {EXPOSED}: run \
                     `landfall storage cors --set`"
                )));
            }
        }
        Ok(Verdict::Passed)
    }

    async fn try_delete(&self, subject: Subject<'_>, path: &Path, direct: &str) -> Tried {
        for path in [path, &self.blob_path(direct)] {
            match self.store().objects().delete(path).await {
                Err(error) if !is_missing(&error) => {
                    let mut trouble = explained(subject, Action::Delete, &error);
                    trouble.sentence = format!("{}. {path} is left in the bucket", trouble.sentence);
                    return Err(trouble);
                }
                _ => {}
            }
            if !matches!(self.store().objects().head(path).await, Err(error) if is_missing(&error)) {
                return Ok(Verdict::Failed(format!("{path} is still in the bucket after it was deleted")));
            }
        }
        Ok(Verdict::Passed)
    }

    /// Sends bytes as a client does, and returns the status and the beginning of what the store said.
    async fn send(&self, signed: &DirectUpload, content: &'static [u8]) -> Result<(u16, String), String> {
        let mut request = self.inner.http.put(&signed.url).timeout(TIMEOUT).body(content);
        for (name, value) in &signed.headers {
            request = request.header(name, value);
        }
        let lost = |error: reqwest::Error| chain(&error.without_url());
        let answer = request.send().await.map_err(lost)?;
        let status = answer.status().as_u16();
        let (body, _) = response::read(answer, 4_096).await.map_err(lost)?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    async fn load(&self, address: &str) -> Result<(u16, Vec<u8>), String> {
        let lost = |error: reqwest::Error| chain(&error.without_url());
        let answer = self.inner.http.get(address).timeout(TIMEOUT).send().await.map_err(lost)?;
        let status = answer.status().as_u16();
        Ok((status, response::read(answer, 4_096).await.map_err(lost)?.0))
    }

    /// Whether the answer to a request of a page of this origin lets its script read the mark of what was stored.
    async fn exposed(&self, url: &str, origin: &str) -> Result<bool, reqwest::Error> {
        let request =
            self.inner.http.put(url).header("Origin", asking(origin)).header("x-landfall", "refused");
        // Without the headers that the signature needs: it is refused, and the answer has the rule's headers all the same.
        let answer = request.timeout(TIMEOUT).send().await.map_err(reqwest::Error::without_url)?;
        let listed = answer.headers().get_all("access-control-expose-headers");
        let mut names =
            listed.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
        Ok(names.any(|name| name.trim() == "*" || name.trim().eq_ignore_ascii_case(EXPOSED)))
    }

    /// Where requests go, for a message.
    pub(super) fn host(&self) -> String {
        let endpoint = |name: &str| {
            let known = self.inner.options.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            known.map(|(_, value)| value.clone())
        };
        let (named, usual) = match self.store() {
            Store::S3(_) => (endpoint("AWS_ENDPOINT_URL"), "S3"),
            Store::Azure(_) => (endpoint("AZURE_STORAGE_ENDPOINT"), "Azure"),
            Store::Gcs(_) => (endpoint("GOOGLE_BASE_URL"), "Google Cloud Storage"),
            Store::Made(_) => (None, "simulated"),
        };
        named.unwrap_or_else(|| usual.to_owned())
    }
}

fn host_of(url: &str) -> String {
    let url = url::Url::parse(url).ok();
    url.map_or_else(String::new, |url| url[url::Position::BeforeHost..url::Position::AfterPort].to_owned())
}

fn explained(subject: Subject<'_>, action: Action, error: &object_store::Error) -> Trouble {
    subject.explain(action, &chain(error))
}

/// A store that does not know a condition refuses the whole request.
fn without_conditions(subject: Subject<'_>, error: &object_store::Error) -> Trouble {
    let is_unknown = matches!(
        error,
        object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. }
    ) || chain(error).contains("NotImplemented");
    if is_unknown {
        let sentence = format!(
            "The store at {} does not support conditional writes, which Landfall needs",
            subject.host
        );
        return Trouble { sentence, is_general: false };
    }
    explained(subject, Action::Write, error)
}

/// The error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let said = source.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = source.source();
    }
    text
}
