//! The words of one paragraph, with what is among them.

use crate::flow::{Flow, Gap, InnerEnd};

#[derive(Clone)]
pub enum Inline {
    Words(String),
    Gap(Gap),
    BeginLink(String),
    EndLink,
    Equation(String),
    /// An equation on lines of its own.
    Display(String),
    AltText(String),
    /// The end of a cell or a row of a table in a cell.
    InnerEnd(InnerEnd),
}

/// Writes words. A heading, and a cell of a table, is on one line.
pub fn write(content: &[Inline], flow: &mut Flow, may_break: bool) {
    let mut links = 0_usize;
    for inline in content {
        match inline {
            Inline::Words(words) => flow.words(words),
            Inline::Gap(gap) => flow.widen(if may_break { *gap } else { Gap::Space }),
            Inline::BeginLink(target) => {
                links += 1;
                flow.begin_link(target);
            }
            Inline::EndLink if links > 0 => {
                links -= 1;
                flow.end_link();
            }
            Inline::EndLink => {}
            Inline::InnerEnd(end) => flow.end_of_inner(*end),
            Inline::AltText(text) => {
                flow.widen(Gap::Space);
                flow.alt_text(text);
                flow.widen(Gap::Space);
            }
            Inline::Equation(latex) | Inline::Display(latex) if latex.is_empty() => {}
            Inline::Equation(latex) => {
                flow.widen(Gap::Space);
                flow.verbatim(&format!("${latex}$"));
                flow.widen(Gap::Space);
            }
            Inline::Display(latex) => {
                flow.widen(if may_break { Gap::Line } else { Gap::Space });
                flow.verbatim(&format!("$${latex}$$"));
                flow.widen(if may_break { Gap::Line } else { Gap::Space });
            }
        }
    }
    for _ in 0..links {
        flow.end_link();
    }
}

/// The words with their white space as it is.
pub fn raw(content: &[Inline]) -> String {
    let mut raw = String::new();
    for inline in content {
        match inline {
            Inline::Words(words) => raw.push_str(words),
            Inline::Gap(Gap::Line | Gap::Paragraph) => raw.push('\n'),
            Inline::Gap(Gap::Tab) => raw.push('\t'),
            Inline::Gap(_) | Inline::InnerEnd(_) => raw.push(' '),
            Inline::Equation(latex) | Inline::Display(latex) => raw.push_str(latex),
            Inline::BeginLink(_) | Inline::EndLink | Inline::AltText(_) => {}
        }
    }
    raw
}

pub fn is_blank(content: &[Inline]) -> bool {
    content.iter().all(|inline| match inline {
        Inline::Words(words) => words.trim().is_empty(),
        Inline::Gap(_) | Inline::BeginLink(_) | Inline::EndLink | Inline::InnerEnd(_) => true,
        Inline::Equation(latex) | Inline::Display(latex) => latex.is_empty(),
        Inline::AltText(_) => false,
    })
}
