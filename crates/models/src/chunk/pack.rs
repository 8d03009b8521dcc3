//! Packs the units of a Markdown text into chunks: a row or an item is torn only if it alone exceeds the size.

use std::collections::VecDeque;

use super::ChunkConfig;
use super::sizes::Sizes;
use super::splitter::Splitter;
use super::units::{Kind, Unit, Units};

/// A part of a text that becomes a chunk.
pub struct Piece<'a> {
    /// In bytes of the text that was packed.
    pub start: usize,
    pub end: usize,
    /// The header of the table that goes on with this piece.
    pub header: Option<&'a str>,
}

#[derive(Clone, Copy)]
struct Sized {
    unit: Unit,
    size: usize,
}

pub struct Packer<'a> {
    text: &'a str,
    config: ChunkConfig,
    sizes: &'a Sizes,
    units: Units<'a>,
    /// Units that were looked at and are not in a chunk yet: at most as many as fit into one.
    ahead: VecDeque<Sized>,
    /// The units of the chunk that is being filled.
    current: Vec<Sized>,
    header: Option<&'a str>,
    /// The size of what is being filled, with the header.
    filled: usize,
    /// The units of the chunk before, for the overlap.
    last: Vec<Sized>,
}

impl<'a> Packer<'a> {
    pub fn new(text: &'a str, config: ChunkConfig, sizes: &'a Sizes) -> Self {
        Self {
            text,
            config,
            sizes,
            units: Units::new(text),
            ahead: VecDeque::new(),
            current: Vec::new(),
            header: None,
            filled: 0,
            last: Vec::new(),
        }
    }

    /// Calls `emit` with each piece in turn, until it returns an error. What exceeds the size is split by `splitter`.
    pub fn pack<E>(
        mut self,
        splitter: &Splitter,
        mut emit: impl FnMut(Piece<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            match self.peek(0) {
                Some(next) if next.size > self.config.size_tokens => {
                    self.split(next.unit, splitter, &mut emit)?;
                }
                Some(next) if self.current.is_empty() => {
                    self.begin(next);
                    self.add();
                }
                Some(next) if self.has_room(next) => self.add(),
                None if self.current.is_empty() => return Ok(()),
                // The end may leave something for the next chunk.
                Some(_) | None => self.end(&mut emit)?,
            }
        }
    }

    fn peek(&mut self, index: usize) -> Option<Sized> {
        while self.ahead.len() <= index {
            let unit = self.units.next()?;
            let size = self.sizes.up_to(self.config.size_tokens, &self.text[unit.start..unit.end]);
            self.ahead.push_back(Sized { unit, size });
        }
        self.ahead.get(index).copied()
    }

    /// Whether the next unit may join the chunk. What belongs together begins a new chunk if it fits only there, unless
    /// there is nothing but a heading in this one.
    fn has_room(&mut self, next: Sized) -> bool {
        let room = self.config.size_tokens.saturating_sub(self.filled);
        next.size <= room && (self.is_introduction() || self.together() <= room)
    }

    fn is_introduction(&self) -> bool {
        self.current.iter().all(|sized| sized.unit.kind.is_introduction())
    }

    /// The size of what belongs together from the next unit on, as far as that fits into one chunk: headings and what they
    /// introduce, a table, an item with the items in it.
    fn together(&mut self) -> usize {
        let limit = self.config.size_tokens;
        let (mut headings, mut index) = (0_usize, 0);
        while let Some(heading) = self.peek(index).filter(|sized| sized.unit.kind == Kind::Heading) {
            headings = headings.saturating_add(heading.size);
            index += 1;
            if headings > limit {
                break;
            }
        }
        let own = self.peek(0).map_or(0, |sized| sized.size);
        let Some(first) = self.peek(index) else { return own };
        let belongs = |follower: Unit| match first.unit.kind {
            Kind::Header => matches!(follower.kind, Kind::Row { .. }),
            Kind::Item => !follower.kind.is_introduction() && follower.column > first.unit.column,
            _ => false,
        };
        let (mut least, mut all) = (headings.saturating_add(first.size), headings.saturating_add(first.size));
        while let Some(follower) = self.peek(index + 1).filter(|sized| belongs(sized.unit)) {
            if first.unit.kind == Kind::Header && least == all {
                // Not the header alone.
                least = least.saturating_add(follower.size);
            }
            all = all.saturating_add(follower.size);
            index += 1;
            if all > limit {
                break;
            }
        }
        [all, least].into_iter().find(|size| *size <= limit).unwrap_or(own)
    }

    /// Begins a chunk: with the header of the table that goes on, or with the last few words of the chunk before.
    fn begin(&mut self, next: Sized) {
        let limit = self.config.size_tokens;
        match next.unit.kind {
            Kind::Row { header } => {
                let header = &self.text[header.0..header.1];
                let size = self.sizes.up_to(limit, header);
                if size.saturating_add(next.size) <= limit {
                    (self.header, self.filled) = (Some(header), size);
                }
            }
            Kind::Prose | Kind::Item => {
                let room = self.config.overlap_tokens.min(limit.saturating_sub(self.together()));
                self.overlap(room, next.unit.column);
            }
            Kind::Heading | Kind::Header => {}
        }
    }

    fn overlap(&mut self, room: usize, column: usize) {
        let mut first = self.last.len();
        // Never the whole chunk before.
        while first > 1 {
            let Sized { unit, size } = self.last[first - 1];
            if !matches!(unit.kind, Kind::Prose | Kind::Item) || self.filled.saturating_add(size) > room {
                break;
            }
            self.filled += size;
            first -= 1;
        }
        // Not the last part of an item without its beginning.
        while self.last.get(first).is_some_and(|sized| sized.unit.column > column) {
            self.filled -= self.last[first].size;
            first += 1;
        }
        self.current.extend_from_slice(&self.last[first..]);
    }

    fn add(&mut self) {
        if let Some(next) = self.ahead.pop_front() {
            self.filled = self.filled.saturating_add(next.size);
            self.current.push(next);
        }
    }

    fn end<E>(&mut self, emit: &mut impl FnMut(Piece<'a>) -> Result<(), E>) -> Result<(), E> {
        self.shrink();
        if let (Some(first), Some(last)) = (self.current.first(), self.current.last()) {
            let (start, end) = (first.unit.start, last.unit.end);
            emit(Piece { start, end, header: self.header })?;
        }
        self.last = std::mem::take(&mut self.current);
        (self.header, self.filled) = (None, 0);
        Ok(())
    }

    /// A text may have more tokens than its parts together. Then its last units go to the next chunk.
    fn shrink(&mut self) {
        let limit = self.config.size_tokens;
        while let (Some(first), Some(last)) = (self.current.first(), self.current.last()) {
            let body = &self.text[first.unit.start..last.unit.end];
            let size = match self.header {
                Some(header) => self.sizes.up_to(limit, &with_header(header, body)),
                None => self.sizes.up_to(limit, body),
            };
            if size <= limit {
                return;
            }
            if self.current.len() > 1 {
                self.ahead.push_front(*last);
                self.current.pop();
            } else if self.header.take().is_none() {
                return;
            }
        }
    }

    /// Splits a unit that exceeds the size, together with the headings right before it.
    fn split<E>(
        &mut self,
        unit: Unit,
        splitter: &Splitter,
        emit: &mut impl FnMut(Piece<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = unit.start;
        if self.is_introduction() {
            start = self.current.first().map_or(start, |first| first.unit.start);
        } else {
            self.end(emit)?;
            // What did not fit comes first.
            if self.ahead.front().is_some_and(|front| front.unit != unit) {
                return Ok(());
            }
        }
        self.ahead.pop_front();
        self.current.clear();
        self.last.clear();
        (self.header, self.filled) = (None, 0);
        splitter.split(&self.text[start..unit.end], |at, piece| {
            emit(Piece { start: start + at, end: start + at + piece.len(), header: None })
        })
    }
}

/// The rows of a table below its header.
pub fn with_header(header: &str, rows: &str) -> String {
    format!("{header}\n{rows}")
}
