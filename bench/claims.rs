//! What a claim costs when one user waits, when a thousand wait, and when a million files wait; and what a claim
//! costs while a service is down. The cases alternate, so that other load on the machine affects all of them.

use landfall_core::clock::Clock;
use landfall_store::Error;
use landfall_store::{Tx, Write, args};

use super::claim_harness::{ClaimHarness, per_file};
use super::databases::Kind;
use super::figures::Figures;
use super::measure::median;
use super::seed_rows::add_waiting;

const ROUNDS: usize = 15;
/// Claims in a round, and files in a claim.
const CLAIMS: usize = 4;
const FILES: usize = 32;

pub async fn run(kind: Kind) -> anyhow::Result<Figures> {
    let queues = [
        ("1 user, 10000 files waiting", 1, 10_000),
        ("1000 users, 10 files each", 1_000, 10),
        ("1 user, 1000000 files waiting", 1, 1_000_000),
        ("1000 users, 1000 files each", 1_000, 1_000),
    ];
    let mut harnesses = Vec::new();
    for (number, (_, users, files)) in queues.into_iter().enumerate() {
        let harness = ClaimHarness::open(kind, &format!("claims{number}")).await?;
        add_waiting(&harness.db, users, files).await?;
        harnesses.push((harness, Vec::new()));
    }
    let mut refused = ClaimHarness::open(kind, "refused").await?;
    add_waiting(&refused.db, 1_000, 10).await?;
    refused.db.write(OpenCircuit).await?;
    let mut refusals = Vec::new();
    for round in 0..=ROUNDS {
        for (harness, samples) in &mut harnesses {
            harness.begin().await?;
            let before = harness.used();
            for _ in 0..CLAIMS {
                harness.claim(FILES).await?;
            }
            // The first round prepares the statements.
            if round > 0 {
                samples.push(per_file(harness.used().saturating_sub(before), CLAIMS * FILES));
            }
        }
        refused.begin().await?;
        let before = refused.used();
        for _ in 0..CLAIMS {
            anyhow::ensure!(
                refused.try_claim(FILES).await?.is_empty(),
                "an open circuit lets nothing through"
            );
        }
        if round > 0 {
            refusals.push(per_file(refused.used().saturating_sub(before), CLAIMS));
        }
    }
    let mut figures = Figures::default();
    let single = median(&harnesses[0].1);
    for ((what, _, _), (harness, samples)) in queues.into_iter().zip(harnesses) {
        figures.add(format!("claim: CPU µs per file, {what}"), median(&samples));
        figures.add(format!("claim: {what} : 1 user"), median(&samples) / single);
        harness.close().await?;
    }
    figures.add("claim refused by an open circuit: CPU µs".to_owned(), median(&refusals));
    refused.close().await?;
    Ok(figures)
}

struct OpenCircuit;

impl Write for OpenCircuit {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let until = Clock::System.now() + chrono::TimeDelta::days(1);
        tx.execute(
            "INSERT INTO circuits (service, state, until) VALUES ('storage', 'open', $1)",
            args![until],
        )
        .await
        .map(drop)
    }
}
