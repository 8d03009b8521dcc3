//! The settings.

use landfall_server::config::{Config, Variables};

fn read(variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let mut all = Variables::default();
    for (name, value) in variables {
        all.set(name, *value);
    }
    Config::from_variables(all).map_err(|error| error.0)
}

#[test]
fn a_bad_value_is_named_with_what_is_allowed() {
    for (name, value, allowed) in [
        ("PORT", "http", "port"),
        ("PORT", "70000", "port"),
        ("BIND_ADDRESS", "localhost", "IP address"),
        ("EXTRACT_CONCURRENCY", "0", "at least 1"),
        ("EXTRACT_TIMEOUT_MS", "-5", "milliseconds"),
        ("MAX_FILE_SIZE", "lots", "50MB"),
        ("EXTRACT_MEMORY_MB", "64", "from 256"),
        ("EXTRACT_CPU_SECONDS", "0", "from 1"),
        ("EXTRACT_STALL_MS", "0", "milliseconds"),
        ("EXTRACT_MAX_TEXT_MB", "4096", "to 1024"),
        ("EXTRACT_CHILD_DOCUMENTS", "none", "whole number"),
        ("EXTRACT_RATE_LIMIT", "fast", "100/60s"),
        ("USER_RATE_LIMIT", "0/1s", "1 to 1000000"),
        ("CIRCUIT_THRESHOLD", "0", "at least 1"),
        ("ROLE", "boss", "all, api, worker, maintenance"),
        ("LOG_FORMAT", "xml", "json"),
        ("WORKER_STAGES", "extract,dance", "extract, chunk, embed"),
        ("DATABASE_URL", "mysql://x", "sqlite:// or postgres://"),
        ("STORAGE_URL", "ftp://x", "file://"),
        ("PUBLIC_URL", "example.com", "https://"),
        ("JWT_SECRET", "short", "at least 32"),
        ("HEARTBEAT_EXPIRY_MS", "100", "twice HEARTBEAT_INTERVAL_MS"),
        ("CHUNK_OVERLAP", "100", "half of CHUNK_SIZE"),
        ("CHUNK_SIZE", "512", "at most 126"),
        ("EMBED_MODEL_DIR", "no-such-folder", "there is no config.json"),
        ("EMBEDDINGS_URL", "localhost:8080", "https://"),
        ("EMBEDDINGS_URL", "https://me:hush@example.com/v1", "no password"),
        ("EMBEDDINGS_DIMENSIONS", "many", "1 to 8192"),
        ("EMBEDDINGS_BATCH", "0", "1 to 2048"),
        ("STUCK_RECOVERY_SCHEDULE", "sometimes", "cron expression"),
        ("ORPHAN_CLEANUP_SCHEDULE", "99 * * * *", "cron expression"),
        ("BATCH_TIMEOUT_SCHEDULE", "0 0 30 2 *", "whose time comes"),
        ("RETENTION_SCHEDULE", "* * *", "cron expression"),
        ("STUCK_RETRY_WINDOWS", "180,soon", "180,600,1800"),
        ("UNCONFIRMED_UPLOADS", "keep", "adopt, delete"),
        ("ORPHAN_MIN_AGE_MS", "0", "milliseconds"),
        ("FAILED_FILE_RETENTION_DAYS", "0", "days from 1"),
        ("TOMBSTONE_RETENTION_DAYS", "week", "days from 1"),
        ("MAX_EVENT_STREAMS", "0", "at least 1"),
        ("EVENT_BUFFER", "none", "from 1"),
        ("EVENT_STALL_MS", "0", "milliseconds"),
        ("ALERT_WEBHOOK_URL", "hooks.slack.com/secret", "https://"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "https://"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "no pair", "name=value"),
        ("OTEL_TRACES_SAMPLER", "sometimes", "always_on"),
        ("OTEL_TRACES_SAMPLER_ARG", "2", "from 0 to 1"),
        ("WEBHOOK_ALLOW_PRIVATE", "yes", "true, false"),
        ("WEBHOOK_CONCURRENCY", "1", "from 2"),
    ] {
        let complaints = read(&[(name, value)]).expect_err(name);
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert!(complaints[0].starts_with(name) && complaints[0].contains(allowed), "{complaints:?}");
    }
}

#[test]
fn a_service_needs_the_name_of_its_model_and_a_key_on_one_line() {
    let with = |more: &[(&str, &str)]| {
        let mut variables = vec![("EMBEDDINGS_URL", "https://example.com/v1")];
        variables.extend(more);
        read(&variables)
    };
    let good = with(&[("EMBEDDINGS_MODEL", "m")]).unwrap();
    assert_eq!((good.chunks.size_tokens, good.chunks.overlap_tokens), (400, 66), "a service reads more");
    assert!(with(&[]).unwrap_err()[0].starts_with("EMBEDDINGS_MODEL"));
    let broken = with(&[("EMBEDDINGS_MODEL", "m"), ("EMBEDDINGS_API_KEY", "two\nlines")]).unwrap_err();
    assert!(broken[0].starts_with("EMBEDDINGS_API_KEY") && !broken[0].contains("two"), "{broken:?}");
    assert!(
        with(&[("EMBEDDINGS_MODEL", "m"), ("CHUNK_SIZE", "9000")]).unwrap_err()[0].contains("at most 2000")
    );
    let password = read(&[("EMBEDDINGS_URL", "https://me:hush@example.com/v1")]).unwrap_err();
    assert!(!password[0].contains("hush"), "{password:?}");
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    assert_eq!(read(&[("PORT", "x"), ("ROLE", "y"), ("MAX_FILE_SIZE", "z")]).unwrap_err().len(), 3);
}

#[test]
fn an_empty_variable_is_one_that_is_not_set() {
    assert_eq!(read(&[("PORT", "")]).unwrap().http.port, 3002);
}

#[test]
fn sizes_are_bytes_or_have_a_unit() {
    for (text, bytes) in [("1000", 1_000), ("1kb", 1_024), ("50MB", 50 << 20), ("2 GB", 2 << 30)] {
        assert_eq!(read(&[("MAX_FILE_SIZE", text)]).unwrap().intake.max_file_bytes, bytes, "{text}");
    }
}

#[test]
fn what_is_shown_has_no_secrets_in_it() {
    let secret = "correct horse battery staple, and then some";
    let config = read(&[
        ("JWT_SECRET", secret),
        ("DATABASE_URL", "postgres://me:hush@db/x"),
        ("EMBEDDINGS_URL", "https://example.com"),
        ("EMBEDDINGS_MODEL", "m"),
        ("EMBEDDINGS_API_KEY", "sk-4711"),
        ("EXTRACT_GATEWAY_URL", "https://me:password@example.com/convert?key=abcdef"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://example.com"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20of-the-collector"),
    ])
    .unwrap();
    let shown = format!("{:?} {:?} {:?} {:?}", config.settings, config.embed, config.gateway, config.traces);
    assert!(!shown.contains("sk-4711"), "{shown}");
    assert!(
        !shown.contains("password") && !shown.contains("abcdef") && !shown.contains("collector"),
        "{shown}"
    );
    assert!(!shown.contains(secret) && !shown.contains("hush"), "{shown}");
    assert!(shown.contains("postgres://me:***@db/x"), "{shown}");
}

/// `name`, `default` of every setting that there is.
fn defaults() -> Vec<(String, String)> {
    let settings = read(&[]).unwrap().settings;
    sorted(settings.into_iter().map(|setting| (setting.name.to_owned(), setting.value)).collect())
}

#[test]
fn the_example_lists_every_variable_with_its_default() {
    let example = include_str!("../../.env.example");
    let listed: Vec<(String, String)> = example
        .lines()
        .filter_map(|line| line.strip_prefix("# ").unwrap_or(line).split_once('='))
        .filter(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert_eq!(sorted(listed), defaults());
}

#[test]
fn the_document_describes_every_variable_with_its_default() {
    let document = include_str!("../../docs/configuration.md");
    let listed: Vec<(String, String)> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|row| {
            let mut cells = row.split('|').map(|cell| cell.trim().trim_matches('`').to_owned());
            (cells.next().unwrap(), cells.next().unwrap())
        })
        .collect();
    assert_eq!(sorted(listed), defaults());
}

/// A variable that is only read when another one is set would be missing from all lists at once.
#[test]
fn no_variable_is_read_in_secret() {
    let known: Vec<String> = defaults().into_iter().map(|(name, _)| name).collect();
    let source =
        std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("crates/server/src");
    let parts = std::fs::read_dir(source.join("config")).unwrap().map(|part| part.unwrap().path());
    let code: Vec<String> =
        parts.chain([source.join("config.rs")]).map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let is_variable = |text: &&str| {
        let usual = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        text.len() > 3 && text.starts_with(|c: char| c.is_ascii_uppercase()) && text.chars().all(usual)
    };
    for name in code.iter().flat_map(|text| text.split('"')).filter(is_variable) {
        assert!(known.iter().any(|one| one == name), "{name} is read, and not among the settings");
    }
    let document = include_str!("../../docs/configuration.md");
    for name in ["LANDFALL_URL", "LANDFALL_TOKEN"] {
        assert!(include_str!("../../crates/cli/src/client.rs").contains(&format!("\"{name}\"")), "{name}");
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}
