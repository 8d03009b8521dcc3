//! `landfall health`: asks the server on this machine whether it is alive or ready. For health checks of containers,
//! which have no other HTTP client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::bail;
use serde_json::{Value, json};

use crate::format::printable;
use crate::{Outcome, settings};
use landfall_server::config::{Config, Role};
use landfall_server::outbound;

/// The server limits its own checks to 2 s each.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Ask whether the server can do its work, and not only whether it is alive.
    #[arg(long)]
    ready: bool,
    /// The address of the server [default: METRICS_ADDRESS, otherwise PORT on this machine].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

/// Every bad answer, and no answer, is exit code 1, the only one that container runtimes define for it.
pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let server = match &args.server {
        Some(server) => server.trim_end_matches('/').to_owned(),
        None => format!("http://{}", own_address(&settings()?)?),
    };
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let (is_good, answer) = match ask(&format!("{server}{path}")).await {
        Ok(answer) => answer,
        Err(error) => {
            let why = format!("cannot reach {server}: {}", printable(&innermost(&error)));
            (false, json!({ "status": "unreachable", "message": why }))
        }
    };
    if as_json {
        println!("{answer}");
    } else {
        print!("{}", as_text(&answer));
    }
    Ok(if is_good { Outcome::Good } else { Outcome::Bad })
}

/// Where the server with these settings answers health checks.
fn own_address(config: &Config) -> anyhow::Result<SocketAddr> {
    if let Some(address) = config.http.metrics_address {
        return Ok(SocketAddr::new(reachable(address.ip()), address.port()));
    }
    match config.role {
        // The certificate is for the server's name, and not for the address on this machine.
        Role::All | Role::Api if config.http.tls.is_some() => {
            bail!(
                "a server with TLS_CERT answers health checks on METRICS_ADDRESS: set it, for example to 127.0.0.1:9464"
            )
        }
        Role::All | Role::Api => Ok(SocketAddr::new(reachable(config.http.bind_address), config.http.port)),
        Role::Worker | Role::Maintenance => bail!(
            "a process with ROLE=worker or ROLE=maintenance answers only on METRICS_ADDRESS: set it, for example to \
             127.0.0.1:9464"
        ),
    }
}

/// A server that listens on all addresses is asked on loopback.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

async fn ask(url: &str) -> Result<(bool, Value), reqwest::Error> {
    let response = outbound::client_for_this_machine().get(url).timeout(TIMEOUT).send().await?;
    let status = response.status();
    let body = response.bytes().await?;
    // What is not JSON does not come from Landfall.
    Ok(match serde_json::from_slice(&body) {
        Ok(answer) => (status.is_success(), answer),
        Err(_) => {
            (false, json!({ "status": "unexpected", "message": format!("unexpected response: {status}") }))
        }
    })
}

/// The error itself repeats the address; the innermost cause says what was wrong.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// The status, and a line for each check that failed.
fn as_text(answer: &Value) -> String {
    let field = |value: &Value, name: &str| printable(value[name].as_str().unwrap_or_default());
    let mut text = format!("{}\n", field(answer, "status"));
    if answer["message"].is_string() {
        text.push_str(&format!("  {}\n", field(answer, "message")));
    }
    for (name, check) in answer["checks"].as_object().into_iter().flatten() {
        if check["status"] == "failed" {
            text.push_str(&format!("  {}: {}\n", printable(name), field(check, "message")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_server::config::Variables;

    fn address(variables: &[(&str, &str)]) -> Result<String, String> {
        let mut all = Variables::default();
        for (name, value) in variables {
            all.set(name, *value);
        }
        let config = Config::from_variables(all).expect("good settings");
        own_address(&config).map(|address| address.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_process_is_asked_where_it_answers_health_checks() {
        let secret = ("JWT_SECRET", "correct horse battery staple, and then some");
        let proxies = ("TRUSTED_PROXIES", "private");
        for (variables, expected) in [
            (vec![], "127.0.0.1:3002"),
            (vec![("BIND_ADDRESS", "0.0.0.0"), ("PORT", "8080"), secret, proxies], "127.0.0.1:8080"),
            (vec![("BIND_ADDRESS", "::"), secret, proxies], "[::1]:3002"),
            (vec![("BIND_ADDRESS", "10.1.2.3"), secret, proxies], "10.1.2.3:3002"),
            (vec![("METRICS_ADDRESS", "0.0.0.0:9464")], "127.0.0.1:9464"),
            (vec![("ROLE", "worker"), ("METRICS_ADDRESS", "10.1.2.3:9464")], "10.1.2.3:9464"),
        ] {
            assert_eq!(address(&variables).as_deref(), Ok(expected), "{variables:?}");
        }
        assert!(address(&[("ROLE", "worker")]).unwrap_err().contains("METRICS_ADDRESS"));
        let tls = [("TLS_CERT", "/etc/landfall/cert.pem"), ("TLS_KEY", "/etc/landfall/key.pem")];
        assert!(address(&tls).unwrap_err().contains("METRICS_ADDRESS"));
    }

    #[test]
    fn failed_checks_are_named() {
        let answer = json!({ "status": "not ready", "checks": {
            "database": { "status": "failed", "message": "The database is not available" },
            "storage": { "status": "ok" },
        }});
        assert_eq!(as_text(&answer), "not ready\n  database: The database is not available\n");
    }
}
