//! Equations of Office documents as LaTeX. Symbols stay the characters that they are.

use crate::elements::{Elements, Piece};
use crate::error::Error;

/// Functions that LaTeX knows by a command.
const FUNCTIONS: &[&str] = &[
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log",
    "ln", "lg", "exp", "lim", "max", "min", "sup", "inf", "det", "gcd", "dim", "ker", "arg", "deg",
];

/// Reads an equation, from its opening to its end.
pub fn read(elements: &mut Elements<'_>) -> Result<String, Error> {
    let latex = sequence(elements)?;
    Ok(latex.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What an element of an equation has in it.
#[derive(Default)]
struct Parts {
    /// The properties with their values, which are empty if they have none.
    properties: Vec<(String, Option<String>)>,
    arguments: Vec<(String, String)>,
}

impl Parts {
    fn read(elements: &mut Elements<'_>) -> Result<Self, Error> {
        let mut parts = Self::default();
        loop {
            match elements.next()? {
                Some(Piece::Open(element)) if element.name().ends_with("Pr") => {
                    parts.read_properties(elements)?;
                }
                Some(Piece::Open(element)) => {
                    let name = element.name().to_owned();
                    let latex = if name == "mr" { row(elements)? } else { sequence(elements)? };
                    parts.arguments.push((name, latex));
                }
                Some(Piece::Words(_)) => {}
                Some(Piece::Close(_)) | None => return Ok(parts),
            }
        }
    }

    fn read_properties(&mut self, elements: &mut Elements<'_>) -> Result<(), Error> {
        let mut depth = 1;
        while depth > 0 {
            match elements.next()? {
                Some(Piece::Open(element)) => {
                    depth += 1;
                    self.properties.push((element.name().to_owned(), element.attribute("val")));
                }
                Some(Piece::Close(_)) => depth -= 1,
                Some(Piece::Words(_)) => {}
                None => break,
            }
        }
        Ok(())
    }

    fn argument(&self, name: &str) -> &str {
        self.arguments.iter().find(|(of, _)| of == name).map_or("", |(_, latex)| latex.trim())
    }

    /// All arguments of this name.
    fn all(&self, name: &str) -> Vec<&str> {
        self.arguments.iter().filter(|(of, _)| of == name).map(|(_, latex)| latex.trim()).collect()
    }

    /// The value of a property; `None` if the property is not there.
    fn property(&self, name: &str) -> Option<&str> {
        self.properties
            .iter()
            .find(|(of, _)| of == name)
            .map(|(_, value)| value.as_deref().unwrap_or_default())
    }

    fn is_on(&self, name: &str) -> bool {
        self.property(name).is_some_and(|value| !matches!(value, "0" | "off" | "false"))
    }
}

/// Everything up to the end of the open element.
fn sequence(elements: &mut Elements<'_>) -> Result<String, Error> {
    let mut latex = String::new();
    loop {
        match elements.next()? {
            Some(Piece::Open(element)) => {
                let name = element.name().to_owned();
                if name == "t" {
                    latex.push_str(&text(elements)?);
                } else if name.ends_with("Pr") || matches!(name.as_str(), "del" | "moveFrom") {
                    elements.skip()?;
                } else {
                    latex.push_str(&node(&name, elements)?);
                }
            }
            Some(Piece::Words(_)) => {}
            Some(Piece::Close(_)) | None => return Ok(latex),
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

fn row(elements: &mut Elements<'_>) -> Result<String, Error> {
    Ok(Parts::read(elements)?.all("e").join(" & "))
}

fn node(name: &str, elements: &mut Elements<'_>) -> Result<String, Error> {
    if !matches!(
        name,
        "f" | "sSup"
            | "sSub"
            | "sSubSup"
            | "sPre"
            | "rad"
            | "nary"
            | "d"
            | "m"
            | "eqArr"
            | "acc"
            | "bar"
            | "func"
            | "limLow"
            | "limUpp"
            | "groupChr"
            | "borderBox"
    ) {
        let mut latex = sequence(elements)?;
        // Two equations may stand in one paragraph.
        latex.extend((name == "oMath").then_some(' '));
        return Ok(latex);
    }
    let parts = Parts::read(elements)?;
    let (base, sub, sup) = (parts.argument("e"), parts.argument("sub"), parts.argument("sup"));
    Ok(match name {
        "f" => fraction(&parts),
        "sSup" => format!("{}^{{{sup}}}", grouped(base)),
        "sSub" => format!("{}_{{{sub}}}", grouped(base)),
        "sSubSup" => format!("{}_{{{sub}}}^{{{sup}}}", grouped(base)),
        "sPre" => format!("{{}}_{{{sub}}}^{{{sup}}}{base}"),
        "rad" => match parts.argument("deg") {
            "" => format!("\\sqrt{{{base}}}"),
            _ if parts.is_on("degHide") => format!("\\sqrt{{{base}}}"),
            degree => format!("\\sqrt[{degree}]{{{base}}}"),
        },
        "nary" => {
            let operator = parts.property("chr").filter(|operator| !operator.is_empty()).unwrap_or("∫");
            format!("{operator}{}{} {base}", limit('_', sub), limit('^', sup))
        }
        "d" => delimited(&parts),
        "m" => format!("\\begin{{matrix}} {} \\end{{matrix}}", parts.all("mr").join(" \\\\ ")),
        "eqArr" => format!("\\begin{{aligned}} {} \\end{{aligned}}", parts.all("e").join(" \\\\ ")),
        "acc" => accent(parts.property("chr"), base),
        "bar" if parts.property("pos") == Some("top") => format!("\\overline{{{base}}}"),
        "bar" => format!("\\underline{{{base}}}"),
        "func" => format!("{} {base}", function(parts.argument("fName"))),
        "limLow" => format!("{}{}", grouped(&function(base)), limit('_', parts.argument("lim"))),
        "limUpp" => format!("{}{}", grouped(&function(base)), limit('^', parts.argument("lim"))),
        "groupChr" => match parts.property("chr") {
            Some("⏞") => format!("\\overbrace{{{base}}}"),
            None | Some("⏟") => format!("\\underbrace{{{base}}}"),
            Some(character) => format!("{base}{character}"),
        },
        _ => format!("\\boxed{{{base}}}"),
    })
}

fn fraction(parts: &Parts) -> String {
    let (above, below) = (parts.argument("num"), parts.argument("den"));
    match parts.property("type") {
        Some("lin" | "skw") => format!("{}/{}", grouped(above), grouped(below)),
        Some("noBar") => format!("{{{above} \\atop {below}}}"),
        _ => format!("\\frac{{{above}}}{{{below}}}"),
    }
}

fn delimited(parts: &Parts) -> String {
    let bracket = |property: &str, usual: &str| match parts.property(property).unwrap_or(usual) {
        "{" => "\\{".to_owned(),
        "}" => "\\}".to_owned(),
        bracket => bracket.to_owned(),
    };
    let inside = parts.all("e").join(&bracket("sepChr", "|"));
    format!("{}{inside}{}", bracket("begChr", "("), bracket("endChr", ")"))
}

fn accent(character: Option<&str>, base: &str) -> String {
    let command = match character.unwrap_or("\u{302}") {
        "\u{302}" | "^" => "hat",
        "\u{303}" | "~" => "tilde",
        "\u{304}" | "\u{305}" | "¯" => "overline",
        "\u{307}" => "dot",
        "\u{308}" => "ddot",
        "\u{20D7}" | "→" => "vec",
        "\u{30C}" => "check",
        "\u{306}" => "breve",
        "\u{301}" => "acute",
        "\u{300}" => "grave",
        other => return format!("{base}{other}"),
    };
    format!("\\{command}{{{base}}}")
}

fn function(name: &str) -> String {
    if FUNCTIONS.contains(&name) { format!("\\{name}") } else { name.to_owned() }
}

fn limit(mark: char, limit: &str) -> String {
    if limit.is_empty() { String::new() } else { format!("{mark}{{{limit}}}") }
}

/// In braces, unless it is one sign.
fn grouped(latex: &str) -> String {
    let is_one = latex.chars().count() <= 1
        || latex.strip_prefix('\\').is_some_and(|command| command.chars().all(|c| c.is_ascii_alphabetic()));
    if is_one { latex.to_owned() } else { format!("{{{latex}}}") }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::{Bounds, Limits};

    fn latex(inside: &str) -> Result<String, Error> {
        let limits = Limits::default();
        let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
        let source = format!("<m:oMath>{inside}</m:oMath>");
        let mut elements = Elements::new(&source, bounds);
        elements.next()?;
        read(&mut elements)
    }

    fn run(text: &str) -> String {
        format!("<m:r><w:rPr/><m:t>{text}</m:t></m:r>")
    }

    #[test]
    fn equations_keep_their_structure() {
        let e = |text: &str| format!("<m:e>{}</m:e>", run(text));
        for (source, expected) in [
            (format!("<m:f><m:num>{}</m:num><m:den>{}</m:den></m:f>", run("1"), run("2a")), r"\frac{1}{2a}"),
            (format!("<m:sSup>{}<m:sup>{}</m:sup></m:sSup>", e("r"), run("2")), "r^{2}"),
            (format!("<m:sSup>{}<m:sup>{}</m:sup></m:sSup>", e("xy"), run("2")), "{xy}^{2}"),
            (
                format!(
                    "<m:sSubSup>{}<m:sub>{}</m:sub><m:sup>{}</m:sup></m:sSubSup>",
                    e("x"),
                    run("i"),
                    run("2")
                ),
                "x_{i}^{2}",
            ),
            (
                format!("<m:rad><m:radPr><m:degHide m:val=\"1\"/></m:radPr><m:deg/>{}</m:rad>", e("b")),
                r"\sqrt{b}",
            ),
            (format!("<m:rad><m:deg>{}</m:deg>{}</m:rad>", run("3"), e("b")), r"\sqrt[3]{b}"),
            (
                format!(
                    "<m:nary><m:naryPr><m:chr m:val=\"∑\"/></m:naryPr><m:sub>{}</m:sub><m:sup>{}</m:sup>{}</m:nary>",
                    run("i=1"),
                    run("n"),
                    e("i")
                ),
                "∑_{i=1}^{n} i",
            ),
            (format!("<m:nary>{}</m:nary>", e("x")), "∫ x"),
            (format!("<m:d>{}{}</m:d>", e("a"), e("b")), "(a|b)"),
            (
                format!(
                    "<m:d><m:dPr><m:begChr m:val=\"{{\"/><m:endChr m:val=\"\"/></m:dPr><m:e><m:eqArr>{}{}</m:eqArr></m:e></m:d>",
                    e("x"),
                    e("y")
                ),
                r"\{\begin{aligned} x \\ y \end{aligned}",
            ),
            (
                format!("<m:m><m:mr>{}{}</m:mr><m:mr>{}{}</m:mr></m:m>", e("a"), e("b"), e("c"), e("d")),
                r"\begin{matrix} a & b \\ c & d \end{matrix}",
            ),
            (format!("<m:acc><m:accPr><m:chr m:val=\"\u{20D7}\"/></m:accPr>{}</m:acc>", e("v")), r"\vec{v}"),
            (format!("<m:func><m:fName>{}</m:fName>{}</m:func>", run("sin"), e("x")), r"\sin x"),
            (
                format!(
                    "<m:func><m:fName><m:limLow>{}<m:lim>{}</m:lim></m:limLow></m:fName>{}</m:func>",
                    e("lim"),
                    run("n→∞"),
                    e("a")
                ),
                r"\lim_{n→∞} a",
            ),
        ] {
            assert_eq!(latex(&source).unwrap(), expected);
        }
    }

    #[test]
    fn equations_that_nest_without_end_are_refused() {
        let nested = "<m:d><m:e>".repeat(100_000);
        assert_eq!(latex(&nested).unwrap_err().kind(), crate::ErrorKind::Invalid);
    }
}
