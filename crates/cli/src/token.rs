//! `landfall token`: makes a token for the API, signed with the server's secret.

use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;

use crate::{Outcome, settings};
use landfall_core::clock::{Clock, to_delta};
use landfall_server::auth::{self, TokenClaims};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The user whose files it gives access to.
    #[arg(long)]
    user: String,
    /// The tenant of the user, whose quota is used [default: one of the same name as the user].
    #[arg(long)]
    tenant: Option<String>,
    /// What the token allows beyond the user's own files: those of the tenant, or everything.
    #[arg(long, value_parser = ["member", "tenant_admin", "operator", "admin"], hide_possible_values = true, value_name = "member|tenant_admin|operator")]
    role: Option<String>,
    /// How long it is valid: 30s, 15m, 1h, 7d.
    #[arg(long, default_value = "1h", value_parser = duration)]
    ttl: Duration,
}

pub fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let expires = Clock::System.now() + to_delta(args.ttl);
    let token = issue(&TokenClaims {
        sub: args.user.clone(),
        tenant: Some(args.tenant.clone().unwrap_or_else(|| args.user.clone())),
        role: args.role.clone(),
        exp: expires.timestamp(),
    })?;
    if as_json {
        println!("{}", json!({ "token": token, "expiresAt": expires }));
    } else {
        println!("{token}");
    }
    Ok(Outcome::Good)
}

/// Signs with `JWT_SECRET`, or with the secret that a server on this machine generated.
pub fn issue(claims: &TokenClaims) -> anyhow::Result<String> {
    let config = settings()?;
    if config.auth.provider.is_some() {
        bail!("tokens come from the identity provider");
    }
    let secret = match config.auth.jwt_secret {
        Some(secret) => secret,
        None => auth::own_secret(&config.data_dir, true).context("there is no JWT_SECRET")?,
    };
    Ok(auth::sign(secret.as_bytes(), claims)?)
}

pub fn duration(text: &str) -> Result<Duration, String> {
    let allowed = || "a number with a unit, like 30s, 15m, 1h or 7d".to_owned();
    let (number, unit) = text.split_at(text.len().saturating_sub(1));
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(allowed()),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(seconds))
        .filter(|seconds| (1..=10 * 366 * 86_400).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(allowed)
}
