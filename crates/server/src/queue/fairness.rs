//! Round robin: claims take turns among the tenants that have files waiting, and among the users of each tenant.
//!
//! Each process has its own rounds and remembers only its last position. The tenants and users that have work are
//! read from the queue's index, by stepping from one to the next. This costs one step for each tenant or user in the
//! claim, however many are waiting and however many files they have.

use std::collections::{HashMap, HashSet};

use crate::records::files::queue::{self, Lane, TenantWalk, UserMet, UserWalk};
use landfall_core::lifecycle::Stage;
use landfall_store::Error;
use landfall_store::Tx;

/// Tenants whose last user is remembered. If there are more, some start again with their first user.
const MAX_REMEMBERED: usize = 10_000;

/// The positions of this process in its rounds.
#[derive(Debug, Default, Clone)]
pub struct Rounds {
    tenants: HashMap<Stage, String>,
    users: HashMap<(Stage, String), String>,
}

impl Rounds {
    /// Remembers the users that had their turn, in order.
    pub fn served(&mut self, stage: Stage, lanes: impl IntoIterator<Item = Lane>) {
        for Lane { tenant, user } in lanes {
            if self.users.len() >= MAX_REMEMBERED
                && let Some(any) = self.users.keys().next().cloned()
            {
                self.users.remove(&any);
            }
            self.tenants.insert(stage, tenant.clone());
            self.users.insert((stage, tenant), user);
        }
    }

    fn after_tenant(&self, stage: Stage) -> &str {
        self.tenants.get(&stage).map_or("", String::as_str)
    }

    fn after_user(&self, stage: Stage, tenant: &str) -> &str {
        self.users.get(&(stage, tenant.to_owned())).map_or("", String::as_str)
    }

    /// The tenants that have work, at most so many at each stage. The tenant that is next in the round comes first.
    pub async fn tenants(
        &self,
        tx: &mut Tx,
        wants: &[(Stage, usize)],
    ) -> Result<HashMap<Stage, Vec<String>>, Error> {
        let mut walks = Vec::with_capacity(2 * wants.len());
        for (stage, most) in wants {
            // Two parts: from the current position to the end, and from the beginning.
            for (part, after) in [self.after_tenant(*stage), ""].into_iter().enumerate() {
                walks.push(TenantWalk { stage: *stage, after, steps: *most, part });
            }
        }
        let found = queue::tenants_waiting(tx, &walks).await?;
        let mut tenants: HashMap<Stage, Vec<String>> = HashMap::new();
        for (stage, most) in wants {
            let mut seen = HashSet::new();
            let in_turn =
                found.iter().filter(|(found_at, _)| found_at == stage.name()).map(|(_, tenant)| tenant);
            let in_turn: Vec<String> =
                in_turn.filter(|tenant| seen.insert(*tenant)).take(*most).cloned().collect();
            if !in_turn.is_empty() {
                tenants.insert(*stage, in_turn);
            }
        }
        Ok(tenants)
    }

    /// The users of these tenants that are next in the round, each with a number of files: `most` in total, divided
    /// evenly among the tenants and then among the users of each tenant.
    pub async fn shares(
        &self,
        tx: &mut Tx,
        stage: Stage,
        tenants: &[String],
        most: usize,
    ) -> Result<Vec<(Lane, usize)>, Error> {
        let users_each = most.div_ceil(tenants.len());
        let mut walks = Vec::with_capacity(2 * tenants.len());
        for (turn, tenant) in tenants.iter().enumerate() {
            let after = self.after_user(stage, tenant);
            walks.push(UserWalk { tenant, after, steps: users_each, turn, part: 0 });
            if !after.is_empty() {
                walks.push(UserWalk { tenant, after: "", steps: users_each, turn, part: 1 });
            }
        }
        let mut found = queue::users_waiting(tx, stage, &walks).await?;
        found.sort_by_key(|met| (met.turn, met.part, -met.steps));
        let mut by_tenant: Vec<Vec<Lane>> = vec![Vec::new(); tenants.len()];
        let mut seen = HashSet::new();
        for UserMet { lane, turn, .. } in found {
            let lanes = &mut by_tenant[usize::try_from(turn).unwrap_or_default()];
            if lanes.len() < users_each && seen.insert(lane.clone()) {
                lanes.push(lane);
            }
        }
        by_tenant.retain(|lanes| !lanes.is_empty());
        Ok(share_out(by_tenant, most))
    }
}

/// Divides `most` evenly among the tenants, and each tenant's part among its users. The first ones get the remainder.
fn share_out(tenants: Vec<Vec<Lane>>, most: usize) -> Vec<(Lane, usize)> {
    let mut shares = Vec::new();
    let parts = even_parts(most, tenants.len());
    for (lanes, part) in tenants.into_iter().zip(parts) {
        let each = even_parts(part, lanes.len());
        shares.extend(lanes.into_iter().zip(each).filter(|(_, share)| *share > 0));
    }
    shares
}

fn even_parts(whole: usize, parts: usize) -> impl Iterator<Item = usize> {
    (0..parts).map(move |number| whole / parts + usize::from(number < whole % parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(tenant: &str, user: &str) -> Lane {
        Lane { tenant: tenant.to_owned(), user: user.to_owned() }
    }

    fn shares(tenants: &[(&str, &[&str])], most: usize) -> Vec<(String, usize)> {
        let lanes = tenants
            .iter()
            .map(|(tenant, users)| users.iter().map(|user| lane(tenant, user)).collect())
            .collect();
        share_out(lanes, most).into_iter().map(|(lane, share)| (lane.user, share)).collect()
    }

    #[test]
    fn a_tenant_with_many_users_gets_no_more_than_one_with_a_single_user() {
        let shares = shares(&[("acme", &["a", "b", "c"]), ("solo", &["s"])], 6);
        assert_eq!(shares, [("a", 1), ("b", 1), ("c", 1), ("s", 3)].map(|(u, n)| (u.to_owned(), n)));
    }

    #[test]
    fn one_slot_goes_to_the_one_whose_turn_it_is() {
        assert_eq!(shares(&[("acme", &["a", "b"]), ("solo", &["s"])], 1), [("a".to_owned(), 1)]);
    }

    #[test]
    fn all_that_there_is_goes_to_the_only_one() {
        assert_eq!(shares(&[("solo", &["s"])], 72), [("s".to_owned(), 72)]);
    }
}
