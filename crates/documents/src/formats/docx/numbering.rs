//! The part of a DOCX that says how lists are numbered.

use super::styles::is_on;
use crate::elements::{Element, Elements, Piece};
use crate::error::Error;
use crate::formats::numbering::{LEVELS, Level, Numbering};
use crate::formats::numerals::Numerals;
use crate::limits::Bounds;

pub fn read(source: &str, bounds: Bounds<'_>) -> Result<Numbering, Error> {
    let mut numbering = Numbering::default();
    let (mut list, mut instance) = (None::<String>, None::<String>);
    let mut overridden = None::<usize>;
    let mut level = None::<(usize, Level)>;
    let mut elements = Elements::new(source, bounds);
    while let Some(piece) = elements.next()? {
        match piece {
            Piece::Open(element) => match element.name() {
                "abstractNum" => list = element.attribute("abstractNumId"),
                "num" => instance = element.attribute("numId"),
                "abstractNumId" => {
                    numbering.instance(instance.as_deref().unwrap_or_default()).list = value(&element);
                }
                "lvlOverride" => overridden = index(&element),
                "startOverride" => {
                    if let (Some(at), Some(_)) = (overridden, &instance) {
                        let start = value(&element).parse().ok();
                        numbering
                            .instance(instance.as_deref().unwrap_or_default())
                            .overrides
                            .entry(at)
                            .or_default()
                            .start = start;
                    }
                }
                "styleLink" => {
                    numbering.list(list.as_deref().unwrap_or_default()).style_link = Some(value(&element));
                }
                "numStyleLink" => {
                    numbering.list(list.as_deref().unwrap_or_default()).levels_of = Some(value(&element));
                }
                "lvl" => level = index(&element).map(|at| (at, Level::default())),
                _ => {
                    if let Some((_, level)) = &mut level {
                        set(level, &element);
                    }
                }
            },
            Piece::Close(name) => match name.as_str() {
                "abstractNum" => list = None,
                "num" => instance = None,
                "lvlOverride" => overridden = None,
                "lvl" => match level.take() {
                    Some((at, level)) if list.is_some() => {
                        numbering.list(list.as_deref().unwrap_or_default()).levels[at] = level;
                    }
                    Some((at, level)) if instance.is_some() => {
                        numbering
                            .instance(instance.as_deref().unwrap_or_default())
                            .overrides
                            .entry(at)
                            .or_default()
                            .level = Some(level);
                    }
                    _ => {}
                },
                _ => {}
            },
            Piece::Words(_) => {}
        }
    }
    numbering.resolve_links();
    Ok(numbering)
}

fn set(level: &mut Level, element: &Element<'_>) {
    match element.name() {
        "start" => level.start = value(element).parse().ok(),
        "numFmt" => level.numerals = Numerals::of_word(&value(element)),
        "lvlText" => level.text = value(element),
        "lvlRestart" => level.restart = value(element).parse().ok(),
        "isLgl" => level.all_decimal = is_on(element),
        "pStyle" => level.style = Some(value(element)),
        _ => {}
    }
}

fn value(element: &Element<'_>) -> String {
    element.attribute("val").unwrap_or_default()
}

fn index(element: &Element<'_>) -> Option<usize> {
    element.attribute("ilvl")?.parse().ok().filter(|level| *level < LEVELS)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    fn numbering(inside: &str) -> Numbering {
        let limits = Limits::default();
        let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
        super::read(&format!("<w:numbering>{inside}</w:numbering>"), bounds).unwrap()
    }

    fn level(at: usize, format: &str, text: &str, more: &str) -> String {
        format!(
            "<w:lvl w:ilvl=\"{at}\"><w:start w:val=\"1\"/><w:numFmt w:val=\"{format}\"/>{more}<w:lvlText w:val=\"{text}\"/></w:lvl>"
        )
    }

    fn counted(numbering: &mut Numbering, items: &[(&str, usize)]) -> Vec<String> {
        items.iter().map(|(list, level)| numbering.count(list, *level).unwrap()).collect()
    }

    #[test]
    fn levels_count_and_begin_again_under_the_next_item() {
        let levels = level(0, "decimal", "%1.", "")
            + &level(1, "lowerLetter", "%1.%2)", "")
            + &level(2, "upperRoman", "(%3)", "<w:lvlRestart w:val=\"0\"/>");
        let mut numbering = numbering(&format!(
            "<w:abstractNum w:abstractNumId=\"0\">{levels}</w:abstractNum><w:num w:numId=\"1\"><w:abstractNumId w:val=\"0\"/></w:num>"
        ));
        let items = [("1", 0), ("1", 1), ("1", 1), ("1", 2), ("1", 0), ("1", 1), ("1", 2)];
        assert_eq!(counted(&mut numbering, &items), ["1.", "1.a)", "1.b)", "(I)", "2.", "2.a)", "(II)"]);
        assert_eq!(numbering.count("none", 0), None);
    }

    #[test]
    fn lists_that_share_levels_go_on_counting_unless_one_has_its_own_start() {
        let mut numbering = numbering(&format!(
            "<w:abstractNum w:abstractNumId=\"0\">{}</w:abstractNum><w:num w:numId=\"1\"><w:abstractNumId w:val=\"0\"/></w:num>\
             <w:num w:numId=\"2\"><w:abstractNumId w:val=\"0\"/></w:num><w:num w:numId=\"3\"><w:abstractNumId w:val=\"0\"/>\
             <w:lvlOverride w:ilvl=\"0\"><w:startOverride w:val=\"5\"/></w:lvlOverride></w:num>\
             <w:num w:numId=\"4\"><w:abstractNumId w:val=\"0\"/><w:lvlOverride w:ilvl=\"0\">{}</w:lvlOverride></w:num>",
            level(0, "decimal", "%1.", ""),
            level(0, "bullet", "\u{B7}", "")
        ));
        let items = [("1", 0), ("2", 0), ("3", 0), ("3", 0), ("1", 0), ("4", 0)];
        assert_eq!(counted(&mut numbering, &items), ["1.", "2.", "5.", "6.", "7.", "•"]);
    }

    #[test]
    fn a_list_may_have_the_levels_of_a_style() {
        let mut numbering = numbering(&format!(
            "<w:abstractNum w:abstractNumId=\"0\"><w:styleLink w:val=\"S\"/>{}{}</w:abstractNum>\
             <w:abstractNum w:abstractNumId=\"1\"><w:numStyleLink w:val=\"S\"/></w:abstractNum>\
             <w:num w:numId=\"7\"><w:abstractNumId w:val=\"1\"/></w:num>",
            level(0, "upperRoman", "%1", ""),
            level(1, "decimal", "%1.%2", "<w:isLgl/><w:pStyle w:val=\"Sub\"/>")
        ));
        assert_eq!(numbering.level_of_style("7", "Sub"), Some(1));
        assert_eq!(counted(&mut numbering, &[("7", 0), ("7", 0), ("7", 1)]), ["I", "II", "2.1"]);
    }
}
