//! The faults between a process and the database.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use landfall_core::clock::Clock;
use landfall_store::{Error, FaultInjector, Step};

use crate::shared::Life;

pub struct DatabaseFaults(pub Arc<Life>);

impl FaultInjector for DatabaseFaults {
    fn inject<'a>(&'a self, step: Step<'a>) -> BoxFuture<'a, Result<(), Error>> {
        let life = &self.0;
        async move {
            let (dies_before, dies_after) = if life.is_over() { (true, false) } else { life.step() };
            let shared = &life.shared;
            // A commit is done when this step is announced.
            if dies_before || (dies_after && step == Step::Committed) {
                if dies_before && !life.is_over() {
                    shared.trace().dies_before(text(step));
                }
                life.end(if dies_after { "crash after a commit" } else { "crash before a step" });
                return std::future::pending().await;
            }
            shared.trace().note(shared.now(), life.process, text(step));
            if shared.happens(shared.plan.mix.slow_steps, "slow step") {
                Clock::System.sleep(Duration::from_millis(1 + shared.number(80))).await;
            }
            if life.is_over() {
                return std::future::pending().await;
            }
            let rate = match step {
                Step::Committed => shared.plan.mix.lost_commits,
                _ => shared.plan.mix.lost_steps,
            };
            if life.cannot_reach_database() || shared.happens(rate, "database answer lost") {
                return Err(lost());
            }
            if step == Step::Commit && shared.disk_is_full() {
                return Err(full());
            }
            Ok(())
        }
        .boxed()
    }
}

fn text(step: Step<'_>) -> &str {
    match step {
        Step::Begin => "begin",
        Step::Statement(sql) => sql,
        Step::Commit => "commit",
        Step::Committed => "committed",
    }
}

fn lost() -> Error {
    Error::Database(sqlx::Error::Io(std::io::Error::new(
        ErrorKind::ConnectionReset,
        "the connection was lost",
    )))
}

fn full() -> Error {
    let source = std::io::Error::new(ErrorKind::StorageFull, "no space left on device");
    Error::StorageFull { what: "commit".to_owned(), source: source.into() }
}
