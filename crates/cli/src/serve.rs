//! `landfall serve`: runs the server until a signal stops it.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{Outcome, logs};
use landfall_core::caller::{self, Caller};
use landfall_server::app::{App, Replacements};
use landfall_server::config::{Config, Role};
use landfall_server::http;

pub async fn run(config: Config) -> anyhow::Result<Outcome> {
    let traces = logs::start_with_traces(&config)?;
    for warning in &config.warnings {
        tracing::warn!(setting = warning.name, "{}", warning.message);
    }
    let stop = stop_on_signal()?;
    let address = SocketAddr::new(config.http.bind_address, config.http.port);
    // First of all: a second server on the same port must not touch the data of the first.
    let listener = match config.role {
        Role::All | Role::Api => {
            Some(TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?)
        }
        Role::Worker | Role::Maintenance => None,
    };
    let monitoring = match config.http.metrics_address {
        Some(address) => {
            Some(TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?)
        }
        None => None,
    };
    let app = Box::pin(App::start(config, Replacements::default())).await?;
    landfall_server::outbound::warn_about_missing_certificates();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        role = ?app.config.role,
        database = app.db.kind(),
        worker = app.liveness.name(),
        model = app.embedder.name(),
        "started"
    );
    // Monitoring stays available while the process finishes its work.
    let ended = CancellationToken::new();
    let running_until = ended.clone();
    let running = tokio::spawn({
        let (app, stop) = (app.clone(), stop.clone());
        async move { app.run(stop).await }
    });
    let serving = monitoring.map(|listener| {
        let (app, stop) = (app.clone(), running_until.clone());
        tokio::spawn(async move {
            let address =
                listener.local_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip());
            let router = http::monitoring_router(app.clone(), address);
            http::serve(listener, router, &app.config.http, stop).await;
        })
    });
    if let Some(listener) = listener {
        greet(&app, listener.local_addr()?).await?;
        http::serve(listener, http::router(app.clone()), &app.config.http, stop).await;
    }
    running.await?;
    ended.cancel();
    if let Some(serving) = serving {
        serving.await?;
    }
    app.db.close().await;
    tracing::info!("stopped");
    if let Some(traces) = traces {
        traces.shut_down().await;
    }
    Ok(Outcome::Good)
}

/// Prints the address of the server. A person at a terminal gets a link that signs them in once, if the server generated
/// its own secret: elsewhere the output is kept in a log.
async fn greet(app: &App, address: SocketAddr) -> anyhow::Result<()> {
    let base = app.config.http.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
    if !app.auth.has_own_secret() {
        println!("Landfall is listening on {base}");
    } else if std::io::stdout().is_terminal() {
        let operator =
            Caller { tenant: "admin".to_owned(), user: "admin".to_owned(), role: caller::Role::Operator };
        let code = app.links().issue(&operator, app.clock.now()).await?.code;
        println!(
            "\n  Landfall is listening. Open this once, within five minutes:\n\n    {base}/#open={code}\n"
        );
        println!("  `landfall open` prints a new link.\n");
    } else {
        println!(
            "Landfall is listening on {base}\nSign in with the link that `landfall open` prints on a terminal"
        );
    }
    Ok(())
}

/// A token that is cancelled by SIGTERM or SIGINT. A second signal ends the process at once.
pub(super) fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        next().await;
        tracing::info!("stopping");
        stopping.cancel();
        next().await;
        std::process::exit(130);
    });
    Ok(stop)
}
