//! Word documents of before 2007 (.doc): the text in its pieces, with the properties of its paragraphs.

mod body;
mod fib;
mod lists;
mod pieces;
mod properties;
mod styles;

use encoding_rs::WINDOWS_1252;

use super::compound::Container;
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing::PageCount;
use crate::reading::Reading;
use body::Body;
use fib::{Fib, Part};
use pieces::Pieces;
use styles::Styles;

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    let container = Container::open(bytes).ok_or_else(fib::damaged)?;
    let document = container.stream("WordDocument").ok_or_else(fib::damaged)?;
    let fib = Fib::read(&document)?;
    if fib.is_older() {
        return read_older(&fib, bounds);
    }
    let table = container.stream(if fib.second_table { "1Table" } else { "0Table" });
    let tables = table.ok_or_else(fib::damaged)?;
    let pieces = Pieces::read(fib.part(Part::Pieces, &tables), &document, bounds)?;
    let mut body = Body::new(&pieces, bounds);
    body.paragraphs = properties::paragraphs(fib.part(Part::Paragraphs, &tables), &document);
    body.characters = properties::characters(fib.part(Part::Characters, &tables), &document);
    body.styles = Styles::read(fib.part(Part::Styles, &tables));
    body.numbering =
        lists::read(fib.part_and_rest(Part::Lists, &tables), fib.part(Part::ListInstances, &tables));
    body.data = container.stream("Data").unwrap_or_default();
    body.read(&fib, &tables, &container)
}

/// Documents of Word 6 and 95 have their text in one stretch.
fn read_older(fib: &Fib<'_>, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let mut flow = Flow::new(bounds.limits);
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(fib.plain_text());
    for paragraph in text.split(['\r', '\u{7}', '\u{C}']) {
        flow.widen(Gap::Paragraph);
        flow.words(&paragraph.replace(|character: char| character.is_control(), " "));
        flow.check()?;
    }
    flow.finish_reading(PageCount::default())
}
