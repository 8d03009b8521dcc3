//! The routes that the command line uses, with their types.

use reqwest::Method;
use reqwest::header::ACCEPT;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use uuid::Uuid;

use super::{Client, ClientError, RESPONSE_TIMEOUT};
use landfall_api::Page;
use landfall_api::audit_log::{AuditLog, AuditLogQuery};
use landfall_api::batches::{BatchView, NewBatch, OpenedBatch};
use landfall_api::dashboard::{Dashboard, DashboardQuery};
use landfall_api::dead_letters::{DeadLetterFilter, DeadLetterList, DeadLetterQuery, GroupList, Retried};
use landfall_api::events::StreamQuery;
use landfall_api::file_queries::FileQuery;
use landfall_api::files::{FileList, FileView, History, TextQuery};
use landfall_api::keys::{CreatedKey, KeyList, KeyQuery, NewKey};
use landfall_api::maintenance::{CleanupFailureList, CleanupFailureQuery, JobList, JobRun, RunQuery};
use landfall_api::notifications::{MarkedRead, NotificationList, NotificationQuery, NotificationView};
use landfall_api::operations::OperationView;
use landfall_api::orphans::{OrphanQuery, OrphanReport};
use landfall_api::page::{MAX_LIMIT, PageQuery};
use landfall_api::queues::QueueStatus;
use landfall_api::quotas::QuotaView;
use landfall_api::search::{SearchRequest, SearchResponse};
use landfall_api::sessions::{IssueLink, SignInLink};
use landfall_api::settings::SettingsView;
use landfall_api::stuck::{RetriedAll, RetriedStuck, RetryQuery, StuckList, StuckQuery};
use landfall_api::uploads::{Announcement, ConfirmRequest, Confirmed, UploadTicket};
use landfall_core::clock::Clock;

pub(super) const UPLOADS: &str = "/api/v2/uploads";
const ADMIN: &str = "/api/v2/admin";
const KEYS: &str = "/api/v2/keys";
const NOTIFICATIONS: &str = "/api/v2/notifications";

/// For routes without parameters.
const NO_QUERY: &[(&str, &str)] = &[];

impl Client {
    pub async fn issue_link(&self, link: &IssueLink) -> Result<SignInLink, ClientError> {
        self.fetch(self.request(Method::POST, "/auth/links")?.json(link)).await
    }

    /// Not repeated: each request makes another key.
    pub async fn create_key(&self, wanted: &NewKey) -> Result<CreatedKey, ClientError> {
        self.fetch(self.request(Method::POST, KEYS)?.json(wanted)).await
    }

    pub async fn keys(&self, query: &KeyQuery) -> Result<KeyList, ClientError> {
        self.get(KEYS, query).await
    }

    pub async fn revoke_key(&self, id: Uuid) -> Result<(), ClientError> {
        self.delete(&format!("{KEYS}/{id}")).await
    }

    pub async fn audit_log(&self, query: &AuditLogQuery) -> Result<AuditLog, ClientError> {
        self.get(&format!("{ADMIN}/audit-log"), query).await
    }

    /// All entries, as JSON lines.
    pub async fn export_audit_log(&self, query: &AuditLogQuery) -> Result<reqwest::Response, ClientError> {
        self.send(self.request(Method::GET, &format!("{ADMIN}/audit-log/export"))?.query(query)).await
    }

    pub async fn files(&self, query: &FileQuery) -> Result<FileList, ClientError> {
        self.get(&format!("{UPLOADS}/files"), query).await
    }

    pub async fn file(&self, id: Uuid) -> Result<FileView, ClientError> {
        self.get(&format!("{UPLOADS}/files/{id}"), NO_QUERY).await
    }

    pub async fn history(&self, file: Uuid, query: &PageQuery) -> Result<History, ClientError> {
        self.get(&format!("{UPLOADS}/files/{file}/history"), query).await
    }

    pub async fn text(&self, file: Uuid, query: &TextQuery) -> Result<String, ClientError> {
        let request = self.request(Method::GET, &format!("{UPLOADS}/files/{file}/text"))?.query(query);
        let response = self.send(request).await?;
        response.text().await.map_err(|error| self.failed(&error))
    }

    pub async fn delete_file(&self, id: Uuid) -> Result<(), ClientError> {
        self.delete(&format!("{UPLOADS}/files/{id}")).await
    }

    pub async fn open_batch(&self, batch: &NewBatch) -> Result<OpenedBatch, ClientError> {
        self.create(&format!("{UPLOADS}/batches"), batch).await
    }

    pub async fn batch(&self, id: Uuid) -> Result<BatchView, ClientError> {
        self.get(&format!("{UPLOADS}/batches/{id}"), NO_QUERY).await
    }

    pub async fn close_batch(&self, id: Uuid) -> Result<BatchView, ClientError> {
        self.post(&format!("{UPLOADS}/batches/{id}/close"), NO_QUERY).await
    }

    pub async fn register_files(
        &self,
        batch: Uuid,
        files: &[Announcement],
    ) -> Result<Vec<UploadTicket>, ClientError> {
        self.create(&format!("{UPLOADS}/batches/{batch}/upload-urls"), files).await
    }

    pub async fn renew_upload_url(&self, file: Uuid) -> Result<UploadTicket, ClientError> {
        self.post(&format!("{UPLOADS}/files/{file}/upload-url"), NO_QUERY).await
    }

    pub async fn confirm(&self, file: Uuid, body: &ConfirmRequest) -> Result<Confirmed, ClientError> {
        let path = format!("{UPLOADS}/files/{file}/confirm");
        self.fetch(self.request(Method::POST, &path)?.json(body)).await
    }

    pub async fn quota(&self) -> Result<QuotaView, ClientError> {
        self.get(&format!("{UPLOADS}/quota"), NO_QUERY).await
    }

    pub async fn dashboard(&self, query: &DashboardQuery) -> Result<Dashboard, ClientError> {
        self.get(&format!("{UPLOADS}/dashboard"), query).await
    }

    pub async fn dead_letters(&self, query: &DeadLetterQuery) -> Result<DeadLetterList, ClientError> {
        self.get(&format!("{UPLOADS}/dlq"), query).await
    }

    pub async fn dead_letter_groups(&self, query: &DeadLetterQuery) -> Result<GroupList, ClientError> {
        self.get(&format!("{UPLOADS}/dlq/groups"), query).await
    }

    pub async fn retry_dead_letter(&self, file: Uuid) -> Result<Retried, ClientError> {
        self.post(&format!("{UPLOADS}/dlq/{file}/retry"), NO_QUERY).await
    }

    pub async fn retry_dead_letters(&self, filter: &DeadLetterFilter) -> Result<OperationView, ClientError> {
        self.create(&format!("{UPLOADS}/dlq/retry-all"), filter).await
    }

    pub async fn discard_dead_letter(&self, file: Uuid) -> Result<(), ClientError> {
        self.delete(&format!("{UPLOADS}/dlq/{file}")).await
    }

    pub async fn operation(&self, id: Uuid) -> Result<OperationView, ClientError> {
        self.get(&format!("{UPLOADS}/operations/{id}"), NO_QUERY).await
    }

    pub async fn stuck_files(&self, query: &StuckQuery) -> Result<StuckList, ClientError> {
        self.get(&format!("{UPLOADS}/stuck"), query).await
    }

    pub async fn retry_stuck_file(&self, file: Uuid) -> Result<RetriedStuck, ClientError> {
        self.post(&format!("{UPLOADS}/stuck/{file}/retry"), NO_QUERY).await
    }

    pub async fn retry_stuck_files(&self, query: &RetryQuery) -> Result<RetriedAll, ClientError> {
        self.post(&format!("{UPLOADS}/stuck/retry-all"), query).await
    }

    pub async fn orphans(&self, query: &OrphanQuery) -> Result<OrphanReport, ClientError> {
        self.get(&format!("{UPLOADS}/orphans"), query).await
    }

    pub async fn notifications(&self, query: &NotificationQuery) -> Result<NotificationList, ClientError> {
        self.get(NOTIFICATIONS, query).await
    }

    pub async fn read_notification(&self, id: Uuid) -> Result<NotificationView, ClientError> {
        self.post(&format!("{NOTIFICATIONS}/{id}/read"), NO_QUERY).await
    }

    pub async fn read_notifications(&self) -> Result<MarkedRead, ClientError> {
        self.post(&format!("{NOTIFICATIONS}/read-all"), NO_QUERY).await
    }

    /// Opens an event stream. It has no timeout, because it may stay open forever.
    pub async fn events(&self, query: &StreamQuery) -> Result<reqwest::Response, ClientError> {
        let request = self.request(Method::GET, &format!("{UPLOADS}/events"))?;
        self.send(request.header(ACCEPT, "text/event-stream").query(query)).await
    }

    pub async fn search(&self, request: &SearchRequest) -> Result<SearchResponse, ClientError> {
        self.fetch(self.request(Method::POST, "/api/v2/search")?.json(request)).await
    }

    pub async fn jobs(&self) -> Result<JobList, ClientError> {
        self.get(&format!("{ADMIN}/jobs"), NO_QUERY).await
    }

    pub async fn run_job(&self, name: &str, query: &RunQuery) -> Result<JobRun, ClientError> {
        let name: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
        self.post(&format!("{ADMIN}/jobs/{name}/run"), query).await
    }

    pub async fn cleanup_failures(
        &self,
        query: &CleanupFailureQuery,
    ) -> Result<CleanupFailureList, ClientError> {
        self.get(&format!("{ADMIN}/cleanup-failures"), query).await
    }

    pub async fn queue_status(&self) -> Result<QueueStatus, ClientError> {
        self.get(&format!("{ADMIN}/queue-status"), NO_QUERY).await
    }

    /// The settings in force in the server.
    pub async fn settings(&self) -> Result<SettingsView, ClientError> {
        self.get(&format!("{ADMIN}/config"), NO_QUERY).await
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &(impl Serialize + ?Sized),
    ) -> Result<T, ClientError> {
        self.fetch(self.request(Method::GET, path)?.query(query)).await
    }

    /// Posts an empty object.
    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &(impl Serialize + ?Sized),
    ) -> Result<T, ClientError> {
        self.fetch(self.request(Method::POST, path)?.query(query).json(&json!({}))).await
    }

    /// Posts a request that creates something. It is retried with one idempotency key, so it happens once.
    async fn create<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + ?Sized),
    ) -> Result<T, ClientError> {
        let key = Clock::System.new_id().to_string();
        self.retry(async || {
            let request = self.request(Method::POST, path)?;
            self.fetch(request.header("Idempotency-Key", &key).json(body)).await
        })
        .await
    }

    async fn delete(&self, path: &str) -> Result<(), ClientError> {
        let request = self.request(Method::DELETE, path)?;
        self.send(request.timeout(RESPONSE_TIMEOUT)).await.map(drop)
    }
}

/// Follows the cursor until there are `limit` items or no more. The result is one page with all of them.
pub async fn collect<T>(
    client: &Client,
    limit: usize,
    fetch: impl AsyncFn(i64, Option<String>) -> Result<Page<T>, ClientError>,
) -> Result<Page<T>, ClientError> {
    let mut all = Page { items: Vec::new(), next_cursor: None };
    while all.items.len() < limit {
        let room = i64::try_from(limit - all.items.len()).unwrap_or(MAX_LIMIT).min(MAX_LIMIT);
        let cursor = all.next_cursor.take();
        let page = client.retry(async || fetch(room, cursor.clone()).await).await?;
        all.items.extend(page.items);
        all.next_cursor = page.next_cursor;
        if all.next_cursor.is_none() {
            break;
        }
    }
    Ok(all)
}
