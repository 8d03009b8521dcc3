//! A tenant has at most half of a stage's slots while files of others wait.
//!
//! A tenant that is alone uses all slots. When a file of another tenant comes, a claim takes it before any file of the one
//! that has half of the slots or more. If no slot is free, because documents take long, the worker stops the youngest work
//! of that tenant and releases its file: the older work goes on, and the attempt does not count. For a while after that
//! the tenant stays at its half, so that the next file of another finds a slot at once and nothing is stopped again and
//! again.
//!
//! Each process does this with its own slots, so it is true for all of them together.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use landfall_sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use crate::records::files::queue::Lane;
use landfall_core::clock::{Time, to_delta};
use landfall_core::lifecycle::Stage;

/// How long a tenant whose work was stopped stays at its half.
const RESERVED: Duration = Duration::from_secs(10);

/// What the tenants have in hand at each stage of a worker, as a claim needs it.
pub type Held = HashMap<Stage, HeldAtStage>;

#[derive(Debug, Clone, Default)]
pub struct HeldAtStage {
    pub by_tenant: HashMap<String, usize>,
    /// How many files there is room for in all.
    pub capacity: usize,
    /// Whether the other half is kept for other tenants, even if none waits.
    pub is_reserved: bool,
}

impl HeldAtStage {
    fn half(&self) -> usize {
        half_of(self.capacity)
    }

    fn of(&self, tenant: &str) -> usize {
        self.by_tenant.get(tenant).copied().unwrap_or_default()
    }

    /// The tenants that have their half.
    pub fn at_half(&self) -> usize {
        let half = self.half();
        self.by_tenant.values().filter(|held| **held >= half).count()
    }

    /// Those of these tenants that have less than half, and those that have their half, each in their order.
    pub fn split(&self, tenants: &[String]) -> (Vec<String>, Vec<String>) {
        tenants.iter().cloned().partition(|tenant| self.of(tenant) < self.half())
    }

    /// Cuts the shares of each tenant to what it may have beside what it holds.
    pub fn cut(&self, shares: &mut [(Lane, usize)]) {
        let mut left: HashMap<String, usize> = HashMap::new();
        for (lane, share) in shares {
            let left = left
                .entry(lane.tenant.clone())
                .or_insert_with(|| self.half().saturating_sub(self.of(&lane.tenant)));
            *share = (*share).min(*left);
            *left -= *share;
        }
    }
}

/// A single slot cannot be divided.
fn half_of(capacity: usize) -> usize {
    capacity.div_ceil(2).max(1)
}

/// The tenants whose files a worker has in hand at one stage.
#[derive(Default)]
pub struct TenantsAtStage(Mutex<State>);

#[derive(Default)]
struct State {
    in_hand: HashMap<String, usize>,
    waiting: HashMap<String, usize>,
    running: Vec<Running>,
    last_number: u64,
    reserved_until: Option<Time>,
}

struct Running {
    number: u64,
    tenant: String,
    /// Stops the work and releases the file.
    stop: CancellationToken,
}

/// What a file does at a stage, until this is dropped.
pub struct Presence {
    tenants: Arc<TenantsAtStage>,
    tenant: String,
    doing: Doing,
}

enum Doing {
    InHand,
    Waiting,
    Running(u64),
}

impl TenantsAtStage {
    /// A file is in hand.
    pub fn take_in_hand(self: &Arc<Self>, tenant: &str) -> Presence {
        *self.state().in_hand.entry(tenant.to_owned()).or_default() += 1;
        self.presence(tenant, Doing::InHand)
    }

    /// A file in hand waits for a slot.
    pub fn wait(self: &Arc<Self>, tenant: &str) -> Presence {
        *self.state().waiting.entry(tenant.to_owned()).or_default() += 1;
        self.presence(tenant, Doing::Waiting)
    }

    /// A file has a slot.
    pub fn run(self: &Arc<Self>, tenant: &str, stop: CancellationToken) -> Presence {
        let mut state = self.state();
        state.last_number += 1;
        let number = state.last_number;
        state.running.push(Running { number, tenant: tenant.to_owned(), stop });
        drop(state);
        self.presence(tenant, Doing::Running(number))
    }

    fn presence(self: &Arc<Self>, tenant: &str, doing: Doing) -> Presence {
        Presence { tenants: self.clone(), tenant: tenant.to_owned(), doing }
    }

    pub fn held(&self, room: usize, now: Time) -> HeldAtStage {
        let state = self.state();
        let in_hand: usize = state.in_hand.values().sum();
        HeldAtStage {
            by_tenant: state.in_hand.clone(),
            capacity: in_hand + room,
            is_reserved: state.reserved_until.is_some_and(|until| now < until),
        }
    }

    /// The tenant that runs in more than half of these slots, if all of them are taken, and whether a file of another is in
    /// hand and waits for one. `None` also while work is being stopped.
    pub fn crowding(&self, slots: usize) -> Option<(String, bool)> {
        let state = self.state();
        if state.running.len() < slots || state.running.iter().any(|running| running.stop.is_cancelled()) {
            return None;
        }
        let mut by_tenant: HashMap<&str, usize> = HashMap::new();
        for running in &state.running {
            *by_tenant.entry(&running.tenant).or_default() += 1;
        }
        let (tenant, _) = by_tenant.into_iter().find(|(_, slots_of)| *slots_of > half_of(slots))?;
        let other_waits = state.waiting.keys().any(|waiting| waiting != tenant);
        Some((tenant.to_owned(), other_waits))
    }

    /// Stops the youngest work of a tenant, and keeps the other half of the slots for others for a while.
    pub fn make_way(&self, tenant: &str, now: Time) {
        let mut state = self.state();
        state.reserved_until = Some(now + to_delta(RESERVED));
        let of_tenant = state.running.iter().filter(|running| running.tenant == tenant);
        if let Some(youngest) = of_tenant.max_by_key(|running| running.number) {
            youngest.stop.cancel();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics while it holds this")
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut state = self.tenants.state();
        let counts = match self.doing {
            Doing::InHand => &mut state.in_hand,
            Doing::Waiting => &mut state.waiting,
            Doing::Running(number) => return state.running.retain(|running| running.number != number),
        };
        if let Some(count) = counts.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Time {
        Time::from_timestamp(1_000_000_000, 0).unwrap()
    }

    fn run(tenants: &Arc<TenantsAtStage>, of: &[&str]) -> Vec<(Presence, CancellationToken)> {
        let start = |tenant: &&str| {
            let stop = CancellationToken::new();
            (tenants.run(tenant, stop.clone()), stop)
        };
        of.iter().map(start).collect()
    }

    #[test]
    fn a_tenant_crowds_a_stage_only_if_all_slots_are_taken_and_more_than_half_are_its_own() {
        let tenants = Arc::new(TenantsAtStage::default());
        let mut running = run(&tenants, &["a", "a", "a"]);
        assert_eq!(tenants.crowding(4), None, "a slot is free");
        running.extend(run(&tenants, &["b"]));
        assert_eq!(tenants.crowding(4), Some(("a".to_owned(), false)));
        let waiting = tenants.wait("b");
        assert_eq!(tenants.crowding(4), Some(("a".to_owned(), true)));
        drop(waiting);
        running.remove(0);
        running.extend(run(&tenants, &["b"]));
        assert_eq!(tenants.crowding(4), None, "half is its own");
        drop(running);
        let _only = run(&tenants, &["a"]);
        assert_eq!(tenants.crowding(1), None, "one slot cannot be divided");
    }

    #[test]
    fn the_youngest_work_makes_way_and_the_half_is_kept_for_a_while() {
        let tenants = Arc::new(TenantsAtStage::default());
        let running = run(&tenants, &["a", "a", "a", "b"]);
        tenants.make_way("a", now());
        let stopped: Vec<bool> = running.iter().map(|(_, stop)| stop.is_cancelled()).collect();
        assert_eq!(stopped, [false, false, true, false]);
        assert_eq!(tenants.crowding(4), None, "its slot is about to be free");
        assert!(tenants.held(0, now()).is_reserved);
        assert!(!tenants.held(0, now() + to_delta(RESERVED)).is_reserved);
    }

    #[test]
    fn a_share_is_cut_to_what_is_missing_to_the_half() {
        let tenants = Arc::new(TenantsAtStage::default());
        let _in_hand: Vec<Presence> = (0..3).map(|_| tenants.take_in_hand("a")).collect();
        let held = tenants.held(5, now());
        let lane = |tenant: &str, user: &str| Lane { tenant: tenant.to_owned(), user: user.to_owned() };
        let mut shares = [(lane("a", "x"), 1), (lane("a", "y"), 2), (lane("b", "z"), 2)];
        held.cut(&mut shares);
        assert_eq!(shares.map(|(_, share)| share), [1, 0, 2]);
        let names = ["a", "b"].map(str::to_owned);
        assert_eq!(held.split(&names), (names.to_vec(), vec![]));
        assert_eq!(tenants.held(3, now()).split(&names), (vec!["b".to_owned()], vec!["a".to_owned()]));
    }

    #[test]
    fn what_has_left_takes_no_memory() {
        let tenants = Arc::new(TenantsAtStage::default());
        let running = run(&tenants, &["a"]);
        drop((tenants.take_in_hand("a"), tenants.wait("a"), running));
        let state = tenants.state();
        assert!(state.in_hand.is_empty() && state.waiting.is_empty() && state.running.is_empty());
    }
}
