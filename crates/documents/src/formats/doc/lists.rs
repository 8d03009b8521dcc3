//! The lists of a Word document, for the counter that DOCX uses too.

use super::fib::{u16_at, u32_at};
use crate::formats::numbering::{LEVELS, Level, Numbering, Override};
use crate::formats::numerals::Numerals;

/// Word allows fewer.
const MAX_LISTS: usize = 10_000;

/// Reads the lists, with the levels that follow them, and their instances. An instance is named by its number, from 1.
pub fn read(lists: (&[u8], &[u8]), instances: &[u8]) -> Numbering {
    let mut numbering = Numbering::default();
    // What is damaged ends the lists; the text is there without them.
    let _ = read_lists(lists, &mut numbering);
    let _ = read_instances(instances, &mut numbering);
    numbering
}

fn read_lists((lists, levels): (&[u8], &[u8]), numbering: &mut Numbering) -> Option<()> {
    let number = usize::from(u16_at(lists, 0)?);
    let mut rest = levels;
    for list in lists.get(2..)?.as_chunks::<28>().0.iter().take(number) {
        let id = u32_at(list, 0)?.to_string();
        let is_simple = list[26] & 1 != 0;
        for level in 0..if is_simple { 1 } else { LEVELS } {
            let (read, length) = read_level(rest)?;
            numbering.list(&id).levels[level] = read;
            rest = rest.get(length..)?;
        }
    }
    Some(())
}

fn read_instances(bytes: &[u8], numbering: &mut Numbering) -> Option<()> {
    let number = usize::try_from(u32_at(bytes, 0)?).ok()?.min(MAX_LISTS);
    let (instances, mut rest) = bytes.get(4..)?.split_at_checked(16 * number)?;
    for (number, instance) in (1..).zip(instances.as_chunks::<16>().0) {
        let id: u32 = number;
        numbering.instance(&id.to_string()).list = u32_at(instance, 0)?.to_string();
    }
    for (number, instance) in (1..).zip(instances.as_chunks::<16>().0) {
        let id: u32 = number;
        rest = rest.get(4..)?;
        for _ in 0..instance[12] {
            let start = u32_at(rest, 0)?;
            let flags = u32_at(rest, 4)?;
            rest = rest.get(8..)?;
            let mut overridden = Override { start: (flags & 0x10 != 0).then_some(start), level: None };
            if flags & 0x20 != 0 {
                let (level, length) = read_level(rest)?;
                rest = rest.get(length..)?;
                overridden.level = Some(level);
            }
            let level = usize::try_from(flags & 0xF).ok()?;
            numbering.instance(&id.to_string()).overrides.insert(level, overridden);
        }
    }
    Some(())
}

/// A level, and how many bytes it takes.
fn read_level(bytes: &[u8]) -> Option<(Level, usize)> {
    let flags = *bytes.get(5)?;
    let text_at = 28 + usize::from(*bytes.get(24)?) + usize::from(*bytes.get(25)?);
    let length = usize::from(u16_at(bytes, text_at)?);
    let end = text_at + 2 + 2 * length;
    let units = bytes.get(text_at + 2..end)?.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
    let mut text = String::new();
    for character in char::decode_utf16(units).map(|character| character.unwrap_or(' ')) {
        // The number of a level stands where its number is to be written.
        match u32::from(character) {
            level @ 0..9 => text.push_str(&format!("%{}", level + 1)),
            _ => text.push(character),
        }
    }
    let level = Level {
        numerals: Numerals::of_number(i32::from(*bytes.get(4)?)),
        text,
        start: u32_at(bytes, 0),
        restart: (flags & 8 != 0).then(|| usize::from(bytes[26])),
        all_decimal: flags & 4 != 0,
        style: None,
    };
    Some((level, end))
}
