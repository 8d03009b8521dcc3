//! A model that runs in this process: chunks with the same text are computed once.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::cache::{Key, VectorCache};
use crate::stages::cores::UserCores;
use landfall_core::failure::{Code, Failure};
use landfall_models::{LocalModel, no_vectors};

/// Chunks that are embedded between two reports of progress.
const BATCH_SIZE: usize = 32;

#[derive(Clone)]
pub struct Local {
    model: Arc<dyn LocalModel>,
    cache: Arc<VectorCache>,
}

impl Local {
    pub fn new(model: impl LocalModel + 'static, cache_bytes: usize) -> Self {
        Self { model: Arc::new(model), cache: Arc::new(VectorCache::new(cache_bytes)) }
    }

    /// A vector for each chunk of a tenant's document.
    pub async fn embed(
        &self,
        tenant: &str,
        texts: &[String],
        cores: &UserCores,
        cancelled: &CancellationToken,
        made_progress: impl Fn(),
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(texts.len());
        // Where in this document a text was first, because a large document may be larger than the cache.
        let mut earlier: HashMap<Key, usize> = HashMap::new();
        for batch in texts.chunks(BATCH_SIZE) {
            let keys: Vec<Key> = batch.iter().map(|text| Key::new(tenant, text)).collect();
            let mut known: HashMap<Key, Vec<f32>> = HashMap::new();
            let mut missing: Vec<(Key, String)> = Vec::new();
            for (key, text) in keys.iter().zip(batch) {
                if known.contains_key(key) || missing.iter().any(|(other, _)| other == key) {
                    continue;
                }
                match earlier.get(key).map(|index| vectors[*index].clone()).or_else(|| self.cache.get(key)) {
                    Some(vector) => drop(known.insert(*key, vector)),
                    None => missing.push((*key, text.clone())),
                }
            }
            if !missing.is_empty() {
                let (missing_keys, missing_texts): (Vec<Key>, Vec<String>) = missing.into_iter().unzip();
                let (model, cancelled) = (self.model.clone(), cancelled.clone());
                let computed =
                    cores.run(&made_progress, move || compute(&*model, &missing_texts, &cancelled)).await?;
                for (key, vector) in missing_keys.into_iter().zip(computed) {
                    self.cache.insert(key, &vector);
                    known.insert(key, vector);
                }
            }
            for key in keys {
                earlier.entry(key).or_insert(vectors.len());
                vectors.push(known.get(&key).ok_or_else(no_vectors)?.clone());
            }
            // The timeout is for a batch: a long document has many of them, and is not stuck.
            made_progress();
        }
        Ok(vectors)
    }

    /// The vectors of questions. They do not wait for a core, and have the priority of other requests.
    pub async fn embed_short(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Failure> {
        let model = self.model.clone();
        landfall_core::blocking::run(move || compute(&*model, &texts, &CancellationToken::new()))
            .await
            .unwrap_or_else(|_| Err(Failure::new(Code::Unknown, "The model failed unexpectedly")))
    }
}

fn compute(
    model: &dyn LocalModel,
    texts: &[String],
    cancelled: &CancellationToken,
) -> Result<Vec<Vec<f32>>, Failure> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    model
        .vectors(&texts, &|| cancelled.is_cancelled())?
        .ok_or_else(|| Failure::new(Code::EmbedError, "Embedding was stopped"))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::stages::cores::Cores;
    use landfall_core::caller::TenantUser;

    /// Remembers the batches that it was given; the vector of a text is its length.
    #[derive(Clone, Default)]
    struct Recording(Arc<Mutex<Vec<Vec<String>>>>);

    impl LocalModel for Recording {
        fn vectors(
            &self,
            texts: &[&str],
            is_cancelled: &dyn Fn() -> bool,
        ) -> Result<Option<Vec<Vec<f32>>>, Failure> {
            if is_cancelled() {
                return Ok(None);
            }
            self.0.lock().unwrap().push(texts.iter().map(|text| (*text).to_owned()).collect());
            let length = |text: &&str| f32::from(u16::try_from(text.len()).expect("a short text"));
            Ok(Some(texts.iter().map(|text| vec![length(text)]).collect()))
        }
    }

    impl Recording {
        fn batches(&self) -> Vec<Vec<String>> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    async fn embed(local: &Local, tenant: &str, texts: &[String]) -> Vec<Vec<f32>> {
        let cores = Cores::of_this_machine().of_user(TenantUser::new(tenant, "alice"));
        local.embed(tenant, texts, &cores, &CancellationToken::new(), || ()).await.expect("vectors")
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[tokio::test]
    async fn a_tenants_chunks_with_the_same_text_are_computed_once() {
        let model = Recording::default();
        let local = Local::new(model.clone(), 1 << 20);
        let vectors = embed(&local, "acme", &texts(&["a", "bb", "a", "ccc", "bb"])).await;
        assert_eq!(vectors, [[1.0], [2.0], [1.0], [3.0], [2.0]]);
        assert_eq!(model.batches(), [["a", "bb", "ccc"]]);
        assert_eq!(embed(&local, "acme", &texts(&["ccc", "dddd"])).await, [[3.0], [4.0]]);
        assert_eq!(model.batches(), [["dddd"]]);
        assert_eq!(embed(&local, "acme", &texts(&["a"])).await, [[1.0]]);
        assert!(model.batches().is_empty());
        embed(&local, "other", &texts(&["a"])).await;
        assert_eq!(model.batches(), [["a"]], "another tenant's");
    }

    #[tokio::test]
    async fn a_document_repeats_no_text_even_without_a_cache() {
        let model = Recording::default();
        let local = Local::new(model.clone(), 0);
        let long: Vec<String> = (0..100).map(|number| "x".repeat(number % 40 + 1)).collect();
        let vectors = embed(&local, "acme", &long).await;
        for (text, vector) in long.iter().zip(vectors) {
            assert_eq!(vector, [f32::from(u16::try_from(text.len()).expect("a short text"))]);
        }
        let batches = model.batches();
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [32, 8]);
        embed(&local, "acme", &long[..1]).await;
        assert_eq!(model.batches().len(), 1, "nothing is kept from one document to the next");
    }

    #[tokio::test]
    async fn cancelled_work_ends_with_a_failure_and_is_not_kept() {
        let model = Recording::default();
        let local = Local::new(model.clone(), 1 << 20);
        let cores = Cores::of_this_machine().of_user(TenantUser::new("acme", "alice"));
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let failure = local.embed("acme", &texts(&["a"]), &cores, &cancelled, || ()).await.unwrap_err();
        assert_eq!(failure.code, Code::EmbedError);
        embed(&local, "acme", &texts(&["a"])).await;
        assert_eq!(model.batches(), [["a"]]);
    }
}
