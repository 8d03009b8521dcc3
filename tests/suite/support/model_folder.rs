//! A BERT model in a folder, as sentence-transformers writes it: very small, with random weights.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

pub const DIMENSIONS: usize = 32;
/// The maximum number of tokens of a text, without the two special tokens around it.
pub const WINDOW: usize = 38;
const POSITIONS: usize = WINDOW + 2;
const LAYERS: usize = 2;
const INTERMEDIATE: usize = 64;
const WORDS: &[&str] = &[
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "a", "cat", "dog", "ship", "sails", "sleeps", "barks", "on",
    "sea", "mat", ".",
];

pub fn config() -> Value {
    json!({
        "model_type": "bert", "vocab_size": WORDS.len(), "hidden_size": DIMENSIONS, "num_hidden_layers": LAYERS,
        "num_attention_heads": 4, "intermediate_size": INTERMEDIATE, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
        "initializer_range": 0.02, "layer_norm_eps": 1e-12, "pad_token_id": 0,
    })
}

pub fn tokenizer() -> Value {
    let vocabulary: HashMap<&str, usize> = WORDS.iter().enumerate().map(|(id, word)| (*word, id)).collect();
    let special = |id: usize| {
        json!({ "id": id, "content": WORDS[id], "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true })
    };
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [special(0), special(1), special(2), special(3)],
        "normalizer": { "type": "Lowercase" },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": { "type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2] },
        "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]" },
    })
}

/// The same weights for the same seed.
pub fn write(folder: &Path, seed: u64) {
    write_json(folder, "config.json", &config());
    write_json(folder, "tokenizer.json", &tokenizer());
    write_weights(folder, seed, DIMENSIONS);
}

pub fn write_json(folder: &Path, name: &str, value: &Value) {
    let file = folder.join(name);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(file, value.to_string()).expect("written");
}

pub fn write_weights(folder: &Path, seed: u64, dimensions: usize) {
    let mut state = seed.max(1);
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        f32::from(u16::try_from(state >> 48).expect("16 bits")) / 65_536.0 - 0.5
    };
    let mut tensors = HashMap::new();
    let mut add = |name: String, shape: &[usize]| {
        let count: usize = shape.iter().product();
        let values: Vec<u8> = (0..count).flat_map(|_| random().to_le_bytes()).collect();
        tensors.insert(name, (shape.to_vec(), values));
    };
    let norm = |name: &str| {
        [(format!("{name}.weight"), vec![dimensions]), (format!("{name}.bias"), vec![dimensions])]
    };
    let linear = |name: &str, from: usize, to: usize| {
        [(format!("{name}.weight"), vec![to, from]), (format!("{name}.bias"), vec![to])]
    };
    let mut wanted: Vec<(String, Vec<usize>)> = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![WORDS.len(), dimensions]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![POSITIONS, dimensions]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, dimensions]),
    ];
    wanted.extend(norm("embeddings.LayerNorm"));
    for layer in 0..LAYERS {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        for part in ["query", "key", "value"] {
            wanted.extend(linear(&name(&format!("attention.self.{part}")), dimensions, dimensions));
        }
        wanted.extend(linear(&name("attention.output.dense"), dimensions, dimensions));
        wanted.extend(norm(&name("attention.output.LayerNorm")));
        wanted.extend(linear(&name("intermediate.dense"), dimensions, INTERMEDIATE));
        wanted.extend(linear(&name("output.dense"), INTERMEDIATE, dimensions));
        wanted.extend(norm(&name("output.LayerNorm")));
    }
    for (name, shape) in wanted {
        add(name, &shape);
    }
    let views = tensors.iter().map(|(name, (shape, values))| {
        (name, TensorView::new(Dtype::F32, shape.clone(), values).expect("a tensor"))
    });
    safetensors::serialize_to_file(views, None, &folder.join("model.safetensors")).expect("saved");
}
