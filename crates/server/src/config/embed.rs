//! Which model makes the vectors, and how long the chunks are that it gets.

use std::path::Path;

use reqwest::Url;
use reqwest::header::HeaderValue;

use landfall_models::chunk::ChunkConfig;

use super::reader::{Reader, milliseconds};
use crate::stages::embed::MOST_DIMENSIONS;
use crate::stages::embed::{EmbedConfig, Model, ServiceConfig};
use landfall_models::model_folder::ModelFolder;

/// Chunks that are longer than this answer too many questions at once to answer one well.
const LONGEST_DEFAULT_CHUNK: usize = 240;
/// For a service, whose models read more, and by whose tokens we can only estimate.
const DEFAULT_CHUNK_OF_A_SERVICE: usize = 400;
/// What a chunk shares with the one before, unless it is set: a sixth.
const OVERLAPS: usize = 6;
const MOST_TEXTS: usize = 2_048;

impl EmbedConfig {
    pub(super) fn read(read: &mut Reader) -> Self {
        let folder = read.optional("EMBED_MODEL_DIR", |path| ModelFolder::inspect(Path::new(path)));
        let endpoint = read.service_url("EMBEDDINGS_URL");
        let model = read.text("EMBEDDINGS_MODEL", "");
        let api_key = read.secret("EMBEDDINGS_API_KEY");
        let dimensions = read.optional("EMBEDDINGS_DIMENSIONS", |text| {
            text.parse()
                .ok()
                .filter(|dimensions| (1..=MOST_DIMENSIONS).contains(dimensions))
                .ok_or_else(|| format!("a number from 1 to {MOST_DIMENSIONS}"))
        });
        let batch = read.with("EMBEDDINGS_BATCH", "64", |text| {
            text.parse()
                .ok()
                .filter(|texts| (1..=MOST_TEXTS).contains(texts))
                .ok_or_else(|| format!("a number from 1 to {MOST_TEXTS}"))
        });
        let timeout = read.with("EMBEDDINGS_TIMEOUT_MS", "60000", milliseconds);
        if api_key.as_ref().is_some_and(|key| HeaderValue::from_str(key).is_err()) {
            read.complain("EMBEDDINGS_API_KEY", "a key that an HTTP header can hold, on one line");
        }
        let model = match (folder, endpoint) {
            (None, None) => Model::BuiltIn,
            (Some(folder), None) => Model::Folder(folder),
            (folder, Some(url)) => {
                if folder.is_some() {
                    read.complain("EMBED_MODEL_DIR", "set only where EMBEDDINGS_URL is not");
                }
                if model.is_empty() {
                    read.complain(
                        "EMBEDDINGS_MODEL",
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
        Self { model }
    }

    fn default_chunk(&self) -> usize {
        match &self.model {
            Model::BuiltIn => 120,
            Model::Folder(folder) => folder.window.min(LONGEST_DEFAULT_CHUNK),
            Model::Service(_) => DEFAULT_CHUNK_OF_A_SERVICE,
        }
    }
}

pub(super) fn read_chunks(read: &mut Reader, embed: &EmbedConfig) -> ChunkConfig {
    let default = embed.default_chunk();
    let chunks = ChunkConfig {
        size_tokens: read.at_least("CHUNK_SIZE", default, default.min(16)),
        overlap_tokens: read.at_least("CHUNK_OVERLAP", default / OVERLAPS, 0),
    };
    if chunks.size_tokens > embed.window() {
        // What does not fit would be in the chunk and not in its vector.
        let reader = match embed.model {
            Model::BuiltIn => "which is what the built-in model reads",
            Model::Folder(_) => "which is what the model in EMBED_MODEL_DIR reads",
            Model::Service(_) => "whatever the model of a service reads",
        };
        read.complain("CHUNK_SIZE", &format!("at most {}, {reader}", embed.window()));
    }
    if chunks.overlap_tokens * 2 > chunks.size_tokens {
        read.complain("CHUNK_OVERLAP", "at most half of CHUNK_SIZE");
    }
    chunks
}

/// People give the address of the API or that of the very call.
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
