//! What a tenant may store. Bytes are reserved when a file is registered, used once it is confirmed, and given back
//! when it is deleted, each in the transaction of that change.

use std::collections::BTreeMap;

use super::file::File;
use super::files::counts::{self, Sums};
use super::files::listing::{MAX_COMPARED, contains};
use super::resumable;
use landfall_api::quotas::{Amounts, IsDefault, QuotaView, TenantView};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;
use landfall_store::{Tx, Write, args};

/// What a tenant may store that has no limits of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub bytes: i64,
    pub files: i64,
}

#[derive(Debug, Clone, landfall_store::FromRow)]
struct Account {
    quota_bytes: Option<i64>,
    quota_files: Option<i64>,
    reserved_bytes: i64,
    reserved_files: i64,
    used_bytes: i64,
    used_files: i64,
}

impl Account {
    fn bytes(&self, defaults: &Limits) -> Amounts {
        Amounts::new(self.quota_bytes.unwrap_or(defaults.bytes), self.reserved_bytes, self.used_bytes)
    }

    fn files(&self, defaults: &Limits) -> Amounts {
        Amounts::new(self.quota_files.unwrap_or(defaults.files), self.reserved_files, self.used_files)
    }
}

pub async fn view(tx: &mut Tx, tenant: &str, defaults: &Limits) -> Result<QuotaView, Error> {
    let account: Option<Account> = tx
        .row(
            "SELECT quota_bytes, quota_files, reserved_bytes, reserved_files, used_bytes, used_files
             FROM tenants WHERE id = $1",
            args![tenant],
        )
        .await?;
    let account = account.unwrap_or(Account {
        quota_bytes: None,
        quota_files: None,
        reserved_bytes: 0,
        reserved_files: 0,
        used_bytes: 0,
        used_files: 0,
    });
    Ok(QuotaView {
        tenant_id: tenant.to_owned(),
        bytes: account.bytes(defaults),
        files: account.files(defaults),
    })
}

/// A tenant that is known, because it has files, had some, or has limits of its own.
#[derive(Debug, landfall_store::FromRow)]
pub struct Tenant {
    pub id: String,
    #[row(flatten)]
    account: Account,
}

impl Tenant {
    pub fn view(self, defaults: &Limits) -> TenantView {
        let Self { id, account } = self;
        TenantView {
            bytes: account.bytes(defaults),
            files: account.files(defaults),
            is_default: IsDefault {
                bytes: account.quota_bytes.is_none(),
                files: account.quota_files.is_none(),
            },
            tenant_id: id,
        }
    }
}

/// The tenants behind `after`, in the order of their names, up to `limit`. Of all these, with a `part` only those with it in
/// their names; no more than [`MAX_COMPARED`] names are compared.
pub async fn tenants(tx: &mut Tx, part: Option<&str>, after: &str, limit: i64) -> Result<Vec<Tenant>, Error> {
    const COLUMNS: &str =
        "id, quota_bytes, quota_files, reserved_bytes, reserved_files, used_bytes, used_files";
    let Some(part) = part else {
        let sql = format!("SELECT {COLUMNS} FROM tenants WHERE id > $1 ORDER BY id LIMIT $2");
        return tx.rows(sql, args![after, limit]).await;
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM (SELECT * FROM tenants WHERE id > $1 ORDER BY id LIMIT $4) AS compared
         WHERE LOWER(id) LIKE $3 ESCAPE '!' ORDER BY id LIMIT $2"
    );
    tx.rows(sql, args![after, limit, contains(part), MAX_COMPARED]).await
}

/// The last tenant whose name is compared, if there are more.
pub async fn last_compared(tx: &mut Tx, after: &str) -> Result<Option<String>, Error> {
    let sql = "SELECT id FROM tenants WHERE id > $1 ORDER BY id LIMIT 1 OFFSET $2";
    let last: Option<(String,)> = tx.row(sql, args![after, MAX_COMPARED - 1]).await?;
    Ok(last.map(|(id,)| id))
}

/// Reserves room for `files` files of `bytes` bytes together, or refuses and changes nothing. The comparison and the
/// addition are one statement, so any number of callers at once stay below the limit.
pub async fn reserve(
    tx: &mut Tx,
    tenant: &str,
    bytes: i64,
    files: i64,
    defaults: &Limits,
) -> Result<(), Error> {
    let add = "UPDATE tenants SET reserved_bytes = reserved_bytes + $2, reserved_files = reserved_files + $3
               WHERE id = $1
                 AND reserved_bytes + used_bytes + $2 <= COALESCE(quota_bytes, $4)
                 AND reserved_files + used_files + $3 <= COALESCE(quota_files, $5)";
    let amounts = args![tenant, bytes, files, defaults.bytes, defaults.files];
    if tx.execute(add, amounts.clone()).await? == 1 {
        return Ok(());
    }
    // A tenant has no row before its first file.
    let insert = "INSERT INTO tenants (id) VALUES ($1) ON CONFLICT DO NOTHING";
    tx.execute(insert, args![tenant]).await?;
    // Also if another transaction has inserted it meanwhile.
    if tx.execute(add, amounts).await? == 1 {
        return Ok(());
    }
    let quota = view(tx, tenant, defaults).await?;
    let message = if quota.bytes.free < bytes {
        format!("{bytes} bytes were asked for, and {} are free in this quota", quota.bytes.free)
    } else {
        format!("{files} files were asked for, and {} are free in this quota", quota.files.free)
    };
    Err(Refusal::new(RefusalCode::QuotaExceeded, message)
        .details(serde_json::json!({ "requestedBytes": bytes, "requestedFiles": files, "quota": quota }))
        .into())
}

/// What was reserved for the files is now used by them.
pub async fn settle(tx: &mut Tx, files: &[File]) -> Result<(), Error> {
    // In the order of the tenants' names, so that two never wait for one another.
    let mut sums: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for file in files {
        let (bytes, count) = sums.entry(&file.tenant_id).or_default();
        *bytes += file.size_bytes;
        *count += 1;
    }
    for (tenant, (bytes, count)) in sums {
        let changed = tx
            .execute(
                "UPDATE tenants SET reserved_bytes = reserved_bytes - $2, reserved_files = reserved_files - $3,
                     used_bytes = used_bytes + $2, used_files = used_files + $3
                 WHERE id = $1",
                args![tenant, bytes, count],
            )
            .await?;
        has_account(tenant, changed)?;
    }
    Ok(())
}

fn has_account(tenant: &str, changed: u64) -> Result<(), Error> {
    if changed == 1 { Ok(()) } else { Err(Error::Internal(format!("tenant {tenant} has no account"))) }
}

/// The files are gone: what they had reserved or used is free again.
pub async fn refund(tx: &mut Tx, files: &[File]) -> Result<(), Error> {
    // A user may have registered them for several tenants. In the order of their names, so that two never wait for one another.
    let mut refunds: BTreeMap<&str, [i64; 4]> = BTreeMap::new();
    for file in files {
        let [reserved_bytes, reserved_files, used_bytes, used_files] =
            refunds.entry(&file.tenant_id).or_default();
        let (bytes, count) = match file.confirmed_at {
            Some(_) => (used_bytes, used_files),
            None => (reserved_bytes, reserved_files),
        };
        *bytes += file.size_bytes;
        *count += 1;
    }
    for (tenant, [reserved_bytes, reserved_files, used_bytes, used_files]) in refunds {
        let changed = tx
            .execute(
                "UPDATE tenants SET reserved_bytes = reserved_bytes - $2, reserved_files = reserved_files - $3,
                     used_bytes = used_bytes - $4, used_files = used_files - $5
                 WHERE id = $1",
                args![tenant, reserved_bytes, reserved_files, used_bytes, used_files],
            )
            .await?;
        has_account(tenant, changed)?;
    }
    Ok(())
}

/// Gives back what was reserved for something that will not be a file by itself.
pub async fn release(tx: &mut Tx, tenant: &str, bytes: i64, files: i64) -> Result<(), Error> {
    let changed = tx
        .execute(
            "UPDATE tenants SET reserved_bytes = reserved_bytes - $2, reserved_files = reserved_files - $3 WHERE id = $1",
            args![tenant, bytes, files],
        )
        .await?;
    has_account(tenant, changed)
}

/// Recomputes what a tenant has reserved and used. Returns whether that changed anything.
///
/// Every change of a file that costs or frees room changes the account in its own transaction. So what is added up once
/// the account is held is what it should say.
pub async fn add_up(tx: &mut Tx, tenant: &str) -> Result<bool, Error> {
    let opened =
        tx.execute("INSERT INTO tenants (id) VALUES ($1) ON CONFLICT DO NOTHING", args![tenant]).await?;
    let held = format!("SELECT id FROM tenants WHERE id = $1 {}", tx.for_update());
    tx.row::<(String,)>(held, args![tenant]).await?;
    let Sums { reserved_bytes, reserved_files, used_bytes, used_files } =
        counts::of_tenant(tx, tenant).await?;
    let parts = resumable::reserved_by_parts(tx, tenant).await?;
    let (reserved_bytes, reserved_files) = (reserved_bytes + parts.0, reserved_files + parts.1);
    let changed = tx
        .execute(
            "UPDATE tenants SET reserved_bytes = $2, reserved_files = $3, used_bytes = $4, used_files = $5
             WHERE id = $1 AND (reserved_bytes <> $2 OR reserved_files <> $3 OR used_bytes <> $4 OR used_files <> $5)",
            args![tenant, reserved_bytes, reserved_files, used_bytes, used_files],
        )
        .await?;
    Ok(opened + changed > 0)
}

/// Gives a tenant limits of its own; without one, the default applies again.
pub struct SetQuota {
    pub tenant: String,
    pub bytes: Option<i64>,
    pub files: Option<i64>,
}

impl Write for SetQuota {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute(
            "INSERT INTO tenants (id, quota_bytes, quota_files) VALUES ($1, $2, $3)
             ON CONFLICT (id) DO UPDATE SET quota_bytes = excluded.quota_bytes, quota_files = excluded.quota_files",
            args![&self.tenant, self.bytes, self.files],
        )
        .await
        .map(drop)
    }
}
