//! The files in `deploy/` name only settings that exist, and `docs/deploying.md` only commands that the program accepts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Parser;
use landfall_cli::Cli;
use landfall_server::config::{Config, GROUPS, Variables};

/// Variables of the other programs in the compose files, and of the Containerfile's build.
const OTHERS: &[&str] = &["POSTGRES_", "GF_", "TESSERACT_LANGUAGES", "DEBIAN_FRONTEND"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files of a folder with these endings, by their path from the root.
fn files_below(folder: &str, endings: &[&str]) -> Vec<String> {
    let mut folders = vec![PathBuf::from(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            let name = path.to_string_lossy().into_owned();
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}

/// The variables that a file sets, with their values: `NAME: value` and `- name: NAME` in YAML, `NAME=value` after `ENV` or
/// `Environment=`.
fn variables(text: &str) -> Vec<(String, String)> {
    let is_name = |word: &str| {
        word.len() > 1
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    let mut found = Vec::new();
    let mut continues = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let assigns = continues || line.starts_with("ENV ") || line.starts_with("Environment=");
        continues = assigns && line.ends_with('\\');
        let rest = line.trim_start_matches("ENV ").trim_start_matches("Environment=");
        let rest = rest.trim_end_matches('\\').trim();
        let pair = if assigns {
            rest.split_once('=')
        } else if let Some(name) = line.strip_prefix("- name: ") {
            Some((name, ""))
        } else {
            line.split_once(':')
        };
        if let Some((name, value)) = pair.filter(|(name, _)| is_name(name)) {
            let value = value.trim().trim_matches('"');
            // `${NAME:-default}`: what Compose uses if the variable is not set.
            let default = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')?.split_once(":-"));
            found.push((name.to_owned(), default.map_or(value, |(_, default)| default).to_owned()));
        }
    }
    found
}

fn is_other(name: &str) -> bool {
    OTHERS.iter().any(|other| name.starts_with(other))
}

#[test]
fn deployments_name_only_settings_that_exist() {
    let known: BTreeSet<&str> = GROUPS.iter().flat_map(|group| group.settings).map(|one| one.name).collect();
    let mut files = files_below("deploy/compose", &[".yaml"]);
    files.extend(files_below("deploy/helm/landfall", &[".yaml", ".tpl"]));
    files.extend(files_below("deploy/systemd", &[".service"]));
    files.push("deploy/Containerfile".to_owned());
    let mut seen = BTreeSet::new();
    for file in files {
        for (name, _) in variables(&read(&file)) {
            assert!(known.contains(name.as_str()) || is_other(&name), "{file}: {name} is not a setting");
            seen.insert(name);
        }
    }
    for name in
        ["BIND_ADDRESS", "DATA_DIR", "DATABASE_URL", "JWT_SECRET", "METRICS_ADDRESS", "PUBLIC_URL", "ROLE"]
    {
        assert!(seen.contains(name), "{name} is found in the files: {seen:?}");
    }
}

/// With what the image and the compose files set, and secrets in place of the placeholders, the server accepts its settings.
#[test]
fn the_server_accepts_the_settings_of_the_deployments() {
    let image = variables(&read("deploy/Containerfile"));
    for file in ["deploy/compose/single.yaml", "deploy/compose/cluster.yaml"] {
        for role in ["all", "api", "worker"] {
            let all: BTreeMap<String, String> = image
                .iter()
                .cloned()
                .chain(variables(&read(file)))
                .filter(|(name, _)| !is_other(name))
                .collect();
            let mut settings = Variables::default();
            for (name, value) in &all {
                let value = match name.as_str() {
                    "JWT_SECRET" | "METRICS_TOKEN" => "7b1e0c5d94fa3826e1c07d5b9a6f4832",
                    "PUBLIC_URL" => "https://landfall.example.org",
                    "DATABASE_URL" => "postgres://landfall:secret@postgres/landfall",
                    "OCR_LANGUAGES" => "eng",
                    "ROLE" => role,
                    _ => value,
                };
                settings.set(name, value);
            }
            let config = Config::from_variables(settings).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(config.warnings.is_empty(), "{file}: {:?}", config.warnings);
        }
    }
}

#[test]
fn a_name_that_is_no_setting_would_be_noticed() {
    let found = |text: &str| variables(text).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(found("environment:\n  PROT: 1\n  # OLD: 2\n  image: x"), ["PROT"]);
    assert_eq!(found("env:\n  - name: PROT\n    value: x\n  - name: data"), ["PROT"]);
    assert_eq!(found("ENV PROT=1 \\\n    DATA=/x\nRUN X=1 true"), ["PROT", "DATA"]);
    assert_eq!(found("Environment=PROT=1\nEnvironmentFile=/x"), ["PROT"]);
    let value = variables("PROXIES: ${PROXIES:-private}").remove(0).1;
    assert_eq!(value, "private");
}

/// The times of the unit, of the compose files and of the chart leave the server its time to stop.
#[test]
fn a_deployment_waits_longer_than_the_server_takes_to_stop() {
    let grace = Config::from_variables(Variables::default()).unwrap().settings;
    let grace = grace.iter().find(|setting| setting.name == "SHUTDOWN_GRACE_MS").unwrap();
    let grace = grace.value.parse::<u64>().unwrap() / 1000;
    for (file, before) in [
        ("deploy/compose/single.yaml", "stop_grace_period: "),
        ("deploy/compose/cluster.yaml", "stop_grace_period: "),
        ("deploy/helm/landfall/values.yaml", "terminationGracePeriodSeconds: "),
        ("deploy/systemd/landfall.service", "TimeoutStopSec="),
    ] {
        let text = read(file);
        let values: Vec<u64> = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix(before))
            .map(|value| value.trim_end_matches('s').parse().unwrap_or_else(|_| panic!("{file}: {value}")))
            .collect();
        assert!(!values.is_empty(), "{file} says how long it waits");
        assert!(values.iter().all(|seconds| *seconds >= grace + 10), "{file}: {values:?}");
    }
}

#[test]
fn the_program_accepts_every_command_of_the_document() {
    let text = read("docs/deploying.md");
    let mut seen = 0;
    for line in text.lines().map(str::trim) {
        for (place, _) in line.match_indices("landfall ") {
            let before = &line[..place];
            // At the begin, after variables, or where another program runs it.
            let is_call = before.is_empty()
                || before.split_whitespace().all(|word| word.contains('='))
                || ["exec landfall ", "exec api ", "-- "].iter().any(|end| before.ends_with(end));
            if !is_call {
                continue;
            }
            let words = line[place..].split_whitespace();
            let call: Vec<&str> = words.take_while(|word| !word.starts_with(['#', '>', '&', '|'])).collect();
            seen += 1;
            if let Err(error) = Cli::try_parse_from(&call) {
                panic!("{}\n{error}", call.join(" "));
            }
        }
    }
    assert!(seen >= 4, "there are commands to check: {seen}");
}

#[test]
fn every_link_of_the_documents_has_a_target() {
    for document in ["docs/deploying.md", "SECURITY.md"] {
        let text = read(document);
        let folder = root().join(document).parent().unwrap().to_owned();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            assert!(
                target.starts_with("http") || file.is_empty() || folder.join(file).exists(),
                "{document}: {target}"
            );
        }
    }
}
