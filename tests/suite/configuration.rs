//! The settings.

use std::path::{Path, PathBuf};

use landfall_server::config::{Config, FORMER_SETTINGS, GROUPS, Group, OLD_NAMES, Source, Variables};

use serde_json::Value;

use crate::support::process::Process;
use crate::support::{Setup, TestDb, on_each_database};

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
        ("MAX_FILE_BYTES", "lots", "50MB"),
        ("EXTRACT_MEMORY_BYTES", "64MB", "from 256MB"),
        ("EXTRACT_CPU_SECONDS", "0", "from 1"),
        ("EXTRACT_MAX_TEXT_BYTES", "4GB", "to 1024MB"),
        ("EXTRACT_CHILD_DOCUMENTS", "none", "whole number"),
        ("EXTRACT_RATE_LIMIT", "fast", "100/60s"),
        ("USER_RATE_LIMIT", "0/1s", "1 to 1000000"),
        ("CIRCUIT_THRESHOLD", "0", "at least 1"),
        ("ROLE", "boss", "all, api, worker, maintenance"),
        ("LOG_FORMAT", "xml", "json"),
        ("WORKER_STAGES", "extract,dance", "extract, chunk, embed"),
        ("DATABASE_URL", "mysql://x", "sqlite:// or postgres://"),
        ("DATABASE_URL", "postgres://db/x?ssl_mode=verify-full", "\"ssl_mode\" is not one of sslmode,"),
        ("STORAGE_URL", "ftp://x", "file://"),
        ("PUBLIC_URL", "example.com", "https://"),
        ("TRUSTED_PROXIES", "proxy.example.com", "loopback and private"),
        ("TRUSTED_PROXIES", "0.0.0.0/0", "not all addresses"),
        ("BIND_ADDRESS", "0.0.0.0", "set TLS_CERT and TLS_KEY, or set TRUSTED_PROXIES"),
        ("TLS_CERT", "cert.pem", "together with TLS_KEY"),
        ("TLS_KEY", "key.pem", "together with TLS_CERT"),
        ("MAX_CONNECTIONS_PER_ADDRESS", "0", "at least 1"),
        ("WRITE_TIMEOUT_MS", "0", "milliseconds"),
        ("AUTH_FAILURES_PER_MINUTE", "0", "at least 1"),
        ("JWT_SECRET", "short", "at least 32"),
        ("JWT_SECRET", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "openssl rand -hex 32"),
        ("SECRET_KEY", "changeme-changeme-changeme-changeme", "openssl rand -hex 32"),
        ("HEARTBEAT_EXPIRY_MS", "100", "at least 1000"),
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
        ("STUCK_RETRY_WINDOWS_MS", "180000,soon", "180000,600000,1800000"),
        ("UNCONFIRMED_UPLOADS", "keep", "adopt, delete"),
        ("ORPHAN_MIN_AGE_MS", "0", "milliseconds"),
        ("FAILED_FILE_RETENTION_DAYS", "0", "days from 1"),
        ("TOMBSTONE_RETENTION_DAYS", "week", "days from 1"),
        ("MAX_EVENT_STREAMS", "0", "at least 1"),
        ("ALERT_WEBHOOK_URL", "hooks.slack.com/secret", "https://"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "https://"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "no pair", "name=value"),
        ("OTEL_TRACES_SAMPLER", "sometimes", "always_on"),
        ("OTEL_TRACES_SAMPLER_ARG", "2", "from 0 to 1"),
        ("WEBHOOK_ALLOW_PRIVATE", "yes", "true, false"),
        ("WEBHOOKS_PER_USER", "0", "from 1"),
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
    assert_eq!(read(&[("PORT", "x"), ("ROLE", "y"), ("MAX_FILE_BYTES", "z")]).unwrap_err().len(), 3);
}

#[test]
fn an_empty_variable_is_one_that_is_not_set() {
    assert_eq!(read(&[("PORT", "")]).unwrap().http.port, 3002);
}

#[test]
fn sizes_are_bytes_or_have_a_unit() {
    for (text, bytes) in [("1000", 1_000), ("1kb", 1_024), ("50MB", 50 << 20), ("2 GB", 2 << 30)] {
        assert_eq!(read(&[("MAX_FILE_BYTES", text)]).unwrap().intake.max_file_bytes, bytes, "{text}");
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

#[test]
fn a_password_is_hidden_wherever_a_database_url_has_it() {
    for url in [
        "postgres://me:hush-hush@db/x",
        "postgres://db/x?user=me&password=hush-hush",
        "postgres://me:hush-hush@db:no-port/x",
    ] {
        let config = read(&[("DATABASE_URL", url)]).unwrap();
        let shown = config.settings.iter().find(|setting| setting.name == "DATABASE_URL").unwrap();
        assert!(!shown.value.contains("hush") && shown.value.contains("***"), "{}", shown.value);
    }
}

/// Each setting is read, in the order of the declarations, and has a default and a sentence.
#[test]
fn every_declared_setting_is_read_and_described() {
    let config = read(&[]).unwrap();
    let declared: Vec<&str> = GROUPS.iter().flat_map(|group| group.settings).map(|one| one.name).collect();
    let in_force: Vec<&str> = config.settings.iter().map(|setting| setting.name).collect();
    assert_eq!(in_force, declared);
    for group in &GROUPS {
        assert_eq!(config.settings_of(group).count(), group.settings.len(), "{}", group.title);
        for (setting, declared) in config.settings_of(group) {
            let sentence = declared.description;
            assert!(sentence.ends_with('.') && !sentence.contains(". "), "{}: one sentence", setting.name);
            assert!(!sentence.contains('|'), "{}: it is a cell of a table", setting.name);
            assert_eq!(setting.value, declared.default, "{}", setting.name);
            assert_eq!(setting.source, Source::Default, "{}", setting.name);
        }
    }
}

#[test]
fn names_say_the_unit() {
    let ends = |name: &str, endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    for setting in GROUPS.iter().flat_map(|group| group.settings) {
        let name = setting.name;
        if name.starts_with("OTEL_") {
            continue;
        }
        let is_size = ["KB", "MB", "GB"].iter().any(|unit| setting.default.ends_with(unit));
        // A rate is in bytes a second.
        let says_so = ["_BYTES", "_RATE", "MIN_FREE_DISK"];
        assert_eq!(is_size, says_so.iter().any(|ending| name.ends_with(ending)), "{name}");
        let is_time =
            ["TIMEOUT", "DELAY", "WINDOW", "INTERVAL", "THRESHOLD", "STALL", "EXPIRY", "GRACE", "AGE"]
                .iter()
                .any(|word| name.split('_').any(|part| part == *word || part == format!("{word}S")));
        // The threshold of a circuit counts failures.
        if is_time && name != "CIRCUIT_THRESHOLD" && !name.ends_with("_SCHEDULE") {
            assert!(ends(name, &["_MS", "_DAYS", "_SECONDS"]), "{name}");
        }
    }
}

#[test]
fn an_old_name_works_in_its_old_unit_and_is_named() {
    for (old, value, new, in_force) in [
        ("RETRY_BASE_DELAY", "7000", "RETRY_BASE_DELAY_MS", "7000"),
        ("RETRY_LATE_BASE_DELAY", "7000", "RETRY_LATE_BASE_DELAY_MS", "7000"),
        ("RETRY_MAX_DELAY", "7000", "RETRY_MAX_DELAY_MS", "7000"),
        ("CIRCUIT_TIMEOUT", "7000", "CIRCUIT_TIMEOUT_MS", "7000"),
        ("STUCK_RETRY_WINDOWS", "7, 8", "STUCK_RETRY_WINDOWS_MS", "7000,8000"),
        ("EXTRACT_MEMORY_MB", "512", "EXTRACT_MEMORY_BYTES", "512MB"),
        ("EXTRACT_MAX_TEXT_MB", "7", "EXTRACT_MAX_TEXT_BYTES", "7MB"),
        ("MAX_FILE_SIZE", "7MB", "MAX_FILE_BYTES", "7MB"),
        ("DLQ_RETENTION_DAYS", "7", "FAILED_FILE_RETENTION_DAYS", "7"),
        ("GATEWAY_TIMEOUT", "700", "GATEWAY_TIMEOUT_MS", "700"),
        ("WORKER_CONCURRENCY", "7", "EXTRACT_CONCURRENCY", "7"),
    ] {
        let config = read(&[(old, value)]).unwrap();
        let setting = config.settings.iter().find(|setting| setting.name == new).unwrap();
        assert_eq!((setting.value.as_str(), setting.source), (in_force, Source::Environment), "{old}");
        assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
        let warning = &config.warnings[0];
        assert!(warning.name == old && warning.message.contains(&format!("{new}={in_force}")), "{warning:?}");

        let same = read(&[(old, value), (new, in_force)]).unwrap();
        assert_eq!(same.warnings.len(), 1, "{:?}", same.warnings);
        let different = read(&[(old, value), (new, "9999999")]).unwrap_err();
        assert!(
            different[0].contains(&format!("{new} is \"9999999\""))
                && different[0].contains(&format!("{old} is {value:?}")),
            "{different:?}"
        );
    }
    let config = read(&[("STUCK_RETRY_WINDOWS", "7, 8")]).unwrap();
    assert_eq!(config.healing.stuck.windows, [7, 8].map(std::time::Duration::from_secs));
    assert_eq!(read(&[("EXTRACT_MEMORY_MB", "512")]).unwrap().sandbox.memory_mb, 512);
    let bad = read(&[("STUCK_RETRY_WINDOWS", "180,soon")]).unwrap_err();
    assert!(bad[0].starts_with("STUCK_RETRY_WINDOWS is") && bad[0].contains("seconds"), "{bad:?}");
}

#[test]
fn a_former_setting_is_named_and_has_no_effect() {
    for name in FORMER_SETTINGS {
        let config = read(&[(name, "no value")]).unwrap();
        assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
        let warning = &config.warnings[0];
        assert!(warning.name == name && warning.message.contains("no longer a setting"), "{warning:?}");
        assert!(warning.message.contains("remove it"), "{warning:?}");
    }
}

fn warnings(source: Source, names: &[&str]) -> Vec<String> {
    let mut variables = Variables::default();
    for name in names {
        variables.set_from(source, name, "1");
    }
    let config = Config::from_variables(variables).expect("unknown names stop nothing");
    config.warnings.into_iter().map(|warning| warning.message).collect()
}

#[test]
fn an_unknown_name_in_the_file_is_named_with_the_nearest_setting() {
    for (name, meant) in [
        ("EXTRACT_CONCURENCY", Some("EXTRACT_CONCURRENCY")),
        ("port", Some("PORT")),
        ("DATABASE_URI", Some("DATABASE_URL")),
        ("RETRY_BASE_DELY", Some("RETRY_BASE_DELAY_MS")),
        ("LANDFALL_TOKENS", Some("LANDFALL_TOKEN")),
        ("POSTGRES_PASSWORD", None),
        ("HOME", None),
    ] {
        let named = warnings(Source::DotEnv, &[name]);
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(named[0].starts_with(&format!("{name} (in .env) is not a setting")), "{named:?}");
        match meant {
            Some(meant) => assert!(named[0].ends_with(&format!("did you mean {meant}?")), "{named:?}"),
            None => assert!(!named[0].contains("did you mean"), "{named:?}"),
        }
    }
    let known: Vec<&str> = ["LANDFALL_URL", "LANDFALL_TOKEN"].into();
    assert_eq!(warnings(Source::DotEnv, &known), [""; 0]);
}

#[test]
fn in_the_environment_only_names_that_resemble_ours_are_named() {
    for name in [
        "EXTRACT_CONCURENCY",
        "OUTAGE_PATIENCE",
        "UPLOAD_URL_TTL",
        "LOG_LEVELS",
        "WEBHOOK_SECRET",
        "LANDFALL_PASSWORD",
        "JWT_SERCET",
    ] {
        let named = warnings(Source::Environment, &[name]);
        assert_eq!(named.len(), 1, "{name}: {named:?}");
        assert!(named[0].starts_with(&format!("{name} (in the environment) is not a setting")), "{named:?}");
    }
    let others = [
        "HOME",
        "PATH",
        "PWD",
        "SHELL",
        "HOSTNAME",
        "RUST_LOG",
        "NO_COLOR",
        "HTTP_PROXY",
        "SSL_CERT_FILE",
        "OTEL_RESOURCE_ATTRIBUTES",
        "OTEL_TRACES_EXPORTER",
        "POSTGRES_PASSWORD",
        "LANDFALL_SERVICE_HOST",
        "LANDFALL_PORT_3002_TCP",
        "LANDFALL_TEST_DATABASE_URL",
        "LANDFALL_URL",
        "LANDFALL_TOKEN",
    ];
    assert_eq!(warnings(Source::Environment, &others), [""; 0]);
}

#[test]
fn a_misspelt_name_is_named_with_the_error_that_it_causes() {
    let complaints =
        read(&[("EMBEDDINGS_URL", "https://example.com/v1"), ("EMBEDDINGS_MODLE", "m")]).unwrap_err();
    assert!(complaints[0].starts_with("EMBEDDINGS_MODEL is"), "{complaints:?}");
    assert!(complaints[1].contains("did you mean EMBEDDINGS_MODEL?"), "{complaints:?}");
}

/// The log of the real program names what is wrong in `.env` and in the environment, once each, and the server runs.
#[on_each_database]
async fn the_server_names_unknown_names_in_its_log(db: TestDb) {
    std::fs::write(db.folder.path().join(".env"), "CHUNK_SIZES=100\nRETRY_MAX_DELAY=9000\n").unwrap();
    let path = db.folder.path().join("log");
    let variables = [("LOG_FORMAT", "json"), ("EXTRACT_CONCURENCY", "2"), ("EVENT_BUFFER", "7")];
    let log = std::fs::File::create(&path).unwrap();
    let mut process = Process::start_with_log(&db, &variables, log.into());
    process.client().upload("a.txt", b"It runs.").await;
    process.kill();
    let log = std::fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for (name, says) in [
        ("CHUNK_SIZES", "did you mean CHUNK_SIZE?"),
        ("RETRY_MAX_DELAY", "RETRY_MAX_DELAY_MS=9000"),
        ("EXTRACT_CONCURENCY", "did you mean EXTRACT_CONCURRENCY?"),
        ("EVENT_BUFFER", "no longer a setting"),
    ] {
        let named: Vec<&Value> = lines.iter().filter(|line| line["setting"] == name).collect();
        assert_eq!(named.len(), 1, "{name}: {named:?}");
        assert_eq!(named[0]["level"], "WARN");
        assert!(named[0]["message"].as_str().unwrap().contains(says), "{named:?}");
    }
}

#[on_each_database]
async fn an_administrator_sees_the_settings_in_force_without_secrets(db: TestDb) {
    let secret = "correct horse battery staple, and then some";
    let server = Setup::default()
        .with("JWT_SECRET", secret)
        .with("METRICS_TOKEN", "a token of the metrics")
        .with("ALERT_WEBHOOK_URL", "https://hooks.example.com/services/T000/B000")
        .with("EXTRACT_GATEWAY_URL", "https://me:hush-hush@example.com/convert?key=abcdef")
        .with("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20of-the-collector")
        .with("EMBED_CONCURRENCY", 3)
        .start(&db)
        .await;
    let answer = server.admin().get("/api/v2/admin/config").await.ok();
    let groups = answer["groups"].as_array().unwrap();
    let names: Vec<&str> = groups.iter().map(|group| group["name"].as_str().unwrap()).collect();
    assert_eq!(names, GROUPS.map(|group| group.title));
    let setting = |name: &str| {
        let mut all = groups.iter().flat_map(|group| group["settings"].as_array().unwrap());
        all.find(|setting| setting["name"] == name).unwrap()
    };
    assert_eq!(setting("EMBED_CONCURRENCY")["value"], "3");
    assert_eq!(setting("EMBED_CONCURRENCY")["source"], "environment");
    assert_eq!(setting("CHUNK_SIZE")["source"], "default");
    for name in ["JWT_SECRET", "METRICS_TOKEN", "ALERT_WEBHOOK_URL", "OTEL_EXPORTER_OTLP_HEADERS"] {
        assert_eq!(setting(name)["value"], "***", "{name}");
    }
    assert_eq!(setting("EMBEDDINGS_API_KEY")["value"], "", "not set");
    let text = answer.to_string();
    for hidden in [secret, "token of", "T000", "hush-hush", "abcdef", "of-the-collector", "of%20"] {
        assert!(!text.contains(hidden), "{hidden}");
    }
    server.client("alice").get("/api/v2/admin/config").await.refused(403, "FORBIDDEN");
    server.stop().await;
}

/// The file of the repository, and what it should be. With `UPDATE_DOCUMENTS=1` the test writes it.
pub fn assert_generated(path: &str, generate: impl FnOnce(&str) -> String) {
    let path: PathBuf = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    let current = std::fs::read_to_string(&path).unwrap();
    let expected = generate(&current);
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    for (number, (is, should)) in current.lines().zip(expected.lines()).enumerate() {
        assert_eq!(is, should, "line {} of {}; write it with UPDATE_DOCUMENTS=1", number + 1, path.display());
    }
    assert!(current == expected, "{} is not complete; write it with UPDATE_DOCUMENTS=1", path.display());
}

#[test]
fn the_example_lists_every_setting_by_group_with_its_default() {
    assert_generated(".env.example", |_| {
        let mut text = "# Every setting with its default. Copy this file to .env and change what you need; \
                        docs/configuration.md explains each setting.\n"
            .to_owned();
        for group in &GROUPS {
            text += &format!("\n# --- {} ---\n", group.title);
            for setting in group.settings {
                text += &format!("# {}={}\n", setting.name, setting.default);
            }
        }
        text
    });
}

#[test]
fn the_document_describes_every_setting_by_group() {
    assert_generated("docs/configuration.md", |current| {
        let titles: Vec<&str> = current.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let mut known: Vec<&str> = GROUPS.iter().map(|group| group.title).collect();
        known.insert(0, "Units");
        known.extend(["Old names", "Former settings", "The command line"]);
        assert_eq!(titles, known, "the sections are the groups, in their order");
        let mut text = current.to_owned();
        for group in &GROUPS {
            text = with_rows(&text, group.title, &rows(group));
        }
        let old = OLD_NAMES.iter().map(|old| format!("| `{}` | `{}` |\n", old.name, old.new));
        text = with_rows(&text, "Old names", &old.collect::<String>());
        let former: Vec<String> = FORMER_SETTINGS.iter().map(|name| format!("- `{name}`\n")).collect();
        with_list(&text, "Former settings", &former.concat())
    });
}

fn rows(group: &Group) -> String {
    let cell = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let row = |(name, default, meaning): (&str, &str, &str)| {
        format!("| `{name}` | {} | {meaning} |\n", cell(default))
    };
    group.settings.iter().map(|one| row((one.name, one.default, one.description))).collect()
}

/// The document with these rows in the table of a section.
fn with_rows(document: &str, title: &str, rows: &str) -> String {
    let start = document.find(&format!("\n## {title}\n")).expect("the section");
    let line = document[start..].find("|---|").expect("its table") + start;
    let begin = document[line..].find('\n').expect("a line") + line + 1;
    replaced(document, begin, '|', rows)
}

/// The document with these items in the list of a section.
fn with_list(document: &str, title: &str, items: &str) -> String {
    let start = document.find(&format!("\n## {title}\n")).expect("the section");
    let end = document[start + 1..].find("\n## ").map_or(document.len(), |end| start + 1 + end);
    let begin = document[start..end].find("\n- ").map_or(end, |begin| start + begin + 1);
    replaced(document, begin, '-', items)
}

/// Replaces the lines from `begin` that start with `first`.
fn replaced(document: &str, begin: usize, first: char, lines: &str) -> String {
    let length: usize = document[begin..]
        .split_inclusive('\n')
        .take_while(|line| line.starts_with(first))
        .map(str::len)
        .sum();
    format!("{}{lines}{}", &document[..begin], &document[begin + length..])
}

#[test]
fn the_document_names_the_variables_of_the_command_line() {
    let document = include_str!("../../docs/configuration.md");
    for name in ["LANDFALL_URL", "LANDFALL_TOKEN"] {
        assert!(include_str!("../../crates/cli/src/client.rs").contains(&format!("\"{name}\"")), "{name}");
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
}
