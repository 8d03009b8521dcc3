//! Names that are not settings: old names, names of former settings, and misspelt names.

use super::declared::{Declaration, GROUPS};
use super::reader::{Source, Variables};

/// Translates the value of an old name to that of the new one, or says what the old one must be.
type Translate = fn(&str) -> Result<String, &'static str>;

/// An old name that is still accepted.
pub struct OldName {
    pub name: &'static str,
    pub new: &'static str,
    pub(super) translate: Translate,
}

const fn renamed(name: &'static str, new: &'static str) -> OldName {
    OldName { name, new, translate: |value| Ok(value.to_owned()) }
}

pub static OLD_NAMES: [OldName; 11] = [
    renamed("CIRCUIT_TIMEOUT", "CIRCUIT_TIMEOUT_MS"),
    renamed("DLQ_RETENTION_DAYS", "FAILED_FILE_RETENTION_DAYS"),
    OldName { name: "EXTRACT_MAX_TEXT_MB", new: "EXTRACT_MAX_TEXT_BYTES", translate: from_megabytes },
    OldName { name: "EXTRACT_MEMORY_MB", new: "EXTRACT_MEMORY_BYTES", translate: from_megabytes },
    renamed("GATEWAY_TIMEOUT", "GATEWAY_TIMEOUT_MS"),
    renamed("MAX_FILE_SIZE", "MAX_FILE_BYTES"),
    renamed("RETRY_BASE_DELAY", "RETRY_BASE_DELAY_MS"),
    renamed("RETRY_LATE_BASE_DELAY", "RETRY_LATE_BASE_DELAY_MS"),
    renamed("RETRY_MAX_DELAY", "RETRY_MAX_DELAY_MS"),
    OldName { name: "STUCK_RETRY_WINDOWS", new: "STUCK_RETRY_WINDOWS_MS", translate: from_seconds },
    // There the workers did one thing: they sent documents to the gateway.
    renamed("WORKER_CONCURRENCY", "EXTRACT_CONCURRENCY"),
];

/// Settings of the systems that Landfall replaces, for what it does not have, and why it needs no setting for it.
pub static UNNEEDED: [(&str, &str); 1] =
    [("DASHBOARD_CACHE_TTL", "the dashboard is counted for every request and has no cache")];

/// Settings of earlier versions. Their values are fixed now.
pub static FORMER_SETTINGS: [&str; 14] = [
    "CHUNK_TIMEOUT_MS",
    "EVENT_BUFFER",
    "EVENT_HEARTBEAT_MS",
    "EVENT_STALL_MS",
    "EXTRACT_STALL_MS",
    "HEADER_TIMEOUT_MS",
    "HEARTBEAT_INTERVAL_MS",
    "IDEMPOTENCY_RETENTION_DAYS",
    "JOB_RUN_RETENTION_DAYS",
    "LOCK_CHECK_INTERVAL_MS",
    "MAX_BODY_SIZE",
    "OPERATION_RETENTION_DAYS",
    "REQUEST_TIMEOUT_MS",
    "WEBHOOK_CONCURRENCY",
];

/// Variables that the command line reads.
const COMMAND_LINE: [&str; 2] = ["LANDFALL_URL", "LANDFALL_TOKEN"];
/// Variables of the project's own tests and scripts.
const DEVELOPMENT: [&str; 3] = ["LANDFALL_TEST_", "LANDFALL_CORPUS", "LANDFALL_AFTER"];

/// In the environment, an unknown name that begins like this was probably meant for Landfall. Prefixes that other
/// programs use as well (`LOG_`, `DATABASE_`, `OTEL_`) are not among them.
const OUR_PREFIXES: [&str; 12] = [
    "CHUNK_",
    "CIRCUIT_",
    "CLAMD_",
    "DEFAULT_TENANT_",
    "EMBED_",
    "EMBEDDINGS_",
    "EXTRACT_",
    "LANDFALL_",
    "OCR_",
    "RETRY_",
    "STUCK_",
    "WEBHOOK_",
];

/// A shorter name is close to the names of too many other programs (`ROLE` and `HOME`).
const MIN_COMPARED_LENGTH: usize = 8;
/// In the environment, a name with so many wrong letters was probably meant for Landfall.
const MAX_DISTANCE: usize = 2;
/// In a suggestion one more wrong letter does no harm.
const MAX_SUGGESTED_DISTANCE: usize = 3;

/// A variable that the operator should change. It does not stop the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub name: String,
    pub message: String,
}

/// Every variable that is an old name, a former setting, or probably a misspelt one.
pub(super) fn warnings(variables: &Variables) -> Vec<Warning> {
    variables
        .iter()
        .filter(|(name, _, _)| !is_current(name))
        .filter_map(|(name, value, source)| {
            let message = warning(name, value, source)?;
            Some(Warning { name: name.to_owned(), message })
        })
        .collect()
}

fn warning(name: &str, value: &str, source: Source) -> Option<String> {
    let place = match source {
        Source::DotEnv => "in .env",
        Source::Environment | Source::Default => "in the environment",
    };
    if let Some(old) = OLD_NAMES.iter().find(|old| old.name == name) {
        let instead = (old.translate)(value).unwrap_or_default();
        let (name, new) = (old.name, old.new);
        return Some(format!(
            "{name} ({place}) is the old name of {new} and still works: replace it with {new}={instead}"
        ));
    }
    if let Some((_, why)) = UNNEEDED.iter().find(|(unneeded, _)| *unneeded == name) {
        return Some(format!(
            "{name} ({place}) is not a setting and has no effect, because {why}: remove it"
        ));
    }
    if FORMER_SETTINGS.contains(&name) {
        return Some(format!("{name} ({place}) is no longer a setting and has no effect: remove it"));
    }
    if source != Source::DotEnv && !resembles_ours(name) {
        return None;
    }
    let what_to_do = match nearest(name) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "remove it, or find the name you meant with `landfall config`".to_owned(),
    };
    Some(format!("{name} ({place}) is not a setting and has no effect: {what_to_do}"))
}

fn declared() -> impl Iterator<Item = &'static Declaration> {
    GROUPS.iter().flat_map(|group| group.settings)
}

fn is_current(name: &str) -> bool {
    declared().any(|setting| setting.name == name) || COMMAND_LINE.contains(&name)
}

fn resembles_ours(name: &str) -> bool {
    if DEVELOPMENT.iter().any(|prefix| name.starts_with(prefix)) || is_service_link(name) {
        return false;
    }
    if OUR_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return true;
    }
    // The unit is easily left out.
    let without_unit = |(known, _): (&str, _)| known.strip_suffix("_MS") == Some(name);
    if known().any(without_unit) {
        return true;
    }
    name.len() >= MIN_COMPARED_LENGTH && known().any(|(known, _)| distance(name, known) <= MAX_DISTANCE)
}

/// Kubernetes sets such variables in every container for each service, also for one that is named `landfall`.
fn is_service_link(name: &str) -> bool {
    let Some((_, rest)) = name.split_once("_SERVICE_").or_else(|| name.split_once("_PORT")) else {
        return false;
    };
    ["HOST", "PORT", "_"].iter().any(|start| rest.starts_with(start)) || rest.is_empty()
}

/// Every name that has a meaning, with the name to use today.
fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    let current = declared().map(|setting| (setting.name, setting.name));
    let old = OLD_NAMES.iter().map(|old| (old.name, old.new));
    current.chain(COMMAND_LINE.map(|name| (name, name))).chain(old)
}

/// The setting that was probably meant.
fn nearest(name: &str) -> Option<&'static str> {
    let upper = name.to_ascii_uppercase();
    let (distance, meant) = known()
        .map(|(known, meant)| (distance(&upper, known), meant))
        .min_by_key(|(distance, _)| *distance)?;
    // With more wrong letters than a third, a short name is another word.
    (distance <= MAX_SUGGESTED_DISTANCE && distance * 3 <= name.len()).then_some(meant)
}

/// The Levenshtein distance: how many letters must be inserted, removed or replaced.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

fn from_megabytes(text: &str) -> Result<String, &'static str> {
    let number: u64 = text.trim().parse().map_err(|_| "a number of megabytes")?;
    Ok(format!("{number}MB"))
}

fn from_seconds(text: &str) -> Result<String, &'static str> {
    let milliseconds = |part: &str| part.trim().parse::<u64>().ok()?.checked_mul(1_000);
    let list: Option<Vec<String>> =
        text.split(',').map(|part| Some(milliseconds(part)?.to_string())).collect();
    Ok(list.ok_or("a list of seconds, like 180,600,1800")?.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_letters_that_differ() {
        for (one, other, expected) in [
            ("PORT", "PORT", 0),
            ("PROT", "PORT", 2),
            ("PORTS", "PORT", 1),
            ("", "PORT", 4),
            ("ROLE", "HOME", 2),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn old_names_lead_to_settings_and_no_name_has_two_meanings() {
        for old in &OLD_NAMES {
            assert!(is_current(old.new), "{}", old.new);
            assert!(!is_current(old.name) && !FORMER_SETTINGS.contains(&old.name), "{}", old.name);
        }
        assert!(FORMER_SETTINGS.iter().all(|name| !is_current(name)));
        assert!(UNNEEDED.iter().all(|(name, _)| !is_current(name)));
    }

    #[test]
    fn values_are_translated_to_the_unit_of_the_new_name() {
        assert_eq!(from_seconds("180, 600,1800").unwrap(), "180000,600000,1800000");
        assert!(from_seconds("180,soon").is_err());
        assert_eq!(from_megabytes("512").unwrap(), "512MB");
        assert!(from_megabytes("1GB").is_err());
    }

    #[test]
    fn service_links_of_kubernetes_are_not_ours() {
        for name in
            ["LANDFALL_SERVICE_HOST", "LANDFALL_SERVICE_PORT", "LANDFALL_PORT", "LANDFALL_PORT_3002_TCP_ADDR"]
        {
            assert!(!resembles_ours(name), "{name}");
        }
        assert!(resembles_ours("LANDFALL_TOKN"));
    }
}
