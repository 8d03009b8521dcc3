//! The log, the metrics, and where traces are sent (by the variables that OpenTelemetry defines).

use std::collections::HashMap;
use std::net::SocketAddr;

use super::Token;
use super::declared::group;
use super::reader::{Reader, milliseconds, one_of};
use crate::telemetry::logs::LogFormat;
use crate::telemetry::secrets::unescaped;
use crate::telemetry::traces::{Sampling, TracesConfig};

group! { "Logs, metrics and traces" {
    LOG_FORMAT = "auto": "`pretty`, `json`, or `auto`: pretty on a terminal, JSON elsewhere."
    LOG_LEVEL = "info": "`error`, `warn`, `info`, `debug`, `trace`, or a filter like `info,landfall=debug`."
    METRICS_ADDRESS = "": "A second address, such as `0.0.0.0:9464`, on which this process serves only `/metrics`, `/healthz` and `/readyz`."
    METRICS_TOKEN = "": "The bearer token with which Prometheus reads `/metrics`, at least 16 characters."
    OTEL_EXPORTER_OTLP_ENDPOINT = "": "A collector that accepts OTLP over HTTP, such as `http://localhost:4318`; spans are sent to `/v1/traces` there."
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = "": "The full URL, with its path, for traces only."
    OTEL_EXPORTER_OTLP_HEADERS = "": "Headers for the collector, `name=value,other=value`, percent-encoded, which Landfall never shows."
    OTEL_EXPORTER_OTLP_TIMEOUT = "10000": "How many milliseconds the collector may take to answer before the spans that were sent are dropped."
    OTEL_SERVICE_NAME = "landfall": "The name of this process in the traces."
    OTEL_TRACES_SAMPLER = "parentbased_always_on": "Which traces are kept: `always_on`, `always_off`, `traceidratio`, or one of these with the prefix `parentbased_`, which lets the caller decide if it sent a `traceparent`."
    OTEL_TRACES_SAMPLER_ARG = "1": "The share of traces that `traceidratio` keeps, from 0 to 1."
    TRACE_URL = "": "Where people look at a trace, such as `https://jaeger.example.com/trace/{traceId}`; the view of each file links to its own."
} }

/// The path for traces below `OTEL_EXPORTER_OTLP_ENDPOINT`.
const PATH: &str = "/v1/traces";
const MIN_METRICS_TOKEN_LENGTH: usize = 16;

pub(super) fn read_log(read: &mut Reader) -> (LogFormat, String) {
    let format = read.with(LOG_FORMAT, |text| {
        let formats = [("auto", LogFormat::Auto), ("pretty", LogFormat::Pretty), ("json", LogFormat::Json)];
        one_of(text, &formats)
    });
    (format, read.with(LOG_LEVEL, log_filter))
}

fn log_filter(text: &str) -> Result<String, String> {
    text.parse::<tracing_subscriber::EnvFilter>().map(|_| text.to_owned()).map_err(|_| {
        "a level (error, warn, info, debug, trace) or a filter like info,landfall=debug".to_owned()
    })
}

pub(super) fn read_metrics(read: &mut Reader) -> (Option<SocketAddr>, Option<Token>) {
    let address = read.optional(METRICS_ADDRESS, |text| {
        text.parse().map_err(|_| "an IP address and a port, like 0.0.0.0:9464".to_owned())
    });
    let token = read.secret(METRICS_TOKEN);
    if token.as_ref().is_some_and(|token| token.len() < MIN_METRICS_TOKEN_LENGTH) {
        read.complain(METRICS_TOKEN, &format!("at least {MIN_METRICS_TOKEN_LENGTH} characters long"));
    }
    (address, token.map(Token))
}

/// What the id of a trace replaces in `TRACE_URL`.
pub const TRACE_ID: &str = "{traceId}";

pub(super) fn read_trace_url(read: &mut Reader) -> Option<String> {
    read.optional(TRACE_URL, |text| {
        let url = url::Url::parse(&text.replace(TRACE_ID, "0")).ok();
        let is_page = url.is_some_and(|url| {
            ["http", "https"].contains(&url.scheme()) && url.username().is_empty() && url.password().is_none()
        });
        let allowed = "a URL that begins with http:// or https://, has {traceId} in it and no password";
        (is_page && text.contains(TRACE_ID)).then(|| text.to_owned()).ok_or_else(|| allowed.to_owned())
    })
}

impl TracesConfig {
    /// `None` where no traces are sent.
    pub(super) fn read(read: &mut Reader) -> Option<Self> {
        let for_all = read.url(OTEL_EXPORTER_OTLP_ENDPOINT);
        let for_traces = read.url(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
        let headers = read.secret(OTEL_EXPORTER_OTLP_HEADERS).map(|text| headers(&text));
        let timeout = read.with(OTEL_EXPORTER_OTLP_TIMEOUT, milliseconds);
        let service_name = read.text(OTEL_SERVICE_NAME);
        let sampler = read.with(OTEL_TRACES_SAMPLER, |text| {
            let choices = [
                ("always_on", (false, Some(1.0))),
                ("always_off", (false, Some(0.0))),
                ("traceidratio", (false, None)),
                ("parentbased_always_on", (true, Some(1.0))),
                ("parentbased_always_off", (true, Some(0.0))),
                ("parentbased_traceidratio", (true, None)),
            ];
            one_of(text, &choices)
        });
        let ratio = read.with(OTEL_TRACES_SAMPLER_ARG, |text| {
            let ratio = text.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
            ratio.ok_or_else(|| "a share of the traces, from 0 to 1".to_owned())
        });
        if let Some(Some(headers)) = &headers {
            read.hide(headers.values());
        }
        if matches!(headers, Some(None)) {
            read.complain(OTEL_EXPORTER_OTLP_HEADERS, "headers like name=value,other=value");
        }
        let endpoint = for_traces.or_else(|| Some(format!("{}{PATH}", for_all?)))?;
        let (by_parent, fixed) = sampler;
        let sampling = Sampling { by_parent, ratio: fixed.unwrap_or(ratio) };
        let headers = headers.flatten().unwrap_or_default();
        Some(Self { endpoint, headers, timeout, service_name, sampling })
    }
}

/// `name=value,other=value`, percent-encoded where a value has one of these two characters.
fn headers(text: &str) -> Option<HashMap<String, String>> {
    text.split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let (name, value) = (name.trim(), unescaped(value.trim())?);
            reqwest::header::HeaderName::from_bytes(name.as_bytes()).ok()?;
            reqwest::header::HeaderValue::from_str(&value).ok()?;
            Some((name.to_owned(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_pairs_whose_values_may_be_escaped() {
        let read = headers("authorization=Basic%20YTpi%3D, x-tenant = a=b ,").unwrap();
        assert_eq!(read["authorization"], "Basic YTpi=");
        assert_eq!(read["x-tenant"], "a=b");
        assert_eq!(headers("two words=1"), None, "no header is called that");
        assert_eq!(headers("share=100%").unwrap()["share"], "100%");
        assert_eq!(headers("no pair"), None);
    }
}
