//! Where the log goes and what it looks like.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

pub fn start(config: &Config) {
    let filter = config.log_filter.parse::<EnvFilter>().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let json = match config.log_format {
        LogFormat::Json => true,
        LogFormat::Pretty => false,
        LogFormat::Auto => !std::io::stderr().is_terminal(),
    };
    if json {
        log.json().flatten_event(true).with_current_span(true).with_span_list(false).init();
    } else {
        log.with_target(false).init();
    }
}
