//! An operator does not want to wait for the end of an open circuit: a few files try the service at once.

use super::breaker::{BreakerConfig, Circuit, codes_of};
use super::circuits;
use crate::records::files::queue;
use landfall_core::clock::Time;
use landfall_core::failure::Code;
use landfall_core::service::Service;
use landfall_store::Error;
use landfall_store::wake::Signal;
use landfall_store::{Tx, Write};

/// Makes an open circuit half open. Returns the circuit, which is unchanged if it was not open.
pub struct Probe {
    pub service: Service,
    pub breaker: BreakerConfig,
    pub now: Time,
}

impl Write for Probe {
    type Output = Circuit;

    async fn apply(&self, tx: &mut Tx) -> Result<Circuit, Error> {
        let before = circuits::hold(tx, self.service).await?;
        let mut circuit = before.clone();
        if circuit.probe(self.now) {
            circuit.write(tx, self.service, &before, self.now).await?;
            // What the service failed last waits until the circuit would have tried it again. Without these there may be no
            // file to try it with.
            let codes: Vec<Code> = codes_of(self.service).collect();
            queue::make_failed_due(tx, &codes, self.breaker.probes, self.now).await?;
            tx.signal(Signal::Work);
        }
        Ok(circuit)
    }
}
