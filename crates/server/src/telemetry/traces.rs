//! One trace for a file: from the HTTP request that registered it through every stage, whichever process ran it.
//!
//! The spans are those of the log ([`super::spans`]). A W3C `traceparent` in the file's row connects them across
//! processes. If traces are not collected there is none, and this module does nothing.

mod export;

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider, SpanExporter as _};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use export::Exporting;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Stage;
use uuid::Uuid;

/// What a trace needs to know about a file.
#[derive(Debug, Clone, Copy)]
pub struct TracedFile<'a> {
    pub id: Uuid,
    pub batch: Option<Uuid>,
    /// The stage that it is at, or waits for.
    pub stage: Stage,
    pub attempt: i64,
    /// Its current position in its trace, and the first trace that it had.
    pub parent: Option<&'a str>,
    pub first: Option<&'a str>,
    pub due_at: Option<Time>,
    pub claimed_at: Option<Time>,
}

/// Set if traces are collected.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

#[derive(Clone)]
pub struct TracesConfig {
    /// The full address that spans are posted to.
    pub endpoint: String,
    pub headers: HashMap<String, String>,
    pub timeout: Duration,
    pub service_name: String,
    pub sampling: Sampling,
}

/// Which traces are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// The caller decides, if its request has a trace.
    pub by_parent: bool,
    /// The share of the other traces that is kept, from 0 to 1.
    pub ratio: f64,
}

impl std::fmt::Debug for TracesConfig {
    /// Without the headers and the address, which may contain a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TracesConfig")
            .field("service_name", &self.service_name)
            .field("sampling", &self.sampling)
            .finish_non_exhaustive()
    }
}

/// Sends the spans of this process.
pub struct Traces {
    exporting: Exporting,
    /// Spans end through it, so it must live as long as they do.
    provider: SdkTracerProvider,
}

impl Traces {
    /// Starts to collect spans. The caller installs the layer that makes them.
    pub fn start(config: &TracesConfig) -> anyhow::Result<(Self, SdkTracer)> {
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&config.endpoint)
            .with_timeout(config.timeout)
            .with_headers(config.headers.clone())
            .with_http_client(crate::outbound::client_without_redirects())
            .build()
            // The error contains the address, which may contain a key.
            .map_err(|_| anyhow::anyhow!("traces cannot be sent to OTEL_EXPORTER_OTLP_ENDPOINT"))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder()
            .with_service_name(config.service_name.clone())
            .with_attributes([version, KeyValue::new("process.pid", i64::from(std::process::id()))])
            .build();
        exporter.set_resource(&resource);
        let (exporting, queue) = Exporting::start(exporter, config.timeout, config.endpoint.clone());
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_sampler(sampler(config.sampling))
            // Events belong to the log, where secrets are hidden.
            .with_max_events_per_span(0)
            .with_span_processor(queue)
            .build();
        let tracer = provider.tracer("landfall");
        TRACER.get_or_init(|| tracer.clone());
        Ok((Self { exporting, provider }, tracer))
    }

    /// Sends the remaining spans, with a time limit.
    pub async fn shut_down(self) {
        self.exporting.finish().await;
        drop(self.provider);
    }
}

fn sampler(sampling: Sampling) -> Sampler {
    let own = match sampling.ratio {
        ratio if ratio >= 1.0 => Sampler::AlwaysOn,
        ratio if ratio <= 0.0 => Sampler::AlwaysOff,
        ratio => Sampler::TraceIdRatioBased(ratio),
    };
    if sampling.by_parent { Sampler::ParentBased(Box::new(own)) } else { own }
}

fn is_on() -> bool {
    TRACER.get().is_some()
}

/// The current position in the trace, to be kept with a file or an operation.
pub fn current() -> Option<String> {
    is_on().then(|| written(&context_of(&Span::current()))).flatten()
}

/// Continues the caller's trace, if the request has one.
pub fn continue_from(headers: &HeaderMap, span: &Span) {
    if is_on() && headers.contains_key(TRACEPARENT) {
        let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers));
        parent_to(span, parent);
    }
}

/// The headers that connect a service's trace to ours.
pub fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(value) = current().and_then(|text| HeaderValue::try_from(text).ok()) {
        headers.insert(TRACEPARENT, value);
    }
    headers
}

/// Makes a span part of the file's trace. A file that was retried after it had finished has a new trace, with a
/// link to the first.
pub fn follow(file: &TracedFile<'_>, span: &Span) {
    if !is_on() {
        return;
    }
    if let Some(kept) = file.parent.and_then(parsed) {
        parent_to(span, Context::new().with_remote_span_context(kept));
    }
    if let Some(first) = file.first.and_then(parsed) {
        span.add_link(first);
    }
}

/// The same for what a request does to a file. If the request has a trace of its own, the two are linked.
pub fn follow_in_request(file: &TracedFile<'_>, span: &Span) {
    if !is_on() {
        return;
    }
    let request = context_of(&Span::current());
    match file.parent.and_then(parsed) {
        Some(kept) if kept.trace_id() != request.trace_id() => {
            parent_to(span, Context::new().with_remote_span_context(kept));
            if request.is_valid() {
                span.add_link(request);
            }
        }
        // It is part of the trace already.
        _ => {}
    }
}

/// A span for the time that a claimed file has waited in the queue.
pub fn waited(file: &TracedFile<'_>) {
    let Some(tracer) = TRACER.get() else { return };
    let kept = file.parent.and_then(parsed);
    let (Some(kept), Some(due_at), Some(claimed_at)) = (kept, file.due_at, file.claimed_at) else { return };
    let mut attributes = vec![
        KeyValue::new("fileId", file.id.to_string()),
        KeyValue::new("stage", file.stage.name()),
        KeyValue::new("attempt", file.attempt),
    ];
    attributes.extend(file.batch.map(|batch| KeyValue::new("batchId", batch.to_string())));
    let parent = Context::new().with_remote_span_context(kept);
    let mut span = tracer
        .span_builder("wait in queue")
        .with_start_time(at(due_at))
        .with_attributes(attributes)
        .start_with_context(tracer, &parent);
    // A claim has the time at which it began, and may find a file that was queued after that.
    span.end_with_timestamp(at(claimed_at.max(due_at)));
}

fn at(time: Time) -> SystemTime {
    SystemTime::from(time)
}

fn parent_to(span: &Span, parent: Context) {
    // An error means that the span has already started, or is not collected.
    drop(span.set_parent(parent));
}

fn context_of(span: &Span) -> SpanContext {
    span.context().span().span_context().clone()
}

/// In the W3C format, without the `tracestate`.
fn written(context: &SpanContext) -> Option<String> {
    let flags = context.trace_flags() & TraceFlags::SAMPLED;
    context
        .is_valid()
        .then(|| format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), flags.to_u8()))
}

/// The id of the trace of a stored context, if the trace was kept.
pub fn id_of_kept(text: &str) -> Option<String> {
    parsed(text).filter(SpanContext::is_sampled).map(|context| context.trace_id().to_string())
}

fn parsed(text: &str) -> Option<SpanContext> {
    let mut parts = text.splitn(4, '-');
    let (Some("00"), Some(trace), Some(span), Some(flags)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    if (trace.len(), span.len(), flags.len()) != (32, 16, 2) {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        TraceState::default(),
    );
    context.is_valid().then_some(context)
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_context_is_read_back() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(parsed(text).as_ref().and_then(written).as_deref(), Some(text));
        assert_eq!(id_of_kept(text).as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
        let dropped = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
        assert_eq!(id_of_kept(dropped), None, "no collector has it");
        for nonsense in
            ["", "00-", "00-0af7-b7ad-01", "00-00000000000000000000000000000000-b7ad6b7169203331-01"]
        {
            assert_eq!(parsed(nonsense), None, "{nonsense}");
        }
    }
}
