//! How long requests take while every core embeds: real requests to a real server in this process.

use std::time::Instant;

use landfall_core::caller::TenantUser;
use landfall_server::app::{App, Replacements};
use landfall_server::auth::TokenClaims;
use landfall_server::config::{Config, Variables};
use landfall_server::http;
use landfall_server::stages::cores::Cores;
use landfall_server::stages::embed::Embedder;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::databases::{Fresh, Kind};
use super::figures::Figures;
use super::measure::{milliseconds, quantile};
use super::seed_rows::{TENANT, USER, add_finished_without_history};

const SAMPLES: usize = 3_000;
const WARM_UP: usize = 20;
const FILES: i64 = 10_000;

pub async fn run(kind: Kind) -> anyhow::Result<Figures> {
    let fresh = Fresh::create(kind, "busy").await?;
    let mut variables = Variables::default();
    variables.set("DATABASE_URL", fresh.url.clone());
    variables.set("DATA_DIR", fresh.path().display().to_string());
    variables.set("ROLE", "api");
    // Every text is computed.
    variables.set("EMBED_CACHE_BYTES", "0");
    let app = App::start(Config::from_variables(variables)?, Replacements::default()).await?;
    add_finished_without_history(&app.db, FILES).await?;
    let exp = (app.clock.now() + chrono::TimeDelta::days(1)).timestamp();
    let claims = TokenClaims { sub: USER.to_owned(), tenant: Some(TENANT.to_owned()), role: None, exp };
    let token = app.auth.issue(&claims)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let stop = CancellationToken::new();
    let serving = tokio::spawn({
        let (app, stop) = (app.clone(), stop.clone());
        async move { http::serve(listener, http::router(app.clone()), &app.config.http, stop).await }
    });

    let mut figures = Figures::default();
    requests(&base, &token, "idle", &mut figures).await?;
    let cancelled = CancellationToken::new();
    let cores = Cores::of_this_machine();
    let threads = std::thread::available_parallelism()?.get();
    // More documents than cores, of several users: as many turns as there can be.
    let embedding: Vec<_> = (0..2 * threads)
        .map(|user| {
            let (embedder, cores, cancelled) = (app.embedder.clone(), cores.clone(), cancelled.clone());
            tokio::spawn(async move { embed_until(&embedder, &cores, user, &cancelled).await })
        })
        .collect();
    requests(&base, &token, "while every core embeds", &mut figures).await?;
    cancelled.cancel();
    let mut chunks = 0;
    for task in embedding {
        chunks += task.await?;
    }
    anyhow::ensure!(chunks > 0, "nothing was embedded meanwhile");
    stop.cancel();
    serving.await?;
    fresh.remove(app.db.clone()).await?;
    Ok(figures)
}

/// Embeds documents until it is cancelled. Returns the number of chunks.
async fn embed_until(
    embedder: &Embedder,
    cores: &Cores,
    user: usize,
    cancelled: &CancellationToken,
) -> usize {
    let cores = cores.of_user(TenantUser::new("bench", format!("user-{user}")));
    let mut chunks = 0;
    for document in 0.. {
        let texts: Vec<String> = (0..8)
            .map(|chunk| {
                let sentence = format!(
                    "In document {document} of user {user}, chunk {chunk} tells of ships and tides. "
                );
                sentence.repeat(6)
            })
            .collect();
        match embedder.embed("bench", &texts, &cores, cancelled, || ()).await {
            Ok(embedded) => chunks += embedded.vectors.len(),
            Err(_) => break,
        }
    }
    chunks
}

async fn requests(base: &str, token: &str, when: &str, figures: &mut Figures) -> anyhow::Result<()> {
    let http = landfall_server::outbound::client();
    for (what, path) in [("health check", "/healthz"), ("list of files", "/api/v2/uploads/files")] {
        let mut samples = Vec::new();
        for number in 0..SAMPLES + WARM_UP {
            let began = Instant::now();
            let response =
                http.get(format!("{base}{path}")).bearer_auth(token).send().await?.error_for_status()?;
            response.bytes().await?;
            if number >= WARM_UP {
                samples.push(milliseconds(began.elapsed()));
            }
        }
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            figures.add(format!("busy: {what} {when}, {name} ms"), quantile(&samples, share));
        }
    }
    Ok(())
}
