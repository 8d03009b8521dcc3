//! JSON as text: a line for each value, after its path.

use std::fmt::Write as _;

use serde_json::Value;

use crate::error::{Error, ErrorKind};
use landfall_core::text::Extracted;

/// The most bytes of a path, which is repeated before each value.
const MAX_PATH: usize = 200;

/// One document, or many one after the other (JSON Lines).
pub fn extract(source: &str) -> Result<Extracted, Error> {
    let mut lines =
        Lines { text: String::with_capacity(source.len()), max_length: crate::read::max_text(source.len()) };
    for value in serde_json::Deserializer::from_str(source).into_iter::<Value>() {
        // The parser refuses what nests deeper than 128 levels, so walking the value is safe.
        let value = value.map_err(|error| not_json(&error))?;
        lines.flatten(&value, &mut String::new())?;
    }
    Ok(Extracted::plain(lines.text))
}

fn not_json(error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    let message = format!("This is not valid JSON: it breaks at line {line}, column {column}");
    Error::new(ErrorKind::Damaged, message).with_detail(error)
}

struct Lines {
    text: String,
    /// Long paths before many values could fill the memory.
    max_length: usize,
}

impl Lines {
    fn flatten(&mut self, value: &Value, path: &mut String) -> Result<(), Error> {
        let length = path.len();
        match value {
            Value::Null => {}
            Value::Object(members) => {
                for (name, member) in members {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                    path.truncate(path.floor_char_boundary(MAX_PATH));
                    self.flatten(member, path)?;
                    path.truncate(length);
                }
            }
            // A list of plain values is one line.
            Value::Array(elements) if elements.iter().all(is_scalar) => {
                let words: Vec<String> = elements.iter().filter_map(words).collect();
                self.line(path, &words.join(", "))?;
            }
            // The index of an element is left out: the path says what it belongs to.
            Value::Array(elements) => {
                for element in elements {
                    self.flatten(element, path)?;
                }
            }
            scalar => self.line(path, &words(scalar).unwrap_or_default())?,
        }
        Ok(())
    }

    fn line(&mut self, path: &str, words: &str) -> Result<(), Error> {
        if words.is_empty() {
            return Ok(());
        }
        let separator = if path.is_empty() { "" } else { ": " };
        writeln!(self.text, "{path}{separator}{words}").expect("writing to a string does not fail");
        if self.text.len() > self.max_length { Err(crate::read::too_much_text()) } else { Ok(()) }
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(words) => Some(words.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_after_their_paths() {
        let source =
            r#"{"title": "Tides", "tags": ["moon", "sea"], "at": {"lat": 53.5, "open": true, "x": null}}"#;
        let text = extract(source).unwrap().text;
        assert_eq!(text, "at.lat: 53.5\nat.open: true\ntags: moon, sea\ntitle: Tides\n");
    }

    #[test]
    fn json_lines_are_many_documents() {
        assert_eq!(extract("{\"a\": 1}\n{\"a\": 2}\n").unwrap().text, "a: 1\na: 2\n");
    }

    #[test]
    fn an_error_names_the_line() {
        let failure = extract("{\"a\": }").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Damaged);
        assert!(failure.message().contains("line 1"), "{}", failure.message());
    }

    #[test]
    fn json_that_nests_without_end_is_refused() {
        assert_eq!(extract(&"[".repeat(100_000)).unwrap_err().kind(), ErrorKind::Damaged);
    }

    #[test]
    fn json_that_would_fill_memory_does_not() {
        let key = "k".repeat(40_000);
        let long_path = format!("{{\"{key}\": [{}1]}}", "1,".repeat(4_000));
        assert!(extract(&long_path).unwrap().text.len() < 20_000);
        let many_leaves = format!("{{\"{}\": [{}{{}}]}}", "k".repeat(200), "{\"a\":1},".repeat(500_000));
        assert_eq!(extract(&many_leaves).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
