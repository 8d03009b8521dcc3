//! A model in a folder, in the layout of sentence-transformers: a BERT encoder whose token vectors are pooled into
//! one.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokenizers::Tokenizer;

use crate::LocalModel;
use crate::encoder::{Config, Encoder, Pooling, Stored};
use crate::text_encoder::{SPECIAL_TOKENS, TextEncoder};
use crate::tokens::Tokens;
use landfall_core::failure::Failure;

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "model.safetensors";

/// What the folder's small files contain, before anything large is loaded.
#[derive(Debug, Clone)]
pub struct ModelFolder {
    path: PathBuf,
    pooling: Pooling,
    /// The maximum number of tokens that the model reads, without the special tokens.
    pub window: usize,
}

#[derive(Deserialize)]
struct SentenceConfig {
    max_seq_length: Option<usize>,
}

#[derive(Deserialize)]
struct Module {
    r#type: String,
    path: String,
}

impl ModelFolder {
    /// Checks whether the folder has a usable model. The error says what is required.
    pub fn inspect(path: &Path) -> Result<Self, String> {
        for file in [CONFIG, TOKENIZER, WEIGHTS] {
            if !path.join(file).is_file() {
                return Err(format!(
                    "a folder with {CONFIG}, {TOKENIZER} and {WEIGHTS}; there is no {file} in it"
                ));
            }
        }
        let config = read_config(path)?;
        let stated: Option<SentenceConfig> = optional(path, "sentence_bert_config.json")?;
        let max_tokens = config.max_position_embeddings;
        let max_tokens = stated
            .and_then(|stated| stated.max_seq_length)
            .map_or(max_tokens, |stated| stated.min(max_tokens));
        if max_tokens <= SPECIAL_TOKENS {
            return Err(format!("a folder with a model that reads more than {max_tokens} tokens"));
        }
        Ok(Self { path: path.to_owned(), pooling: read_pooling(path)?, window: max_tokens - SPECIAL_TOKENS })
    }

    /// Loads the model. The error is a message for people.
    pub fn load(&self) -> Result<Bert, String> {
        let about = |error: &dyn std::fmt::Display| {
            format!("the model in EMBED_MODEL_DIR ({}) cannot be used: {error}", self.path.display())
        };
        let read = |file: &str| {
            std::fs::read(self.path.join(file)).map_err(|error| about(&format!("{file}: {error}")))
        };
        let (config, tokenizer, weights) = (read(CONFIG)?, read(TOKENIZER)?, read(WEIGHTS)?);
        let mut hash = Sha256::new();
        for part in [&config, &tokenizer, &weights] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.update(format!("{:?} {}", self.pooling, self.window));
        let revision = hex::encode(&hash.finalize()[..16]);

        let config = read_config(&self.path).map_err(|error| about(&error))?;
        let tokenizer =
            Tokenizer::from_bytes(&tokenizer).map_err(|error| about(&format!("{TOKENIZER}: {error}")))?;
        let known = tokenizer.get_vocab_size(true);
        if known > config.vocab_size {
            return Err(about(&format!(
                "{TOKENIZER} has {known} tokens and the model {}: they do not belong together",
                config.vocab_size
            )));
        }
        let tokens = Tokens::new(tokenizer.clone());
        let encoder = Stored::read(&weights)
            .and_then(|weights| Encoder::load(&weights, &config))
            .map_err(|error| about(&format!("{WEIGHTS}: {error}")))?;
        let encoder = TextEncoder::new(encoder, tokenizer, self.window, self.pooling)
            .map_err(|error| about(&format!("{TOKENIZER}: {error}")))?;
        // If the model cannot embed one word, the start should fail, not the first file.
        encoder.vectors(&["landfall"], &|| false).map_err(|failure| about(&failure.message))?;
        Ok(Bert { encoder, tokens, revision, dimensions: config.hidden_size })
    }
}

/// One of the small files, parsed as JSON.
fn required<T: for<'de> Deserialize<'de>>(path: &Path, file: &str) -> Result<T, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("a folder with a valid {file}: {error}");
    let bytes = std::fs::read(path.join(file)).map_err(|error| unreadable(&error))?;
    serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))
}

fn optional<T: for<'de> Deserialize<'de>>(path: &Path, file: &str) -> Result<Option<T>, String> {
    if path.join(file).is_file() { required(path, file).map(Some) } else { Ok(None) }
}

fn read_config(path: &Path) -> Result<Config, String> {
    let raw: Value = required(path, CONFIG)?;
    let kind = raw["model_type"].as_str().unwrap_or("bert");
    if kind != "bert" {
        return Err(format!("a folder with a BERT model; this one is {kind:?}"));
    }
    let config: Config = required(path, CONFIG)?;
    config.check().map_err(|error| format!("a folder with a valid {CONFIG}; {error}"))?;
    Ok(config)
}

/// The default is the mean, as in sentence-transformers.
fn read_pooling(path: &Path) -> Result<Pooling, String> {
    let modules: Vec<Module> = optional(path, "modules.json")?.unwrap_or_default();
    let mut folder = "1_Pooling".to_owned();
    for module in modules {
        match module.r#type.rsplit('.').next().unwrap_or_default() {
            "Transformer" | "Normalize" => {}
            "Pooling" => folder = module.path,
            other => {
                return Err(format!(
                    "a folder with a model of an encoder and a pooling; this one has a {other}"
                ));
            }
        }
    }
    let stated: Option<serde_json::Map<String, Value>> = optional(path, &format!("{folder}/config.json"))?;
    let Some(stated) = stated else { return Ok(Pooling::Mean) };
    let mut wanted = stated
        .iter()
        .filter(|(name, value)| name.starts_with("pooling_mode_") && **value == Value::Bool(true))
        .map(|(name, _)| name.as_str());
    match (wanted.next(), wanted.next()) {
        (Some("pooling_mode_mean_tokens"), None) => Ok(Pooling::Mean),
        (Some("pooling_mode_cls_token"), None) => Ok(Pooling::First),
        _ => Err("a folder with a model that pools by the mean or by the first token".to_owned()),
    }
}

pub struct Bert {
    encoder: TextEncoder,
    tokens: Tokens,
    revision: String,
    dimensions: usize,
}

impl Bert {
    /// The name depends on the content of the files and not on their path: a folder may move.
    pub fn name(&self) -> String {
        format!("bert@sha256:{}", self.revision)
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub fn tokens(&self) -> Tokens {
        self.tokens.clone()
    }
}

impl LocalModel for Bert {
    fn vectors(
        &self,
        texts: &[&str],
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Vec<f32>>>, Failure> {
        self.encoder.vectors(texts, is_cancelled)
    }
}
