//! What blocks a stage although files wait at it: an operator paused it, its rate limit, a service that is down.
//!
//! A claim reads all of these in its own transaction, so that a change applies to every process at once.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::json;

use super::breaker::{BreakerConfig, Circuit};
use super::circuits;
use super::claim::Want;
use super::limits::{Buckets, RateLimit, RateLimits, bucket_of_stage, bucket_of_user};
use crate::records::events::{self, Event};
use crate::records::file::File;
use crate::records::files::held;
use crate::records::lines;
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;
use landfall_store::Error;
use landfall_store::{Tx, args};

pub struct Gates {
    pub paused: Vec<Stage>,
    /// Whether there are files whose retry time has come.
    pub some_have_become_due: bool,
    /// The earliest time at which something that is blocked now may be claimed.
    pub poll_again_at: Option<Time>,
    in_trouble: HashSet<String>,
    /// The services in trouble whose circuit lets nothing through yet.
    open: HashSet<String>,
    /// Each circuit as it was loaded, and as it is now.
    circuits: BTreeMap<Service, (Circuit, Circuit)>,
    buckets: Buckets,
    limits_reached: Vec<Stage>,
    users_limited: BTreeSet<String>,
}

impl Gates {
    pub async fn load(tx: &mut Tx, now: Time) -> Result<Self, Error> {
        // One statement over three tables: every claim begins with it, also where there is nothing to claim.
        let found: Vec<(String, String)> = tx
            .rows(
                "SELECT 'paused', stage FROM paused_stages
                 UNION ALL SELECT 'circuit', service FROM circuits WHERE state <> 'closed' OR failures > 0
                 UNION ALL SELECT 'open', service FROM circuits WHERE state = 'open' AND until > $1
                 UNION ALL SELECT 'due', '' WHERE EXISTS (
                     SELECT 1 FROM files WHERE status = 'queued' AND NOT is_due AND run_after <= $1)",
                args![now],
            )
            .await?;
        let named = |what: &'static str| {
            found.iter().filter(move |(found, _)| found == what).map(|(_, name)| name.clone())
        };
        Ok(Self {
            paused: named("paused").filter_map(|name| name.parse().ok()).collect(),
            some_have_become_due: named("due").next().is_some(),
            poll_again_at: None,
            in_trouble: named("circuit").collect(),
            open: named("open").collect(),
            circuits: BTreeMap::new(),
            buckets: Buckets::default(),
            limits_reached: Vec::new(),
            users_limited: BTreeSet::new(),
        })
    }

    /// Whether it is worth reading which users have files waiting at a stage.
    pub fn is_open(&self, want: &Want) -> bool {
        !self.paused.contains(&want.stage)
            && !want.services.iter().any(|service| self.open.contains(service.name()))
    }

    /// Locks the circuits in trouble that these stages need.
    pub async fn hold_circuits(&mut self, tx: &mut Tx, wants: &[Want]) -> Result<(), Error> {
        // Always in the same order, so that two processes never deadlock.
        let needed: BTreeSet<Service> = wants.iter().flat_map(|want| want.services.iter().copied()).collect();
        for service in needed.into_iter().filter(|service| self.in_trouble.contains(service.name())) {
            let circuit = circuits::hold(tx, service).await?;
            self.circuits.insert(service, (circuit.clone(), circuit));
        }
        Ok(())
    }

    /// How many files may be claimed at a stage; `None` for no limit.
    pub async fn allow(
        &mut self,
        tx: &mut Tx,
        stage: Stage,
        services: &[Service],
        limits: &RateLimits,
        breaker: BreakerConfig,
        now: Time,
    ) -> Result<Option<usize>, Error> {
        let mut most: Option<usize> = None;
        for service in services {
            let Some((_, circuit)) = self.circuits.get_mut(service) else { continue };
            let on_their_way =
                held::count_running(tx, stage, circuit.in_doubt_since().unwrap_or(Time::UNIX_EPOCH)).await?;
            if let Some(let_through) = circuit.lets_through(on_their_way, now, breaker) {
                most = Some(most.map_or(let_through, |most| most.min(let_through)));
                self.poll_again_at = soonest(self.poll_again_at, circuit.until);
            }
        }
        if let Some(limit) = limits.of_stage(stage) {
            let name = bucket_of_stage(stage);
            self.buckets.hold(tx, vec![name.clone()]).await?;
            let allowed = self.buckets.allows(limit, &name, now);
            most = Some(most.map_or(allowed, |most| most.min(allowed)));
            if allowed == 0 {
                self.limits_reached.push(stage);
                self.poll_again_at = soonest(self.poll_again_at, Some(self.buckets.next_at(&name)));
            }
        }
        Ok(most)
    }

    pub async fn hold_users(&mut self, tx: &mut Tx, users: impl Iterator<Item = &str>) -> Result<(), Error> {
        self.buckets.hold(tx, users.map(bucket_of_user).collect()).await
    }

    /// How many of a user's files may begin.
    pub fn allow_user(&mut self, limit: RateLimit, user: &str, now: Time) -> usize {
        let name = bucket_of_user(user);
        let allowed = self.buckets.allows(limit, &name, now);
        if allowed == 0 {
            self.poll_again_at = soonest(self.poll_again_at, Some(self.buckets.next_at(&name)));
            self.users_limited.insert(user.to_owned());
        }
        allowed
    }

    /// Counts what was claimed.
    pub fn took(&mut self, stage: Stage, limits: &RateLimits, files: &[File], now: Time) {
        if files.is_empty() {
            return;
        }
        if let Some(limit) = limits.of_stage(stage) {
            let name = bucket_of_stage(stage);
            self.buckets.take(limit, &name, files.len(), now);
            // So that the next file that this limit blocks is claimed on time.
            self.poll_again_at = soonest(self.poll_again_at, Some(self.buckets.next_at(&name)));
        }
        if let Some(limit) = limits.of_users_at(stage) {
            for file in files {
                self.buckets.take(limit, &bucket_of_user(&file.user_id), 1, now);
            }
        }
    }

    pub async fn write(mut self, tx: &mut Tx, now: Time) -> Result<(), Error> {
        for (service, (before, circuit)) in &self.circuits {
            circuit.write(tx, *service, before, now).await?;
        }
        let mut events = Vec::new();
        for stage in std::mem::take(&mut self.limits_reached) {
            if self.buckets.report(&bucket_of_stage(stage), now) {
                let data = json!({ "queue": format!("file-{stage}"), "timestamp": now });
                events.push(Event::of_system(EventKind::QueueRateLimitExceeded, now, data));
            }
        }
        for user in std::mem::take(&mut self.users_limited) {
            let name = bucket_of_user(&user);
            if self.buckets.report(&name, now) {
                lines::user_limited(tx, user, self.buckets.next_at(&name));
            }
        }
        events::record(tx, events).await?;
        self.buckets.write(tx).await
    }
}

fn soonest(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}
