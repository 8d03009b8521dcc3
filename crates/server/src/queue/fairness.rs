//! Round robin: claims take turns among the tenants that have files waiting, and among the users of each tenant.
//!
//! Each process has its own rounds and remembers only its last position. The tenants and users that have work are
//! read from the queue's index, by stepping from one to the next. This costs one step for each tenant or user in the
//! claim, however many are waiting and however many files they have.

use std::collections::{HashMap, HashSet};

use landfall_core::lifecycle::Stage;
use landfall_store::Error;
use landfall_store::{Rows, Tx, args};

/// Tenants whose last user is remembered. If there are more, some start again with their first user.
const MAX_REMEMBERED: usize = 10_000;

/// The positions of this process in its rounds.
#[derive(Debug, Default, Clone)]
pub struct Rounds {
    tenants: HashMap<Stage, String>,
    users: HashMap<(Stage, String), String>,
}

/// The files of one user that wait at a stage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lane {
    pub tenant: String,
    pub user: String,
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
        let mut starts = Rows::default();
        for (stage, most) in wants {
            // Two parts: from the current position to the end, and from the beginning.
            for (part, after) in [self.after_tenant(*stage), ""].into_iter().enumerate() {
                starts.push(args![*stage, after, *most, part]);
            }
        }
        let (values, arguments) = starts.into_values(tx);
        let next = |stage: &str, after: &str| {
            format!(
                "(SELECT tenant_id FROM files
                  WHERE status = 'queued' AND is_due AND next_stage = {stage} AND tenant_id > {after}
                  ORDER BY tenant_id LIMIT 1)"
            )
        };
        let (first, then) = (next("column1", "column2"), next("walk.stage", "walk.tenant"));
        let found: Vec<(String, String)> = tx
            .rows(
                format!(
                    "WITH RECURSIVE walk (stage, tenant, steps, part) AS (
                         SELECT column1, {first}, column3, column4 FROM ({values}) AS starts WHERE column1 IS NOT NULL
                         UNION ALL
                         SELECT stage, {then}, steps - 1, part FROM walk WHERE tenant IS NOT NULL AND steps > 1)
                     SELECT stage, tenant FROM walk WHERE tenant IS NOT NULL ORDER BY part, steps DESC"
                ),
                arguments,
            )
            .await?;
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
        let mut starts = Rows::default();
        for (number, tenant) in tenants.iter().enumerate() {
            let after = self.after_user(stage, tenant);
            starts.push(args![tenant, after, users_each, number, 0]);
            if !after.is_empty() {
                starts.push(args![tenant, "", users_each, number, 1]);
            }
        }
        let next = |tenant: &str, after: &str| {
            format!(
                "(SELECT user_id FROM files
                  WHERE status = 'queued' AND is_due AND next_stage = '{stage}' AND tenant_id = {tenant}
                    AND user_id > {after}
                  ORDER BY user_id LIMIT 1)"
            )
        };
        let (first, then) = (next("column1", "column2"), next("walk.tenant", "walk.user_id"));
        let mut found: Vec<(String, String, i64, i64, i64)> = Vec::new();
        for batch in starts.portions() {
            let (values, arguments) = batch.into_values(tx);
            let sql = format!(
                "WITH RECURSIVE walk (tenant, user_id, steps, turn, part) AS (
                     SELECT column1, {first}, column3, column4, column5 FROM ({values}) AS starts
                     WHERE column1 IS NOT NULL
                     UNION ALL
                     SELECT tenant, {then}, steps - 1, turn, part FROM walk WHERE user_id IS NOT NULL AND steps > 1)
                 SELECT tenant, user_id, steps, turn, part FROM walk WHERE user_id IS NOT NULL"
            );
            found.extend(tx.rows::<(String, String, i64, i64, i64)>(sql, arguments).await?);
        }
        found.sort_by_key(|(_, _, steps, turn, part)| (*turn, *part, -*steps));
        let mut by_tenant: Vec<Vec<Lane>> = vec![Vec::new(); tenants.len()];
        let mut seen = HashSet::new();
        for (tenant, user, _, turn, _) in found {
            let lane = Lane { tenant, user };
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
