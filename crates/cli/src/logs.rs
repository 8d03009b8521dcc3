//! Where the log goes and what it looks like, and where the traces go.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use landfall_server::config::Config;
use landfall_server::telemetry::logs::LogFormat;
use landfall_server::telemetry::logs::{Lines, Look};
use landfall_server::telemetry::traces::Traces;

/// What is left out unless `LOG_LEVEL` names it: PostgreSQL remarks at every start that what is there is there already.
const UNASKED: &str = "sqlx::postgres::notice=warn";

fn filter(wanted: &str) -> EnvFilter {
    let filter = wanted.parse::<EnvFilter>().unwrap_or_else(|_| EnvFilter::new("info"));
    // Who wants less than warnings wants none of these either.
    match filter.max_level_hint() {
        Some(most) if most < LevelFilter::INFO => filter,
        _ => format!("{UNASKED},{filter}").parse().unwrap_or(filter),
    }
}

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
    let filter = filter(&config.log_filter);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_of_postgres_are_left_out_unless_they_are_asked_for() {
        let shown = |wanted: &str| filter(wanted).to_string();
        assert!(shown("info").contains(UNASKED));
        assert!(shown("landfall=debug").contains(UNASKED));
        assert_eq!(shown("error"), "error");
        assert_eq!(shown("off"), "off");
        let asked = shown("info,sqlx::postgres::notice=info");
        assert!(asked.contains("sqlx::postgres::notice=info") && !asked.contains(UNASKED), "{asked}");
    }
}
