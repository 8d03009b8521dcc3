//! Reads variables one by one and remembers each: its value, where it came from, and what was wrong with it.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::telemetry::secrets::{Secrets, in_address, password_in};
use landfall_core::lifecycle::Stage;

/// Where the value of a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Default,
    Environment,
    DotEnv,
}

impl Source {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Environment => "environment",
            Self::DotEnv => ".env",
        }
    }
}

/// One setting as it is in force. The value of a secret is not kept.
#[derive(Debug, Clone)]
pub struct Setting {
    pub name: &'static str,
    pub value: String,
    pub source: Source,
}

/// The variables that there are, before anything is made of them.
#[derive(Debug, Clone, Default)]
pub struct Variables(BTreeMap<String, (String, Source)>);

impl Variables {
    /// The process's environment, and below it what a `.env` file in the current folder says.
    pub fn from_environment() -> Result<Self, ConfigError> {
        let mut variables = BTreeMap::new();
        match dotenvy::dotenv_iter() {
            Ok(lines) => {
                for line in lines {
                    let (name, value) = line.map_err(|error| ConfigError(vec![format!(".env: {error}")]))?;
                    variables.insert(name, (value, Source::DotEnv));
                }
            }
            Err(error) if error.not_found() => {}
            Err(error) => return Err(ConfigError(vec![format!(".env: {error}")])),
        }
        variables.extend(std::env::vars_os().filter_map(|(name, value)| {
            // One that is not text is none of ours.
            Some((name.into_string().ok()?, (value.into_string().ok()?, Source::Environment)))
        }));
        Ok(Self(variables))
    }

    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), (value.into(), Source::Environment));
    }

    /// The value of a variable that is not one of the server's settings.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|(value, _)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// Every variable that cannot be used, a sentence each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(pub Vec<String>);

impl Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigError {}

pub(super) struct Reader {
    variables: Variables,
    settings: Vec<Setting>,
    complaints: Vec<String>,
    secrets: Vec<String>,
}

impl Reader {
    pub fn new(variables: Variables) -> Self {
        Self { variables, settings: Vec::new(), complaints: Vec::new(), secrets: Vec::new() }
    }

    pub fn finish(self) -> Result<(Vec<Setting>, Secrets), ConfigError> {
        if self.complaints.is_empty() {
            Ok((self.settings, Secrets::new(self.secrets)))
        } else {
            Err(ConfigError(self.complaints))
        }
    }

    /// Keeps values out of whatever is shown.
    pub fn hide<'a>(&mut self, values: impl Iterator<Item = &'a String>) {
        self.secrets.extend(values.cloned());
    }

    pub fn complain(&mut self, name: &str, allowed: &str) {
        let value = self
            .settings
            .iter()
            .find(|setting| setting.name == name)
            .map_or_else(String::new, |setting| setting.value.clone());
        self.complaints.push(format!("{name} is {value}: it must be {allowed}"));
    }

    fn take(&mut self, name: &'static str, default: &str) -> String {
        let (value, source) = self.look_up(name).unwrap_or_else(|| (default.to_owned(), Source::Default));
        self.settings.push(Setting { name, value: value.clone(), source });
        value
    }

    /// An empty variable is one that is not set.
    fn look_up(&self, name: &str) -> Option<(String, Source)> {
        self.variables.0.get(name).filter(|(value, _)| !value.is_empty()).cloned()
    }

    pub fn text(&mut self, name: &'static str, default: &str) -> String {
        self.take(name, default)
    }

    pub fn parse<T: FromStr>(&mut self, name: &'static str, default: &str, allowed: &str) -> T {
        self.with(name, default, |text| text.parse().map_err(|_| allowed.to_owned()))
    }

    pub fn at_least<T>(&mut self, name: &'static str, default: T, least: T) -> T
    where
        T: FromStr + Display + PartialOrd + Copy,
    {
        self.with(name, &default.to_string(), |text| {
            text.parse()
                .ok()
                .filter(|value| *value >= least)
                .ok_or_else(|| format!("a whole number of at least {least}"))
        })
    }

    pub fn between<T>(&mut self, name: &'static str, default: T, least: T, most: T) -> T
    where
        T: FromStr + Display + PartialOrd + Copy,
    {
        self.with(name, &default.to_string(), |text| {
            text.parse()
                .ok()
                .filter(|value| (least..=most).contains(value))
                .ok_or_else(|| format!("a whole number from {least} to {most}"))
        })
    }

    /// The value as `convert` understands it. A bad one is noted, and the default goes on in its place so that the
    /// rest can be checked as well.
    pub fn with<T>(
        &mut self,
        name: &'static str,
        default: &str,
        convert: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        let text = self.take(name, default);
        convert(&text).unwrap_or_else(|allowed| {
            self.complaints.push(format!("{name} is {text:?}: it must be {allowed}"));
            convert(default).unwrap_or_else(|_| panic!("the default of {name} is good"))
        })
    }

    pub fn secret(&mut self, name: &'static str) -> Option<String> {
        let found = self.look_up(name);
        self.settings.push(Setting {
            name,
            value: if found.is_some() { "(set)" } else { "" }.to_owned(),
            source: found.as_ref().map_or(Source::Default, |(_, source)| *source),
        });
        self.secrets.extend(found.iter().map(|(value, _)| value.clone()));
        found.map(|(value, _)| value)
    }

    /// The value of a setting that may be left out.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        convert: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.take(name, "");
        if text.is_empty() {
            return None;
        }
        convert(&text)
            .map_err(|allowed| self.complaints.push(format!("{name} is {text:?}: it must be {allowed}")))
            .ok()
    }

    /// An address. What is kept for display has no password.
    pub fn url(&mut self, name: &'static str, schemes: &[&str]) -> Option<String> {
        let (text, source) = self.look_up(name).unwrap_or((String::new(), Source::Default));
        self.secrets.extend(in_address(&text));
        let shown = without_secrets(&text);
        self.settings.push(Setting { name, value: shown.clone(), source });
        if text.is_empty() {
            return None;
        }
        match url::Url::parse(&text) {
            Ok(url) if schemes.contains(&url.scheme()) => Some(text.trim_end_matches('/').to_owned()),
            _ => {
                self.complaints.push(format!(
                    "{name} is {shown:?}: it must be a URL that begins with {}://",
                    schemes.join(":// or ")
                ));
                None
            }
        }
    }

    /// The address of a service that has its key elsewhere. What is kept for display has no password.
    pub fn service_url(&mut self, name: &'static str) -> Option<url::Url> {
        let (value, source) = self.look_up(name).unwrap_or_else(|| (String::new(), Source::Default));
        self.secrets.extend(in_address(&value));
        let shown = without_secrets(&value);
        self.settings.push(Setting { name, value: shown.clone(), source });
        if value.is_empty() {
            return None;
        }
        match url::Url::parse(&value) {
            Ok(url) if ["http", "https"].contains(&url.scheme()) && url.password().is_none() => Some(url),
            _ => {
                self.complaints.push(format!(
                    "{name} is {shown:?}: it must be a URL that begins with http:// or https:// and has no password"
                ));
                None
            }
        }
    }

    /// A database's address. What is kept for display has no password.
    pub fn database_url(&mut self, name: &'static str, default: &str) -> String {
        let (value, source) = self.look_up(name).unwrap_or_else(|| (default.to_owned(), Source::Default));
        self.secrets.extend(password_in(&value));
        let shown = without_password(&value);
        let known = ["sqlite:", "postgres:", "postgresql:"].iter().any(|scheme| value.starts_with(scheme));
        if !known {
            self.complaints.push(format!("{name} is {shown:?}: it must begin with sqlite:// or postgres://"));
        }
        self.settings.push(Setting { name, value: shown, source });
        value
    }
}

/// An address of a service, whose query may hold a key as well.
fn without_secrets(address: &str) -> String {
    match url::Url::parse(address) {
        Ok(mut url) if url.query().is_some() => {
            url.set_query(Some("***"));
            without_password(url.as_str())
        }
        _ => without_password(address),
    }
}

fn without_password(address: &str) -> String {
    match url::Url::parse(address) {
        Ok(mut url) if url.password().is_some() => {
            // Fails only for addresses that cannot have a password.
            let _ = url.set_password(Some("***"));
            url.to_string()
        }
        _ => address.to_owned(),
    }
}

/// Longer than that means never, and would not fit a calendar.
const TEN_YEARS_MS: u64 = 10 * 365 * 86_400_000;

pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|ms| (1..=TEN_YEARS_MS).contains(ms))
        .map(Duration::from_millis)
        .ok_or_else(|| "a number of milliseconds above 0 and below ten years".to_owned())
}

/// `52428800`, `50MB`, `10GB`; a kilobyte has 1024 bytes.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let split = upper.find(|c: char| !c.is_ascii_digit()).unwrap_or(upper.len());
    let (digits, unit) = upper.split_at(split);
    let factor: Option<u64> = match unit.trim() {
        "" | "B" => Some(1),
        "K" | "KB" | "KIB" => Some(1 << 10),
        "M" | "MB" | "MIB" => Some(1 << 20),
        "G" | "GB" | "GIB" => Some(1 << 30),
        "T" | "TB" | "TIB" => Some(1 << 40),
        _ => None,
    };
    digits
        .parse::<u64>()
        .ok()
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor))
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a number of bytes above 0, like 52428800 or 50MB".to_owned())
}

pub(super) fn one_of<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        format!("one of {}", names.join(", "))
    })
}

pub(super) fn stages(text: &str) -> Result<Vec<Stage>, String> {
    text.split(',')
        .map(|name| name.trim().parse().ok())
        .collect::<Option<_>>()
        .ok_or_else(|| "a list of stages out of scan, extract, chunk, embed".to_owned())
}

pub(super) fn folder(text: &str) -> Result<PathBuf, String> {
    text.strip_prefix("file://")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .ok_or_else(|| "the URL of a folder, like file://data/blobs".to_owned())
}

pub(super) fn log_filter(text: &str) -> Result<String, String> {
    text.parse::<tracing_subscriber::EnvFilter>().map(|_| text.to_owned()).map_err(|_| {
        "a level (error, warn, info, debug, trace) or a filter like info,landfall=debug".to_owned()
    })
}
