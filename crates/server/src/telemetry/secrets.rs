//! The secret values, so that they can be removed from text before it is shown.

use std::sync::Arc;

/// A shorter value would also be found in unrelated words.
const MIN_LENGTH: usize = 6;
/// What is shown in place of a secret, however long it is.
pub const HIDDEN: &str = "***";

#[derive(Clone, Default)]
pub struct Secrets(Arc<[String]>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Secrets").field(&self.0.len()).finish()
    }
}

impl Secrets {
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values.into_iter().filter(|value| value.len() >= MIN_LENGTH).collect();
        // The longest first: one value may be a part of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self(values.into())
    }

    /// The text with all secrets hidden.
    pub fn hidden_in(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &*self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), HIDDEN);
            }
        }
        text
    }
}

/// The secrets in the address of a service: its password, and the query, which often contains keys.
pub fn in_address(address: &str) -> Vec<String> {
    let mut secrets = password_in(address);
    secrets.extend(url::Url::parse(address).ok().and_then(|url| Some(url.query()?.to_owned())));
    secrets
}

/// The password in an address, as it is written and unescaped.
pub fn password_in(address: &str) -> Vec<String> {
    let Ok(url) = url::Url::parse(address) else { return Vec::new() };
    let mut secrets: Vec<String> = url.password().map(ToOwned::to_owned).into_iter().collect();
    secrets.extend(url.password().and_then(unescaped));
    // PostgreSQL accepts it as a parameter too.
    let parameters = url.query_pairs().filter(|(name, _)| name.eq_ignore_ascii_case("password"));
    secrets.extend(parameters.map(|(_, value)| value.into_owned()));
    secrets
}

/// The text with percent escapes decoded.
pub fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        match escaped.and_then(|digits| hex::decode(digits).ok()) {
            Some(byte) => {
                bytes.extend(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_in_a_text_the_longest_first() {
        let mut values = in_address("https://me:password@example.com/x?key=abcdef");
        values.extend(["pass".to_owned(), "password-of-another".to_owned()]);
        let secrets = Secrets::new(values);
        let text = "a password-of-another, a password, key=abcdef, pass";
        assert_eq!(secrets.hidden_in(text), "a ***, a ***, ***, pass");
        assert!(!format!("{secrets:?}").contains("password"));
    }
}
