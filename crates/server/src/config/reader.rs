//! Reads settings one by one and records each: its value, where it came from, and what was wrong with it.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use super::declared::Declaration;
use super::dot_env;
use super::names::{OLD_NAMES, Warning, warnings};
use crate::telemetry::secrets::{HIDDEN, Secrets, in_address, password_in};

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

/// One setting as it is in force. Secrets are hidden in its value.
#[derive(Debug, Clone)]
pub struct Setting {
    pub name: &'static str,
    pub value: String,
    pub source: Source,
}

/// The variables of the environment and of `.env`, before they are read as settings.
#[derive(Debug, Clone, Default)]
pub struct Variables(BTreeMap<String, (String, Source)>);

impl Variables {
    /// The process's environment, and what a `.env` file in the current folder adds to it.
    pub fn from_environment() -> Result<Self, ConfigError> {
        let mut variables = BTreeMap::new();
        for (name, value) in dot_env::read(Path::new(".env")).map_err(|error| ConfigError(vec![error]))? {
            variables.insert(name, (value, Source::DotEnv));
        }
        variables.extend(std::env::vars_os().filter_map(|(name, value)| {
            // A variable that is not text is not a setting.
            Some((name.into_string().ok()?, (value.into_string().ok()?, Source::Environment)))
        }));
        Ok(Self(variables))
    }

    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.set_from(Source::Environment, name, value);
    }

    pub fn set_from(&mut self, source: Source, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), (value.into(), source));
    }

    /// Name, value and source of each variable that is set. An empty one counts as not set.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str, Source)> {
        let all = self.0.iter().map(|(name, (value, source))| (name.as_str(), value.as_str(), *source));
        all.filter(|(_, value, _)| !value.is_empty())
    }

    /// The value of a variable that is not one of the server's settings.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|(value, _)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// A sentence for each value that cannot be used, and for each name that may be the cause.
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
    warnings: Vec<Warning>,
    secrets: Vec<String>,
}

/// What is known when every setting was read.
pub(super) struct Finished {
    pub settings: Vec<Setting>,
    pub secrets: Secrets,
    pub warnings: Vec<Warning>,
}

impl Reader {
    pub fn new(variables: Variables) -> Self {
        Self {
            variables,
            settings: Vec::new(),
            complaints: Vec::new(),
            warnings: Vec::new(),
            secrets: Vec::new(),
        }
    }

    pub fn finish(mut self) -> Result<Finished, ConfigError> {
        let mut warnings = warnings(&self.variables);
        warnings.append(&mut self.warnings);
        if self.complaints.is_empty() {
            return Ok(Finished { settings: self.settings, secrets: Secrets::new(self.secrets), warnings });
        }
        // A misspelt name may be the reason why a value is missing.
        self.complaints.extend(warnings.into_iter().map(|warning| warning.message));
        Err(ConfigError(self.complaints))
    }

    /// Keeps values out of the log.
    pub fn hide<'a>(&mut self, values: impl Iterator<Item = &'a String>) {
        self.secrets.extend(values.cloned());
    }

    /// The variables that begin like one of these, which belong to the convention of another program. Their values may be
    /// keys, so none of them is shown.
    pub fn foreign(&mut self, prefixes: &[&str]) -> Vec<(String, String)> {
        let is_one = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let found: Vec<(String, String)> = self
            .variables
            .iter()
            .filter(|(name, ..)| is_one(name))
            .map(|(name, value, _)| (name.to_owned(), value.to_owned()))
            .collect();
        let is_secret = |name: &str| ["SECRET", "KEY", "TOKEN", "SAS"].iter().any(|word| name.contains(word));
        self.hide(found.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value));
        found
    }

    /// Names a value that can be used and does not do what it seems to do.
    pub fn warn(&mut self, setting: Declaration, message: String) {
        self.warnings.push(Warning { name: setting.name.to_owned(), message });
    }

    pub fn complain(&mut self, setting: Declaration, allowed: &str) {
        let value = self
            .settings
            .iter()
            .find(|one| one.name == setting.name)
            .map_or_else(String::new, |one| one.value.clone());
        self.reject(setting, &value, allowed);
    }

    fn reject(&mut self, setting: Declaration, shown: &str, allowed: &str) {
        self.complaints.push(format!("{} is {shown:?}: it must be {allowed}", setting.name));
    }

    /// Records a setting as it is shown.
    fn record(&mut self, setting: Declaration, shown: String, source: Source) {
        self.settings.push(Setting { name: setting.name, value: shown, source });
    }

    fn take(&mut self, setting: Declaration, default: &str) -> String {
        let (value, source) = self.look_up(setting).unwrap_or_else(|| (default.to_owned(), Source::Default));
        self.record(setting, value.clone(), source);
        value
    }

    /// The value by the setting's name or by its old name. An empty variable counts as not set.
    fn look_up(&mut self, setting: Declaration) -> Option<(String, Source)> {
        let current = self.variable(setting.name);
        let old = OLD_NAMES.iter().find(|old| old.new == setting.name);
        let Some((old, (given, source))) = old.and_then(|old| Some((old, self.variable(old.name)?))) else {
            return current;
        };
        let translated = match (old.translate)(&given) {
            Ok(translated) => translated,
            Err(allowed) => {
                self.complaints.push(format!("{} is {given:?}: it must be {allowed}", old.name));
                return current;
            }
        };
        match current {
            Some((value, _)) if value != translated => {
                self.complaints.push(format!(
                    "{new} is {value:?}, and its old name {old} is {given:?}: remove {old}",
                    new = old.new,
                    old = old.name
                ));
                None
            }
            Some(current) => Some(current),
            None => Some((translated, source)),
        }
    }

    fn variable(&self, name: &str) -> Option<(String, Source)> {
        self.variables.0.get(name).filter(|(value, _)| !value.is_empty()).cloned()
    }

    pub fn text(&mut self, setting: Declaration) -> String {
        self.take(setting, setting.default)
    }

    pub fn parse<T: FromStr>(&mut self, setting: Declaration, allowed: &str) -> T {
        self.with(setting, |text| text.parse().map_err(|_| allowed.to_owned()))
    }

    pub fn at_least<T>(&mut self, setting: Declaration, least: T) -> T
    where
        T: FromStr + Display + PartialOrd + Copy,
    {
        self.with(setting, at_least(least))
    }

    /// The same for a setting whose default depends on others.
    pub fn at_least_or<T>(&mut self, setting: Declaration, default: T, least: T) -> T
    where
        T: FromStr + Display + PartialOrd + Copy,
    {
        self.with_default(setting, &default.to_string(), at_least(least))
    }

    pub fn between<T>(&mut self, setting: Declaration, least: T, most: T) -> T
    where
        T: FromStr + Display + PartialOrd + Copy,
    {
        self.with(setting, |text| {
            text.parse()
                .ok()
                .filter(|value| (least..=most).contains(value))
                .ok_or_else(|| format!("a whole number from {least} to {most}"))
        })
    }

    pub fn size_between(&mut self, setting: Declaration, least: u64, most: u64) -> u64 {
        self.with(setting, |text| {
            bytes(text).ok().filter(|size| (least..=most).contains(size)).ok_or_else(|| {
                format!(
                    "a number of bytes, like 52428800 or 50MB, from {}MB to {}MB",
                    least >> 20,
                    most >> 20
                )
            })
        })
    }

    pub fn with<T>(&mut self, setting: Declaration, convert: impl Fn(&str) -> Result<T, String>) -> T {
        self.with_default(setting, setting.default, convert)
    }

    /// The value as `convert` understands it. In place of a bad value, which is reported, the default is used so that
    /// the rest can be checked as well.
    pub fn with_default<T>(
        &mut self,
        setting: Declaration,
        default: &str,
        convert: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        let text = self.take(setting, default);
        convert(&text).unwrap_or_else(|allowed| {
            self.reject(setting, &text, &allowed);
            convert(default).unwrap_or_else(|_| panic!("the default of {} is good", setting.name))
        })
    }

    pub fn secret(&mut self, setting: Declaration) -> Option<String> {
        let found = self.look_up(setting);
        let shown = if found.is_some() { HIDDEN } else { "" };
        let source = found.as_ref().map_or(Source::Default, |(_, source)| *source);
        self.record(setting, shown.to_owned(), source);
        self.secrets.extend(found.iter().map(|(value, _)| value.clone()));
        found.map(|(value, _)| value)
    }

    /// The value of a setting that may be left out.
    pub fn optional<T>(
        &mut self,
        setting: Declaration,
        convert: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.take(setting, "");
        if text.is_empty() {
            return None;
        }
        convert(&text).map_err(|allowed| self.reject(setting, &text, &allowed)).ok()
    }

    /// The URL of a service, without a slash at its end. The recorded value has no password and no query.
    pub fn url(&mut self, setting: Declaration) -> Option<String> {
        let (text, _) = self.service_url(setting, |_| true, "http:// or https://")?;
        Some(text.trim_end_matches('/').to_owned())
    }

    /// The URL of a service whose key is another setting.
    pub fn url_without_password(&mut self, setting: Declaration) -> Option<url::Url> {
        let no_password = |url: &url::Url| url.password().is_none();
        Some(self.service_url(setting, no_password, "http:// or https:// and has no password")?.1)
    }

    fn service_url(
        &mut self,
        setting: Declaration,
        is_allowed: impl Fn(&url::Url) -> bool,
        allowed: &str,
    ) -> Option<(String, url::Url)> {
        let (text, source) = self.look_up(setting).unwrap_or_else(|| (String::new(), Source::Default));
        self.secrets.extend(in_address(&text));
        let shown = without_secrets(&text);
        self.record(setting, shown.clone(), source);
        if text.is_empty() {
            return None;
        }
        match url::Url::parse(&text) {
            Ok(url) if ["http", "https"].contains(&url.scheme()) && is_allowed(&url) => Some((text, url)),
            _ => {
                self.reject(setting, &shown, &format!("a URL that begins with {allowed}"));
                None
            }
        }
    }

    /// The URL of a database. The recorded value has no password.
    pub fn database_url(&mut self, setting: Declaration, default: &str) -> String {
        let (value, source) = self.look_up(setting).unwrap_or_else(|| (default.to_owned(), Source::Default));
        self.secrets.extend(password_in(&value));
        let shown = without_password(&value);
        let known = ["sqlite:", "postgres:", "postgresql:"].iter().any(|scheme| value.starts_with(scheme));
        if !known {
            self.complaints
                .push(format!("{} is {shown:?}: it must begin with sqlite:// or postgres://", setting.name));
        }
        if let Some(parameter) = unknown_tls_parameter(&value) {
            // It would be ignored, and the connection would not be as safe as the operator believes.
            self.complaints.push(format!(
                "{} is {shown:?}: the parameter {parameter:?} is not one of {}",
                setting.name,
                TLS_PARAMETERS.join(", ")
            ));
        }
        self.record(setting, shown, source);
        value
    }
}

/// What PostgreSQL's own programs call them.
const TLS_PARAMETERS: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];

/// A parameter of a database URL that was meant for TLS and is misspelled.
fn unknown_tls_parameter(address: &str) -> Option<String> {
    let url = url::Url::parse(address).ok().filter(|url| url.scheme().starts_with("postgres"))?;
    let names = url.query_pairs().map(|(name, _)| name.into_owned());
    names.into_iter().find(|name| {
        let is_meant = ["ssl", "tls"].iter().any(|start| name.to_ascii_lowercase().starts_with(start));
        is_meant && !TLS_PARAMETERS.contains(&name.as_str())
    })
}

/// The URL of a service, whose query may hold a key as well.
fn without_secrets(address: &str) -> String {
    match url::Url::parse(address) {
        Ok(mut url) if url.query().is_some() => {
            url.set_query(Some(HIDDEN));
            without_password(url.as_str())
        }
        _ => without_password(address),
    }
}

fn without_password(address: &str) -> String {
    let Ok(mut url) = url::Url::parse(address) else {
        // Where the password is in a URL that cannot be parsed is unknown. It ends before the @.
        return match address.rsplit_once('@') {
            Some((_, host)) => format!("{HIDDEN}@{host}"),
            None => address.to_owned(),
        };
    };
    let in_query = |name: &str| name.eq_ignore_ascii_case("password");
    if url.password().is_none() && !url.query_pairs().any(|(name, _)| in_query(&name)) {
        return address.to_owned();
    }
    if url.password().is_some() {
        // Fails only for URLs that cannot have a password.
        let _ = url.set_password(Some(HIDDEN));
    }
    // PostgreSQL accepts the password as a parameter too.
    if let Some(query) = url.query() {
        let hide = |pair: &str| match pair.split_once('=') {
            Some((name, _)) if in_query(name) => format!("{name}={HIDDEN}"),
            _ => pair.to_owned(),
        };
        let query: Vec<String> = query.split('&').map(hide).collect();
        url.set_query(Some(&query.join("&")));
    }
    url.to_string()
}

fn at_least<T>(least: T) -> impl Fn(&str) -> Result<T, String>
where
    T: FromStr + Display + PartialOrd + Copy,
{
    move |text| {
        text.parse()
            .ok()
            .filter(|value| *value >= least)
            .ok_or_else(|| format!("a whole number of at least {least}"))
    }
}

/// A longer time means never, and would be outside the range of dates.
const TEN_YEARS_MS: u64 = 10 * 365 * 86_400_000;

pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|ms| (1..=TEN_YEARS_MS).contains(ms))
        .map(Duration::from_millis)
        .ok_or_else(|| "a number of milliseconds above 0 and below ten years".to_owned())
}

pub(super) fn days(text: &str) -> Result<Duration, String> {
    let number = text.parse::<u32>().ok().filter(|days| (1..=3_650).contains(days));
    number
        .map(|days| Duration::from_hours(24) * days)
        .ok_or_else(|| "a number of days from 1 to 3650".to_owned())
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
