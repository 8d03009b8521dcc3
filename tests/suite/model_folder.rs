//! A model in a folder: it creates the vectors and counts the tokens of chunks; and which folders are refused.

use std::path::Path;

use landfall_core::caller::TenantUser;
use landfall_server::config::{Config, Variables};
use landfall_server::stages::cores::Cores;
use landfall_server::stages::embed::Embedder;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::model_folder::{DIMENSIONS, WINDOW, config, tokenizer, write, write_json, write_weights};
use crate::support::{Setup, TestDb, on_each_database};

/// Where `make model` puts one.
const FETCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/models/all-MiniLM-L6-v2");

fn settings(folder: &Path, chunk_size: Option<usize>) -> Result<Config, Vec<String>> {
    let mut variables = Variables::default();
    variables.set("EMBED_MODEL_DIR", folder.to_str().expect("a path"));
    if let Some(size) = chunk_size {
        variables.set("CHUNK_SIZE", size.to_string());
    }
    Config::from_variables(variables).map_err(|error| error.0)
}

async fn open(folder: &Path) -> Embedder {
    Embedder::open(&settings(folder, None).expect("a good folder").embed).await.expect("a good model")
}

async fn embed(embedder: &Embedder, texts: &[&str]) -> Vec<Vec<f32>> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let cores = Cores::of_this_machine().of_user(TenantUser::new("alice", "alice"));
    embedder.embed("alice", &texts, &cores, &CancellationToken::new(), || ()).await.expect("vectors").vectors
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[on_each_database]
async fn a_model_in_a_folder_creates_the_vectors_and_counts_the_tokens(db: TestDb) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 1);
    let server = Setup::default().with("EMBED_MODEL_DIR", folder.path().display()).start(&db).await;
    let alice = server.client("alice");
    let text = "The dog barks . A ship sails on the sea . ".repeat(20);
    let file = alice.upload("a.txt", text.as_bytes()).await;
    server.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
    let chunks = alice.get(&format!("/api/v2/uploads/files/{file}/chunks")).await.ok();
    for chunk in chunks["chunks"].as_array().unwrap() {
        let words = chunk["text"].as_str().unwrap().split_whitespace().count();
        assert_eq!(chunk["tokens"], words, "in this model a token is a word");
        assert!(words <= WINDOW);
    }
    // The weights are random, so all texts are equally close. Vectors of this model are compared, and only words count.
    let found = alice.post("/api/v2/search", json!({ "query": "ship", "explain": true })).await.ok();
    assert!(found["hits"][0]["explanation"]["similarity"].is_number(), "{found}");
    assert_eq!(found["hits"][0]["matched"], json!(["words"]), "{found}");
    server.assert_audit_clean().await;
}

#[tokio::test]
async fn vectors_have_length_one_and_depend_only_on_the_model_and_the_text() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 1);
    let first = open(folder.path()).await;
    let vectors = embed(&first, &["the cat sleeps", "the dog barks", "The Cat  sleeps"]).await;
    for vector in &vectors {
        assert_eq!(vector.len(), DIMENSIONS);
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-5);
    }
    assert_eq!(vectors[0], vectors[2], "the same tokens");
    assert_ne!(vectors[0], vectors[1]);
    let name = first.model().unwrap();
    assert!(name.starts_with("bert@sha256:") && name.ends_with("/32"), "{name}");

    let moved = tempfile::tempdir().unwrap();
    write(moved.path(), 1);
    assert_eq!(
        open(moved.path()).await.model().unwrap(),
        name,
        "the same files in another folder are the same model"
    );
    write(moved.path(), 2);
    assert!(!open(moved.path()).await.is_current(&name), "other weights are another model");

    // The last token within the window counts; tokens beyond it change nothing.
    let most = "cat ".repeat(WINDOW - 1);
    let texts = ["dog", "ship", "dog ship"].map(|end| format!("{most}{end}"));
    let vectors = embed(&first, &texts.each_ref().map(String::as_str)).await;
    assert_ne!(vectors[0], vectors[1]);
    assert_eq!(vectors[0], vectors[2]);
}

#[tokio::test]
async fn the_pooling_is_the_one_named_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 1);
    let by_mean = open(folder.path()).await;
    let pooling =
        |mode: &str| json!({ "word_embedding_dimension": DIMENSIONS, mode: true, "include_prompt": true });
    write_json(folder.path(), "1_Pooling/config.json", &pooling("pooling_mode_mean_tokens"));
    assert_eq!(open(folder.path()).await.model(), by_mean.model(), "the mean is the default");
    write_json(folder.path(), "1_Pooling/config.json", &pooling("pooling_mode_cls_token"));
    let by_first = open(folder.path()).await;
    assert_ne!(by_first.model(), by_mean.model());
    assert_ne!(embed(&by_first, &["the cat"]).await, embed(&by_mean, &["the cat"]).await);
    write_json(folder.path(), "1_Pooling/config.json", &pooling("pooling_mode_max_tokens"));
    assert!(settings(folder.path(), None).unwrap_err()[0].contains("pools by the mean"));
}

#[test]
fn the_chunk_size_fits_the_model() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 1);
    assert_eq!(settings(folder.path(), None).unwrap().chunks.size_tokens, WINDOW);
    let complaints = settings(folder.path(), Some(WINDOW + 1)).unwrap_err();
    assert_eq!(complaints.len(), 1);
    assert!(
        complaints[0].contains("at most 38") && complaints[0].contains("EMBED_MODEL_DIR"),
        "{complaints:?}"
    );
    // A model that was trained on fewer tokens than it has positions says so.
    write_json(
        folder.path(),
        "sentence_bert_config.json",
        &json!({ "max_seq_length": 22, "do_lower_case": false }),
    );
    assert_eq!(settings(folder.path(), None).unwrap().chunks.size_tokens, 20);
}

#[test]
fn an_unusable_folder_is_named_with_what_is_wrong() {
    type Damage = fn(&Path);
    let cases: &[(&str, Damage)] = &[
        ("there is no model.safetensors", |folder| {
            std::fs::remove_file(folder.join("model.safetensors")).unwrap();
        }),
        ("there is no tokenizer.json", |folder| std::fs::remove_file(folder.join("tokenizer.json")).unwrap()),
        ("there is no config.json", |folder| std::fs::remove_dir_all(folder).unwrap()),
        ("valid config.json", |folder| std::fs::write(folder.join("config.json"), "{").unwrap()),
        ("\"roberta\"", |folder| {
            let mut other = config();
            other["model_type"] = json!("roberta");
            write_json(folder, "config.json", &other);
        }),
        ("5 heads", |folder| {
            let mut other = config();
            other["num_attention_heads"] = json!(5);
            write_json(folder, "config.json", &other);
        }),
        ("has a Dense", |folder| {
            write_json(
                folder,
                "modules.json",
                &json!([
                    { "idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer" },
                    { "idx": 1, "name": "1", "path": "1_Dense", "type": "sentence_transformers.models.Dense" },
                ]),
            );
        }),
    ];
    for (said, damage) in cases {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 1);
        damage(folder.path());
        let complaints = settings(folder.path(), None).expect_err(said);
        assert!(
            complaints[0].starts_with("EMBED_MODEL_DIR is") && complaints[0].contains(said),
            "{complaints:?}"
        );
    }
}

#[tokio::test]
async fn files_that_do_not_belong_together_stop_the_start_with_a_message() {
    type Damage = fn(&Path);
    let cases: &[(&str, Damage)] = &[
        ("model.safetensors", |folder| write_weights(folder, 1, 16)),
        ("model.safetensors", |folder| {
            std::fs::write(folder.join("model.safetensors"), "no weights").unwrap();
        }),
        ("do not belong together", |folder| {
            let mut other = tokenizer();
            other["model"]["vocab"]["another"] = json!(16);
            write_json(folder, "tokenizer.json", &other);
        }),
        ("tokenizer.json", |folder| std::fs::write(folder.join("tokenizer.json"), "{}").unwrap()),
    ];
    for (said, damage) in cases {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 1);
        damage(folder.path());
        let settings = settings(folder.path(), None).expect("the small files are good");
        let error = Embedder::open(&settings.embed).await.err().expect(said).to_string();
        assert!(error.contains("EMBED_MODEL_DIR") && error.contains(said), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fetched_model_matches_sentences_of_the_same_meaning_in_other_words() {
    if !Path::new(FETCHED).is_dir() {
        eprintln!("not run: `make model` fetches the model for it");
        return;
    }
    let settings = settings(Path::new(FETCHED), None).expect("a good folder");
    assert_eq!(settings.chunks.size_tokens, 240);
    let embedder = Embedder::open(&settings.embed).await.expect("a good model");
    let vectors =
        embed(&embedder, &["a cat sat on the mat", "a kitten rests on the rug", "quarterly revenue"]).await;
    let (near, far) = (cosine(&vectors[0], &vectors[1]), cosine(&vectors[0], &vectors[2]));
    assert!(near > 0.5 && far < 0.2, "{near} {far}");
    // The first numbers that the model's page shows for this sentence; ours are computed with bytes.
    let known = embed(&embedder, &["This is an example sentence"]).await;
    for (found, expected) in known[0].iter().zip([0.067_66, 0.063_50, 0.048_71]) {
        assert!((found - expected).abs() < 2e-2, "{:?}", &known[0][..3]);
    }
}
