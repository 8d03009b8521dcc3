//! One file at a time arrives at an idle worker.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use landfall_api::uploads::ConfirmRequest;
use landfall_core::caller::{Caller, Role};
use landfall_core::clock::Clock;
use landfall_server::config::Config;
use landfall_server::intake::announce::Announced;
use landfall_server::intake::arrivals::Arrivals;
use landfall_server::intake::confirm::confirm;
use landfall_server::intake::register::{Register, Tickets};
use landfall_server::intake::upload::{Upload, WHOLE_WITHIN};
use landfall_server::process::disk_space::DiskSpace;
use landfall_store::wake::Signal;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::databases::{Fresh, Kind};
use super::figures::Figures;
use super::measure::{milliseconds, quantile};
use super::seed_rows::{TENANT, USER};
use super::worker::{Running, default_config};

const SAMPLES: usize = 400;
const WARM_UP: usize = 20;
/// Between two files, so that the worker is asleep.
const PAUSE: Duration = Duration::from_millis(5);
const BODY: &[u8] = b"Landfall takes files in.";

pub async fn run(kind: Kind) -> anyhow::Result<Figures> {
    let fresh = Fresh::create(kind, "latency").await?;
    let mut running = Running::prepare(&fresh).await?;
    let config = default_config()?;
    running.start();
    let (mut confirmed, mut claimed, mut ready) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..SAMPLES + WARM_UP {
        let caller = Caller { user: USER.to_owned(), tenant: TENANT.to_owned(), role: Role::Member };
        let file = upload_unconfirmed(&running, &config, &caller).await?;
        tokio::time::sleep(PAUSE).await;

        let began = Instant::now();
        confirm(&running.db, &running.blobs, &caller, file, None, &ConfirmRequest::default(), &Clock::System)
            .await?;
        running.wake.send(Signal::Work);
        let answered = began.elapsed();
        let progress = running.finished(number + 1).await?;
        running.until("files", file, "ready").await?;
        if number >= WARM_UP {
            confirmed.push(milliseconds(answered));
            claimed.push(milliseconds(progress.claimed_at - began));
            ready.push(milliseconds(began.elapsed()));
        }
    }
    let mut figures = Figures::default();
    for (until, samples) in [("answered", confirmed), ("claimed", claimed), ("ready", ready)] {
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            figures.add(format!("idle: confirm to {until}, {name} ms"), quantile(&samples, share));
        }
    }
    running.end(fresh).await?;
    Ok(figures)
}

/// Everything that happens to a file before its confirmation.
async fn upload_unconfirmed(running: &Running, config: &Config, caller: &Caller) -> anyhow::Result<Uuid> {
    let clock = Clock::System;
    let (id, size) = (clock.new_id(), i64::try_from(BODY.len())?);
    let announced = Announced {
        name: "hello.txt".to_owned(),
        size,
        content_type: Some("text/plain".to_owned()),
        ..Announced::default()
    };
    running
        .db
        .write_jointly(Register {
            caller: caller.clone(),
            batch: None,
            priority: None,
            files: vec![(id, announced)],
            now: clock.now(),
            config: config.intake.clone(),
            tickets: Tickets::none(),
            direct: None,
            trace: None,
        })
        .await?;
    let upload = Upload {
        db: running.db.clone(),
        blobs: running.blobs.clone(),
        clock,
        owner: running.liveness.identity().id,
        tasks: TaskTracker::new(),
        arrivals: Arrivals::default(),
        disk: DiskSpace::new(Vec::new(), 0),
        confirm_window: config.intake.confirm_window,
        stall: config.http.upload_stall,
        min_rate: config.intake.min_rate,
        whole_within: WHOLE_WITHIN,
        file: id,
        size,
        md5: None,
    };
    upload.receive(stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(BODY))])).await?;
    Ok(id)
}
