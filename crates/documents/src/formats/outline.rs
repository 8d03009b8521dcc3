//! AsciiDoc, reStructuredText and Org: the text as it is, with headings as Markdown has them.

use landfall_core::text::{Extracted, Markup, Place};

/// Collects lines and headings.
#[derive(Default)]
struct Outline {
    text: String,
    places: Vec<Place>,
}

impl Outline {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn heading(&mut self, level: usize, heading: &str) {
        let level = u8::try_from(level.clamp(1, 6)).unwrap_or(6);
        let place = Place {
            start: self.text.len(),
            page: None,
            heading: Some(heading.to_owned()),
            level: Some(level),
        };
        self.places.push(place);
        self.text.extend(std::iter::repeat_n('#', level.into()));
        self.text.push(' ');
        self.line(heading);
    }

    fn finish(self) -> Extracted {
        Extracted { markup: Markup::Markdown, places: self.places, ..Extracted::plain(self.text) }
    }
}

/// `== Heading`. Lines in a block of code are no headings.
pub fn ascii_doc(source: &str) -> Extracted {
    let mut outline = Outline::default();
    let mut fence: Option<&str> = None;
    for line in source.lines() {
        let trimmed = line.trim_end();
        let is_fence = trimmed.len() >= 4
            && ["-", ".", "+", "/", "`"].iter().any(|mark| trimmed.replace(mark, "").is_empty());
        if is_fence && fence.is_none_or(|open| open == trimmed) {
            fence = if fence.is_some() { None } else { Some(trimmed) };
            // A block of slashes is a comment; the others are text as it is.
            outline.line(if trimmed.starts_with('/') { "" } else { "```" });
            continue;
        }
        let marks = trimmed.bytes().take_while(|byte| *byte == b'=').count();
        let heading = trimmed[marks..].strip_prefix(' ').map(str::trim).filter(|heading| !heading.is_empty());
        match (fence, heading) {
            (Some(open), _) if open.starts_with('/') => {}
            (None, Some(heading)) if (1..=6).contains(&marks) => outline.heading(marks, heading),
            _ => outline.line(line),
        }
    }
    if fence.is_some() {
        outline.line("```");
    }
    outline.finish()
}

/// `* Heading`, with its state and tags left out.
pub fn org(source: &str) -> Extracted {
    let mut outline = Outline::default();
    let mut in_block = false;
    for line in source.lines() {
        let lower = line.trim().to_ascii_lowercase();
        let stars = line.bytes().take_while(|byte| *byte == b'*').count();
        if let Some(language) =
            lower.strip_prefix("#+begin_src").or_else(|| lower.strip_prefix("#+begin_example"))
        {
            in_block = true;
            outline.line(&format!("```{}", language.split_whitespace().next().unwrap_or_default()));
        } else if in_block && (lower.starts_with("#+end_src") || lower.starts_with("#+end_example")) {
            in_block = false;
            outline.line("```");
        } else if in_block {
            outline.line(line);
        } else if lower.starts_with("#+title:") {
            outline.heading(1, line.trim()["#+title:".len()..].trim());
        } else if stars > 0 && line[stars..].starts_with(' ') {
            outline.heading(stars, org_heading(&line[stars..]));
        } else if !lower.starts_with("#+") && !lower.starts_with("# ") && !is_drawer(&lower) {
            outline.line(line);
        }
    }
    outline.finish()
}

fn org_heading(line: &str) -> &str {
    let line = line.trim();
    let line = ["TODO ", "DONE "].iter().find_map(|state| line.strip_prefix(state)).unwrap_or(line);
    match line.rsplit_once(" :") {
        Some((heading, tags)) if tags.ends_with(':') && !tags.contains(' ') => heading.trim(),
        _ => line,
    }
}

fn is_drawer(line: &str) -> bool {
    matches!(line, ":properties:" | ":end:" | ":logbook:")
}

/// A heading has a line of marks below it, and maybe above it too. The order of the marks is the order of the levels.
pub fn re_structured_text(source: &str) -> Extracted {
    let lines: Vec<&str> = source.lines().collect();
    let mut outline = Outline::default();
    let mut levels: Vec<(char, bool)> = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let after = |ahead: usize| lines.get(at + ahead).copied().unwrap_or_default();
        let over =
            adornment(line).filter(|mark| adornment(after(2)) == Some(*mark) && !after(1).trim().is_empty());
        let under = adornment(after(1)).filter(|_| is_title(line, after(1)));
        let found = over.map(|mark| (mark, true, after(1), 3)).or(under.map(|mark| (mark, false, *line, 2)));
        match found {
            Some((mark, is_over, heading, length)) => {
                let style = (mark, is_over);
                let level = levels.iter().position(|known| *known == style).unwrap_or_else(|| {
                    levels.push(style);
                    levels.len() - 1
                });
                outline.heading(level + 1, heading.trim());
                at += length;
            }
            None => {
                outline.line(line);
                at += 1;
            }
        }
    }
    outline.finish()
}

fn is_title(line: &str, marks: &str) -> bool {
    let title = line.trim_end();
    !title.is_empty()
        && !title.starts_with(char::is_whitespace)
        && adornment(title).is_none()
        && marks.trim_end().chars().count() >= title.chars().count().min(80)
}

/// The mark of a line that has only this mark.
fn adornment(line: &str) -> Option<char> {
    let line = line.trim_end();
    let mark = line.chars().next().filter(char::is_ascii_punctuation)?;
    (line.len() >= 3 && line.chars().all(|c| c == mark)).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_those_of_markdown() {
        let text = "= Book\n:toc:\n\n== Part\n----\n== code\n----\ntext == no\n";
        let extracted = ascii_doc(text);
        assert_eq!(extracted.text, "# Book\n:toc:\n\n## Part\n```\n== code\n```\ntext == no\n");
        assert_eq!(extracted.places[1].level, Some(2));
        assert!(extracted.text[extracted.places[1].start..].starts_with("## Part"));

        let text = "====\nBook\n====\n\nPart\n----\ntext\n\nNext\n----\nSub\n~~~\na table:\n\n=== ===\n a   b\n=== ===\n";
        let extracted = re_structured_text(text);
        let headings: Vec<_> =
            extracted.places.iter().map(|p| (p.level.unwrap(), p.heading.clone().unwrap())).collect();
        let expected =
            [(1, "Book"), (2, "Part"), (2, "Next"), (3, "Sub")].map(|(level, text)| (level, text.to_owned()));
        assert_eq!(headings, expected);
        assert!(extracted.text.contains("=== ==="));

        let text = "#+TITLE: Book\n#+OPTIONS: x\n* TODO Part :a:b:\n:PROPERTIES:\n:END:\n** Sub\n#+BEGIN_SRC sh\n* no\n#+END_SRC\n";
        assert_eq!(org(text).text, "# Book\n# Part\n## Sub\n```sh\n* no\n```\n");
    }
}
