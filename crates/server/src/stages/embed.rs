//! Turns chunks into vectors, with one of three models: the built-in one, one in a folder, or one behind a service.
//!
//! Vectors can only be compared with vectors of the same model, revision and dimensions. The three together are the
//! model's name in the index, which is kept with every vector.

mod cache;
mod local;
mod scale;
mod service;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use landfall_models::model_folder::ModelFolder;
use landfall_models::tokens::Tokens;
use landfall_models::{LocalModel, built_in, no_vectors};
use reqwest::Url;
pub use service::MAX_DIMENSIONS;

use super::cores::UserCores;
use crate::content::fusion::Scale;
use landfall_core::clock::Clock;
use landfall_core::failure::{Code, Failure};
use landfall_core::text::Embedded;
use landfall_store::Error;
use local::Local;
use service::Service;

/// The maximum length of a chunk for a service, whose models read more than the local ones.
const MAX_CHUNK_FOR_SERVICE: usize = 2_000;
/// How long a search waits for the vector of its question. After that it searches by words only.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct EmbedConfig {
    pub model: Model,
    /// The size of the cache of vectors that a model on this machine computed.
    pub cache_bytes: usize,
}

#[derive(Debug, Clone)]
pub enum Model {
    /// The built-in model.
    BuiltIn,
    Folder(ModelFolder),
    Service(ServiceConfig),
}

#[derive(Clone)]
pub struct ServiceConfig {
    pub endpoint: Url,
    pub model: String,
    pub api_key: Option<String>,
    pub dimensions: Option<usize>,
    pub batch: usize,
    pub timeout: Duration,
}

impl std::fmt::Debug for ServiceConfig {
    /// Debug output must not contain the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceConfig")
            .field("model", &self.model)
            .field("has_key", &self.api_key.is_some())
            .finish_non_exhaustive()
    }
}

impl EmbedConfig {
    /// The maximum number of tokens that the model reads.
    pub fn window(&self) -> usize {
        match &self.model {
            Model::BuiltIn => built_in::WINDOW,
            Model::Folder(folder) => folder.window,
            Model::Service(_) => MAX_CHUNK_FOR_SERVICE,
        }
    }
}

#[derive(Clone)]
enum Provider {
    Local(Local),
    Service(Arc<Service>),
}

#[derive(Clone)]
pub struct Embedder {
    provider: Provider,
    /// The model and its revision.
    name: Arc<str>,
    /// Known for a local model; for a service, known if it is configured, or after its first response.
    dimensions: Arc<OnceLock<usize>>,
    /// The maximum number of tokens that the model reads.
    window: usize,
    tokens: Tokens,
    /// How similar texts are with this model, once it was measured.
    scale: Arc<OnceCell<Scale>>,
}

impl Embedder {
    /// Loads the model on a thread that may block.
    pub async fn open(config: &EmbedConfig) -> Result<Self, Error> {
        let config = config.clone();
        landfall_core::blocking::run(move || Self::load(&config))
            .await
            .map_err(|error| Error::Internal(format!("the model could not be loaded: {error}")))?
            .map_err(|failure| Error::Internal(failure.message))
    }

    fn load(config: &EmbedConfig) -> Result<Self, Failure> {
        let (provider, name, dimensions, tokens): (_, String, _, _) = match &config.model {
            Model::BuiltIn => {
                let model = built_in::BuiltIn::new();
                let (name, dimensions) = (model.name(), model.dimensions());
                (
                    Provider::Local(Local::new(model, config.cache_bytes)),
                    name,
                    Some(dimensions),
                    Tokens::BuiltIn,
                )
            }
            Model::Folder(folder) => {
                let model = folder.load().map_err(|what| Failure::new(Code::EmbedError, what))?;
                let (name, dimensions, tokens) = (model.name(), model.dimensions(), model.tokens());
                (Provider::Local(Local::new(model, config.cache_bytes)), name, Some(dimensions), tokens)
            }
            Model::Service(service) => {
                let (name, dimensions) = (format!("service:{}", service.model), service.dimensions);
                // The tokens of the service's model are unknown; those of the built-in model are the estimate.
                (Provider::Service(Arc::new(Service::new(service))), name, dimensions, Tokens::BuiltIn)
            }
        };
        Ok(Self {
            provider,
            name: name.into(),
            dimensions: Arc::new(dimensions.map_or_else(OnceLock::new, OnceLock::from)),
            window: config.window(),
            tokens,
            scale: Arc::default(),
        })
    }

    /// With a model that a simulation made.
    pub fn with_model(model: impl LocalModel + 'static, name: &str, dimensions: usize) -> Self {
        Self {
            provider: Provider::Local(Local::new(model, 0)),
            name: name.into(),
            dimensions: Arc::new(OnceLock::from(dimensions)),
            window: built_in::WINDOW,
            tokens: Tokens::BuiltIn,
            scale: Arc::default(),
        }
    }

    /// Counts the tokens of a text as the model does.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    pub fn window(&self) -> usize {
        self.window
    }

    /// The model and its revision.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The model's name in the index. For a service it is not known before its first response.
    pub fn model(&self) -> Option<String> {
        self.dimensions.get().map(|dimensions| self.model_with(*dimensions))
    }

    fn model_with(&self, dimensions: usize) -> String {
        format!("{}/{dimensions}", self.name)
    }

    /// Whether vectors of this model, as named in the index, can be compared with ours.
    pub fn is_current(&self, model: &str) -> bool {
        match self.model() {
            Some(current) => current == model,
            None => model.rsplit_once('/').is_some_and(|(name, _)| name == &*self.name),
        }
    }

    /// A vector for each text of a document of a tenant, a batch at a time. Dropping the returned future drops a
    /// request that is in progress; a computation ends within milliseconds once `cancelled`.
    pub async fn embed(
        &self,
        tenant: &str,
        texts: &[String],
        cores: &UserCores,
        cancelled: &CancellationToken,
        made_progress: impl Fn(),
    ) -> Result<Embedded, Failure> {
        let vectors = match &self.provider {
            Provider::Local(local) => local.embed(tenant, texts, cores, cancelled, made_progress).await?,
            Provider::Service(service) => {
                let mut vectors = Vec::with_capacity(texts.len());
                for batch in texts.chunks(service.batch()) {
                    vectors.extend(service.embed(batch).await?);
                    // The timeout is for a batch: a long document has many of them, and is not stuck.
                    made_progress();
                }
                vectors
            }
        };
        let model = self.model_of(&vectors)?;
        Ok(Embedded { model, vectors })
    }

    /// The vector of a question.
    pub async fn embed_question(&self, text: String) -> Result<(String, Vec<f32>), Failure> {
        let vectors = self.embed_short(vec![text]).await?;
        let model = self.model_of(&vectors)?;
        vectors.into_iter().next().map(|vector| (model, vector)).ok_or_else(no_vectors)
    }

    /// The vectors of a few short texts. A client waits for them, so they do not queue for a core behind documents.
    async fn embed_short(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Failure> {
        match &self.provider {
            Provider::Local(local) => local.embed_short(texts).await,
            Provider::Service(service) => {
                let all = async {
                    let mut vectors = Vec::with_capacity(texts.len());
                    for batch in texts.chunks(service.batch()) {
                        vectors.extend(service.embed(batch).await?);
                    }
                    Ok(vectors)
                };
                tokio::select! {
                    vectors = all => vectors,
                    () = Clock::System.sleep(QUESTION_TIMEOUT) => {
                        Err(Failure::new(Code::EmbedError, "The embedding service is too slow for a search"))
                    }
                }
            }
        }
    }

    /// The model of these vectors. The vectors of one document, and of one process, all have the same dimensions.
    fn model_of(&self, vectors: &[Vec<f32>]) -> Result<String, Failure> {
        let first = vectors.first().ok_or_else(no_vectors)?.len();
        let other = |expected: usize| vectors.iter().map(Vec::len).find(|length| *length != expected);
        // Learnt only from a consistent response.
        let expected = if other(first).is_none() { *self.dimensions.get_or_init(|| first) } else { first };
        match other(expected) {
            None => Ok(self.model_with(expected)),
            Some(length) => Err(Failure::new(
                Code::EmbedError,
                format!(
                    "The embedding model returned {length} dimensions in place of {expected}; if it was changed on \
                     purpose, restart Landfall"
                ),
            )),
        }
    }
}
