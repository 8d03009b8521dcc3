//! Where traces are sent, by the variables that OpenTelemetry has for it.

use std::collections::HashMap;

use super::reader::{Reader, milliseconds, one_of};
use crate::telemetry::secrets::unescaped;
use crate::telemetry::traces::{Sampling, TracesConfig};

/// What an endpoint for all kinds of telemetry has for traces.
const PATH: &str = "/v1/traces";

impl TracesConfig {
    /// `None` where nobody is to be told.
    pub(super) fn read(read: &mut Reader) -> Option<Self> {
        let for_all = read.url("OTEL_EXPORTER_OTLP_ENDPOINT", &["http", "https"]);
        let for_traces = read.url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &["http", "https"]);
        let headers = read.secret("OTEL_EXPORTER_OTLP_HEADERS").map(|text| headers(&text));
        let timeout = read.with("OTEL_EXPORTER_OTLP_TIMEOUT", "10000", milliseconds);
        let service_name = read.text("OTEL_SERVICE_NAME", "landfall");
        let sampler = read.with("OTEL_TRACES_SAMPLER", "parentbased_always_on", |text| {
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
        let ratio = read.with("OTEL_TRACES_SAMPLER_ARG", "1", |text| {
            let ratio = text.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
            ratio.ok_or_else(|| "a share of the traces, from 0 to 1".to_owned())
        });
        if let Some(Some(headers)) = &headers {
            read.hide(headers.values());
        }
        if matches!(headers, Some(None)) {
            read.complain("OTEL_EXPORTER_OTLP_HEADERS", "headers like name=value,other=value");
        }
        let endpoint = for_traces.or_else(|| Some(format!("{}{PATH}", for_all?)))?;
        let (by_parent, fixed) = sampler;
        let sampling = Sampling { by_parent, ratio: fixed.unwrap_or(ratio) };
        let headers = headers.flatten().unwrap_or_default();
        Some(Self { endpoint, headers, timeout, service_name, sampling })
    }
}

/// `name=value,other=value`, with percent signs for what these two characters would confuse.
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
