//! The real program in its own process, so that its costs can be measured.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use landfall_core::clock::Clock;
use landfall_server::auth::{self, TokenClaims};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::process;

/// The user of the token that a server without settings creates.
pub const USER: &str = "admin";
const STAGE_PREFIXES: [&str; 3] = ["EXTRACT_", "CHUNK_", "EMBED_"];

pub struct Server {
    child: Child,
    base: String,
    token: String,
    http: reqwest::Client,
}

/// Settings that a comparison may change.
pub fn stage_settings() -> impl Iterator<Item = (String, String)> {
    // A setting that is not text is not ours.
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.filter(|(name, _)| STAGE_PREFIXES.iter().any(|stage| name.starts_with(stage)))
}

pub fn database_url(folder: &Path) -> String {
    format!("sqlite://{}/landfall.db", folder.display())
}

impl Server {
    pub fn start(folder: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_landfall"))
            .arg("serve")
            .current_dir(folder)
            .env_clear()
            .envs(stage_settings())
            // The OCR program is searched there.
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("DATA_DIR", folder)
            .env("DATABASE_URL", database_url(folder))
            .env("PORT", "0")
            .env("LOG_LEVEL", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("its output is ours")?;
        let line = BufReader::new(stdout)
            .lines()
            .map_while(Result::ok)
            .find(|line| line.contains("http://"))
            .context("the server did not start")?;
        let (_, base) = line.trim().split_once("listening on ").context("an address")?;
        let secret = auth::own_secret(folder, false)?;
        let exp = (Clock::System.now() + chrono::TimeDelta::days(1)).timestamp();
        let claims = TokenClaims {
            sub: "admin".to_owned(),
            tenant: Some(USER.to_owned()),
            role: Some("admin".to_owned()),
            exp,
        };
        let token = auth::sign(secret.as_bytes(), &claims)?;
        Ok(Self { child, base: base.to_owned(), token, http: landfall_server::outbound::client() })
    }

    pub fn cpu(&self) -> anyhow::Result<Duration> {
        process::cpu_of_tree(self.child.id())
    }

    pub fn peak_memory(&self) -> anyhow::Result<f64> {
        process::peak_memory(self.child.id())
    }

    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        accepted(self.send(self.request(Method::GET, path)).await?)
    }

    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        accepted(self.try_post(path, body).await?)
    }

    /// The response, or the code of the refusal.
    pub async fn try_post(&self, path: &str, body: &Value) -> anyhow::Result<Result<Value, String>> {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    pub async fn try_put(&self, url: &str, bytes: Vec<u8>) -> anyhow::Result<Result<Value, String>> {
        self.send(self.http.put(url).body(bytes)).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Result<Value, String>> {
        let response = request.send().await?;
        let good = response.status().is_success();
        let body: Value = serde_json::from_slice(&response.bytes().await?).unwrap_or(Value::Null);
        if good {
            return Ok(Ok(body));
        }
        let code = body["error"]["code"].as_str().context("a refusal without a code")?;
        Ok(Err(code.to_owned()))
    }

    /// Stops it with SIGTERM.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        let sent = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status()?;
        anyhow::ensure!(sent.success(), "the server could not be told to stop");
        anyhow::ensure!(self.child.wait()?.success(), "the server ended badly");
        Ok(())
    }
}

fn accepted(answer: Result<Value, String>) -> anyhow::Result<Value> {
    answer.map_err(|code| anyhow::anyhow!("refused: {code}"))
}

impl Drop for Server {
    fn drop(&mut self) {
        // Leave nothing running; a process that has ended cannot be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
