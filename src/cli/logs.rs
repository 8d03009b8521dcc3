//! Where the log goes and what it looks like, and where the traces go.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Config, LogFormat};
use crate::observe::logs::{Lines, Look};
use crate::observe::traces::Traces;

/// What is left out unless `LOG_LEVEL` names it: PostgreSQL remarks at every start that what is there is there already.
const UNASKED: &str = "sqlx::postgres::notice=warn";

/// Starts the log alone.
pub fn start(config: &Config) {
    tracing_subscriber::registry().with(lines(config)).init();
}

/// Starts both. What is answered sends the last spans when the program ends.
pub fn start_with_traces(config: &Config) -> anyhow::Result<Option<Traces>> {
    let Some(traces) = &config.traces else {
        start(config);
        return Ok(None);
    };
    let (traces, tracer) = Traces::start(traces)?;
    let spans = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        // An attempt says itself how it ended.
        .with_error_events_to_status(false)
        .with_error_events_to_exceptions(false);
    tracing_subscriber::registry().with(lines(config)).with(spans).init();
    Ok(Some(traces))
}

fn lines(config: &Config) -> Lines {
    let filter = format!("{UNASKED},{}", config.log_filter);
    let filter = filter.parse::<EnvFilter>().unwrap_or_else(|_| EnvFilter::new("info"));
    let at_terminal = std::io::stderr().is_terminal();
    let look = match config.log_format {
        LogFormat::Json => Look::Json,
        LogFormat::Auto if !at_terminal => Look::Json,
        LogFormat::Auto | LogFormat::Pretty => {
            if at_terminal && std::env::var_os("NO_COLOR").is_none() {
                Look::Coloured
            } else {
                Look::Plain
            }
        }
    };
    Lines::new(look, filter, config.secrets.clone())
}
