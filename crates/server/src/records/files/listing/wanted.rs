//! Which files are wanted, as conditions on the rows of `files` and `listed_files`.

use landfall_api::file_queries::FileFilter;
use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::failure::Code;
use landfall_core::lifecycle::Status;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_core::states::OperationAction;
use landfall_store::{Arg, places};
use uuid::Uuid;

/// Which files are wanted. What is `None` or empty matches all.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub reach: Reach,
    /// The name of the user, of whatever tenant.
    pub user: Option<String>,
    pub states: Vec<Status>,
    /// The codes that the error may have.
    pub codes: Vec<String>,
    pub batch: Option<Uuid>,
    /// The MD5s that the bytes may have.
    pub md5s: Option<Vec<String>>,
    /// Part of the name.
    pub part: Option<String>,
    /// Registered at this time or later, and before that one.
    pub created_after: Option<Time>,
    pub created_before: Option<Time>,
    /// Registered at this time or earlier, for an operation that began then.
    pub existed_at: Option<Time>,
    pub has_warnings: bool,
}

impl Wanted {
    /// All files of these owners.
    pub const fn all_of(reach: Reach) -> Self {
        Self {
            reach,
            user: None,
            states: Vec::new(),
            codes: Vec::new(),
            batch: None,
            md5s: None,
            part: None,
            created_after: None,
            created_before: None,
            existed_at: None,
            has_warnings: false,
        }
    }

    /// What a client asks for. Whose files these may be, and the owner, are the caller's to decide.
    pub fn new(filter: &FileFilter, reach: Reach) -> Result<Self, Refusal> {
        let codes = filter.code.as_ref().map(|codes| codes.0.clone()).unwrap_or_default();
        if let Some(code) = codes.iter().find(|code| Code::parse(code).is_none()) {
            let message = format!("code: {code:?} is not the code of a failure");
            return Err(Refusal::new(RefusalCode::InvalidRequest, message));
        }
        let mut states = filter.status.as_ref().map(|states| states.0.clone()).unwrap_or_default();
        states.sort_unstable();
        states.dedup();
        let batch = filter.batch_id.as_deref().map(Uuid::parse_str).transpose();
        Ok(Self {
            states,
            codes,
            batch: batch.map_err(|_| Refusal::no_such_batch())?,
            part: filter.q.clone(),
            created_after: filter.created_after,
            created_before: filter.created_before,
            has_warnings: filter.warnings == Some(true),
            ..Self::all_of(reach)
        })
    }

    /// Only those in a state that allows an action.
    #[must_use]
    pub fn that_allow(mut self, action: OperationAction) -> Self {
        let mut states = action.states();
        states.retain(|status| self.states.is_empty() || self.states.contains(status));
        if states.is_empty() {
            // No list has these. Without any state it would have all.
            states.push(Status::Deleted);
        }
        self.states = states;
        self
    }

    /// Whether the kept totals have the answer to how many these are.
    pub fn is_counted(&self) -> bool {
        self.user.is_none()
            && self.codes.is_empty()
            && self.batch.is_none()
            && self.md5s.is_none()
            && self.part.is_none()
            && self.created_after.is_none()
            && self.created_before.is_none()
            && self.existed_at.is_none()
            && !self.has_warnings
    }

    /// The condition on the states alone.
    pub(super) fn in_states(&self) -> Option<String> {
        let names: Vec<String> = self.states.iter().map(|status| format!("'{status}'")).collect();
        (!names.is_empty()).then(|| format!("status IN ({})", names.join(", ")))
    }

    /// The conditions on what `listed_files` has as well as `files`.
    pub(super) fn of_lists(&self, arguments: &mut Vec<Arg>) -> Vec<String> {
        let mut conditions = Vec::new();
        let mut add = |before: &str, value: Arg, after: &str| {
            arguments.push(value);
            conditions.push(format!("{before}${}{after}", arguments.len()));
        };
        if let Some(user) = &self.user {
            add("user_id = ", user.into(), "");
        }
        if let Some(part) = &self.part {
            add("LOWER(file_name) LIKE ", contains(part).into(), " ESCAPE '!'");
        }
        conditions
    }

    /// The conditions on what only `files` has, except the states.
    pub(super) fn of_files(&self, arguments: &mut Vec<Arg>) -> Vec<String> {
        let mut conditions = Vec::new();
        if let Some(batch) = self.batch {
            arguments.push(batch.into());
            conditions.push(format!("batch_id = ${}", arguments.len()));
        }
        if !self.codes.is_empty() {
            let codes = places(&self.codes, arguments);
            conditions.push(format!("error_code IS NOT NULL AND error_code IN ({codes})"));
        }
        if self.has_warnings {
            conditions.push("warning_count > 0".to_owned());
        }
        conditions
    }

    /// The condition on the time of registration.
    pub(super) fn created(&self, arguments: &mut Vec<Arg>) -> Vec<String> {
        let bounds = [
            ("created_at >= ", self.created_after),
            ("created_at < ", self.created_before),
            ("created_at <= ", self.existed_at),
        ];
        let mut conditions = Vec::new();
        for (condition, time) in bounds {
            if let Some(time) = time {
                arguments.push(time.into());
                conditions.push(format!("{condition}${}", arguments.len()));
            }
        }
        conditions
    }
}

/// A pattern for `LIKE` that matches exactly these characters.
fn contains(part: &str) -> String {
    let literal =
        part.to_lowercase().replace('!', "!!").replace('%', "!%").replace('_', "!_").replace('\0', "");
    format!("%{literal}%")
}
