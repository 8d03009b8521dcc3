//! The log: a line for each event, in JSON or for people, with the ids of all spans around it.
//!
//! Only our own spans exist, and all of them do, whatever the filter lets through: a line has its ids at every
//! level, and the traces do not depend on the filter. The filter is applied here for all layers. (Per-layer filters
//! cache a verdict per thread; sqlx calls `enabled!` without emitting, so the next event inherits it.)
//!
//! A line has the fields of its event and of all spans around it, each under its own name; the innermost wins. The
//! value of a secret setting never gets into a line.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::OnceLock;

use chrono::SecondsFormat;
use opentelemetry::trace::TraceContextExt;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber, span};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

use super::secrets::Secrets;
use landfall_core::clock::Clock;

/// A value is cut after this many bytes: people read the lines, and programs that keep them have limits of their
/// own.
const MAX_VALUE_LENGTH: usize = 8 * 1024;

/// A field whose name ends so has JSON in it, and stands in the line as that value under the name before it. An event
/// itself can only have numbers and texts.
const JSON: &str = ".json";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Pretty on a terminal, JSON elsewhere.
    Auto,
    Pretty,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFormat {
    Json,
    Plain,
    Coloured,
}

/// Writes lines to the standard error.
pub struct Lines {
    format: LineFormat,
    filter: EnvFilter,
    secrets: Secrets,
    /// Maps spans to their traces, once the log is installed.
    dispatch: OnceLock<tracing::dispatcher::WeakDispatch>,
}

impl Lines {
    pub fn new(format: LineFormat, filter: EnvFilter, secrets: Secrets) -> Self {
        Self { format, filter, secrets, dispatch: OnceLock::new() }
    }

    fn fields(&self) -> Fields<'_> {
        Fields { secrets: &self.secrets, found: Vec::new() }
    }

    /// The ids of the trace and of the span.
    fn trace_of(&self, span: &span::Id) -> Option<(String, String)> {
        let dispatch = self.dispatch.get()?.upgrade()?;
        let context = tracing_opentelemetry::get_otel_context(span, &dispatch)?;
        let span = context.span();
        let span = span.span_context();
        span.is_valid().then(|| (span.trace_id().to_string(), span.span_id().to_string()))
    }
}

/// The fields of a span, kept with it.
struct Kept(Vec<(Cow<'static, str>, Value)>);

impl<S> Layer<S> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_register_dispatch(&self, dispatch: &Dispatch) {
        // A second dispatcher is not ours.
        drop(self.dispatch.set(dispatch.downgrade()));
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let filtered = Layer::<S>::register_callsite(&self.filter, metadata);
        match (metadata.is_span(), is_ours(metadata)) {
            (false, _) => filtered,
            (true, true) => Interest::always(),
            (true, false) => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, context: Context<'_, S>) -> bool {
        if metadata.is_span() {
            is_ours(metadata)
        } else {
            Layer::<S>::enabled(&self.filter, metadata, context)
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // At least the level of the spans.
        Layer::<S>::max_level_hint(&self.filter).map(|level| level.max(LevelFilter::INFO))
    }

    fn on_enter(&self, id: &span::Id, context: Context<'_, S>) {
        self.filter.on_enter(id, context);
    }

    fn on_exit(&self, id: &span::Id, context: Context<'_, S>) {
        self.filter.on_exit(id, context);
    }

    fn on_close(&self, id: span::Id, context: Context<'_, S>) {
        self.filter.on_close(id, context);
    }

    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        self.filter.on_new_span(attributes, id, context.clone());
        let mut fields = self.fields();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(Kept(fields.found));
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        self.filter.on_record(id, values, context.clone());
        let mut fields = self.fields();
        values.record(&mut fields);
        if let Some(span) = context.span(id)
            && let Some(kept) = span.extensions_mut().get_mut::<Kept>()
        {
            kept.0.extend(fields.found);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line =
            Line { fields: Vec::new(), message: String::new(), target: event.metadata().target().into() };
        if let Some(scope) = context.event_scope(event) {
            for span in scope.from_root() {
                if let Some(kept) = span.extensions().get::<Kept>() {
                    kept.0.iter().for_each(|(name, value)| line.put(name.clone(), value.clone()));
                }
            }
        }
        let mut fields = self.fields();
        event.record(&mut fields);
        for (name, value) in fields.found {
            line.put(name, value);
        }
        if let Some(span) = context.event_span(event)
            && let Some((trace, span)) = self.trace_of(&span.id())
        {
            line.put("traceId".into(), trace.into());
            line.put("spanId".into(), span.into());
        }
        let text = line.written(self.format, *event.metadata().level());
        // An error cannot be reported anywhere.
        drop(std::io::stderr().lock().write_all(text.as_bytes()));
    }
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("landfall")
}

struct Line {
    message: String,
    target: String,
    fields: Vec<(Cow<'static, str>, Value)>,
}

impl Line {
    fn put(&mut self, name: Cow<'static, str>, value: Value) {
        match (&*name, value) {
            ("message", Value::String(text)) => self.message = text,
            // Events of the `log` crate have their real origin in these fields.
            ("log.target", Value::String(target)) => self.target = target,
            (other, _) if other.starts_with("log.") || other.starts_with("otel.") => {}
            (_, value) => match self.fields.iter_mut().find(|(known, _)| *known == name) {
                Some((_, old)) => *old = value,
                None => self.fields.push((name, value)),
            },
        }
    }

    fn written(self, format: LineFormat, level: Level) -> String {
        let time = Clock::System.now().to_rfc3339_opts(SecondsFormat::Micros, true);
        match format {
            LineFormat::Json => {
                let first = [
                    ("timestamp", time),
                    ("level", level.to_string()),
                    ("message", self.message),
                    ("target", self.target),
                ];
                let first = first.into_iter().map(|(name, text)| (name.into(), text.into()));
                let mut line = String::from("{");
                for (number, (name, value)) in first.chain(self.fields).enumerate() {
                    let comma = if number > 0 { "," } else { "" };
                    let name = Value::String(Cow::into_owned(name));
                    write!(line, "{comma}{name}:{value}").expect("writing to a string does not fail");
                }
                line.push_str("}\n");
                line
            }
            LineFormat::Plain | LineFormat::Coloured => self.for_people(format, level, &time),
        }
    }

    fn for_people(&self, format: LineFormat, level: Level, time: &str) -> String {
        let paint = |code: &str, text: &str| match format {
            LineFormat::Coloured => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            _ => text.to_owned(),
        };
        let colour = match level {
            Level::ERROR => "31",
            Level::WARN => "33",
            Level::INFO => "32",
            _ => "34",
        };
        let mut line = format!(
            "{} {} {}",
            paint("2", time),
            paint(colour, &format!("{level:>5}")),
            visible(&self.message)
        );
        for (name, value) in &self.fields {
            let value = match value {
                Value::String(text) => visible(text),
                other => other.to_string(),
            };
            write!(line, " {}{value}", paint("2", &format!("{name}=")))
                .expect("writing to a string does not fail");
        }
        line.push('\n');
        line
    }
}

/// On one line, and without control characters for a terminal.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Reads the fields of an event or a span.
struct Fields<'a> {
    secrets: &'a Secrets,
    found: Vec<(Cow<'static, str>, Value)>,
}

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        self.found.push((camel_case(field.name()), value));
    }

    fn put_text(&mut self, field: &Field, text: &str) {
        let mut text = self.secrets.hidden_in(text);
        if let Some(name) = field.name().strip_suffix(JSON)
            && let Ok(value) = serde_json::from_str(&text)
        {
            return self.found.push((camel_case(name), value));
        }
        if text.len() > MAX_VALUE_LENGTH {
            text.truncate(text.floor_char_boundary(MAX_VALUE_LENGTH));
            text.push('…');
        }
        self.put(field, Value::String(text));
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            write!(text, ": {error}").expect("writing to a string does not fail");
            cause = error.source();
        }
        self.put_text(field, &text);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

/// `file_id` becomes `fileId`, as everywhere in the API.
fn camel_case(name: &'static str) -> Cow<'static, str> {
    if !name.contains('_') {
        return Cow::Borrowed(name);
    }
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    Cow::Owned(camel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        let mut line =
            Line { message: "a \"word\"\n".to_owned(), target: "landfall::x".to_owned(), fields: vec![] };
        line.put("fileId".into(), "f".into());
        line.put("attempt".into(), 2.into());
        line.put("fileId".into(), "g\u{1b}[0m".into());
        line.put("otel.kind".into(), "server".into());
        line
    }

    #[test]
    fn a_line_of_json_is_one_object_with_each_name_once() {
        let text = line().written(LineFormat::Json, Level::WARN);
        assert_eq!(text.matches('\n').count(), 1);
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["message"], "a \"word\"\n");
        assert_eq!(
            (&read["level"], &read["attempt"], &read["fileId"]),
            (&"WARN".into(), &2.into(), &"g\u{1b}[0m".into())
        );
        assert!(read["otel.kind"].is_null());
        assert_eq!(text.matches("fileId").count(), 1);
    }

    #[test]
    fn a_line_for_people_has_no_control_characters() {
        let text = line().written(LineFormat::Plain, Level::WARN);
        assert!(text.ends_with("WARN a \"word\"\\n fileId=g\\u{1b}[0m attempt=2\n"), "{text}");
    }

    #[test]
    fn names_are_those_of_the_api() {
        assert_eq!((camel_case("still_ms"), camel_case("fileId")), ("stillMs".into(), "fileId".into()));
    }
}
