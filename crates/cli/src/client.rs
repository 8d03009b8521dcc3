//! The HTTP client: finds the server and the token, sends requests, and turns failures into errors. The routes are in
//! `client/routes.rs`.

mod backoff;
pub mod routes;
pub mod store;
pub mod tus;

use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::{Host, Url};

use crate::format::printable;
use backoff::Backoff;
use landfall_api::refusal::RefusalView;
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_server::auth::{self, TokenClaims};
use landfall_server::config::{Config, Variables};

/// How long a response may take. The upload of a file has no such limit.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// A token is signed for one request, so it need not live much longer than that.
const TOKEN_LIFETIME: Duration = Duration::from_mins(5);
/// How long a request is repeated that fails for a transient reason: enough for a server to restart.
const PATIENCE: Duration = Duration::from_secs(13);

#[derive(Debug, clap::Args)]
pub struct Connection {
    /// The address of the server [default: LANDFALL_URL, or this machine at PORT].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The token to use [default: LANDFALL_TOKEN, or one signed with the server's secret if it can be read].
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

impl Connection {
    pub fn new(server: Option<String>, token: Option<String>) -> Self {
        Self { server, token }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot reach {server}: {why}. Is it running? Start it with `landfall serve`")]
    Unreachable { server: String, why: String },
    #[error(
        "this machine does not trust the certificate of {server}: {why}. If its issuer is your own, put the issuer's \
         certificate into a file and its path into SSL_CERT_FILE"
    )]
    Untrusted { server: String, why: String },
    #[error("the connection to {server} was lost: {why}")]
    Interrupted { server: String, why: String, retry_after: Option<Duration> },
    #[error("{code}: {message}{hint}")]
    Refused {
        status: u16,
        code: String,
        message: String,
        retryable: bool,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        details: Value,
        hint: &'static str,
    },
    /// A response of the object store that a ticket points to.
    #[error("the storage refused the bytes: {message}")]
    Storage { status: u16, message: String, retry_after: Option<Duration> },
    #[error("unexpected response from {server}: {why}")]
    Unexpected { server: String, why: String },
}

impl ClientError {
    /// Whether the same request may succeed in a moment.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Interrupted { .. } => true,
            Self::Refused { status, code, retryable, .. } => {
                *retryable
                    && (*status >= 500
                        || matches!(status, 408 | 429)
                        || matches!(code.as_str(), "UPLOAD_BROKEN" | "BODY_BROKEN" | "UPLOAD_IN_PROGRESS"))
            }
            // 409: another upload to the same key is not finished yet.
            Self::Storage { status, .. } => *status >= 500 || matches!(status, 408 | 409 | 425 | 429),
            Self::Untrusted { .. } | Self::Unexpected { .. } => false,
        }
    }

    /// How long the server or the storage asks to wait.
    fn asked_wait(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. }
            | Self::Storage { retry_after, .. }
            | Self::Interrupted { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether it asks to wait because it limits how many requests there may be. It works, so it is waited for longer.
    fn is_limit(&self) -> bool {
        matches!(self, Self::Refused { status: 429, .. })
    }

    /// Whether every other request would fail in the same way.
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Untrusted { .. } | Self::Unexpected { .. } => true,
            Self::Refused { status, .. } => *status == 401,
            Self::Interrupted { .. } | Self::Storage { .. } => false,
        }
    }

    /// Whether a fresh upload URL may help. A storage refuses an expired URL with one of these.
    pub fn wants_fresh_url(&self) -> bool {
        match self {
            Self::Refused { code, .. } => code == "UPLOAD_URL_EXPIRED",
            Self::Storage { status, .. } => matches!(status, 400 | 401 | 403),
            _ => false,
        }
    }

    pub fn code(&self) -> &str {
        match self {
            Self::Unreachable { .. } => "UNREACHABLE",
            Self::Untrusted { .. } => "UNTRUSTED",
            Self::Interrupted { .. } => "CONNECTION_BROKEN",
            Self::Refused { code, .. } => code,
            Self::Storage { .. } => "STORAGE_REFUSED",
            Self::Unexpected { .. } => "STRANGE_ANSWER",
        }
    }

    /// The message without the code.
    pub fn message(&self) -> String {
        match self {
            Self::Refused { message, .. } => message.clone(),
            other => other.to_string(),
        }
    }

    pub fn is_status(&self, wanted: u16) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == wanted)
    }
}

pub struct Client {
    http: reqwest::Client,
    /// For upload URLs that are not the server's. No token goes there.
    elsewhere: reqwest::Client,
    server: String,
    credentials: Credentials,
    /// How long a request is repeated.
    patience: Duration,
    on_wait: Option<OnWait>,
}

/// Is called with the reason and the delay before a request is repeated.
type OnWait = Box<dyn Fn(&ClientError, Duration) + Send + Sync>;

enum Credentials {
    Token(String),
    /// Signs a token for each request, so that none expires during a long upload.
    Secret(Vec<u8>),
}

impl Client {
    pub fn connect(to: &Connection) -> anyhow::Result<Self> {
        let variables = Variables::from_environment()?;
        let given = |flag: &Option<String>, name: &str| {
            flag.clone()
                .filter(|value| !value.is_empty())
                .or_else(|| variables.get(name).map(ToOwned::to_owned))
        };
        let (server, token) = (given(&to.server, "LANDFALL_URL"), given(&to.token, "LANDFALL_TOKEN"));
        // The server's settings are needed only for what the command line and the environment do not give.
        let config =
            if server.is_some() && token.is_some() { None } else { Some(Config::from_variables(variables)?) };
        let server = match (server, &config) {
            (Some(server), _) => server,
            (None, Some(config)) => own_address(config),
            (None, None) => unreachable!("the settings are read where the server is not given"),
        };
        let address = address(&server)?;
        let credentials = match (token, &config) {
            (Some(token), _) => Credentials::Token(token),
            (None, Some(config)) => secret(config, &address)?,
            (None, None) => unreachable!("the settings are read where the token is not given"),
        };
        let http = match credentials {
            Credentials::Token(_) => landfall_server::outbound::client(),
            Credentials::Secret(_) => landfall_server::outbound::client_for_this_machine(),
        };
        let elsewhere = landfall_server::outbound::client_without_redirects();
        let server = address.as_str().trim_end_matches('/').to_owned();
        Ok(Self { http, elsewhere, server, credentials, patience: PATIENCE, on_wait: None })
    }

    /// Repeats requests for longer, and says so.
    #[must_use]
    pub fn with_patience(
        mut self,
        patience: Duration,
        on_wait: impl Fn(&ClientError, Duration) + Send + Sync + 'static,
    ) -> Self {
        self.patience = patience;
        self.on_wait = Some(Box::new(on_wait));
        self
    }

    /// Where the server is.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Sends a request, and repeats it a few times if it fails for a transient reason. A server that limits the number of
    /// requests says when the next may come, and is asked again then.
    pub async fn retry<T>(
        &self,
        mut request: impl AsyncFnMut() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let mut backoff = self.backoff();
        loop {
            let error = match request().await {
                Err(error) if error.is_transient() => error,
                done => return done,
            };
            self.wait(&mut backoff, error).await?;
        }
    }

    pub fn backoff(&self) -> Backoff {
        Backoff::new(self.patience)
    }

    /// Waits before a request is repeated, or returns the error if it was repeated for long enough.
    pub async fn wait(&self, backoff: &mut Backoff, error: ClientError) -> Result<(), ClientError> {
        let Some(delay) = backoff.next(&error) else { return Err(error) };
        if let Some(on_wait) = &self.on_wait {
            on_wait(&error, delay);
        }
        Clock::System.sleep(delay).await;
        Ok(())
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ClientError> {
        let token = match &self.credentials {
            Credentials::Token(token) => token.clone(),
            Credentials::Secret(secret) => {
                let claims = TokenClaims {
                    sub: "admin".to_owned(),
                    tenant: Some("admin".to_owned()),
                    role: Some("operator".to_owned()),
                    exp: (Clock::System.now() + to_delta(TOKEN_LIFETIME)).timestamp(),
                };
                auth::sign(secret, &claims).map_err(|error| self.unexpected(error.to_string()))?
            }
        };
        let request = self.http.request(method, format!("{}{path}", self.server));
        Ok(request.bearer_auth(token))
    }

    /// Sends a request and parses the response.
    async fn fetch<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let response = self.send(request.timeout(RESPONSE_TIMEOUT)).await?;
        let bytes = response.bytes().await.map_err(|error| self.failed(&error))?;
        serde_json::from_slice(&bytes).map_err(|error| self.unexpected(error.to_string()))
    }

    /// Sends a request; any status but a success is an error.
    async fn send(&self, request: RequestBuilder) -> Result<reqwest::Response, ClientError> {
        let response = request.send().await.map_err(|error| self.failed(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        let body = response.bytes().await.map_err(|error| self.failed(&error))?;
        Err(match serde_json::from_slice::<RefusalView>(&body) {
            Ok(RefusalView { error }) => ClientError::Refused {
                status: status.as_u16(),
                code: error.code,
                message: error.message,
                retryable: error.retryable,
                retry_after,
                details: error.details,
                hint: if status == StatusCode::UNAUTHORIZED {
                    ". Make a token with `landfall token --user NAME` where the server runs, and put it in LANDFALL_TOKEN"
                } else {
                    ""
                },
            },
            // A proxy that cannot reach the server, or limits the number of requests.
            Err(_) if is_passing(status) => self.turned_away(status, retry_after),
            Err(_) => self.unexpected(format!("status {status}")),
        })
    }

    /// The error of a request that got no complete response.
    pub fn failed(&self, error: &reqwest::Error) -> ClientError {
        // The error itself repeats the address; the innermost cause says what was wrong.
        let mut cause: &dyn std::error::Error = error;
        let mut untrusted = false;
        while let Some(deeper) = cause.source() {
            cause = deeper;
            untrusted |= is_about_certificate(cause);
        }
        let (server, why) = (self.server.clone(), printable(&cause.to_string()));
        if untrusted {
            ClientError::Untrusted { server, why }
        } else if error.is_connect() {
            ClientError::Unreachable { server, why }
        } else if error.is_builder() {
            ClientError::Unexpected { server, why }
        } else {
            ClientError::Interrupted { server, why, retry_after: None }
        }
    }

    /// The error of a connection that was given up.
    pub fn interrupted(&self, why: &str) -> ClientError {
        ClientError::Interrupted { server: self.server.clone(), why: why.to_owned(), retry_after: None }
    }

    /// The error of a response without a reason, after which the same request may succeed.
    fn turned_away(&self, status: StatusCode, retry_after: Option<Duration>) -> ClientError {
        ClientError::Interrupted { server: self.server.clone(), why: format!("status {status}"), retry_after }
    }

    /// The error of a response that does not come from Landfall.
    pub fn unexpected(&self, why: String) -> ClientError {
        ClientError::Unexpected { server: self.server.clone(), why }
    }
}

/// Whether a status says that the same request may succeed later.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 423 | 425 | 429)
}

/// The wait in `Retry-After`: seconds, or the date that proxies and storages may send.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = text.parse().ok().map(Duration::from_secs);
    seconds.or_else(|| {
        let until: Time = httpdate::parse_http_date(text).ok()?.into();
        Some((until - Clock::System.now()).to_std().unwrap_or_default())
    })
}

/// Whether an error is that of a certificate. An error of TLS is inside one of input and output, which may be in another.
fn is_about_certificate(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(outer) = error.downcast_ref::<std::io::Error>() {
        return outer.get_ref().is_some_and(|inner| is_about_certificate(inner));
    }
    matches!(error.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
}

/// Where the server on this machine is. A certificate has the name of the public URL, and rarely that of the machine.
fn own_address(config: &Config) -> String {
    let http = &config.http;
    match (&http.tls, &http.public_url) {
        (None, _) => format!("http://127.0.0.1:{}", http.port),
        (Some(_), Some(url)) => url.clone(),
        (Some(_), None) => format!("https://localhost:{}", http.port),
    }
}

fn address(text: &str) -> anyhow::Result<Url> {
    let url = Url::parse(text).with_context(|| format!("the server's address {text:?} is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        bail!("the server's address {text:?} must begin with http:// or https://");
    }
    Ok(url)
}

/// The secret that the server on this machine signs with. A user who can read it may do everything anyway.
fn secret(config: &Config, server: &Url) -> anyhow::Result<Credentials> {
    let how = "give one with --token or LANDFALL_TOKEN (`landfall token --user NAME` makes one where the server runs)";
    // First of all: an administrator's token that is made here must not be sent to another machine.
    if !is_this_machine(server) {
        bail!("a token is needed for {server}: {how}");
    }
    if let Some(secret) = &config.auth.jwt_secret {
        return Ok(Credentials::Secret(secret.clone().into_bytes()));
    }
    if config.auth.provider.is_some() {
        bail!("a token from the identity provider is needed: give it with --token or LANDFALL_TOKEN");
    }
    match auth::own_secret(&config.data_dir, false) {
        Ok(secret) => Ok(Credentials::Secret(secret.into_bytes())),
        Err(error) => bail!(
            "a token is needed: {how}. None could be made here ({error}). Has `landfall serve` run in this folder, \
             or with this DATA_DIR?"
        ),
    }
}

fn is_this_machine(server: &Url) -> bool {
    match server.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str, retryable: bool) -> ClientError {
        ClientError::Refused {
            status,
            code: code.to_owned(),
            message: String::new(),
            retryable,
            retry_after: None,
            details: Value::Null,
            hint: "",
        }
    }

    #[test]
    fn only_transient_errors_are_retried() {
        assert!(refused(503, "DATABASE_UNAVAILABLE", true).is_transient());
        assert!(refused(408, "UPLOAD_STALLED", true).is_transient());
        assert!(refused(400, "UPLOAD_BROKEN", true).is_transient());
        // The connection of the attempt before was lost, and the server has not noticed it yet.
        assert!(refused(409, "UPLOAD_IN_PROGRESS", true).is_transient());
        assert!(!refused(500, "INTERNAL", false).is_transient());
        // The file changed on disk: sending it again sends the same wrong bytes.
        assert!(!refused(400, "CHECKSUM_MISMATCH", true).is_transient());
    }

    #[test]
    fn a_wait_is_a_number_of_seconds_or_a_date() {
        let parsed =
            |value: &str| retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]));
        assert_eq!(parsed("5"), Some(Duration::from_secs(5)));
        assert_eq!(parsed("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(parsed("soon"), None);
        let later = std::time::SystemTime::from(Clock::System.now() + to_delta(Duration::from_mins(10)));
        assert!(parsed(&httpdate::fmt_http_date(later)).unwrap() > Duration::from_mins(9));
    }

    #[test]
    fn a_storage_that_refuses_the_url_is_asked_with_a_fresh_one() {
        let storage = |status| ClientError::Storage { status, message: String::new(), retry_after: None };
        assert!(storage(403).wants_fresh_url() && !storage(403).is_transient());
        assert!(storage(503).is_transient() && !storage(503).is_fatal());
        assert!(storage(409).is_transient());
        // A 401 of the server ends everything; one of the storage concerns one URL.
        assert!(refused(401, "INVALID_TOKEN", false).is_fatal() && !storage(401).is_fatal());
    }

    #[test]
    fn an_own_token_is_sent_to_this_machine_only() {
        for (server, own) in [
            ("http://127.0.0.1:3002", true),
            ("http://[::1]:3002", true),
            ("http://localhost", true),
            ("http://localhost.example.org", false),
            ("https://landfall.example.org", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_this_machine(&address(server).unwrap()), own, "{server}");
        }
    }

    #[test]
    fn an_address_is_a_web_address() {
        assert!(address("127.0.0.1:3002").is_err());
        assert!(address("file:///etc/passwd").is_err());
        assert!(address("https://landfall.example.org/base/").is_ok());
    }
}
