//! Which model computes the vectors, and how long the chunks are that it reads.

use std::path::Path;

use reqwest::Url;
use reqwest::header::HeaderValue;

use landfall_models::chunk::{ChunkConfig, Chunking};

use super::declared::group;
use super::reader::{Reader, bytes, milliseconds, one_of};
use crate::stages::embed::MAX_DIMENSIONS;
use crate::stages::embed::{EmbedConfig, Model, ServiceConfig};
use landfall_models::model_folder::ModelFolder;

group! { "Embeddings and chunks" {
    EMBED_MODEL_DIR = "": "A folder with a BERT model in the format of sentence-transformers, instead of the built-in model."
    EMBED_CACHE_BYTES = "32MB": "Memory for vectors of a model on this machine, so that chunks of a tenant with the same text are computed once; 0 keeps none."
    EMBEDDINGS_URL = "": "A service with OpenAI's embeddings API, such as `https://api.openai.com/v1`, instead of a model on this machine."
    EMBEDDINGS_MODEL = "": "The name of the service's model, required if `EMBEDDINGS_URL` is set."
    EMBEDDINGS_API_KEY = "": "The key for the service, which Landfall never shows."
    EMBEDDINGS_DIMENSIONS = "": "Dimensions to request from the service and to require in its responses, if not the model's own."
    EMBEDDINGS_BATCH = "64": "Chunks in one request to the service."
    EMBEDDINGS_TIMEOUT_MS = "60000": "How long the service may take to answer one request."
    CHUNKING = "structure": "Where a text may be cut: `structure` keeps rows of tables and items of lists whole and repeats the header row of a table; `fixed` fills each chunk."
    CHUNK_SIZE = "120": "The maximum number of tokens in a chunk, at most what the model reads."
    CHUNK_OVERLAP = "20": "Tokens that a chunk shares with the previous one, at most half of `CHUNK_SIZE`."
    SEARCH_CACHE_BYTES = "256MB": "Memory for the codes of vectors that searches used last; 56 bytes for each chunk with the built-in model, and one user takes at most half; 0 keeps none."
} }

const DEFAULT_CHUNK_OF_THE_BUILT_IN_MODEL: usize = 120;
/// A longer chunk covers too many topics for one vector.
const MAX_DEFAULT_CHUNK: usize = 240;
/// The models of services read more. Their tokens can only be estimated.
const DEFAULT_CHUNK_OF_A_SERVICE: usize = 400;
/// The default overlap is a sixth of the default size.
const DEFAULT_OVERLAP_DIVISOR: usize = 6;
const MAX_BATCH: usize = 2_048;
const MAX_CACHE_BYTES: u64 = 1 << 40;

/// The most memory that the codes of vectors may take.
pub(super) fn read_search_cache(read: &mut Reader) -> usize {
    read.with(SEARCH_CACHE_BYTES, cache_bytes)
}

impl EmbedConfig {
    pub(super) fn read(read: &mut Reader) -> Self {
        let folder = read.optional(EMBED_MODEL_DIR, |path| ModelFolder::inspect(Path::new(path)));
        let cache_bytes = read.with(EMBED_CACHE_BYTES, cache_bytes);
        let endpoint = read.url_without_password(EMBEDDINGS_URL);
        let model = read.text(EMBEDDINGS_MODEL);
        let api_key = read.secret(EMBEDDINGS_API_KEY);
        let dimensions = read.optional(EMBEDDINGS_DIMENSIONS, |text| {
            text.parse()
                .ok()
                .filter(|dimensions| (1..=MAX_DIMENSIONS).contains(dimensions))
                .ok_or_else(|| format!("a number from 1 to {MAX_DIMENSIONS}"))
        });
        let batch = read.between(EMBEDDINGS_BATCH, 1, MAX_BATCH);
        let timeout = read.with(EMBEDDINGS_TIMEOUT_MS, milliseconds);
        if api_key.as_ref().is_some_and(|key| HeaderValue::from_str(key).is_err()) {
            read.complain(EMBEDDINGS_API_KEY, "a key that an HTTP header can hold, on one line");
        }
        let model = match (folder, endpoint) {
            (None, None) => Model::BuiltIn,
            (Some(folder), None) => Model::Folder(folder),
            (folder, Some(url)) => {
                if folder.is_some() {
                    read.complain(EMBED_MODEL_DIR, "set only where EMBEDDINGS_URL is not");
                }
                if model.is_empty() {
                    read.complain(
                        EMBEDDINGS_MODEL,
                        "the name of a model that the service at EMBEDDINGS_URL has",
                    );
                }
                Model::Service(ServiceConfig {
                    endpoint: embeddings_endpoint(url),
                    model,
                    api_key,
                    dimensions,
                    batch,
                    timeout,
                })
            }
        };
        Self { model, cache_bytes }
    }

    fn default_chunk(&self) -> usize {
        match &self.model {
            Model::BuiltIn => DEFAULT_CHUNK_OF_THE_BUILT_IN_MODEL,
            Model::Folder(folder) => folder.window.min(MAX_DEFAULT_CHUNK),
            Model::Service(_) => DEFAULT_CHUNK_OF_A_SERVICE,
        }
    }
}

pub(super) fn read_chunks(read: &mut Reader, embed: &EmbedConfig) -> ChunkConfig {
    let default = embed.default_chunk();
    let chunks = ChunkConfig {
        chunking: read.with(CHUNKING, |text| {
            one_of(text, &[("structure", Chunking::Structure), ("fixed", Chunking::Fixed)])
        }),
        size_tokens: read.at_least_or(CHUNK_SIZE, default, default.min(16)),
        overlap_tokens: read.at_least_or(CHUNK_OVERLAP, default / DEFAULT_OVERLAP_DIVISOR, 0),
    };
    if chunks.size_tokens > embed.window() {
        // The model would ignore the end of a longer chunk.
        let reader = match embed.model {
            Model::BuiltIn => "which is what the built-in model reads",
            Model::Folder(_) => "which is what the model in EMBED_MODEL_DIR reads",
            Model::Service(_) => "the limit for a service",
        };
        read.complain(CHUNK_SIZE, &format!("at most {}, {reader}", embed.window()));
    }
    if chunks.overlap_tokens * 2 > chunks.size_tokens {
        read.complain(CHUNK_OVERLAP, "at most half of CHUNK_SIZE");
    }
    chunks
}

/// No cache, or a size.
fn cache_bytes(text: &str) -> Result<usize, String> {
    let size = if text.trim() == "0" { Some(0) } else { bytes(text).ok() };
    size.filter(|size| *size <= MAX_CACHE_BYTES).and_then(|size| usize::try_from(size).ok()).ok_or_else(
        || format!("0 or a number of bytes, like 33554432 or 32MB, up to {}GB", MAX_CACHE_BYTES >> 30),
    )
}

/// Accepts the URL of the API and the URL of its `/embeddings` endpoint.
fn embeddings_endpoint(mut url: Url) -> Url {
    let path = url.path().trim_end_matches('/').to_owned();
    if path.ends_with("/embeddings") {
        url.set_path(&path);
    } else {
        url.set_path(&format!("{path}/embeddings"));
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_has_a_size_or_is_off() {
        for (given, size) in [("0", 0), ("32MB", 32 << 20), ("1000", 1000), ("1024GB", 1 << 40)] {
            assert_eq!(cache_bytes(given), Ok(size), "{given}");
        }
        for wrong in ["", "-1", "lots", "1025GB"] {
            assert!(cache_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_address_of_the_api_and_that_of_the_call_are_the_same() {
        for (given, called) in [
            ("https://api.example.com/v1", "https://api.example.com/v1/embeddings"),
            ("https://api.example.com/v1/", "https://api.example.com/v1/embeddings"),
            ("https://api.example.com/v1/embeddings", "https://api.example.com/v1/embeddings"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/embeddings"),
            ("https://x/openai?api-version=3", "https://x/openai/embeddings?api-version=3"),
        ] {
            assert_eq!(embeddings_endpoint(given.parse().expect("a URL")).as_str(), called);
        }
    }
}
