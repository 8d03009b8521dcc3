//! MathML, the formulas of OpenDocument files and of web pages, as LaTeX. Symbols stay the characters that they are.

use crate::elements::{Elements, Piece};
use crate::error::Error;

/// Reads a formula, from its opening to its end.
pub fn read(elements: &mut Elements<'_>) -> Result<String, Error> {
    let latex = children(elements)?.join("");
    Ok(latex.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What is in the open element, one text for each element in it.
fn children(elements: &mut Elements<'_>) -> Result<Vec<String>, Error> {
    let mut children = Vec::new();
    loop {
        match elements.next()? {
            Some(Piece::Open(element)) => {
                let name = element.name().to_owned();
                let brackets = (element.attribute("open"), element.attribute("close"));
                match name.as_str() {
                    // The same formula once more, in another language.
                    "annotation" | "annotation-xml" => elements.skip()?,
                    "mi" | "mn" | "mo" | "mtext" | "ms" => children.push(text(elements)?),
                    _ => {
                        let inside = self::children(elements)?;
                        children.push(node(&name, &inside, brackets));
                    }
                }
            }
            Some(Piece::Words(_)) => {}
            Some(Piece::Close(_)) | None => return Ok(children),
        }
    }
}

fn text(elements: &mut Elements<'_>) -> Result<String, Error> {
    let mut text = String::new();
    loop {
        match elements.next()? {
            Some(Piece::Words(words)) => text.push_str(&words),
            Some(Piece::Open(_)) => elements.skip()?,
            Some(Piece::Close(_)) | None => break,
        }
    }
    Ok(text.replace('{', "\\{").replace('}', "\\}"))
}

fn node(name: &str, inside: &[String], brackets: (Option<String>, Option<String>)) -> String {
    let at = |index: usize| inside.get(index).map_or("", |latex| latex.trim());
    match name {
        "mfrac" => format!("\\frac{{{}}}{{{}}}", at(0), at(1)),
        "msup" | "mover" => format!("{}^{{{}}}", grouped(at(0)), at(1)),
        "msub" | "munder" => format!("{}_{{{}}}", grouped(at(0)), at(1)),
        "msubsup" | "munderover" => format!("{}_{{{}}}^{{{}}}", grouped(at(0)), at(1), at(2)),
        "msqrt" => format!("\\sqrt{{{}}}", inside.join("")),
        "mroot" => format!("\\sqrt[{}]{{{}}}", at(1), at(0)),
        "mfenced" => {
            let (open, close) = brackets;
            format!(
                "{}{}{}",
                open.as_deref().unwrap_or("("),
                inside.join(","),
                close.as_deref().unwrap_or(")")
            )
        }
        "mtable" => format!("\\begin{{matrix}} {} \\end{{matrix}}", inside.join(" \\\\ ")),
        "mtr" => inside.join(" & "),
        "mspace" => " ".to_owned(),
        _ => inside.join(""),
    }
}

/// In braces, unless it is one sign.
fn grouped(latex: &str) -> String {
    if latex.chars().count() <= 1 { latex.to_owned() } else { format!("{{{latex}}}") }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::{Bounds, Limits};

    #[test]
    fn formulas_keep_their_structure() {
        let source = "<math><semantics><mrow><mi>x</mi><mo>=</mo><mfrac><mrow><mo>−</mo><mi>b</mi><mo>±</mo><msqrt>\
            <msup><mi>b</mi><mn>2</mn></msup><mo>−</mo><mn>4</mn><mi>c</mi></msqrt></mrow><mrow><mn>2</mn></mrow></mfrac>\
            <munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover><mfenced><mi>i</mi></mfenced></mrow>\
            <annotation>x = …</annotation></semantics></math>";
        let limits = Limits::default();
        let mut elements = Elements::new(source, Bounds::new(&limits, &|| ControlFlow::Continue(())));
        elements.next().unwrap();
        assert_eq!(read(&mut elements).unwrap(), "x=\\frac{−b±\\sqrt{b^{2}−4c}}{2}∑_{i}^{n}(i)");
    }
}
