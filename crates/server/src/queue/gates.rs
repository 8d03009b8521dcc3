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
use crate::records::files::{held, queue};
use crate::records::lines;
use landfall_core::caller::TenantUser;
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;
use landfall_core::states::CircuitState;
use landfall_store::Error;
use landfall_store::{Tx, args};

/// The rounds of the circuits in which calls begin.
#[derive(Debug, Clone, Default)]
pub struct CallRounds {
    rounds: BTreeMap<Service, i64>,
    probed: BTreeSet<Service>,
}

impl CallRounds {
    /// A service that was never in trouble is in its first round.
    pub fn of(&self, service: Service) -> i64 {
        self.rounds.get(&service).copied().unwrap_or_default()
    }

    /// Whether the circuit was half open, so that the call is a probe.
    pub fn is_probe(&self, service: Service) -> bool {
        self.probed.contains(&service)
    }
}

pub struct Gates {
    pub paused: Vec<Stage>,
    /// Whether there are files whose retry time has come.
    pub some_have_become_due: bool,
    /// The earliest time at which something that is blocked now may be claimed.
    pub poll_again_at: Option<Time>,
    /// The stages where a file waits that is claimed alone.
    alone_at: Vec<Stage>,
    in_trouble: HashSet<String>,
    /// The services in trouble whose circuit lets nothing through yet.
    open: HashSet<String>,
    /// The rounds of all circuits that have a row.
    rounds: BTreeMap<Service, i64>,
    /// Each circuit as it was loaded, and as it is now.
    circuits: BTreeMap<Service, (Circuit, Circuit)>,
    buckets: Buckets,
    limits_reached: Vec<Stage>,
    users_limited: BTreeSet<TenantUser>,
}

impl Gates {
    pub async fn load(tx: &mut Tx, breaker: BreakerConfig, now: Time) -> Result<Self, Error> {
        // One statement over three tables: every claim begins with it, also where there is nothing to claim. The first time
        // is the first entry of an index. PostgreSQL may look for any earlier one in the table, row by row.
        let found: Vec<(String, String, i64)> = tx
            .rows(
                "SELECT 'paused', stage, CAST(0 AS BIGINT) FROM paused_stages
                 UNION ALL SELECT 'round', service, round FROM circuits
                 UNION ALL SELECT 'circuit', service, 0 FROM circuits WHERE state <> 'closed' OR failures > 0
                 UNION ALL SELECT 'open', service, 0 FROM circuits WHERE state = 'open' AND until > $1 AND until <= $2
                 UNION ALL SELECT 'due', '', 0 WHERE (
                     SELECT MIN(run_after) FROM files WHERE queue_stage IS NOT NULL AND NOT is_due AND NOT is_alone) <= $1
                 UNION ALL SELECT DISTINCT 'alone', queue_stage, CAST(0 AS BIGINT) FROM files
                     WHERE queue_stage IS NOT NULL AND is_alone AND run_after <= $1",
                args![now, breaker.latest_until(now)],
            )
            .await?;
        let named = |what: &'static str| {
            found.iter().filter(move |(found, ..)| found == what).map(|(_, name, _)| name.clone())
        };
        let round =
            |service: Service| found.iter().find(|(what, name, _)| what == "round" && name == service.name());
        Ok(Self {
            paused: named("paused").filter_map(|name| name.parse().ok()).collect(),
            some_have_become_due: named("due").next().is_some(),
            poll_again_at: None,
            alone_at: named("alone").filter_map(|name| name.parse().ok()).collect(),
            rounds: Service::ALL
                .into_iter()
                .filter_map(|service| Some((service, round(service)?.2)))
                .collect(),
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

    /// Whether a file waits to be claimed alone at one of these stages.
    pub fn one_waits_alone(&self, wants: &[Want]) -> bool {
        wants.iter().any(|want| self.alone_at.contains(&want.stage))
    }

    /// The time at which files are claimed under these circuits: not before their last change, which another process may
    /// have made after this one read the clock.
    pub fn claim_time(&self, now: Time) -> Time {
        self.circuits.values().filter_map(|(_, circuit)| circuit.changed_at).fold(now, Time::max)
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

    /// Whether the files that are claimed now probe a service that this stage needs.
    pub fn probes(&self, services: &[Service]) -> bool {
        let is_half_open = |service| {
            self.circuits.get(service).is_some_and(|(_, circuit)| circuit.state == CircuitState::HalfOpen)
        };
        services.iter().any(is_half_open)
    }

    /// Whether the files of a stage leave it to a file that is claimed alone to probe a service that both need: it has waited
    /// for longer. If they went first each time, their failures could open the circuit again before the worker is free for it.
    pub async fn one_alone_probes_first(
        &self,
        tx: &mut Tx,
        Want { stage, services, .. }: Want,
        wants: &[Want],
        now: Time,
    ) -> Result<bool, Error> {
        let probed = services.iter().filter(|service| self.probes(std::slice::from_ref(*service)));
        let probed: Vec<&Service> = probed.collect();
        let needs_it = |want: &&Want| {
            self.alone_at.contains(&want.stage)
                && probed.iter().any(|service| want.services.contains(service))
        };
        for want in wants.iter().filter(needs_it) {
            let since = queue::one_alone_since(tx, want.stage, now).await?;
            if let Some(since) = since
                && !queue::any_due_before(tx, stage, since).await?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What the calls of the files that are claimed now are reported with.
    pub fn rounds(&self) -> CallRounds {
        let now = self.circuits.iter().map(|(service, (_, circuit))| (*service, circuit));
        let mut rounds = CallRounds { rounds: self.rounds.clone(), probed: BTreeSet::new() };
        for (service, circuit) in now {
            rounds.rounds.insert(service, circuit.round);
            if circuit.state == CircuitState::HalfOpen {
                rounds.probed.insert(service);
            }
        }
        rounds
    }

    /// How many files may be claimed at a stage; `None` for no limit.
    pub async fn allow(
        &mut self,
        tx: &mut Tx,
        Want { stage, services, .. }: Want,
        needing: &[Want],
        limits: &RateLimits,
        breaker: BreakerConfig,
        now: Time,
    ) -> Result<Option<usize>, Error> {
        let mut most: Option<usize> = None;
        for service in services {
            let Some((_, circuit)) = self.circuits.get_mut(service) else { continue };
            let calling = needing.iter().filter(|want| want.services.contains(service));
            let stages: Vec<Stage> = calling.map(|want| want.stage).collect();
            let since = circuit.in_doubt_since().unwrap_or(Time::UNIX_EPOCH);
            let on_their_way = held::count_running(tx, &stages, since).await?;
            if let Some(let_through) = circuit.lets_through(on_their_way, now, breaker) {
                most = Some(most.map_or(let_through, |most| most.min(let_through)));
                self.poll_again_at = soonest(self.poll_again_at, circuit.until);
            }
        }
        if let Some(limit) = limits.of_stage(stage) {
            let name = bucket_of_stage(stage);
            self.buckets.hold(tx, vec![name.clone()]).await?;
            let allowed = self.buckets.allows(limit, &name, now);
            // Files that a circuit holds up do not wait for this.
            let would_begin = most != Some(0);
            most = Some(most.map_or(allowed, |most| most.min(allowed)));
            if allowed == 0 && would_begin {
                self.limits_reached.push(stage);
                self.poll_again_at = soonest(self.poll_again_at, Some(self.buckets.next_at(&name)));
            }
        }
        Ok(most)
    }

    pub async fn hold_users(
        &mut self,
        tx: &mut Tx,
        users: impl Iterator<Item = &TenantUser>,
    ) -> Result<(), Error> {
        self.buckets.hold(tx, users.map(bucket_of_user).collect()).await
    }

    /// How many of a user's files may begin.
    pub fn allow_user(&mut self, limit: RateLimit, user: &TenantUser, now: Time) -> usize {
        let name = bucket_of_user(user);
        let allowed = self.buckets.allows(limit, &name, now);
        if allowed == 0 {
            self.poll_again_at = soonest(self.poll_again_at, Some(self.buckets.next_at(&name)));
            self.users_limited.insert(user.clone());
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
            let next = Some(self.buckets.next_at(&name)).filter(|next| *next > now);
            self.poll_again_at = soonest(self.poll_again_at, next);
        }
        if let Some(limit) = limits.of_users_at(stage) {
            for file in files {
                self.buckets.take(limit, &bucket_of_user(&file.tenant_user()), 1, now);
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
