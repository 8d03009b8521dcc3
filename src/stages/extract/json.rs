//! JSON as text: a line for each value, behind the path that leads to it.

use std::fmt::Write as _;

use serde_json::Value;

use crate::failure::{Code, Failure};
use crate::stages::{Extracted, Markup};

/// One document, or many one after the other (JSON Lines).
pub fn extract(source: &str) -> Result<Extracted, Failure> {
    let mut text = String::with_capacity(source.len());
    for value in serde_json::Deserializer::from_str(source).into_iter::<Value>() {
        // The parser refuses what nests deeper than 128 levels, so walking the value is safe.
        let value = value
            .map_err(|error| Failure::new(Code::ParseError, format!("This is not valid JSON: {error}")))?;
        flatten(&value, &mut String::new(), &mut text);
    }
    Ok(Extracted { text, markup: Markup::Plain, places: Vec::new() })
}

fn flatten(value: &Value, path: &mut String, text: &mut String) {
    let length = path.len();
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, member) in members {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                flatten(member, path, text);
                path.truncate(length);
            }
        }
        // Which element it is says nothing; of what it is one, the path says.
        Value::Array(elements) => elements.iter().for_each(|element| flatten(element, path, text)),
        Value::String(words) => line(path, words, text),
        Value::Bool(_) | Value::Number(_) => line(path, &value.to_string(), text),
    }
}

fn line(path: &str, value: &str, text: &mut String) {
    let separator = if path.is_empty() { "" } else { ": " };
    writeln!(text, "{path}{separator}{value}").expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_behind_their_paths() {
        let source =
            r#"{"title": "Tides", "tags": ["moon", "sea"], "at": {"lat": 53.5, "open": true, "x": null}}"#;
        let text = extract(source).unwrap().text;
        assert_eq!(text, "at.lat: 53.5\nat.open: true\ntags: moon\ntags: sea\ntitle: Tides\n");
    }

    #[test]
    fn json_lines_are_many_documents() {
        assert_eq!(extract("{\"a\": 1}\n{\"a\": 2}\n").unwrap().text, "a: 1\na: 2\n");
    }

    #[test]
    fn what_is_not_json_says_where_it_breaks() {
        let failure = extract("{\"a\": }").unwrap_err();
        assert_eq!(failure.code, Code::ParseError);
        assert!(failure.message.contains("line 1"), "{}", failure.message);
    }

    #[test]
    fn json_that_nests_without_end_is_refused() {
        assert_eq!(extract(&"[".repeat(100_000)).unwrap_err().code, Code::ParseError);
    }
}
