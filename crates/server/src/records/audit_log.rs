//! The audit log: what administrators and operators did, and which requests were refused for lack of permission.
//!
//! An action that changes something is written down before it begins, as `started`, and again when it has ended. So there is
//! none that the log does not have, whatever crashes.

use landfall_api::audit_log::AuditEntry;
use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::states::AuditOutcome;
use landfall_store::{Arg, Error, Tx, Write, args};

/// A request, as far as the log has it.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    pub actor: Option<AuditActor>,
    pub address: Option<String>,
    pub request_id: Option<String>,
    /// The operation of the API.
    pub action: String,
    pub method: String,
    pub path: String,
    pub target_tenant: Option<String>,
    pub target_user: Option<String>,
}

/// Who asked.
#[derive(Debug, Clone)]
pub struct AuditActor {
    pub tenant: String,
    pub user: String,
    pub role: String,
    pub credential: String,
}

/// Writes an entry. Returns its id.
pub struct Record {
    pub entry: Entry,
    pub outcome: AuditOutcome,
    pub status: Option<u16>,
    pub code: Option<&'static str>,
    pub now: Time,
}

impl Write for Record {
    type Output = i64;

    async fn apply(&self, tx: &mut Tx) -> Result<i64, Error> {
        let Entry { actor, address, request_id, action, method, path, target_tenant, target_user } =
            &self.entry;
        let (tenant, user) = actor.as_ref().map_or(("", ""), |actor| (&actor.tenant, &actor.user));
        tx.number(
            "INSERT INTO audit_log (at, actor_tenant, actor_user, actor_role, credential, address, request_id, action, method,
                                    path, target_tenant, target_user, outcome, status, code)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING id",
            args![
                self.now,
                tenant,
                user,
                actor.as_ref().map(|actor| actor.role.clone()),
                actor.as_ref().map(|actor| actor.credential.clone()),
                address.clone(),
                request_id.clone(),
                action,
                method,
                path,
                target_tenant.clone(),
                target_user.clone(),
                self.outcome,
                self.status.map(i64::from),
                self.code.map(str::to_owned),
            ],
        )
        .await
    }
}

/// Writes down how an action ended.
pub struct End {
    pub id: i64,
    pub outcome: AuditOutcome,
    pub status: u16,
    pub code: Option<&'static str>,
}

impl Write for End {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let sql = "UPDATE audit_log SET outcome = $2, status = $3, code = $4 WHERE id = $1";
        let code = self.code.map(str::to_owned);
        tx.execute(sql, args![self.id, self.outcome, i64::from(self.status), code]).await.map(drop)
    }
}

/// Which entries are wanted. A field that is `None` matches everything.
#[derive(Debug, Clone)]
pub struct Filter {
    /// A tenant's entries are those of its users, and those about what belongs to it.
    pub reach: Reach,
    pub actor: Option<String>,
    pub action: Option<String>,
    pub outcome: Option<AuditOutcome>,
    pub address: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
}

/// A page of the entries, newest first, before `before`.
pub async fn list(tx: &mut Tx, filter: &Filter, before: i64, limit: i64) -> Result<Vec<AuditEntry>, Error> {
    let mut arguments = args![before, limit];
    let mut condition = String::from("id < $1");
    let mut and = |text: &str, value: Arg| {
        arguments.push(value);
        condition.push_str(&format!(" AND {}", text.replace('?', &format!("${}", arguments.len()))));
    };
    match &filter.reach {
        Reach::All => {}
        Reach::Tenant(tenant) => and("(actor_tenant = ? OR target_tenant = ?)", tenant.into()),
        Reach::User(owner) => {
            and("actor_tenant = ?", (&owner.tenant).into());
            and("actor_user = ?", (&owner.user).into());
        }
    }
    let wanted = [
        ("actor_user = ?", filter.actor.as_ref().map(Arg::from)),
        ("action = ?", filter.action.as_ref().map(Arg::from)),
        ("outcome = ?", filter.outcome.map(Arg::from)),
        ("address = ?", filter.address.as_ref().map(Arg::from)),
        ("at >= ?", filter.since.map(Arg::from)),
        ("at < ?", filter.until.map(Arg::from)),
    ];
    for (text, value) in wanted {
        if let Some(value) = value {
            and(text, value);
        }
    }
    let sql = format!("SELECT * FROM audit_log WHERE {condition} ORDER BY id DESC LIMIT $2");
    let rows: Vec<Row> = tx.rows(sql, arguments).await?;
    Ok(rows.into_iter().map(AuditEntry::from).collect())
}

#[derive(landfall_store::FromRow)]
struct Row {
    id: i64,
    at: Time,
    actor_tenant: String,
    actor_user: String,
    actor_role: Option<String>,
    credential: Option<String>,
    address: Option<String>,
    request_id: Option<String>,
    action: String,
    method: String,
    path: String,
    target_tenant: Option<String>,
    target_user: Option<String>,
    #[row(try_from = "String")]
    outcome: AuditOutcome,
    status: Option<i64>,
    code: Option<String>,
}

impl From<Row> for AuditEntry {
    fn from(row: Row) -> Self {
        let known = |name: String| Some(name).filter(|name| !name.is_empty());
        Self {
            id: row.id,
            at: row.at,
            actor_tenant_id: known(row.actor_tenant),
            actor_user_id: known(row.actor_user),
            actor_role: row.actor_role.and_then(|role| role.parse().ok()),
            credential: row.credential,
            address: row.address,
            request_id: row.request_id,
            action: row.action,
            method: row.method,
            path: row.path,
            target_tenant_id: row.target_tenant,
            target_user_id: row.target_user,
            outcome: row.outcome,
            status: row.status,
            code: row.code,
        }
    }
}

/// Removes up to `limit` entries from before a time. Returns how many.
pub async fn remove_old(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    // What a batch picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE at < $1 LIMIT $2) AND at < $1",
        args![before, limit],
    )
    .await
}
