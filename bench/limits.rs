//! The limits of the machine and of the driver, to compare the other figures with.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use sqlx::Connection;
use sqlx_postgres::PgConnection;

use super::databases::{Fresh, Kind};
use super::figures::Figures;
use super::measure::Stopwatch;

const MEASURING_TIME: Duration = Duration::from_millis(1_500);
const RECORD: [u8; 256] = [b'x'; 256];
const ROWS: i64 = 10_000;
const TABLE: &str = "CREATE TABLE floor (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)";
const FILL: &str =
    "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 9999)
                    INSERT INTO floor SELECT n, 0 FROM numbers";
const UPDATE: &str = "UPDATE floor SET n = n + 1 WHERE id = $1";

pub async fn run(kind: Kind) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    let fresh = Fresh::create(kind, "limits").await?;
    if kind == Kind::Sqlite {
        figures.add("machine: appends with fsync/s", appends(&fresh)?);
    }
    for at_once in [1, 64] {
        let watch = Stopwatch::start();
        let updates = updates(kind, &fresh, at_once).await?;
        let (elapsed, cpu) = (watch.elapsed(), watch.cpu());
        let what = |figure: &str| format!("driver alone: {figure}, {at_once} per transaction");
        figures.add(what("updates/s"), updates / elapsed.as_secs_f64());
        figures.add(what("CPU ms per update"), cpu.as_secs_f64() * 1e3 / updates);
    }
    let db = fresh.open(4).await?;
    fresh.remove(db).await?;
    Ok(figures)
}

fn appends(fresh: &Fresh) -> anyhow::Result<f64> {
    let mut file = OpenOptions::new().create(true).append(true).open(fresh.path().join("appends"))?;
    let watch = Stopwatch::start();
    let mut count = 0.0;
    while watch.elapsed() < MEASURING_TIME {
        file.write_all(&RECORD)?;
        file.sync_data()?;
        count += 1.0;
    }
    Ok(count / watch.elapsed().as_secs_f64())
}

/// Updates rows one after the other, `at_once` in each transaction, with prepared statements on one connection.
async fn updates(kind: Kind, fresh: &Fresh, at_once: i64) -> anyhow::Result<f64> {
    match kind {
        Kind::Sqlite => updates_on_sqlite(fresh, at_once),
        Kind::Postgres => updates_on_postgres(fresh, at_once).await,
    }
}

fn updates_on_sqlite(fresh: &Fresh, at_once: i64) -> anyhow::Result<f64> {
    let mut connection = rusqlite::Connection::open(fresh.path().join("limits.db"))?;
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; DROP TABLE IF EXISTS floor")?;
    connection.execute_batch(TABLE)?;
    connection.execute_batch(FILL)?;
    let watch = Stopwatch::start();
    let mut count = 0;
    while watch.elapsed() < MEASURING_TIME {
        let transaction = connection.transaction()?;
        for _ in 0..at_once {
            count += 1;
            transaction.prepare_cached(UPDATE)?.execute([count * 7_919 % ROWS])?;
        }
        transaction.commit()?;
    }
    Ok(count as f64)
}

async fn updates_on_postgres(fresh: &Fresh, at_once: i64) -> anyhow::Result<f64> {
    let mut connection = PgConnection::connect(&fresh.url).await?;
    for sql in ["DROP TABLE IF EXISTS floor", TABLE, FILL] {
        sqlx::raw_sql(sql).execute(&mut connection).await?;
    }
    let watch = Stopwatch::start();
    let mut count = 0;
    while watch.elapsed() < MEASURING_TIME {
        let mut transaction = connection.begin().await?;
        for _ in 0..at_once {
            count += 1;
            sqlx::query(UPDATE).bind(count * 7_919 % ROWS).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
    }
    connection.close().await?;
    Ok(count as f64)
}
