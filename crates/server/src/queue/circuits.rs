//! The statements about the table `circuits`: a row for each service that was ever in trouble.

use landfall_core::service::Service;
use landfall_store::{Error, Tx, args};

use super::breaker::Circuit;

const COLUMNS: &str = "state, failures, failing_since, until, successes, last_up_at, changed_at";

/// The circuit of a service. Without a row it is closed.
pub async fn find(tx: &mut Tx, service: Service) -> Result<Circuit, Error> {
    let sql = format!("SELECT {COLUMNS} FROM circuits WHERE service = $1");
    Ok(tx.row(sql, args![service.name()]).await?.unwrap_or_default())
}

/// The same, locked against other processes until the transaction ends.
pub async fn hold(tx: &mut Tx, service: Service) -> Result<Circuit, Error> {
    if tx.is_only_writer() {
        return find(tx, service).await;
    }
    let insert =
        "INSERT INTO circuits (service, state) VALUES ($1, 'closed') ON CONFLICT (service) DO NOTHING";
    tx.execute(insert, args![service.name()]).await?;
    let sql = format!("SELECT {COLUMNS} FROM circuits WHERE service = $1 {}", tx.for_update());
    Ok(tx.row(sql, args![service.name()]).await?.unwrap_or_default())
}

/// Writes the row of a circuit.
pub async fn store(tx: &mut Tx, service: Service, circuit: &Circuit) -> Result<(), Error> {
    tx.execute(
        format!(
            "INSERT INTO circuits (service, {COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (service) DO UPDATE SET state = excluded.state, failures = excluded.failures,
                 failing_since = excluded.failing_since, until = excluded.until,
                 successes = excluded.successes, last_up_at = excluded.last_up_at,
                 changed_at = excluded.changed_at"
        ),
        args![
            service.name(),
            circuit.state.name(),
            circuit.failures,
            circuit.failing_since,
            circuit.until,
            circuit.successes,
            circuit.last_up_at,
            circuit.changed_at,
        ],
    )
    .await
    .map(drop)
}

/// The names of the services whose circuit is not closed.
pub async fn not_closed(tx: &mut Tx) -> Result<Vec<String>, Error> {
    let names: Vec<(String,)> =
        tx.rows("SELECT service FROM circuits WHERE state <> 'closed'", args![]).await?;
    Ok(names.into_iter().map(|(name,)| name).collect())
}

/// The names of the services whose circuit is open, each with its failures in a row.
pub async fn open(tx: &mut Tx) -> Result<Vec<(String, i64)>, Error> {
    tx.rows("SELECT service, failures FROM circuits WHERE state = 'open'", args![]).await
}
