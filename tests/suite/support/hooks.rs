//! Helpers for the webhook tests.

use landfall_core::clock::ManualClock;
use reqwest::Method;
use serde_json::{Value, json};

use super::{ApiResponse, Client, Script, Setup, TestDb, TestServer, until};

pub const WEBHOOKS: &str = "/api/v2/webhooks";

/// A server that may send to addresses of this machine, and polls often.
pub fn setup() -> Setup {
    Setup::default().with("WEBHOOK_ALLOW_PRIVATE", "true").with("POLL_INTERVAL_MS", 20).work(Script::new())
}

pub async fn server(db: &TestDb, clock: &ManualClock) -> TestServer {
    setup().clock(clock).start(db).await
}

/// A webhook of the client's.
pub struct Hook {
    pub client: Client,
    pub id: String,
    pub secret: String,
}

impl Hook {
    pub async fn register(client: &Client, url: &str) -> Self {
        Self::register_as(client, json!({ "url": url })).await
    }

    pub async fn register_as(client: &Client, body: Value) -> Self {
        let answer = client.post(WEBHOOKS, body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let text = |name: &str| answer.body[name].as_str().expect("text").to_owned();
        Self { client: client.clone(), id: text("id"), secret: text("secret") }
    }

    pub fn path(&self, rest: &str) -> String {
        format!("{WEBHOOKS}/{}{rest}", self.id)
    }

    pub async fn show(&self) -> Value {
        self.client.get(&self.path("")).await.ok()
    }

    pub async fn change(&self, body: Value) -> ApiResponse {
        self.client.send(self.client.request(Method::PATCH, &self.path("")).json(&body)).await
    }

    /// Sends a test event; returns its entry in the log.
    pub async fn test(&self) -> Value {
        let answer = self.client.post(&self.path("/test"), json!({})).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.body
    }

    pub async fn redeliver(&self, delivery: &Value) -> ApiResponse {
        let id = delivery["id"].as_str().expect("an id");
        self.client.post(&self.path(&format!("/deliveries/{id}/redeliver")), json!({})).await
    }

    /// The log, newest first.
    pub async fn log(&self, query: &str) -> Vec<Value> {
        let page = self.client.get(&self.path(&format!("/deliveries{query}"))).await.ok();
        page["deliveries"].as_array().expect("a list").clone()
    }

    /// The entry of a delivery after so many attempts.
    pub async fn after(&self, attempts: u64, delivery: &Value) -> Value {
        let mut found = Value::Null;
        until(&format!("attempt {attempts}"), async || {
            let log = self.log("?limit=200").await;
            found = log.into_iter().find(|entry| entry["id"] == delivery["id"]).expect("it is there");
            found["attempts"].as_u64().expect("a number") >= attempts
        })
        .await;
        found
    }

    /// Waits until no delivery is pending.
    pub async fn settled(&self) {
        until("no delivery is pending", async || self.log("?status=pending&limit=1").await.is_empty()).await;
    }
}
