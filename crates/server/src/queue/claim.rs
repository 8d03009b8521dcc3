//! Claims due files from the queue, many at once, with a token that only the new holder knows.
//!
//! Claims take turns among the tenants and users that have work. A user's own files are ordered by priority and then
//! by age. A tenant that has half of what a worker has in hand waits for the others (`tenant_share.rs`). From a stage that is paused, at its rate limit, or in need of a service that is down, fewer files or none
//! are claimed.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::breaker::BreakerConfig;
use super::fairness::Rounds;
use super::gates::{CallRounds, Gates};
use super::isolation::Next;
use super::limits::RateLimits;
use super::tenant_share::{Held, HeldAtStage};
use crate::process::workers;
use crate::records::effects::Counts;
use crate::records::file::File;
use crate::records::files::queue::{self, Lane};
use crate::records::moves::{self, Change, Move};
use landfall_core::actor::Actor;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status, Transition};
use landfall_core::service::Service;
use landfall_store::Error;
use landfall_store::{Durability, Rows, Tx, Write};

/// The most files that one transaction marks as due once their time has come.
const MAX_MADE_DUE: usize = 256;
/// The most users at their rate limit that one claim skips to find others.
const MAX_PASSED_OVER: usize = 256;

/// Claims up to so many files for each stage.
pub struct ClaimDue {
    pub worker: Uuid,
    pub worker_name: String,
    /// Every stage of this worker, also one without room: its calls count too.
    pub wants: Vec<Want>,
    /// Fresh for each claim, so that no two attempts at a file ever share one.
    pub token: Uuid,
    /// What each tenant has in hand.
    pub held: Held,
    /// The position of this process in its rounds. The caller advances it with the result.
    pub rounds: Arc<Rounds>,
    pub limits: RateLimits,
    pub breaker: BreakerConfig,
    /// Whether to claim many files, one that must be worked on alone, or none and only to look.
    pub next: Next,
    /// Whether this worker makes way for a file that must be worked on alone.
    pub makes_way: bool,
    pub now: Time,
}

/// How many files of a stage there is room for, and the services that the stage needs.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    pub stage: Stage,
    pub room: usize,
    pub services: &'static [Service],
}

#[derive(Debug)]
pub enum Claims {
    Taken(Taken),
    /// This worker was declared dead. It may claim nothing more under its id.
    WorkerGone,
}

#[derive(Debug, Default)]
pub struct Taken {
    pub files: Vec<File>,
    /// The lanes that had their turn, in order.
    pub served: Vec<(Stage, Vec<Lane>)>,
    pub paused: Vec<Stage>,
    /// The rounds in which the calls of these files begin.
    pub rounds: CallRounds,
    /// Whether a file waits that must be worked on alone.
    pub one_waits_alone: bool,
    /// When something that is blocked now may be claimed.
    pub poll_again_at: Option<Time>,
}

impl Write for ClaimDue {
    type Output = Claims;

    fn durability(&self) -> Durability {
        // A power cut that loses the claim also ends the process that claimed.
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<Claims, Error> {
        let mut gates = Gates::load(tx, self.breaker, self.now).await?;
        if gates.some_have_become_due {
            queue::make_due(tx, MAX_MADE_DUE, self.now).await?;
        }
        let mut taken = Taken { paused: gates.paused.clone(), ..Taken::default() };
        let open: Vec<Want> = self.wants.iter().copied().filter(|want| gates.is_open(want)).collect();
        // Also at a stage that is full: the worker makes way for it.
        taken.one_waits_alone = gates.one_waits_alone(&open);
        let wants: Vec<Want> = open.iter().copied().filter(|want| want.room > 0).collect();
        if wants.is_empty() || self.next == Next::Nothing {
            return Ok(Claims::Taken(taken));
        }
        if self.next == Next::OneAlone {
            return self.claim_alone(tx, gates, &wants, taken).await;
        }
        let tenants = self.rounds.tenants(tx, &self.most_tenants(&wants)).await?;
        if tenants.is_empty() {
            return Ok(Claims::Taken(taken));
        }
        if !workers::hold(tx, self.worker).await? {
            return Ok(Claims::WorkerGone);
        }
        gates.hold_circuits(tx, &wants).await?;
        for want in wants {
            let Want { stage, room, services } = want;
            let Some(tenants) = tenants.get(&stage) else { continue };
            let most = gates.allow(tx, want, &self.wants, &self.limits, self.breaker, self.now).await?;
            let most = most.map_or(room, |most| most.min(room));
            if most == 0 || self.makes_way && gates.one_alone_probes_first(tx, want, &open, self.now).await? {
                continue;
            }
            let (mut shares, mut files) = (Vec::new(), Vec::new());
            for in_turn in self.turns(stage, tenants) {
                shares = self.shares(tx, &mut gates, stage, &in_turn, most).await?;
                self.cut(stage, tenants, &mut shares);
                let at = gates.claim_time(self.now);
                files = if gates.probes(services) {
                    self.take_probes(tx, stage, &shares, at).await?
                } else {
                    self.take(tx, stage, &shares, at).await?
                };
                if !files.is_empty() {
                    break;
                }
            }
            let files = in_turn(files, &shares);
            gates.took(stage, &self.limits, &files, self.now);
            taken.served.push((stage, shares.into_iter().map(|(lane, _)| lane).collect()));
            taken.files.extend(files);
        }
        taken.poll_again_at = gates.poll_again_at;
        taken.rounds = gates.rounds();
        gates.write(tx, self.now).await?;
        for file in &taken.files {
            if let Some(waited) = self.waited(file) {
                tx.hook::<Counts>().waited(file.next_stage, waited);
            }
        }
        Ok(Claims::Taken(taken))
    }
}

impl ClaimDue {
    /// Claims the file that has waited the longest of those that must be worked on alone.
    async fn claim_alone(
        &self,
        tx: &mut Tx,
        mut gates: Gates,
        wants: &[Want],
        mut taken: Taken,
    ) -> Result<Claims, Error> {
        if !workers::hold(tx, self.worker).await? {
            return Ok(Claims::WorkerGone);
        }
        gates.hold_circuits(tx, wants).await?;
        let mut waiting = Vec::new();
        for want in wants {
            let since = queue::one_alone_since(tx, want.stage, self.now).await?;
            waiting.extend(since.map(|since| (since, *want)));
        }
        waiting.sort_by_key(|(since, _)| *since);
        for (_, want) in waiting {
            let stage = want.stage;
            let most = gates.allow(tx, want, &self.wants, &self.limits, self.breaker, self.now).await?;
            if most == Some(0) {
                continue;
            }
            let Some((file, lane)) = queue::lock_alone(tx, stage, self.now).await? else { continue };
            if let Some(limit) = self.limits.of_users_at(stage) {
                gates.hold_users(tx, std::iter::once(&lane)).await?;
                if gates.allow_user(limit, &lane, self.now) == 0 {
                    continue;
                }
            }
            taken.files = self.claim(tx, stage, vec![file], gates.claim_time(self.now)).await?;
            gates.took(stage, &self.limits, &taken.files, self.now);
            break;
        }
        taken.poll_again_at = gates.poll_again_at;
        taken.rounds = gates.rounds();
        gates.write(tx, self.now).await?;
        Ok(Claims::Taken(taken))
    }

    /// Claims the files of each lane that have waited the longest, to probe a service with them.
    async fn take_probes(
        &self,
        tx: &mut Tx,
        stage: Stage,
        shares: &[(Lane, usize)],
        at: Time,
    ) -> Result<Vec<File>, Error> {
        let mut due = Vec::new();
        for (lane, share) in shares.iter().filter(|(_, share)| *share > 0) {
            due.extend(queue::lock_longest_waiting(tx, stage, lane, *share).await?);
        }
        self.claim(tx, stage, due, at).await
    }

    /// The most tenants that can have their turn at each stage, and one more that shows that others wait.
    fn most_tenants(&self, wants: &[Want]) -> Vec<(Stage, usize)> {
        let passed_over = |stage| if self.limits.of_users_at(stage).is_some() { MAX_PASSED_OVER } else { 0 };
        let at_half = |stage| self.held.get(&stage).map_or(0, HeldAtStage::at_half);
        let most = |want: &Want| want.room + passed_over(want.stage) + at_half(want.stage) + 1;
        wants.iter().map(|want| (want.stage, most(want))).collect()
    }

    /// The tenants that have their turn, and those that have it if no file of the first can be claimed.
    fn turns(&self, stage: Stage, tenants: &[String]) -> Vec<Vec<String>> {
        let Some(held) = self.held.get(&stage) else { return vec![tenants.to_vec()] };
        let (first, at_half) = held.split(tenants);
        let at_half = if held.is_reserved { Vec::new() } else { at_half };
        [first, at_half].into_iter().filter(|turn| !turn.is_empty()).collect()
    }

    /// While several tenants wait, none gets more than what is missing to its half.
    fn cut(&self, stage: Stage, tenants: &[String], shares: &mut [(Lane, usize)]) {
        let Some(held) = self.held.get(&stage) else { return };
        let (below_half, _) = held.split(tenants);
        let is_last_resort = shares.iter().any(|(lane, _)| !below_half.contains(&lane.tenant));
        if (tenants.len() > 1 || held.is_reserved) && !is_last_resort {
            held.cut(shares);
        }
    }

    /// The lanes that are next in the round, each with the number of files that it may have.
    async fn shares(
        &self,
        tx: &mut Tx,
        gates: &mut Gates,
        stage: Stage,
        tenants: &[String],
        most: usize,
    ) -> Result<Vec<(Lane, usize)>, Error> {
        let Some(limit) = self.limits.of_users_at(stage) else {
            return self.rounds.shares(tx, stage, &tenants[..tenants.len().min(most)], most).await;
        };
        let mut shares = self.rounds.shares(tx, stage, tenants, most + MAX_PASSED_OVER).await?;
        gates.hold_users(tx, shares.iter().map(|(lane, _)| lane)).await?;
        for (lane, share) in &mut shares {
            *share = gates.allow_user(limit, lane, self.now);
        }
        let having_some = shares.iter().filter(|(_, share)| *share > 0).count();
        let (each, mut left) = (most.div_ceil(having_some.max(1)), most);
        // A lane after the last one that there was room for has not had its turn.
        let mut reached = 0;
        for (_, share) in &mut shares {
            if left == 0 {
                break;
            }
            *share = each.min(*share).min(left);
            left -= *share;
            reached += 1;
        }
        shares.truncate(reached);
        Ok(shares)
    }

    /// Claims each lane's share of files.
    async fn take(
        &self,
        tx: &mut Tx,
        stage: Stage,
        shares: &[(Lane, usize)],
        at: Time,
    ) -> Result<Vec<File>, Error> {
        let mut by_share: BTreeMap<usize, Vec<&Lane>> = BTreeMap::new();
        for (lane, share) in shares.iter().filter(|(_, share)| *share > 0) {
            by_share.entry(*share).or_default().push(lane);
        }
        let mut files = Vec::new();
        for (share, lanes) in by_share {
            for lanes in lanes.chunks(Rows::MAX) {
                let due = queue::lock_first(tx, stage, lanes, share).await?;
                files.extend(self.claim(tx, stage, due, at).await?);
            }
        }
        Ok(files)
    }

    /// Claims files that the transaction has locked.
    async fn claim(&self, tx: &mut Tx, stage: Stage, due: Vec<Uuid>, at: Time) -> Result<Vec<File>, Error> {
        let moves = due.into_iter().map(|file| Move {
            file,
            from: Status::Queued,
            passed: Vec::new(),
            transition: Transition::Claim(stage),
            change: Change::Claim { token: self.token, worker: self.worker },
            worker: Some(self.worker_name.clone()),
            actor: Actor::worker(&self.worker_name),
            data: None,
        });
        let moved = moves::apply(tx, moves.collect(), at).await?;
        Ok(moved.into_iter().flatten().filter_map(|moved| moved.file).collect())
    }

    /// How many seconds a file has waited, if this is its first claim since it was confirmed or a user retried it.
    fn waited(&self, file: &File) -> Option<f64> {
        let is_first = file.attempt == 1
            && file.retry_count == 0
            && file.lost_workers == 0
            && self.limits.first_stage.is_none_or(|first| file.next_stage == first);
        let since = file.confirmed_at.max(file.retried_at).filter(|_| is_first)?;
        Some((self.now - since).to_std().unwrap_or_default().as_secs_f64())
    }
}

/// The files in the order in which they begin: each lane's first file, then each lane's second file, and so on.
fn in_turn(files: Vec<File>, shares: &[(Lane, usize)]) -> Vec<File> {
    let place = |file: &File| {
        shares.iter().position(|(lane, _)| lane.user == file.user_id && lane.tenant == file.tenant_id)
    };
    let mut files: Vec<(Option<usize>, File)> = files.into_iter().map(|file| (place(&file), file)).collect();
    files.sort_by_key(|(lane, file)| (*lane, file.priority, file.confirmed_at, file.id));
    let (mut rank, mut last) = (0, None);
    let mut ranked: Vec<(usize, Option<usize>, File)> = Vec::with_capacity(files.len());
    for (lane, file) in files {
        rank = if last == Some(lane) { rank + 1 } else { 0 };
        last = Some(lane);
        ranked.push((rank, lane, file));
    }
    ranked.sort_by_key(|(rank, lane, _)| (*rank, *lane));
    ranked.into_iter().map(|(_, _, file)| file).collect()
}
