//! How similar texts are with a model: what is close for one model is far for another.
//!
//! Some questions are embedded with passages that answer them. Each question is compared with its own passage and with
//! all others. So the scale is known for every model, without a setting.

use landfall_core::failure::Failure;

use super::Embedder;
use crate::content::fusion::Scale;

/// Questions with passages that answer them. No two are about the same subject.
const PAIRS: [(&str, &str); 12] = [
    (
        "When must the tax return be filed?",
        "Income tax returns for the past year are due by the end of July. A late return costs a fine.",
    ),
    (
        "How do I descale the coffee machine?",
        "To remove lime from the machine, fill the tank with water and vinegar, and let it run twice.",
    ),
    (
        "Which animals live in the rain forest?",
        "The tropical forest is home to monkeys, parrots, snakes and many kinds of insects.",
    ),
    (
        "Who painted the ceiling of the chapel?",
        "Michelangelo worked for four years on the frescoes above the altar in Rome.",
    ),
    (
        "What is the notice period of the lease?",
        "The tenant may end the rental contract with three months' written notice.",
    ),
    (
        "Why did the bridge collapse?",
        "Engineers found that strong wind had made the deck swing until its cables tore.",
    ),
    (
        "How is bread dough made?",
        "Mix flour, water, salt and yeast, knead for ten minutes, and let it rise in a warm place.",
    ),
    (
        "What was the revenue in the third quarter?",
        "Sales from July to September rose to 4.2 million euros, eight percent more than a year before.",
    ),
    (
        "How does a vaccine protect the body?",
        "The injection teaches the immune system to recognise the virus and to make antibodies.",
    ),
    (
        "Which port does the database server use?",
        "By default, PostgreSQL listens for TCP connections on 5432.",
    ),
    (
        "How far away is the moon?",
        "The satellite of the Earth orbits at a mean distance of 384,400 kilometres.",
    ),
    (
        "What should I pack for a hike?",
        "In the mountains take boots, a rain jacket, a map, food and enough to drink.",
    ),
];

impl Embedder {
    /// The scale of the model. It is measured with the first search; until that succeeds, it is assumed to be the usual one.
    pub async fn scale(&self) -> Scale {
        match self.scale.get_or_try_init(|| self.measure_scale()).await {
            Ok(scale) => *scale,
            Err(failure) => {
                tracing::warn!(%failure, "the scale of the embedding model could not be measured");
                Scale::default()
            }
        }
    }

    async fn measure_scale(&self) -> Result<Scale, Failure> {
        let texts: Vec<String> = PAIRS
            .iter()
            .flat_map(|(question, passage)| [question, passage])
            .map(|&text| text.to_owned())
            .collect();
        let vectors = self.embed_short(texts).await?;
        let (mut related, mut unrelated) = (Vec::new(), Vec::new());
        let pairs: Vec<&[Vec<f32>]> = vectors.chunks(2).collect();
        for (number, question) in pairs.iter().enumerate() {
            for (other, passage) in pairs.iter().enumerate() {
                let similarity = cosine(&question[0], &passage[1]);
                if number == other { related.push(similarity) } else { unrelated.push(similarity) }
            }
        }
        let scale = Scale { unrelated: mean(&unrelated), related: mean(&related) };
        tracing::debug!(
            unrelated = scale.unrelated,
            related = scale.related,
            "measured the scale of the model"
        );
        Ok(scale)
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 { dot(a, b) / lengths } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "there are few pairs")]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
