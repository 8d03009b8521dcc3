//! Whether other files wait for a service than those that failed with it last.

use uuid::Uuid;

use super::breaker::BreakerConfig;
use super::circuits;
use super::waiting::Obstacles;
use crate::records::files::queue;
use landfall_core::clock::Time;
use landfall_core::service::Service;
use landfall_store::{Db, Error};

/// Whether a file waits for this service, or is sent to it now, that neither is this one nor failed with it lately.
pub async fn wait_for(
    db: &Db,
    service: Service,
    file: Uuid,
    breaker: BreakerConfig,
    now: Time,
) -> Result<bool, Error> {
    let tx = &mut db.read().await?;
    let mut tried: Vec<Uuid> = circuits::find(tx, service).await?.failing_files.to_vec();
    tried.push(file);
    // As the circuit will list them with this failure: the file of the oldest one may be another that waits.
    let most = usize::try_from(breaker.threshold).unwrap_or(usize::MAX);
    tried.drain(..tried.len().saturating_sub(most));
    let blocked = Obstacles::load(tx, None, now).await?.blocked_stages().into_iter();
    let stages = blocked.filter(|(_, needed)| *needed == service).map(|(stage, _)| stage).collect::<Vec<_>>();
    queue::others_are_at(tx, &stages, &tried).await
}
