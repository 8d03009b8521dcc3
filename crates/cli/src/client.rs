//! Talks to a server: where it is, who asks, and what can go wrong on the way.

use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::header::ACCEPT;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::{Host, Url};

use crate::words::printable;
use landfall_core::clock::{Clock, to_delta};
use landfall_server::auth::{self, Claims};
use landfall_server::config::{Config, Variables};
use landfall_api::uploads::UploadTicket;

const UPLOADS: &str = "/api/v2/uploads";
const JOBS: &str = "/api/v2/admin/jobs";
const QUEUE_STATUS: &str = "/api/v2/admin/queue-status";
/// How long an answer may take. The bytes of a file have no such limit.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
/// What is signed for one request need not outlive it by much.
const TOKEN_LIFE: Duration = Duration::from_mins(5);
/// How long to wait before each repetition of a request that failed for a reason that may pass: 13 s in all, enough
/// for a server to be restarted.
const WAITS_MS: [u64; 6] = [250, 500, 1_000, 2_000, 4_000, 5_000];

#[derive(Debug, clap::Args)]
pub struct Connection {
    /// Where the server is; otherwise LANDFALL_URL, otherwise this machine at PORT.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Who asks; otherwise LANDFALL_TOKEN, otherwise one is made with the server's secret, where it is at hand.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot reach {server}: {why}. Is it running? Start it with `landfall serve`")]
    Unreachable { server: String, why: String },
    #[error("the connection to {server} broke off: {why}")]
    BrokenOff { server: String, why: String },
    #[error("{code}: {message}{hint}")]
    Refused {
        status: u16,
        code: String,
        message: String,
        retryable: bool,
        details: Value,
        hint: &'static str,
    },
    #[error("{server} does not answer like Landfall does: {why}")]
    Strange { server: String, why: String },
}

impl ClientError {
    /// Whether the same request may go well in a moment.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::BrokenOff { .. } => true,
            Self::Refused { status, code, retryable, .. } => {
                *retryable
                    && (*status >= 500
                        || matches!(status, 408 | 429)
                        || matches!(code.as_str(), "UPLOAD_BROKEN" | "BODY_BROKEN"))
            }
            Self::Strange { .. } => false,
        }
    }

    /// Whether every other request would end the same way, so that there is no use in going on.
    pub fn ends_everything(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Strange { .. } => true,
            Self::Refused { status, .. } => *status == 401,
            Self::BrokenOff { .. } => false,
        }
    }

    pub fn code(&self) -> &str {
        match self {
            Self::Unreachable { .. } => "UNREACHABLE",
            Self::BrokenOff { .. } => "CONNECTION_BROKEN",
            Self::Refused { code, .. } => code,
            Self::Strange { .. } => "STRANGE_ANSWER",
        }
    }

    /// The sentence alone.
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
    /// Signs a token for each request, so that none is ever too old, however long an upload takes.
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
        // The server's settings matter only for what nobody said.
        let config =
            if server.is_some() && token.is_some() { None } else { Some(Config::from_variables(variables)?) };
        let server = match (server, &config) {
            (Some(server), _) => server,
            (None, Some(config)) => format!("http://127.0.0.1:{}", config.http.port),
            (None, None) => unreachable!("the settings are read where the server is not given"),
        };
        let address = address(&server)?;
        let credentials = match (token, &config) {
            (Some(token), _) => Credentials::Token(token),
            (None, Some(config)) => secret(config, &address)?,
            (None, None) => unreachable!("the settings are read where the token is not given"),
        };
        Ok(Self {
            http: landfall_server::outbound::client(),
            server: address.as_str().trim_end_matches('/').to_owned(),
            credentials,
        })
    }

    pub async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, ClientError> {
        let request = self.request(Method::GET, &format!("{UPLOADS}{path}"))?;
        self.answer(request.query(query)).await
    }

    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, ClientError> {
        let request = self.request(Method::POST, &format!("{UPLOADS}{path}"))?;
        self.answer(request.json(body)).await
    }

    /// The same for what creates something: however often it is repeated, it happens once.
    pub async fn create<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, ClientError> {
        let key = Clock::System.new_id().to_string();
        self.persist(async || {
            let request = self.request(Method::POST, &format!("{UPLOADS}{path}"))?;
            self.answer(request.header("Idempotency-Key", &key).json(body)).await
        })
        .await
    }

    pub async fn delete(&self, path: &str) -> Result<(), ClientError> {
        let request = self.request(Method::DELETE, &format!("{UPLOADS}{path}"))?;
        self.send(request.timeout(ANSWER_TIMEOUT)).await.map(drop)
    }

    /// Opens an event stream, which has no end of its own.
    pub async fn events(&self, query: &[(&str, String)]) -> Result<reqwest::Response, ClientError> {
        let request = self.request(Method::GET, &format!("{UPLOADS}/events"))?;
        self.send(request.header(ACCEPT, "text/event-stream").query(query)).await
    }

    pub async fn jobs(&self) -> Result<Value, ClientError> {
        self.answer(self.request(Method::GET, JOBS)?).await
    }

    pub async fn run_job(&self, name: &str, force: bool) -> Result<Value, ClientError> {
        let path: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
        let query = if force { "?force=true" } else { "" };
        self.answer(self.request(Method::POST, &format!("{JOBS}/{path}/run{query}"))?).await
    }

    pub async fn queue_status(&self) -> Result<Value, ClientError> {
        self.answer(self.request(Method::GET, QUEUE_STATUS)?).await
    }

    /// Where the server is.
    pub fn server(&self) -> &str {
        &self.server
    }

    pub async fn search(&self, question: &Value) -> Result<Value, ClientError> {
        self.answer(self.request(Method::POST, "/api/v2/search")?.json(question)).await
    }

    /// Sends the bytes of a file where its ticket says. That may be another server, which is not told who we are.
    pub async fn put(&self, ticket: &UploadTicket, body: reqwest::Body) -> Result<(), ClientError> {
        let mut request = self.http.put(&ticket.upload_url).body(body);
        for (name, value) in &ticket.headers {
            request = request.header(name, value.as_str().unwrap_or_default());
        }
        self.send(request).await.map(drop)
    }

    /// Repeats what failed for a reason that may pass, a few times.
    pub async fn persist<T>(
        &self,
        mut request: impl AsyncFnMut() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        for wait in WAITS_MS {
            match request().await {
                Err(error) if error.may_pass() => {
                    // Spread a little, so that many who failed together do not come back together.
                    let wait = Duration::from_millis(wait).mul_f64(0.8 + 0.4 * rand::random::<f64>());
                    Clock::System.sleep(wait).await;
                }
                done => return done,
            }
        }
        request().await
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ClientError> {
        let token = match &self.credentials {
            Credentials::Token(token) => token.clone(),
            Credentials::Secret(secret) => {
                let claims = Claims {
                    sub: "admin".to_owned(),
                    tenant: None,
                    role: Some("admin".to_owned()),
                    exp: (Clock::System.now() + to_delta(TOKEN_LIFE)).timestamp(),
                };
                auth::sign(secret, &claims).map_err(|error| self.strange(error.to_string()))?
            }
        };
        let request = self.http.request(method, format!("{}{path}", self.server));
        Ok(request.bearer_auth(token))
    }

    async fn answer<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let answer = self.send(request.timeout(ANSWER_TIMEOUT)).await?;
        let bytes = answer.bytes().await.map_err(|error| self.broken(&error))?;
        serde_json::from_slice(&bytes).map_err(|error| self.strange(error.to_string()))
    }

    async fn send(&self, request: RequestBuilder) -> Result<reqwest::Response, ClientError> {
        let answer = request.send().await.map_err(|error| self.broken(&error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = answer.bytes().await.map_err(|error| self.broken(&error))?;
        Err(match serde_json::from_slice::<Refused>(&body) {
            Ok(Refused { error }) => ClientError::Refused {
                status: status.as_u16(),
                code: error.code,
                message: error.message,
                retryable: error.retryable,
                details: error.details,
                hint: if status == StatusCode::UNAUTHORIZED {
                    ". Make a token with `landfall token --user NAME` where the server runs, and put it in LANDFALL_TOKEN"
                } else {
                    ""
                },
            },
            // A proxy in between that has lost its server.
            Err(_) if status.is_server_error() => self.broken_off(&format!("it answered {status}")),
            Err(_) => self.strange(format!("it answered {status}")),
        })
    }

    pub fn broken(&self, error: &reqwest::Error) -> ClientError {
        // The error itself names the address once more; what was wrong is at the bottom.
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        let (server, why) = (self.server.clone(), printable(&cause.to_string()));
        if error.is_connect() {
            ClientError::Unreachable { server, why }
        } else if error.is_builder() {
            ClientError::Strange { server, why }
        } else {
            ClientError::BrokenOff { server, why }
        }
    }

    /// An error for a connection that was given up.
    pub fn broken_off(&self, why: &str) -> ClientError {
        ClientError::BrokenOff { server: self.server.clone(), why: why.to_owned() }
    }

    /// An error for an answer that no server of ours gives.
    pub fn strange(&self, why: String) -> ClientError {
        ClientError::Strange { server: self.server.clone(), why }
    }
}

#[derive(Deserialize)]
struct Refused {
    error: RefusedBecause,
}

#[derive(Deserialize)]
struct RefusedBecause {
    code: String,
    message: String,
    #[serde(default)]
    retryable: bool,
    #[serde(default)]
    details: Value,
}

fn address(text: &str) -> anyhow::Result<Url> {
    let url = Url::parse(text).with_context(|| format!("the server's address {text:?} is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        bail!("the server's address {text:?} must begin with http:// or https://");
    }
    Ok(url)
}

/// The secret that the server on this machine signs with: who can read it may do everything anyway.
fn secret(config: &Config, server: &Url) -> anyhow::Result<Credentials> {
    let how = "give one with --token or LANDFALL_TOKEN (`landfall token --user NAME` makes one where the server runs)";
    if let Some(secret) = &config.auth.jwt_secret {
        return Ok(Credentials::Secret(secret.clone().into_bytes()));
    }
    if config.auth.jwks_url.is_some() {
        bail!(
            "a token is needed from whoever JWT_JWKS_URL belongs to: give it with --token or LANDFALL_TOKEN"
        );
    }
    // A token of this machine's administrator is nothing to hand to a stranger.
    if !is_this_machine(server) {
        bail!("a token is needed for {server}: {how}");
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
            details: Value::Null,
            hint: "",
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        assert!(refused(503, "DATABASE_UNAVAILABLE", true).may_pass());
        assert!(refused(408, "UPLOAD_STALLED", true).may_pass());
        assert!(refused(400, "UPLOAD_BROKEN", true).may_pass());
        assert!(!refused(500, "INTERNAL", false).may_pass());
        // The file changed on disk: sending it again sends the same wrong bytes.
        assert!(!refused(400, "CHECKSUM_MISMATCH", true).may_pass());
    }

    #[test]
    fn an_own_token_goes_to_this_machine_only() {
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
