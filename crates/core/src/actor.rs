//! Who or what caused a change.

use crate::caller::{Caller, TenantUser};
use crate::names::named_enum;

named_enum! {
    pub enum ActorKind {
        /// The owner of the file.
        User = "user",
        /// A process that does the stages.
        Worker = "worker",
        /// A maintenance job.
        Sweep = "sweep",
        /// A user with another user's file.
        Administrator = "administrator",
        /// Landfall itself, outside of stages and jobs.
        System = "system",
    }
}

/// Who or what caused a change, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub kind: ActorKind,
    pub name: String,
}

impl Actor {
    pub fn new(kind: ActorKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }

    pub fn worker(name: impl Into<String>) -> Self {
        Self::new(ActorKind::Worker, name)
    }

    /// A maintenance job, by its name.
    pub fn sweep(name: impl Into<String>) -> Self {
        Self::new(ActorKind::Sweep, name)
    }

    pub fn system(name: impl Into<String>) -> Self {
        Self::new(ActorKind::System, name)
    }

    /// A user who does something with a file of this owner's.
    pub fn user(user: &TenantUser, tenant: &str, owner: &str) -> Self {
        let is_owner = user.tenant == tenant && user.user == owner;
        Self::new(if is_owner { ActorKind::User } else { ActorKind::Administrator }, user.user.clone())
    }

    /// The caller, with a file of this owner's.
    pub fn caller(caller: &Caller, tenant: &str, owner: &str) -> Self {
        Self::user(&caller.owner(), tenant, owner)
    }
}
