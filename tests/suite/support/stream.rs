//! An open event stream, as server-sent events. Every message is checked against the description of the API.

use reqwest::Method;
use serde_json::Value;

use super::{ApiResponse, Client, contract};

pub const EVENTS: &str = "/api/v2/uploads/events";

pub struct EventStream {
    response: reqwest::Response,
    rest: String,
    /// Heartbeats so far.
    pub beats: usize,
    /// Whether its messages are as the description of the API says. Those that an earlier version recorded may have fewer
    /// fields.
    pub is_described: bool,
}

impl EventStream {
    /// Opens a stream; its first message says where it begins.
    pub async fn open(client: &Client, query: &str) -> Self {
        let mut stream = Self::begin(client.request(Method::GET, &format!("{EVENTS}{query}"))).await;
        assert_eq!(stream.next().await.expect("a first message")["type"], "stream:open");
        stream
    }

    pub async fn begin(request: reqwest::RequestBuilder) -> Self {
        let response = request.header("accept", "text/event-stream").send().await.expect("an answer");
        assert_eq!(response.status().as_u16(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, rest: String::new(), beats: 0, is_described: true }
    }

    pub async fn refused(client: &Client, query: &str) -> ApiResponse {
        let request = client.request(Method::GET, &format!("{EVENTS}{query}"));
        client.send(request.header("accept", "text/event-stream")).await
    }

    /// The next event, or `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((frame, rest)) = self.rest.split_once("\n\n") {
                let event = read(frame);
                self.beats += usize::from(frame.starts_with(':'));
                self.rest = String::from(rest);
                if let Some(event) = event {
                    // The real types have a colon. Tests of the order insert events of types that they make up.
                    let is_real = event["type"].as_str().is_some_and(|kind| kind.contains(':'));
                    if self.is_described && is_real {
                        contract::check_message(&event);
                    }
                    return Some(event);
                }
            }
            let bytes = self.response.chunk().await.ok().flatten()?;
            self.rest.push_str(std::str::from_utf8(&bytes).expect("a frame is written whole"));
        }
    }

    /// Reads until the next heartbeat; no event may come before it.
    pub async fn beat(&mut self) {
        let before = self.beats;
        while self.beats == before {
            let bytes =
                self.response.chunk().await.expect("the stream continues").expect("the stream continues");
            self.rest.push_str(std::str::from_utf8(&bytes).expect("text"));
            self.beats += self.rest.matches(": \n\n").count();
            assert!(!self.rest.contains("data:"), "{}", self.rest);
            self.rest.clear();
        }
    }

    /// All events up to the first that matches.
    pub async fn up_to(&mut self, last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await.expect("the stream continues");
            let found = last(&event);
            events.push(event);
            if found {
                return events;
            }
        }
    }

    /// All events up to the end.
    pub async fn rest(mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

fn read(frame: &str) -> Option<Value> {
    let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let data: Value = serde_json::from_str(field("data")?).expect("JSON");
    assert_eq!(field("event"), data["type"].as_str(), "{frame}");
    assert_eq!(field("id").map(str::to_owned), data["id"].as_i64().map(|id| id.to_string()), "{frame}");
    Some(data)
}

pub fn is_state(event: &Value, file: &str, state: &str) -> bool {
    event["data"]["fileId"] == file && event["data"]["to"] == state
}
