//! `landfall config`: shows the settings in effect.

use serde_json::json;

use crate::Outcome;
use landfall_server::config::Config;

#[expect(clippy::unnecessary_wraps, reason = "every command returns the same type")]
pub fn run(config: &Config, as_json: bool) -> anyhow::Result<Outcome> {
    if as_json {
        let settings: serde_json::Map<_, _> = config
            .settings
            .iter()
            .map(|s| (s.name.to_owned(), json!({ "value": s.value, "source": s.source.name() })))
            .collect();
        println!("{}", json!(settings));
    } else {
        for setting in &config.settings {
            println!("{:<28} {:<44} {}", setting.name, setting.value, setting.source.name());
        }
    }
    Ok(Outcome::Good)
}
