//! The HTTP client: finds the server and the token, sends requests, and turns failures into errors. The routes are in
//! `client/routes.rs`.

pub mod routes;

use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::{Host, Url};

use crate::format::printable;
use landfall_api::refusal::RefusalView;
use landfall_core::clock::{Clock, to_delta};
use landfall_server::auth::{self, TokenClaims};
use landfall_server::config::{Config, Variables};

/// How long a response may take. The upload of a file has no such limit.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// A token is signed for one request, so it need not live much longer than that.
const TOKEN_LIFETIME: Duration = Duration::from_mins(5);
/// How long to wait before each retry of a request that failed for a transient reason: 13 s in all, enough for a server
/// to restart.
const RETRY_DELAYS_MS: [u64; 6] = [250, 500, 1_000, 2_000, 4_000, 5_000];
/// The longest that a request waits because the server says when to come back, all times together. A server that asks for
/// more is not waited for.
const MAX_ASKED_WAIT: Duration = Duration::from_mins(10);

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
    Interrupted { server: String, why: String },
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
            Self::Untrusted { .. } | Self::Unexpected { .. } => false,
        }
    }

    /// How long to wait before the same request may succeed, if the server limits how many there may be.
    fn asked_wait(&self) -> Option<Duration> {
        match self {
            Self::Refused { status: 429, retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether every other request would fail in the same way.
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Untrusted { .. } | Self::Unexpected { .. } => true,
            Self::Refused { status, .. } => *status == 401,
            Self::Interrupted { .. } => false,
        }
    }

    pub fn code(&self) -> &str {
        match self {
            Self::Unreachable { .. } => "UNREACHABLE",
            Self::Untrusted { .. } => "UNTRUSTED",
            Self::Interrupted { .. } => "CONNECTION_BROKEN",
            Self::Refused { code, .. } => code,
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
    server: String,
    credentials: Credentials,
}

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
        Ok(Self { http, server: address.as_str().trim_end_matches('/').to_owned(), credentials })
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
        let mut delays = RETRY_DELAYS_MS.into_iter().map(Duration::from_millis);
        let mut left = MAX_ASKED_WAIT;
        loop {
            let error = match request().await {
                Err(error) if error.is_transient() => error,
                done => return done,
            };
            // Jitter: clients that failed together should not come back together.
            let delay = if let Some(asked) = error.asked_wait() {
                let wait = asked.mul_f64(1.0 + 0.2 * rand::random::<f64>());
                let Some(after) = left.checked_sub(wait) else { return Err(error) };
                left = after;
                wait
            } else {
                let Some(delay) = delays.next() else { return Err(error) };
                delay.mul_f64(0.8 + 0.4 * rand::random::<f64>())
            };
            Clock::System.sleep(delay).await;
        }
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
            // A proxy that cannot reach the server.
            Err(_) if status.is_server_error() => self.interrupted(&format!("status {status}")),
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
            ClientError::Interrupted { server, why }
        }
    }

    /// The error of a connection that was given up.
    pub fn interrupted(&self, why: &str) -> ClientError {
        ClientError::Interrupted { server: self.server.clone(), why: why.to_owned() }
    }

    /// The error of a response that does not come from Landfall.
    pub fn unexpected(&self, why: String) -> ClientError {
        ClientError::Unexpected { server: self.server.clone(), why }
    }
}

/// The seconds in `Retry-After`. The server sends no dates.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
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
    fn a_wait_that_the_server_asks_for_is_that_of_a_limit() {
        let asked = |status, wait| {
            let mut error = refused(status, "X", true);
            if let ClientError::Refused { retry_after, .. } = &mut error {
                *retry_after = wait;
            }
            error.asked_wait()
        };
        let five = Some(Duration::from_secs(5));
        assert_eq!(asked(429, five), five);
        assert_eq!(asked(429, None), None);
        // A server that restarts is asked again as soon as it may be back.
        assert_eq!(asked(503, five), None);
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
