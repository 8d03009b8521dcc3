//! `landfall openapi`: prints the description of the API, for programs that generate code from it.

use crate::Outcome;

/// Needs no server and no settings: the description is the same for every server of this version.
pub fn run() -> anyhow::Result<Outcome> {
    println!("{}", serde_json::to_string_pretty(landfall_server::http::document())?);
    Ok(Outcome::Good)
}
