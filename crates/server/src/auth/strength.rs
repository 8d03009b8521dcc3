//! Whether a secret can be guessed. Only what is certainly weak is refused: nothing can tell that a secret is strong.

use std::collections::HashMap;

/// In characters.
pub const MIN_LENGTH: usize = 32;
/// Far less than a random secret of the minimum length has, so that none is refused by chance.
const MIN_BITS: f64 = 40.0;

/// What examples and tutorials are made of. They add nothing to a secret.
const WELL_KNOWN: [&str; 14] = [
    "changeme",
    "change_me",
    "change-me",
    "change me",
    "change-this",
    "replace-me",
    "your-256-bit-secret",
    "your-secret",
    "supersecret",
    "super-secret",
    "my-secret",
    "jwt-secret",
    "secret-key",
    "password",
];

/// Why a secret is refused, as the end of a sentence with what to do; `None` where nothing is known against it.
pub fn weakness(secret: &str) -> Option<String> {
    let why = if secret.chars().count() < MIN_LENGTH {
        format!("at least {MIN_LENGTH} characters long")
    } else if bits(&without_well_known(secret)) < MIN_BITS {
        "harder to guess: it repeats itself, counts up, or has a well-known example in it".to_owned()
    } else {
        return None;
    };
    Some(format!("{why}. Make one with `openssl rand -hex 32`"))
}

fn without_well_known(secret: &str) -> String {
    let mut text = secret.to_lowercase();
    for known in WELL_KNOWN {
        text = text.replace(known, "");
    }
    text
}

/// An upper bound of what there is to guess: the characters that do not follow from those before them, each by how often
/// characters occur.
fn bits(text: &str) -> f64 {
    let characters: Vec<char> = text.chars().collect();
    let period = (1..characters.len())
        .find(|period| characters.iter().zip(&characters[*period..]).all(|(one, other)| one == other))
        .unwrap_or(characters.len());
    let once = &characters[..period];
    // `aaaa`, `abcd` and `4321` are one choice each.
    let follows = |pair: &[char]| u32::from(pair[0]).abs_diff(u32::from(pair[1])) <= 1;
    let chosen = once.windows(2).filter(|pair| !follows(pair)).count() + usize::from(!once.is_empty());
    let mut counts: HashMap<char, f64> = HashMap::new();
    for character in once {
        *counts.entry(*character).or_default() += 1.0;
    }
    let total: f64 = counts.values().sum();
    let entropy: f64 = counts.values().map(|count| -(count / total) * (count / total).log2()).sum();
    #[expect(clippy::cast_precision_loss, reason = "a secret has few characters")]
    let chosen = chosen as f64;
    chosen * entropy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_guessed_is_refused() {
        for weak in [
            "short",
            &"a".repeat(32),
            &"ab".repeat(40),
            &"0123456789".repeat(4),
            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
            "changemechangemechangemechangeme",
            "ChangeMe-ChangeMe-ChangeMe-ChangeMe!",
            "your-256-bit-secret-your-256-bit-secret",
            "supersecretpassword-supersecretpassword1",
            "jwt-secret-jwt-secret-jwt-secret-jwt",
            "00000000000000000000000000000000000000000000000001",
            "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbccccccccccccccccdddddddd",
        ] {
            assert!(weakness(weak).is_some_and(|why| why.contains("openssl rand -hex 32")), "{weak}");
        }
    }

    #[test]
    fn what_is_random_is_accepted() {
        for _ in 0..10_000 {
            let random: [u8; 16] = landfall_core::random::random();
            let hex = hex::encode(random);
            assert_eq!(weakness(&hex), None, "{hex}");
            assert_eq!(weakness(&format!("changeme{hex}")), None, "{hex}");
        }
        assert_eq!(weakness("correct horse battery staple, and then some"), None);
    }
}
