//! The parts of a plan, drawn one after the other from its chance.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use landfall_core::service::Service;

use super::{Confirming, Fault, FilePlan, Kind, Mix, Sending, Size, Then};

pub fn draw_mix(random: &mut StdRng) -> Mix {
    let mut mix = Mix::default();
    let mut rate = |of: u32, most: u32| {
        if random.random_ratio(of, 10) { random.random_range(1..=most) } else { 0 }
    };
    mix.slow_steps = rate(5, 60);
    mix.lost_steps = rate(3, 15);
    mix.lost_commits = rate(3, 40);
    mix.lost_puts = rate(3, 150);
    mix.throttled = rate(3, 150);
    mix.listing_lag = u64::from(rate(2, 3_000));
    mix.lost_answers = rate(4, 300);
    mix.slow_stages = rate(4, 400);
    mix.bad_receiver = rate(5, 500);
    mix
}

pub fn draw_faults(random: &mut StdRng, size: Size, processes: u32) -> Vec<Fault> {
    let many = *size.faults.choose(random).expect("not empty");
    let mut faults = Vec::new();
    for _ in 0..many {
        let process = random.random_range(1..=processes);
        let at = random.random_range(200..size.active);
        // Some outlive the expiry of a heartbeat.
        let lasts = if random.random() {
            random.random_range(200..5_000)
        } else {
            random.random_range(5_000..60_000)
        };
        faults.push(match random.random_range(0..15) {
            // About as many steps as a process makes in that time.
            0..3 => {
                let step = random.random_range(20..size.active / 22);
                Fault::CrashAtStep { process, step, after: random.random() }
            }
            3 | 4 => Fault::Crash { process, at },
            5 | 6 => Fault::Freeze { process, at, lasts },
            7 => Fault::NoDatabase { process, at, lasts },
            8 => Fault::NoStorage { process, at, lasts },
            9 | 10 => {
                let services = [Service::Gateway, Service::Embeddings, Service::Scanner];
                Fault::Outage { service: *services.choose(random).expect("not empty"), at, lasts }
            }
            11 => Fault::FullDisk { at, lasts },
            12 => Fault::LockLost { process, at },
            13 => Fault::ClockJump { process, at, by: random.random_range(-600_000..600_000) },
            _ => Fault::Skew { process, ahead: random.random_range(-600_000..600_000) },
        });
    }
    faults
}

pub fn draw_files(random: &mut StdRng, size: Size) -> Vec<FilePlan> {
    let many = *size.files.choose(random).expect("not empty");
    let has_batch = random.random_ratio(1, 2);
    let mut files = Vec::new();
    for number in 0..many {
        let kind = match random.random_range(0..20) {
            0 => Kind::Damaged,
            1 => Kind::Infected,
            2 => Kind::BreaksGateway,
            3 => Kind::Empty,
            4 => Kind::Kills,
            _ => Kind::Innocent,
        };
        files.push(FilePlan {
            name: format!("{number}-{kind:?}.txt"),
            tenant: random.random_range(0..2),
            kind,
            in_batch: has_batch && random.random_ratio(1, 2),
            begins: random.random_range(0..size.active / 2),
            sending: match random.random_range(0..20) {
                0 | 1 => Sending::Twice,
                2 | 3 => Sending::ShortFirst,
                4 => Sending::Never,
                5 | 6 => Sending::InPieces,
                7..10 => Sending::Resumable,
                10 | 11 => Sending::Direct,
                _ => Sending::Whole,
            },
            confirming: match random.random_range(0..10) {
                0 | 1 => Confirming::Twice,
                2 => Confirming::Never,
                _ => Confirming::Once,
            },
            then: match random.random_range(0..12) {
                0 => Then::Cancel,
                1 | 2 => Then::Delete,
                3 => Then::Retry,
                4 => Then::Search,
                5 => Then::DeleteAmongMany,
                6 => Then::CancelBatch,
                7 => Then::CancelAndRetry,
                _ => Then::Nothing,
            },
            wait: random.random_range(0..size.active / 2),
            asks_once: random.random_ratio(1, 3),
        });
    }
    files
}
