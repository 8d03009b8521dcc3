//! The statements about the table `circuits`: a row for each service that was ever in trouble.

use landfall_api::queues::CircuitView;
use landfall_core::clock::Time;
use landfall_core::service::Service;
use landfall_core::states::CircuitState;
use landfall_store::{Error, Tx, args};

use super::breaker::Circuit;

const COLUMNS: &str = "state, failures, failing_since, until, successes, last_up_at, changed_at, round, \
                       failing_files, last_error";

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

impl Circuit {
    /// The circuit as a client sees it. `in_full`: the client is an operator, who may know what the service said.
    pub fn view(self, service: Service, in_full: bool) -> CircuitView {
        let last_error = self.last_error.map(|error| last_error(service, error, in_full));
        CircuitView {
            service,
            state: self.state,
            failures: self.failures,
            until: self.until,
            changed_at: self.changed_at,
            last_error,
            next_probe_at: self.until.filter(|_| self.state == CircuitState::Open),
        }
    }
}

/// What a service last said. It may name hosts and addresses of the server, so others than operators read only that it is
/// down.
pub fn last_error(service: Service, said: String, in_full: bool) -> String {
    if in_full { said } else { format!("{}.", service.trouble()) }
}

/// Writes the row of a circuit.
pub async fn store(tx: &mut Tx, service: Service, circuit: &Circuit) -> Result<(), Error> {
    tx.execute(
        format!(
            "INSERT INTO circuits (service, {COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
             ON CONFLICT (service) DO UPDATE SET state = excluded.state, failures = excluded.failures,
                 failing_since = excluded.failing_since, until = excluded.until,
                 successes = excluded.successes, last_up_at = excluded.last_up_at,
                 changed_at = excluded.changed_at, round = excluded.round,
                 failing_files = excluded.failing_files, last_error = excluded.last_error"
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
            circuit.round,
            serde_json::json!(*circuit.failing_files),
            circuit.last_error.clone(),
        ],
    )
    .await
    .map(drop)
}

/// The services whose circuit is not closed, each with its last error.
pub async fn not_closed(tx: &mut Tx) -> Result<Vec<(Service, Option<String>)>, Error> {
    let found: Vec<(String, Option<String>)> = tx
        .rows("SELECT service, last_error FROM circuits WHERE state <> 'closed' ORDER BY service", args![])
        .await?;
    Ok(found.into_iter().filter_map(|(name, error)| Some((known(&name)?, error))).collect())
}

/// The services in trouble since `before` or earlier: when their trouble began, with the last error.
pub async fn failing_since(tx: &mut Tx, before: Time) -> Result<Vec<(Service, Time, Option<String>)>, Error> {
    let found: Vec<(String, Time, Option<String>)> = tx
        .rows(
            "SELECT service, failing_since, last_error FROM circuits
             WHERE state <> 'closed' AND failing_since <= $1 ORDER BY service",
            args![before],
        )
        .await?;
    Ok(found.into_iter().filter_map(|(name, since, error)| Some((known(&name)?, since, error))).collect())
}

fn known(name: &str) -> Option<Service> {
    Service::ALL.into_iter().find(|service| service.name() == name)
}
