//! A collector of traces: the part of OTLP over HTTP that the tests need.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use landfall_server::config::{Config, Variables};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost::Message;
use tokio_util::sync::CancellationToken;

/// A span as it arrived.
#[derive(Debug, Clone)]
pub struct Span {
    pub service: String,
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    pub attributes: BTreeMap<String, String>,
    /// The traces and spans that it is linked to.
    pub links: Vec<(String, String)>,
    pub failed: bool,
    pub nanoseconds: u64,
}

#[derive(Clone, Default)]
pub struct Collector {
    pub url: String,
    spans: Arc<Mutex<Vec<Span>>>,
    headers: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let collector = Self { url, ..Self::default() };
        let router = Router::new().route("/v1/traces", post(receive)).with_state(collector.clone());
        let settings = Config::from_variables(Variables::default()).expect("the defaults are good").http;
        tokio::spawn(async move {
            landfall_server::http::serve(listener, router, &settings, CancellationToken::new()).await;
        });
        collector
    }

    pub fn spans(&self) -> Vec<Span> {
        self.spans.lock().expect("not poisoned").clone()
    }

    pub fn headers(&self) -> Vec<HeaderMap> {
        self.headers.lock().expect("not poisoned").clone()
    }

    /// The spans with that name that are about that file.
    pub fn of_file(&self, file: &str, name: &str) -> Vec<Span> {
        let spans = self.spans().into_iter();
        spans
            .filter(|span| span.name == name && span.attributes.get("fileId").is_some_and(|id| id == file))
            .collect()
    }

    /// The spans right below another.
    pub fn below(&self, parent: &Span) -> Vec<Span> {
        self.spans()
            .into_iter()
            .filter(|span| span.parent == parent.id && span.trace == parent.trace)
            .collect()
    }
}

async fn receive(State(collector): State<Collector>, headers: HeaderMap, body: Bytes) -> StatusCode {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(body).expect("what OTLP says");
    collector.headers.lock().expect("not poisoned").push(headers);
    let mut spans = collector.spans.lock().expect("not poisoned");
    for resource in request.resource_spans {
        let about = texts(resource.resource.unwrap_or_default().attributes);
        let service = about.get("service.name").cloned().unwrap_or_default();
        for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            spans.push(Span {
                service: service.clone(),
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                name: span.name,
                attributes: texts(span.attributes),
                links: span.links.iter().map(|link| (hex(&link.trace_id), hex(&link.span_id))).collect(),
                // https://opentelemetry.io/docs/specs/otlp: 2 is an error.
                failed: span.status.is_some_and(|status| status.code == 2),
                nanoseconds: span.end_time_unix_nano - span.start_time_unix_nano,
            });
        }
    }
    StatusCode::OK
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes.into_iter().map(|attribute| (attribute.key, text(attribute.value))).collect()
}
