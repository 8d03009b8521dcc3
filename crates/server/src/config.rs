//! The settings: environment variables (and a `.env` file), each with a default and a sentence about what it may be.
//!
//! A bad value stops the start. `landfall config` prints what is in force and where each value comes from.

mod alerts;
mod declared;
mod documents;
mod dot_env;
mod embeddings;
mod events;
mod identity_provider;
mod names;
mod networks;
mod origins;
mod rate_limits;
mod reader;
mod recovery;
mod retention;
mod retries;
mod secrets;
mod server;
mod services;
mod sign_in;
mod storage;
mod telemetry;
mod uploads;
mod workers;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

pub use declared::{Declaration, GROUPS, Group};
pub use names::{FORMER_SETTINGS, OLD_NAMES, OldName, Warning};
pub use networks::Networks;
pub use origins::Origins;
use reader::Reader;
pub use reader::{ConfigError, Setting, Source, Variables};
pub use telemetry::TRACE_ID;

use landfall_core::lifecycle::Stage;
use landfall_models::chunk::ChunkConfig;

use crate::auth::AuthConfig;
use crate::blobs::StorageConfig;
use crate::delivery::EventsConfig;
use crate::delivery::webhooks::WebhookConfig;
use crate::intake::IntakeConfig;
use crate::queue::config::{OptionalServices, QueueConfig};
use crate::queue::limits::RateLimit;
use crate::recovery::config::{CleaningConfig, HealingConfig};
use crate::reports::alerts::AlertConfig;
use crate::stages::embed::{EmbedConfig, Model};
use crate::stages::gateway::GatewayConfig;
use crate::stages::pipeline::PipelineConfig;
use crate::stages::scan::Address;
use crate::telemetry::logs::LogFormat;
use crate::telemetry::secrets::Secrets;
use crate::telemetry::traces::TracesConfig;
use landfall_documents::ArchiveLimits;
use landfall_documents::sandbox::SandboxConfig;

/// OCR of a document's images may take so many times as long as the rest of it: there may be hundreds of images, which
/// are read one after another.
const OCR_TIMEOUT_FACTOR: u32 = 6;

#[derive(Debug, Clone)]
pub struct Config {
    pub http: HttpConfig,
    pub auth: AuthConfig,
    pub database_url: String,
    pub database_connections: u32,
    pub storage: StorageConfig,
    /// The bearer token of the object store's notifications; `None` where they are not taken.
    pub storage_events_token: Option<Token>,
    /// With less free space, nothing new is taken in.
    pub min_free_disk: u64,
    pub data_dir: PathBuf,
    pub role: Role,
    pub log_format: LogFormat,
    pub log_filter: String,
    /// Where spans are sent; `None` where they are not.
    pub traces: Option<TracesConfig>,
    /// Where people look at a trace, with [`TRACE_ID`] in it.
    pub trace_url: Option<String>,
    pub intake: IntakeConfig,
    pub queue: QueueConfig,
    pub cleaning: CleaningConfig,
    pub alerts: AlertConfig,
    pub webhooks: WebhookConfig,
    pub events: EventsConfig,
    pub embed: EmbedConfig,
    pub sandbox: SandboxConfig,
    pub archives: ArchiveLimits,
    /// The languages that OCR recognises; `None` where OCR is off.
    pub ocr_languages: Option<String>,
    pub chunks: ChunkConfig,
    /// The memory for the codes of vectors.
    pub search_cache_bytes: usize,
    /// The address of the virus scanner; `None` where files are not scanned.
    pub clamd: Option<Address>,
    pub healing: HealingConfig,
    /// The service that extracts text in place of the built-in readers.
    pub gateway: Option<GatewayConfig>,
    /// Every setting as it is in force, in the order of [`GROUPS`].
    pub settings: Vec<Setting>,
    /// Values that must not appear in the log.
    pub secrets: Secrets,
    /// Variables that the operator should change: misspelt names, old names, former settings.
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Clone)]
pub struct HttpConfig {
    pub bind_address: IpAddr,
    pub port: u16,
    /// Where clients reach this server, if that is not the address it listens on.
    pub public_url: Option<String>,
    /// The certificate and its key, where the server itself serves `https`.
    pub tls: Option<TlsFiles>,
    pub tls_check_interval: Duration,
    /// The pages of other origins that may use the API.
    pub origins: Origins,
    /// The proxies that are believed when they say where a request came from.
    pub trusted_proxies: Networks,
    /// A second address, which serves only the health and the metrics of this process.
    pub metrics_address: Option<SocketAddr>,
    /// The bearer token with which Prometheus reads the metrics.
    pub metrics_token: Option<Token>,
    pub max_connections: usize,
    pub max_connections_per_address: usize,
    /// How long a client may read nothing of what is written to it.
    pub write_timeout: Duration,
    pub auth_failures_per_minute: u32,
    /// How many requests that change something each process accepts from one user.
    pub writes_per_user: RateLimit,
    pub max_body_bytes: usize,
    pub request_timeout: Duration,
    pub header_timeout: Duration,
    pub upload_stall: Duration,
}

#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// A secret that `Debug` does not show.
#[derive(Clone)]
pub struct Token(String);

impl std::ops::Deref for Token {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    All,
    Api,
    Worker,
    Maintenance,
}

impl Config {
    /// Reads every setting. The error names everything that is wrong.
    pub fn from_variables(variables: Variables) -> Result<Self, ConfigError> {
        let mut reader = Reader::new(variables);
        let config = Self::read(&mut reader);
        let mut finished = reader.finish()?;
        let order = |name: &str| {
            let mut declared = GROUPS.iter().flat_map(|group| group.settings);
            declared.position(|setting| setting.name == name)
        };
        finished.settings.sort_by_key(|setting| order(setting.name));
        Ok(Self {
            settings: finished.settings,
            secrets: finished.secrets,
            warnings: finished.warnings,
            ..config
        })
    }

    fn read(read: &mut Reader) -> Self {
        let storage = storage::read(read);
        let clamd = services::read_scanner(read);
        let gateway = services::read_gateway(read);
        let embed = EmbedConfig::read(read);
        let services = OptionalServices {
            scanner: clamd.is_some(),
            gateway: gateway.is_some(),
            embeddings: matches!(embed.model, Model::Service(_)),
        };
        let queue = workers::read(read, services);
        let extract = queue.stages.iter().find(|config| config.stage == Stage::Extract);
        let extract_timeout = extract.map_or(Duration::MAX, |config| config.timeout);
        services::check_gateway(read, gateway.as_ref(), extract_timeout);
        let (log_format, log_filter) = telemetry::read_log(read);
        let (http, role) = (server::read(read), server::read_role(read));
        server::check_exposure(read, &http, role);
        let auth = sign_in::read(read);
        identity_provider::check_address(read, &http, &auth);
        let intake = uploads::read(read, services.first_stage(), storage.is_direct);
        Self {
            http,
            auth,
            role,
            log_format,
            log_filter,
            traces: TracesConfig::read(read),
            trace_url: telemetry::read_trace_url(read),
            intake: intake.clone(),
            queue,
            cleaning: retention::read(read),
            alerts: alerts::read(read),
            webhooks: events::read_webhooks(read),
            events: events::read_streams(read),
            sandbox: documents::read_sandbox(read, extract_timeout),
            archives: documents::read_archives(read),
            ocr_languages: documents::read_ocr_languages(read),
            chunks: embeddings::read_chunks(read, &embed),
            search_cache_bytes: embeddings::read_search_cache(read),
            embed,
            healing: recovery::read(read),
            clamd,
            gateway,
            data_dir: storage.data_dir,
            database_url: storage.database_url,
            database_connections: storage.database_connections,
            storage_events_token: storage.events_token.map(Token),
            storage: StorageConfig { max_file_bytes: intake.max_file_bytes, ..storage.storage },
            min_free_disk: storage.min_free_disk,
            settings: Vec::new(),
            secrets: Secrets::default(),
            warnings: Vec::new(),
        }
    }

    /// The settings of a group, as they are in force.
    pub fn settings_of(&self, group: &Group) -> impl Iterator<Item = (&Setting, &'static Declaration)> {
        let of = |declared: &'static Declaration| {
            let setting = self.settings.iter().find(|setting| setting.name == declared.name)?;
            Some((setting, declared))
        };
        group.settings.iter().filter_map(of)
    }

    /// How many files `landfall reindex` has in hand at once.
    pub fn reindex_concurrency(&self) -> usize {
        /// If `WORKER_STAGES` does not include embed.
        const DEFAULT: usize = 5;
        let embed = self.queue.stages.iter().find(|config| config.stage == Stage::Embed);
        embed.map_or(DEFAULT, |config| config.concurrency)
    }

    /// The part that the stages need.
    pub fn pipeline(&self) -> PipelineConfig {
        PipelineConfig {
            chunks: self.chunks,
            ocr_languages: self.ocr_languages.clone(),
            ocr_timeout: self.sandbox.timeout.saturating_mul(OCR_TIMEOUT_FACTOR),
            hidden: [self.data_dir.clone(), ".env".into()]
                .into_iter()
                .chain(self.storage.place.folder().cloned())
                .collect(),
            clamd: self.clamd.clone(),
            gateway: self.gateway.clone(),
            archives: ArchiveLimits { member_bytes: self.intake.max_file_bytes, ..self.archives },
        }
    }
}
