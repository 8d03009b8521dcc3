//! How long a user with a million files waits for a response, and whether recovery sweeps take longer beside a
//! million finished files than beside ten thousand. Real requests to a real server, one after the other.

use std::time::Instant;

use landfall_core::caller::{Reach, TenantUser};
use landfall_core::clock::Clock;
use landfall_server::app::{App, Replacements};
use landfall_server::auth::TokenClaims;
use landfall_server::config::{Config, Variables};
use landfall_server::http;
use landfall_server::records::totals;
use landfall_server::recovery::Sweep;
use landfall_store::Error;
use landfall_store::{Db, Tx, Write, args};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::databases::{Fresh, Kind};
use super::figures::Figures;
use super::measure::{median, milliseconds, quantile};
use super::seed_rows::{TENANT, USER, add_finished_without_history};

const SAMPLES: usize = 300;
const WARM_UP: usize = 20;
pub const FEW: i64 = 10_000;
const ROUNDS: usize = 200;

/// A process that answers requests, and its database with finished files.
pub struct Instance {
    pub app: App,
    /// What it was started with.
    pub variables: Variables,
    fresh: Fresh,
}

impl Instance {
    pub async fn open(kind: Kind, name: &str, finished: i64) -> anyhow::Result<Self> {
        let fresh = Fresh::create(kind, name).await?;
        let mut variables = Variables::default();
        variables.set("DATABASE_URL", fresh.url.clone());
        variables.set("DATA_DIR", fresh.path().display().to_string());
        // No worker runs here, so that queued files stay queued.
        variables.set("ROLE", "api");
        let app = App::start(Config::from_variables(variables.clone())?, Replacements::default()).await?;
        add_finished_without_history(&app.db, finished).await?;
        Ok(Self { app, variables, fresh })
    }

    pub async fn close(self) -> anyhow::Result<()> {
        self.fresh.remove(self.app.db.clone()).await
    }
}

pub async fn run(kind: Kind, finished: i64) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    let (few, many) = (
        Box::pin(Instance::open(kind, "few", FEW)).await?,
        Box::pin(Instance::open(kind, "many", finished)).await?,
    );
    let began = Instant::now();
    side_by_side(&few, &many, finished, &mut figures).await?;
    few.close().await?;
    many.app.db.write(Mixed { files: finished }).await?;
    settle_down(&many.app.db).await?;
    requests(&many, finished, &mut figures).await?;
    eprintln!("  measured in {:.0?}", began.elapsed());
    many.close().await?;
    Ok(figures)
}

/// Turns the million finished files into a mix: some failed, some are queued, some were never uploaded.
struct Mixed {
    files: i64,
}

impl Write for Mixed {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let now = Clock::System.now();
        let share = |of: i64| self.files / of;
        for (set, share) in [
            (
                "status = 'failed', ready_at = NULL, failed_at = $1, error_code = 'PARSE_ERROR',
                 error_message = 'Page 1 is damaged', error_stage = 'extract', error_at = $1,
                 error_fingerprint = '0123456789abcdef'",
                share(50),
            ),
            (
                "status = 'cancelled', ready_at = NULL, error_code = 'CANCELLED', error_message = 'Cancelled by bench',
                 error_stage = 'extract', error_at = $1",
                share(100),
            ),
            ("status = 'queued', ready_at = NULL, next_stage = 'extract', run_after = $1, is_due = TRUE", share(20)),
            ("status = 'queued', ready_at = NULL, next_stage = 'embed', run_after = $1, is_due = TRUE", share(20)),
            ("status = 'registered', ready_at = NULL, confirmed_at = NULL, upload_until = $2", share(100)),
        ] {
            let sql = format!(
                "UPDATE files SET {set} WHERE id IN
                     (SELECT id FROM files WHERE status = 'ready' AND $2 IS NOT NULL
                      ORDER BY SUBSTR(md5, 1, 8), SUBSTR(file_name, 9) LIMIT $3)"
            );
            tx.execute(sql, args![now, now + chrono::TimeDelta::hours(1), share]).await?;
        }
        totals::recount(tx, &TenantUser::new(TENANT, USER)).await?;
        Ok(())
    }
}

async fn settle_down(db: &Db) -> anyhow::Result<()> {
    if let Some(pool) = db.postgres() {
        for upkeep in ["VACUUM (ANALYZE) files", "VACUUM (ANALYZE) listed_files"] {
            sqlx::raw_sql(upkeep).execute(pool).await?;
        }
    }
    Ok(())
}

async fn requests(instance: &Instance, files: i64, figures: &mut Figures) -> anyhow::Result<()> {
    let app = instance.app.clone();
    let exp = (app.clock.now() + chrono::TimeDelta::days(1)).timestamp();
    let claims = |role: Option<&str>| TokenClaims {
        sub: USER.to_owned(),
        tenant: Some(TENANT.to_owned()),
        role: role.map(str::to_owned),
        exp,
    };
    let (token, admin) = (app.auth.issue(&claims(None))?, app.auth.issue(&claims(Some("admin")))?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let stop = CancellationToken::new();
    let serving = tokio::spawn({
        let (app, stop) = (app.clone(), stop.clone());
        async move { http::serve(listener, http::router(app.clone()), &app.config.http, stop).await }
    });
    let middle: Option<(uuid::Uuid,)> = app
        .db
        .read()
        .await?
        .row(
            "SELECT id FROM files WHERE tenant_id = $1 AND user_id = $2 ORDER BY id LIMIT 1 OFFSET $3",
            args![TENANT, USER, files / 2],
        )
        .await?;
    let middle = middle.map_or_else(uuid::Uuid::max, |(id,)| id);
    let letters = client_get(&base, &token, "/api/v2/uploads/dlq?limit=200").await?;
    let deep = letters["nextCursor"].as_str().unwrap_or_default().to_owned();
    for (what, path, token) in [
        ("dashboard", "dashboard".to_owned(), &token),
        ("dashboard, all users", "dashboard?scope=all".to_owned(), &admin),
        ("stuck", "stuck".to_owned(), &token),
        ("dlq", "dlq".to_owned(), &token),
        ("dlq, a later page", format!("dlq?cursor={deep}"), &token),
        ("dlq groups", "dlq/groups".to_owned(), &token),
        ("files", "files".to_owned(), &token),
        ("files, half-way down", format!("files?cursor={middle}"), &token),
        ("files, failed", "files?status=failed".to_owned(), &token),
        ("files, cancelled", "files?status=cancelled".to_owned(), &token),
        ("files, queued", "files?status=queued".to_owned(), &token),
        ("files, registered", "files?status=registered".to_owned(), &token),
        ("files, uploaded (there is none)", "files?status=uploaded".to_owned(), &token),
        ("files, by part of a name", "files?q=report-77".to_owned(), &token),
        ("files, sorted by name", "files?sort=fileName".to_owned(), &token),
        ("files, sorted by size", "files?sort=size".to_owned(), &token),
        ("ready files, sorted by name", "files?status=ready&sort=fileName".to_owned(), &token),
        ("files by part of a name, counted", "files/counts?q=report-77".to_owned(), &token),
        ("queue status", "../admin/queue-status".to_owned(), &admin),
        ("metrics", "../../../metrics".to_owned(), &admin),
    ] {
        let url = url::Url::parse(&format!("{base}/api/v2/uploads/"))?.join(&path)?;
        let http = landfall_server::outbound::client();
        let mut samples = Vec::new();
        for number in 0..SAMPLES + WARM_UP {
            let began = Instant::now();
            let response = http.get(url.clone()).bearer_auth(token).send().await?.error_for_status()?;
            response.bytes().await?;
            if number >= WARM_UP {
                samples.push(milliseconds(began.elapsed()));
            }
        }
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            figures.add(format!("{files} files: {what}, {name} ms"), quantile(&samples, share));
        }
    }
    stop.cancel();
    serving.await?;
    Ok(())
}

async fn client_get(base: &str, token: &str, path: &str) -> anyhow::Result<serde_json::Value> {
    let request = landfall_server::outbound::client().get(format!("{base}{path}")).bearer_auth(token);
    Ok(request.send().await?.error_for_status()?.json().await?)
}

/// Alternating, so that other load on the machine affects both.
async fn side_by_side(
    few: &Instance,
    many: &Instance,
    finished: i64,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    for what in ["stuck sweep", "upload expiry", "dashboard counts"] {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS + WARM_UP {
            for (instance, samples) in [few, many].into_iter().zip(&mut times) {
                let (app, now) = (&instance.app, Clock::System.now());
                let began = Instant::now();
                match what {
                    "stuck sweep" => drop(app.stuck_files.sweep_once(now).await?),
                    "upload expiry" => drop(app.stuck_files.expiry.sweep_once(now).await?),
                    _ => drop(
                        totals::Distribution::load(
                            &mut app.db.snapshot().await?,
                            &Reach::User(TenantUser::new(TENANT, USER)),
                        )
                        .await?,
                    ),
                }
                if round >= WARM_UP {
                    samples.push(milliseconds(began.elapsed()));
                }
            }
        }
        let [at_few, at_many] = times.map(|samples| median(&samples));
        figures.add(format!("{what}: ms beside {FEW} finished"), at_few);
        figures.add(format!("{what}: ms beside {finished} finished"), at_many);
        figures.add(format!("{what}: ratio"), at_many / at_few);
    }
    Ok(())
}
