//! A client of the API.

use futures_util::{StreamExt, stream};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::contract;

#[derive(Clone)]
pub struct Client {
    pub base: String,
    pub token: String,
    pub http: reqwest::Client,
}

/// A response of the API.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    pub status: u16,
    pub body: Value,
}

impl ApiResponse {
    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    #[track_caller]
    pub fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.body);
        self.body
    }

    /// Asserts a refusal, and that it has the common form.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.body);
        let error = &self.body["error"];
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{}", self.body);
        assert!(error["retryable"].is_boolean() && error["details"].is_object(), "{}", self.body);
        error.clone()
    }
}

impl Client {
    pub fn new(base: String, token: String) -> Self {
        Self { base, token, http: landfall_server::outbound::client() }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }

    /// Sends a request, and checks that the API description has this response.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> ApiResponse {
        let request = request.build().expect("a request");
        let method = request.method().to_string();
        let response = self.http.execute(request).await.expect("an answer");
        // The path after redirects.
        let path = response.url().path().to_owned();
        let status = response.status().as_u16();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.map(str::to_owned);
        let bytes = response.bytes().await.expect("a body");
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        contract::check(&method, &path, status, kind.as_deref(), &body);
        ApiResponse { status, body }
    }

    pub async fn get(&self, path: &str) -> ApiResponse {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> ApiResponse {
        self.send(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> ApiResponse {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub async fn put(&self, url: &str, bytes: impl Into<reqwest::Body>) -> ApiResponse {
        self.send(self.http.put(url).body(bytes)).await
    }

    /// Opens a batch for so many files and returns its id.
    pub async fn open_batch(&self, files: usize) -> String {
        let batch = self.post("/api/v2/uploads/batches", json!({ "fileCount": files })).await.ok();
        batch["batchId"].as_str().expect("an id").to_owned()
    }

    /// Registers a file and returns its ticket.
    pub async fn register(&self, batch: Option<&str>, name: &str, size: usize) -> Value {
        let path = match batch {
            Some(batch) => format!("/api/v2/uploads/batches/{batch}/upload-urls"),
            None => "/api/v2/uploads/files/init".to_owned(),
        };
        self.post(&path, json!({ "fileName": name, "fileSize": size })).await.ok()
    }

    /// Registers a file and sends its bytes; returns its id.
    pub async fn send_bytes(&self, batch: Option<&str>, name: &str, bytes: &[u8]) -> String {
        let ticket = self.register(batch, name, bytes.len()).await;
        self.put(ticket["uploadUrl"].as_str().expect("a URL"), bytes.to_vec()).await.ok();
        ticket["fileId"].as_str().expect("an id").to_owned()
    }

    pub async fn confirm(&self, file: &str) -> ApiResponse {
        self.send(self.request(Method::POST, &format!("/api/v2/uploads/files/{file}/confirm"))).await
    }

    /// Registers, sends and confirms a file; returns its id.
    pub async fn upload(&self, name: &str, bytes: &[u8]) -> String {
        let file = self.send_bytes(None, name, bytes).await;
        self.confirm(&file).await.ok();
        file
    }

    pub async fn upload_in(&self, batch: &str, name: &str, bytes: &[u8]) -> String {
        let file = self.send_bytes(Some(batch), name, bytes).await;
        self.confirm(&file).await.ok();
        file
    }

    /// Uploads a batch of small files with these names, several at once; returns its id and theirs in order.
    pub async fn upload_all(&self, names: &[String]) -> (String, Vec<String>) {
        let batch = self.open_batch(names.len()).await;
        let files: Vec<Value> = names.iter().map(|name| json!({ "fileName": name, "fileSize": 1 })).collect();
        let path = format!("/api/v2/uploads/batches/{batch}/upload-urls");
        let tickets = self.post(&path, json!(files)).await.ok();
        let tickets = tickets.as_array().expect("a list").clone();
        let sent = stream::iter(tickets).map(async |ticket| {
            self.put(ticket["uploadUrl"].as_str().expect("a URL"), "x").await.ok();
            let file = ticket["fileId"].as_str().expect("an id").to_owned();
            self.confirm(&file).await.ok();
            file
        });
        let files = sent.buffered(16).collect().await;
        (batch, files)
    }

    pub async fn file(&self, id: &str) -> Value {
        self.get(&format!("/api/v2/uploads/files/{id}")).await.ok()
    }

    pub async fn status(&self, id: &str) -> String {
        self.file(id).await["status"].as_str().expect("a status").to_owned()
    }

    pub async fn batch(&self, id: &str) -> Value {
        self.get(&format!("/api/v2/uploads/batches/{id}")).await.ok()
    }

    /// The states that a file went through, in order.
    pub async fn states(&self, id: &str) -> Vec<String> {
        let history = self.get(&format!("/api/v2/uploads/files/{id}/history")).await.ok();
        let entries = history["history"].as_array().expect("a list").iter();
        entries.map(|entry| entry["to"].as_str().expect("a state").to_owned()).collect()
    }

    pub async fn quota(&self) -> (i64, i64) {
        let quota = self.get("/api/v2/uploads/quota").await.ok();
        let bytes = |name: &str| quota["bytes"][name].as_i64().expect("a number");
        (bytes("reserved"), bytes("used"))
    }

    pub async fn search(&self, query: &str) -> Vec<Value> {
        let found = self.post("/api/v2/search", json!({ "query": query })).await.ok();
        found["hits"].as_array().expect("a list").clone()
    }
}
