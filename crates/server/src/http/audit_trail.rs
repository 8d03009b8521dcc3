//! Writes the audit log: what callers with a role do, and which requests are refused for lack of permission.
//!
//! | request | entry |
//! |---|---|
//! | an administrator or operator changes something, other than to upload files of their own | before it begins, and again with its outcome |
//! | an administrator or operator reads what is not their own | once in ten minutes for the same thing |
//! | any request that is refused for lack of permission, or for a wrong credential | one, up to a limit for each address |
//!
//! The extractor of the caller knows who asks, and the layer around all routes how it ended: they share the [`Trail`] in the
//! request's extensions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method};
use axum::middleware::Next;
use axum::response::Response;
use chrono::TimeDelta;
use sha2::{Digest, Sha256};
use url::form_urlencoded;
use uuid::Uuid;

use super::REQUEST_ID;
use super::client_address::ClientAddress;
use super::error::{ApiError, NotPermitted};
use super::per_minute::PerMinute;
use super::permissions::operation_of;
use crate::app::App;
use crate::auth::Identity;
use crate::records::audit_log::{AuditActor, End, Entry, Record};
use crate::records::{batch, file};
use crate::telemetry::metrics as counted;
use landfall_core::caller::{Caller, KeyScope, Role};
use landfall_core::clock::Time;
use landfall_core::refusal::RefusalCode;
use landfall_core::states::AuditOutcome;
use landfall_store::Error;

/// The same read of the same caller is written down no more often than this.
const BETWEEN_READS: TimeDelta = TimeDelta::minutes(10);
/// Reads that are remembered for that.
const MAX_READS: usize = 10_000;
/// Refusals of one address that are written down within a minute. The others are only counted.
const REFUSALS_PER_MINUTE: u32 = 60;
/// What is kept of a path, which a client may make as long as a header may be.
const MAX_PATH_LENGTH: usize = 500;

/// What is known of a request, for its entry.
#[derive(Clone, Default)]
pub struct Trail(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// As it was before a nested route took a part of its path.
    request: Entry,
    actor: Option<AuditActor>,
    /// The entry of an action that has begun.
    begun: Option<i64>,
}

impl Trail {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes who asks. An action of a caller with a role is written down before it begins.
pub async fn note_caller(parts: &Parts, app: &App, identity: &Identity) -> Result<(), ApiError> {
    // A request of the tests of a part has none.
    let Some(trail) = parts.extensions.get::<Trail>() else { return Ok(()) };
    let Caller { tenant, user, role } = &identity.caller;
    let actor = AuditActor {
        tenant: tenant.clone(),
        user: user.clone(),
        role: role.name().to_owned(),
        credential: identity.credential.name(),
    };
    let mut entry = {
        let mut known = trail.known();
        if known.begun.is_some() {
            return Ok(());
        }
        known.actor = Some(actor.clone());
        known.request.clone()
    };
    let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let scope = operation_of(&parts.method, route).scope;
    if *role == Role::Member || parts.method.is_safe() || scope == KeyScope::Read {
        return Ok(());
    }
    let target = target(app, route, &entry.path).await?;
    // Files that they bring in themselves have their own history.
    let is_own = target.1.is_none() || target == (Some(tenant.clone()), Some(user.clone()));
    if scope == KeyScope::Upload && is_own {
        return Ok(());
    }
    entry.actor = Some(actor);
    (entry.target_tenant, entry.target_user) = target;
    let record =
        Record { entry, outcome: AuditOutcome::Started, status: None, code: None, now: app.clock.now() };
    let begun = app.db.write(record).await?;
    trail.known().begun = Some(begun);
    Ok(())
}

fn entry(method: &Method, path: &str, headers: &HeaderMap, extensions: &Extensions) -> Entry {
    let route = extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    Entry {
        actor: None,
        address: extensions.get::<ClientAddress>().map(|ClientAddress(address)| address.to_string()),
        request_id: headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).map(str::to_owned),
        action: operation_of(method, route).name.to_owned(),
        method: method.to_string(),
        path: path.chars().take(MAX_PATH_LENGTH).collect(),
        target_tenant: None,
        target_user: None,
    }
}

/// A part of a path, as the handler sees it: a caller may write its characters as `%61`.
fn decoded(part: &str) -> String {
    form_urlencoded::parse(part.as_bytes()).map(|(name, _)| name.into_owned()).next().unwrap_or_default()
}

/// Whether a query may ask for more than the caller's own.
fn is_wide(query: &str) -> bool {
    form_urlencoded::parse(query.as_bytes())
        .any(|(name, value)| (name == "scope" && value != "own") || name == "fileIds")
}

/// Whose it is that the path names.
async fn target(app: &App, route: &str, path: &str) -> Result<(Option<String>, Option<String>), Error> {
    let value = |name: &str| {
        let position = route.split('/').position(|part| part == name)?;
        path.split('/').nth(position).map(decoded)
    };
    if let Some(tenant) = value("{tenantId}") {
        return Ok((Some(tenant.chars().take(MAX_PATH_LENGTH).collect()), None));
    }
    let id = |name: &str| value(name).and_then(|text| Uuid::parse_str(&text).ok());
    let owner = if let Some(id) = id("{fileId}").or_else(|| id("{uploadId}")) {
        file::owner_of(&mut app.db.read().await?, id).await?
    } else if let Some(id) = id("{batchId}") {
        batch::owner_of(&mut app.db.read().await?, id).await?
    } else {
        None
    };
    Ok(owner.map_or((None, None), |owner| (Some(owner.tenant), Some(owner.user))))
}

/// What the layer remembers between requests.
#[derive(Clone)]
pub struct AuditTrail {
    app: App,
    /// When each read was last written down.
    reads: Arc<Mutex<HashMap<String, Time>>>,
    refusals: PerMinute,
}

impl AuditTrail {
    pub fn new(app: App) -> Self {
        let refusals = PerMinute::new(app.clock.clone(), REFUSALS_PER_MINUTE);
        Self { app, reads: Arc::default(), refusals }
    }

    /// Whether this read was not written down lately.
    fn is_new_read(&self, entry: &Entry, query: &str, now: Time) -> bool {
        let actor = entry.actor.as_ref();
        // A query may be long.
        let query = hex::encode(Sha256::digest(query));
        let what = format!(
            "{:?} {} {} {query}",
            actor.map(|actor| (&actor.tenant, &actor.user, &actor.credential)),
            entry.action,
            entry.path
        );
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if reads.get(&what).is_some_and(|at| now - *at < BETWEEN_READS && now >= *at) {
            return false;
        }
        if reads.len() >= MAX_READS {
            reads.retain(|_, at| now - *at < BETWEEN_READS);
        }
        if reads.len() >= MAX_READS {
            // Rather an entry too many than a read that is missing.
            reads.clear();
        }
        reads.insert(what, now);
        true
    }

    /// Writes an entry. A request is not undone because its entry cannot be written: the log has it then.
    async fn write(&self, entry: Entry, outcome: AuditOutcome, status: u16, code: Option<RefusalCode>) {
        let (code, now) = (code.map(RefusalCode::code), self.app.clock.now());
        let record = Record { entry: entry.clone(), outcome, status: Some(status), code, now };
        if let Err(error) = self.app.db.write(record).await {
            tracing::error!(%error, ?entry, status, "an entry of the audit log could not be written");
        }
    }

    async fn end(&self, begun: i64, outcome: AuditOutcome, status: u16, code: Option<RefusalCode>) {
        let end = End { id: begun, outcome, status, code: code.map(RefusalCode::code) };
        if let Err(error) = self.app.db.write(end).await {
            tracing::error!(%error, begun, status, "the end of an action could not be written to the audit log");
        }
    }
}

/// The layer around all routes.
pub async fn follow(State(audit): State<AuditTrail>, mut request: Request, next: Next) -> Response {
    let trail = Trail::default();
    let mut entry = entry(request.method(), request.uri().path(), request.headers(), request.extensions());
    trail.known().request = entry.clone();
    request.extensions_mut().insert(trail.clone());
    let query = request.uri().query().unwrap_or_default().to_owned();
    let is_safe = request.method().is_safe();
    let address = request.extensions().get::<ClientAddress>().copied();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    let response = next.run(request).await;
    let status = response.status().as_u16();
    let code = response.extensions().get::<RefusalCode>().copied();
    let is_wrong = matches!(
        code,
        Some(RefusalCode::InvalidToken | RefusalCode::InvalidTicket | RefusalCode::InvalidLink)
    );
    let is_refused = is_wrong || response.extensions().get::<NotPermitted>().is_some();
    let Known { actor, begun, .. } = std::mem::take(&mut *trail.known());
    let role = actor.as_ref().map(|actor| actor.role.clone());
    entry.actor = actor;
    let outcome = match status {
        _ if is_refused => AuditOutcome::Refused,
        ..400 => AuditOutcome::Done,
        _ => AuditOutcome::Failed,
    };
    if let Some(begun) = begun {
        audit.end(begun, outcome, status, code).await;
    } else if is_refused {
        let limited = address.is_some_and(|ClientAddress(address)| audit.refusals.count(address).is_some());
        if limited {
            counted::audit_entry_dropped();
        } else {
            audit.write(entry, outcome, status, code).await;
        }
    } else if is_safe && status < 400 && role.is_some_and(|role| role != Role::Member.name()) {
        let is_administration = route.starts_with("/api/v2/admin/");
        // Without an answer of the database the entry lacks its target, and is written rather than left out.
        let target = target(&audit.app, route, &entry.path).await;
        let is_anothers = match &target {
            Ok((tenant, user)) => {
                let is_own = |actor: &AuditActor| {
                    Some(&actor.tenant) == tenant.as_ref() && Some(&actor.user) == user.as_ref()
                };
                user.is_some() && !entry.actor.as_ref().is_some_and(is_own)
            }
            Err(_) => true,
        };
        (entry.target_tenant, entry.target_user) = target.unwrap_or_default();
        if (is_administration || is_wide(&query) || is_anothers)
            && audit.is_new_read(&entry, &query, audit.app.clock.now())
        {
            audit.write(entry, outcome, status, code).await;
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_another_way_is_recognised() {
        assert_eq!(decoded("0199%61a00"), "0199aa00");
        assert_eq!(decoded(""), "");
        for wide in ["scope=all", "limit=1&scope=tenant", "sc%6Fpe=al%6C"] {
            assert!(is_wide(wide), "{wide}");
        }
        assert!(!is_wide("scope=own&limit=1") && !is_wide("q=scope%3Dall") && !is_wide(""));
    }
}
