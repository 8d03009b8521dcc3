//! The settings: environment variables (and a `.env` file), each with a default and a sentence about what it may be.
//!
//! A bad value stops the start. `landfall config` prints what is in force and where each value comes from.

mod cleaning;
mod embed;
mod events;
mod healing;
mod reader;
mod traces;
mod webhooks;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

pub use reader::{ConfigError, Setting, Source, Variables};
use reader::{Reader, bytes, milliseconds, one_of, stages};

use landfall_core::lifecycle::Stage;
use landfall_models::chunk::ChunkConfig;

use crate::auth::AuthConfig;
use crate::delivery::EventsConfig;
use crate::delivery::webhooks::WebhookConfig;
use crate::intake::IntakeConfig;
use crate::process::liveness::LivenessConfig;
use crate::queue::breaker::BreakerConfig;
use crate::queue::config::{QueueConfig, StageConfig};
use crate::queue::limits::{RateLimit, RateLimits};
use crate::records::quota;
use crate::recovery::config::{CleaningConfig, HealingConfig};
use crate::reports::alerts::AlertConfig;
use crate::stages::embed::{EmbedConfig, Model};
use crate::stages::gateway::GatewayConfig;
use crate::stages::pipeline::PipelineConfig;
use crate::stages::scan::Address;
use crate::telemetry::logs::LogFormat;
use crate::telemetry::secrets::Secrets;
use crate::telemetry::traces::TracesConfig;
use landfall_core::retry::RetryPolicy;
use landfall_core::service::Service;
use landfall_documents::limits::{DEFAULT_MAX_CELLS, DEFAULT_MAX_PAGES, DEFAULT_MAX_TEXT_MB, Limits};
use landfall_documents::sandbox::SandboxConfig;

/// The pictures of a document have so many times the time that the rest of it has. They are read one after another, and
/// there may be hundreds.
const OCR_TAKES_LONGER: u32 = 6;

#[derive(Debug, Clone)]
pub struct Config {
    pub http: HttpConfig,
    pub auth: AuthConfig,
    pub database_url: String,
    pub database_connections: u32,
    pub blobs_dir: PathBuf,
    pub data_dir: PathBuf,
    pub role: Role,
    pub log_format: LogFormat,
    pub log_filter: String,
    /// Where spans are sent, if they are.
    pub traces: Option<TracesConfig>,
    pub intake: IntakeConfig,
    pub queue: QueueConfig,
    pub cleaning: CleaningConfig,
    pub alerts: AlertConfig,
    pub webhooks: WebhookConfig,
    pub events: EventsConfig,
    pub embed: EmbedConfig,
    pub sandbox: SandboxConfig,
    /// The languages that OCR looks for, unless it is off.
    pub ocr_languages: Option<String>,
    pub chunks: ChunkConfig,
    /// Where the virus scanner listens, if files are to be shown to it.
    pub clamd: Option<Address>,
    pub healing: HealingConfig,
    /// The operator's own extraction, in place of what is built in.
    pub gateway: Option<GatewayConfig>,
    /// Every variable that was looked at, for `landfall config`.
    pub settings: Vec<Setting>,
    /// What none of them may show.
    pub secrets: Secrets,
}

#[derive(Debug, Clone)]
pub struct HttpConfig {
    pub bind_address: IpAddr,
    pub port: u16,
    /// Where clients reach this server, when that is not where it listens.
    pub public_url: Option<String>,
    /// Where this process answers for itself alone: its health and its metrics.
    pub metrics_address: Option<SocketAddr>,
    /// What whoever reads the metrics has to know.
    pub metrics_token: Option<Token>,
    pub max_connections: usize,
    pub max_body_bytes: usize,
    pub request_timeout: Duration,
    pub header_timeout: Duration,
    pub upload_stall: Duration,
}

/// A secret that is not shown.
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
    /// Reads every setting; answers all that is wrong at once.
    pub fn from_variables(variables: Variables) -> Result<Self, ConfigError> {
        let mut read = Reader::new(variables);
        let data_dir = PathBuf::from(read.text("DATA_DIR", "data"));
        let default_database = format!("sqlite://{}/landfall.db", data_dir.display());
        let default_storage = format!("file://{}/blobs", data_dir.display());
        let clamd = read.optional("CLAMD_ADDRESS", str::parse::<Address>);
        let gateway_timeout = read.with("GATEWAY_TIMEOUT_MS", "120000", milliseconds);
        let gateway = read
            .url("EXTRACT_GATEWAY_URL", &["http", "https"])
            .map(|url| GatewayConfig { url, timeout: gateway_timeout });
        let embed = EmbedConfig::read(&mut read);
        let first_stage = if clamd.is_some() { Stage::Scan } else { Stage::Extract };
        let limits = read_limits(&mut read, first_stage);
        let mut config = Self {
            http: HttpConfig {
                bind_address: read.parse("BIND_ADDRESS", "127.0.0.1", "an IP address"),
                port: read.parse("PORT", "3002", "a port from 0 to 65535"),
                public_url: read.url("PUBLIC_URL", &["http", "https"]),
                metrics_address: read.optional("METRICS_ADDRESS", |text| {
                    text.parse().map_err(|_| "an IP address and a port, like 0.0.0.0:9464".to_owned())
                }),
                metrics_token: read.secret("METRICS_TOKEN").map(Token),
                max_connections: read.at_least("MAX_CONNECTIONS", 4_096, 1),
                max_body_bytes: usize::try_from(read.with("MAX_BODY_SIZE", "2MB", bytes))
                    .unwrap_or(usize::MAX),
                request_timeout: read.with("REQUEST_TIMEOUT_MS", "30000", milliseconds),
                header_timeout: read.with("HEADER_TIMEOUT_MS", "15000", milliseconds),
                upload_stall: read.with("UPLOAD_STALL_MS", "60000", milliseconds),
            },
            auth: AuthConfig {
                jwt_secret: read.secret("JWT_SECRET"),
                jwks_url: read.url("JWT_JWKS_URL", &["http", "https"]),
            },
            database_url: read.database_url("DATABASE_URL", &default_database),
            database_connections: read.at_least("DATABASE_CONNECTIONS", 16, 4),
            blobs_dir: read.with("STORAGE_URL", &default_storage, reader::folder),
            role: read.with("ROLE", "all", |text| {
                one_of(
                    text,
                    &[
                        ("all", Role::All),
                        ("api", Role::Api),
                        ("worker", Role::Worker),
                        ("maintenance", Role::Maintenance),
                    ],
                )
            }),
            log_format: read.with("LOG_FORMAT", "auto", |text| {
                one_of(
                    text,
                    &[("auto", LogFormat::Auto), ("pretty", LogFormat::Pretty), ("json", LogFormat::Json)],
                )
            }),
            log_filter: read.with("LOG_LEVEL", "info", reader::log_filter),
            traces: TracesConfig::read(&mut read),
            intake: IntakeConfig {
                max_file_bytes: read.with("MAX_FILE_SIZE", "50MB", bytes),
                confirm_window: read.with("UPLOAD_CONFIRM_WINDOW_MS", "3600000", milliseconds),
                batch_timeout: read.with("BATCH_TIMEOUT_MS", "86400000", milliseconds),
                quota: quota::Limits {
                    bytes: signed(read.with("DEFAULT_TENANT_QUOTA_BYTES", "10GB", bytes)),
                    files: read.at_least("DEFAULT_TENANT_QUOTA_FILES", 1_000_000, 1),
                },
                first_stage,
            },
            queue: QueueConfig {
                stages: read_stages(&mut read, &limits, clamd.is_some(), gateway.is_some(), &embed.model),
                retry: RetryPolicy {
                    max_attempts: read.at_least("RETRY_MAX_ATTEMPTS", 3, 1),
                    base_delay: read.with("RETRY_BASE_DELAY", "5000", milliseconds),
                    late_base_delay: read.with("RETRY_LATE_BASE_DELAY", "3000", milliseconds),
                    max_delay: read.with("RETRY_MAX_DELAY", "60000", milliseconds),
                },
                limits,
                breaker: read_breaker(&mut read),
                staleness: read.with("STALENESS_THRESHOLD_MS", "180000", milliseconds),
                liveness: LivenessConfig {
                    heartbeat_interval: read.with("HEARTBEAT_INTERVAL_MS", "5000", milliseconds),
                    heartbeat_expiry: read.with("HEARTBEAT_EXPIRY_MS", "20000", milliseconds),
                    lock_check_interval: read.with("LOCK_CHECK_INTERVAL_MS", "300", milliseconds),
                },
                poll_interval: read.with("POLL_INTERVAL_MS", "1000", milliseconds),
                shutdown_grace: read.with("SHUTDOWN_GRACE_MS", "25000", milliseconds),
            },
            cleaning: CleaningConfig::read(&mut read),
            alerts: AlertConfig::read(&mut read),
            webhooks: WebhookConfig::read(&mut read),
            events: EventsConfig::read(&mut read),
            sandbox: read_sandbox(&mut read),
            ocr_languages: read_ocr_languages(&mut read),
            chunks: embed::read_chunks(&mut read, &embed),
            embed,
            healing: HealingConfig::read(&mut read),
            clamd,
            gateway,
            data_dir,
            settings: Vec::new(),
            secrets: Secrets::default(),
        };
        if let Some(extract) = config.queue.stages.iter().find(|config| config.stage == Stage::Extract) {
            config.sandbox.timeout = extract.timeout;
        }
        config.check_together(&mut read);
        let (settings, secrets) = read.finish()?;
        Ok(Self { settings, secrets, ..config })
    }

    /// What the stages need to know of it.
    pub fn pipeline(&self) -> PipelineConfig {
        PipelineConfig {
            chunks: self.chunks,
            ocr_languages: self.ocr_languages.clone(),
            ocr_timeout: self.sandbox.timeout.saturating_mul(OCR_TAKES_LONGER),
            hidden: vec![self.data_dir.clone(), self.blobs_dir.clone(), ".env".into()],
            clamd: self.clamd.clone(),
            gateway: self.gateway.clone(),
        }
    }

    /// What no variable can know alone.
    fn check_together(&self, read: &mut Reader) {
        if self.queue.liveness.heartbeat_expiry < self.queue.liveness.heartbeat_interval * 2 {
            read.complain("HEARTBEAT_EXPIRY_MS", "at least twice HEARTBEAT_INTERVAL_MS");
        }
        if self.queue.stages.is_empty() {
            read.complain("WORKER_STAGES", "more than scan where CLAMD_ADDRESS is not set");
        }
        if self.auth.jwt_secret.as_ref().is_some_and(|secret| secret.len() < 32) {
            read.complain("JWT_SECRET", "at least 32 characters long");
        }
        if self.http.metrics_token.as_ref().is_some_and(|token| token.len() < 16) {
            read.complain("METRICS_TOKEN", "at least 16 characters long");
        }
        if self.auth.jwt_secret.is_some() && self.auth.jwks_url.is_some() {
            read.complain("JWT_JWKS_URL", "set only where JWT_SECRET is not");
        }
    }
}

/// Without a scanner there is no scanning: a file that waits for it says so, and is not let past.
fn read_stages(
    read: &mut Reader,
    limits: &RateLimits,
    has_scanner: bool,
    has_gateway: bool,
    model: &Model,
) -> Vec<StageConfig> {
    let services = |stage: Stage| -> &'static [Service] {
        match stage {
            Stage::Scan => &[Service::Scanner, Service::Storage],
            Stage::Extract if has_gateway => &[Service::Gateway, Service::Storage],
            Stage::Extract => &[Service::Storage],
            Stage::Embed if matches!(model, Model::Service(_)) => &[Service::Embeddings],
            Stage::Chunk | Stage::Embed => &[],
        }
    };
    let wanted = read.with("WORKER_STAGES", "scan,extract,chunk,embed", stages);
    [
        (Stage::Scan, "SCAN_CONCURRENCY", 4, "SCAN_TIMEOUT_MS", "300000"),
        (Stage::Extract, "EXTRACT_CONCURRENCY", 8, "EXTRACT_TIMEOUT_MS", "300000"),
        (Stage::Chunk, "CHUNK_CONCURRENCY", 5, "CHUNK_TIMEOUT_MS", "60000"),
        (Stage::Embed, "EMBED_CONCURRENCY", 5, "EMBED_TIMEOUT_MS", "120000"),
    ]
    .into_iter()
    .map(|(stage, concurrency, at_once, timeout, limit)| StageConfig {
        stage,
        concurrency: read.at_least(concurrency, at_once, 1),
        timeout: read.with(timeout, limit, milliseconds),
        services: services(stage),
        is_limited: limits.of_stage(stage).is_some(),
    })
    // Read them all before choosing, so that a bad value is found whatever this process works at.
    .collect::<Vec<_>>()
    .into_iter()
    .filter(|stage| wanted.contains(&stage.stage) && (has_scanner || stage.stage != Stage::Scan))
    .collect()
}

fn read_limits(read: &mut Reader, first_stage: Stage) -> RateLimits {
    let stages = [
        (Stage::Scan, "SCAN_RATE_LIMIT"),
        (Stage::Extract, "EXTRACT_RATE_LIMIT"),
        (Stage::Chunk, "CHUNK_RATE_LIMIT"),
        (Stage::Embed, "EMBED_RATE_LIMIT"),
    ];
    RateLimits {
        stages: stages
            .into_iter()
            .filter_map(|(stage, name)| Some((stage, read.optional(name, str::parse::<RateLimit>)?)))
            .collect(),
        user: read.optional("USER_RATE_LIMIT", str::parse::<RateLimit>),
        first_stage: Some(first_stage),
    }
}

fn read_breaker(read: &mut Reader) -> BreakerConfig {
    BreakerConfig {
        threshold: read.at_least("CIRCUIT_THRESHOLD", 5, 1),
        timeout: read.with("CIRCUIT_TIMEOUT", "60000", milliseconds),
        probes: read.at_least("CIRCUIT_HALF_OPEN_REQUESTS", 3, 1),
    }
}

fn read_ocr_languages(read: &mut Reader) -> Option<String> {
    let wanted = read.with("OCR", "auto", |text| one_of(text, &[("auto", true), ("off", false)]));
    let languages = read.with("OCR_LANGUAGES", "eng", ocr_languages);
    wanted.then_some(languages)
}

/// They become an argument of a program, so they are nothing but names.
fn ocr_languages(text: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if text.split('+').all(is_name) {
        Ok(text.to_owned())
    } else {
        Err("names of tesseract's languages joined by +, like eng+deu".to_owned())
    }
}

fn read_sandbox(read: &mut Reader) -> SandboxConfig {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    SandboxConfig {
        // Below that not even the program itself fits in.
        memory_mb: read.between("EXTRACT_MEMORY_MB", 1_024, 256, 1_048_576),
        cpu_seconds: read.between("EXTRACT_CPU_SECONDS", 120, 1, 1_000_000),
        // The stage's own, which is known when all is read.
        timeout: Duration::MAX,
        stall: read.with("EXTRACT_STALL_MS", "60000", milliseconds),
        limits: Limits {
            pages: read.at_least("EXTRACT_MAX_PAGES", DEFAULT_MAX_PAGES, 1),
            cells: read.at_least("EXTRACT_MAX_CELLS", DEFAULT_MAX_CELLS, 1),
            text_bytes: read.between("EXTRACT_MAX_TEXT_MB", DEFAULT_MAX_TEXT_MB, 1, 1_024) << 20,
            ..Limits::default()
        },
        documents: read.between("EXTRACT_CHILD_DOCUMENTS", 50, 1, 1_000_000),
        idle: 2 * cores,
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
