//! Starts logging and tracing.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use landfall_server::config::Config;
use landfall_server::telemetry::logs::LogFormat;
use landfall_server::telemetry::logs::{LineFormat, Lines};
use landfall_server::telemetry::traces::Traces;

/// Applies unless `LOG_LEVEL` names the target: PostgreSQL sends a notice at every start for each table that exists.
const QUIET: &str = "sqlx::postgres::notice=warn";

fn filter(wanted: &str) -> EnvFilter {
    let filter = wanted.parse::<EnvFilter>().unwrap_or_else(|_| EnvFilter::new("info"));
    // With a level below warn, these notices are not logged anyway.
    match filter.max_level_hint() {
        Some(most) if most < LevelFilter::INFO => filter,
        _ => format!("{QUIET},{filter}").parse().unwrap_or(filter),
    }
}

/// Starts logging without tracing.
pub fn start(config: &Config) {
    tracing_subscriber::registry().with(lines(config)).init();
}

/// Starts both. The returned value sends the last spans when the program ends.
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
        // The span of an attempt sets its own status.
        .with_error_events_to_status(false)
        .with_error_events_to_exceptions(false);
    tracing_subscriber::registry().with(lines(config)).with(spans).init();
    Ok(Some(traces))
}

fn lines(config: &Config) -> Lines {
    let filter = filter(&config.log_filter);
    let at_terminal = std::io::stderr().is_terminal();
    let look = match config.log_format {
        LogFormat::Json => LineFormat::Json,
        LogFormat::Auto if !at_terminal => LineFormat::Json,
        LogFormat::Auto | LogFormat::Pretty => {
            if at_terminal && std::env::var_os("NO_COLOR").is_none() {
                LineFormat::Coloured
            } else {
                LineFormat::Plain
            }
        }
    };
    Lines::new(look, filter, config.secrets.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_of_postgres_are_hidden_by_default() {
        let shown = |wanted: &str| filter(wanted).to_string();
        assert!(shown("info").contains(QUIET));
        assert!(shown("landfall=debug").contains(QUIET));
        assert_eq!(shown("error"), "error");
        assert_eq!(shown("off"), "off");
        let asked = shown("info,sqlx::postgres::notice=info");
        assert!(asked.contains("sqlx::postgres::notice=info") && !asked.contains(QUIET), "{asked}");
    }
}
