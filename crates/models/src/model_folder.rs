//! A model in a folder, in the layout of sentence-transformers: a BERT encoder whose token vectors are pooled into
//! one.

use std::path::{Path, PathBuf};

use candle_core::{DType, Device, IndexOp, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokenizers::{Tokenizer, TruncationParams};

use crate::tokens::Tokens;
use crate::{LocalModel, normalized};
use landfall_core::failure::{Code, Failure};

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "model.safetensors";
/// The special tokens around a text: `[CLS]` and `[SEP]`.
const SPECIAL_TOKENS: usize = 2;

/// What the folder's small files contain, before anything large is loaded.
#[derive(Debug, Clone)]
pub struct ModelFolder {
    path: PathBuf,
    pooling: Pooling,
    /// The maximum number of tokens that the model reads, without the special tokens.
    pub window: usize,
}

/// How the vectors of the tokens become the vector of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pooling {
    Mean,
    /// The vector of the first token, which represents the whole text.
    First,
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
        let mut tokenizer =
            Tokenizer::from_bytes(&tokenizer).map_err(|error| about(&format!("{TOKENIZER}: {error}")))?;
        let known = tokenizer.get_vocab_size(true);
        if known > config.vocab_size {
            return Err(about(&format!(
                "{TOKENIZER} has {known} tokens and the model {}: they do not belong together",
                config.vocab_size
            )));
        }
        let tokens = Tokens::new(tokenizer.clone());
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(Some(TruncationParams {
                max_length: self.window + SPECIAL_TOKENS,
                ..Default::default()
            }))
            .map_err(|error| about(&format!("{TOKENIZER}: {error}")))?;
        let weights = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu)
            .and_then(|weights| BertModel::load(weights, &config))
            .map_err(|error| about(&format!("{WEIGHTS}: {error}")))?;
        let model = Bert {
            model: weights,
            tokenizer,
            tokens,
            pooling: self.pooling,
            revision,
            dimensions: config.hidden_size,
        };
        // If the model cannot embed one word, the start should fail, not the first file.
        model.vector("landfall").map_err(|failure| about(&failure.message))?;
        Ok(model)
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
    let (size, heads) = (config.hidden_size, config.num_attention_heads);
    if size == 0 || heads == 0 || !size.is_multiple_of(heads) {
        return Err(format!(
            "a folder with a valid {CONFIG}; {size} dimensions cannot be divided among {heads} heads"
        ));
    }
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
    model: BertModel,
    tokenizer: Tokenizer,
    tokens: Tokens,
    pooling: Pooling,
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

    fn pooled(&self, ids: &[u32], types: &[u32]) -> candle_core::Result<Vec<f32>> {
        let row = |numbers: &[u32]| Tensor::new(numbers, &Device::Cpu)?.unsqueeze(0);
        // One text at a time: without padding there is nothing to mask.
        let hidden = self.model.forward(&row(ids)?, &row(types)?, None)?.squeeze(0)?;
        match self.pooling {
            Pooling::Mean => hidden.mean(0)?.to_vec1(),
            Pooling::First => hidden.i(0)?.to_vec1(),
        }
    }
}

impl LocalModel for Bert {
    fn vector(&self, text: &str) -> Result<Vec<f32>, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Code::EmbedError, format!("The embedding model failed: {error}"))
        };
        let encoded = self.tokenizer.encode(text, true).map_err(|error| failed(&error))?;
        if encoded.is_empty() {
            return Err(failed(&"its tokenizer returns no tokens for this text"));
        }
        let pooled =
            self.pooled(encoded.get_ids(), encoded.get_type_ids()).map_err(|error| failed(&error))?;
        normalized(pooled).ok_or_else(|| failed(&"it returned no valid vector for this text"))
    }
}
