//! The limits of the machine and of the driver, to compare the other figures with.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::str::FromStr;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection};
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
        let what = |figure: &str| format!("sqlx alone: {figure}, {at_once} per transaction");
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
    macro_rules! measure {
        ($connection:expr) => {{
            let mut connection = $connection;
            sqlx::raw_sql("DROP TABLE IF EXISTS floor").execute(&mut connection).await?;
            sqlx::raw_sql(TABLE).execute(&mut connection).await?;
            sqlx::raw_sql(FILL).execute(&mut connection).await?;
            let watch = Stopwatch::start();
            let mut count = 0;
            while watch.elapsed() < MEASURING_TIME {
                let mut transaction = connection.begin().await?;
                for _ in 0..at_once {
                    count += 1;
                    let row = count * 7_919 % ROWS;
                    sqlx::query(UPDATE).bind(row).execute(&mut *transaction).await?;
                }
                transaction.commit().await?;
            }
            connection.close().await?;
            Ok(count as f64)
        }};
    }
    match kind {
        Kind::Sqlite => {
            let options = SqliteConnectOptions::from_str(&fresh.url)?
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full);
            measure!(SqliteConnection::connect_with(&options).await?)
        }
        Kind::Postgres => measure!(PgConnection::connect(&fresh.url).await?),
    }
}
