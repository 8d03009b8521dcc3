//! Source code: one block of code in its language.

use landfall_core::text::{Extracted, Markup};

pub fn extract(source: &str, language: &str) -> Extracted {
    let code = source.trim_end().trim_start_matches('\n');
    let fence = fence(code);
    let text = if code.is_empty() { String::new() } else { format!("{fence}{language}\n{code}\n{fence}") };
    Extracted { markup: Markup::Markdown, ..Extracted::plain(text) }
}

/// A fence that is longer than each row of marks in the code.
fn fence(code: &str) -> String {
    let mut longest = 0;
    for line in code.lines() {
        longest = longest.max(line.trim_start().bytes().take_while(|byte| *byte == b'`').count());
    }
    "`".repeat((longest + 1).max(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_fenced_by_more_marks_than_it_has() {
        assert_eq!(extract("\nfn a() {}\n\n", "rust").text, "```rust\nfn a() {}\n```");
        assert_eq!(extract("/// ```\n  ```x", "rust").text, "````rust\n/// ```\n  ```x\n````");
        assert_eq!(extract(" \n", "rust").text, "");
    }
}
