//! LaTeX: sections, lists, tables and words. Commands are dropped, and mathematics is kept as it is written.
//!
//! The text is read once from start to end, and no macro is expanded.

mod commands;
mod source;

use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing;
use commands::{Dropped, accent, dropped, is_mathematics, is_raw, section_level, symbol};
use landfall_core::text::Extracted;
use source::Source;

/// Tokens between two reports of progress.
const PROGRESS_EVERY: usize = 4_096;
/// Titles and captions in one another.
const MAX_INSIDE: usize = 4;

pub fn extract(text: &str, bounds: Bounds<'_>) -> Result<Extracted, Error> {
    const BEGIN: &str = "\\begin{document}";
    let (before, body) = text.split_once(BEGIN).unwrap_or(("", text));
    let named = |name: &str| before.find(name).map(|at| Source::new(&before[at + name.len()..]).argument());
    let title = named("\\title");
    let authors =
        named("\\author").map(|authors| authors.split("\\and").map(str::trim).collect::<Vec<_>>().join(", "));
    let mut reader = Reader {
        flow: Flow::new(bounds.limits),
        bounds,
        has_chapters: body.contains("\\chapter"),
        groups: Vec::new(),
        open: Vec::new(),
        wide: 0,
        not_read: Vec::new(),
        inside: 0,
        ended: false,
        read: 0,
    };
    if let Some(title) = title {
        reader.flow.begin_heading(1);
        reader.run(title)?;
        reader.flow.end_heading();
    }
    if let Some(authors) = &authors {
        reader.run(authors)?;
        reader.flow.widen(Gap::Paragraph);
    }
    reader.run(body)?;
    let not_read = std::mem::take(&mut reader.not_read);
    let mut extracted = reader.flow.finish()?;
    extracted.warnings.extend(missing::parts_not_read("other file", not_read.len(), &not_read));
    Ok(extracted)
}

/// What happens at the end of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtEnd {
    Nothing,
    Heading,
    Link,
    Bracket,
}

enum Environment {
    /// The next number; `None` for bullets.
    List {
        number: Option<usize>,
        has_open_item: bool,
    },
    Table,
    Quote,
    Other,
}

struct Reader<'a> {
    flow: Flow,
    bounds: Bounds<'a>,
    has_chapters: bool,
    groups: Vec<AtEnd>,
    open: Vec<Environment>,
    /// Columns that the open cell covers after its first one.
    wide: usize,
    /// Files that the text includes.
    not_read: Vec<String>,
    /// Arguments that are read while others are.
    inside: usize,
    ended: bool,
    read: usize,
}

impl Reader<'_> {
    fn run(&mut self, text: &str) -> Result<(), Error> {
        let mut source = Source::new(text);
        let groups_before = self.groups.len();
        while let Some(first) = source.peek().filter(|_| !self.ended) {
            self.read += 1;
            if self.read.is_multiple_of(PROGRESS_EVERY) {
                self.bounds.report_progress()?;
                self.flow.check()?;
            }
            match first {
                '%' => source.skip_comment(),
                '\\' => self.control(&mut source)?,
                '{' => {
                    source.take();
                    self.open_group(AtEnd::Nothing)?;
                }
                '}' => {
                    source.take();
                    self.close_group();
                }
                '$' => self.dollar(&mut source),
                '~' => {
                    source.take();
                    // A reference is dropped with the space that ties it to its word.
                    if !source.is_reference() {
                        self.flow.widen(Gap::Space);
                    }
                }
                '&' if self.in_table() => {
                    source.take();
                    self.next_cell();
                }
                _ => self.words(source.text()),
            }
        }
        // A brace that is missing must not hold what follows.
        while self.groups.len() > groups_before {
            self.close_group();
        }
        Ok(())
    }

    /// Reads an argument. Those that are too deep in one another are left out.
    fn run_inside(&mut self, text: &str) -> Result<(), Error> {
        if self.inside >= MAX_INSIDE {
            return Ok(());
        }
        self.inside += 1;
        let result = self.run(text);
        self.inside -= 1;
        result
    }

    fn words(&mut self, text: &str) {
        let mut paragraphs = text.split("\n\n").peekable();
        while let Some(paragraph) = paragraphs.next() {
            self.flow.words(&typeset(paragraph));
            if paragraphs.peek().is_some() && !self.groups.contains(&AtEnd::Heading) {
                self.flow.widen(Gap::Paragraph);
            }
        }
    }

    fn open_group(&mut self, at_end: AtEnd) -> Result<(), Error> {
        if self.groups.len() + self.open.len() > self.bounds.limits.depth {
            return Err(self.bounds.limits.too_deep());
        }
        self.groups.push(at_end);
        Ok(())
    }

    fn close_group(&mut self) {
        match self.groups.pop() {
            Some(AtEnd::Heading) => self.flow.end_heading(),
            Some(AtEnd::Link) => self.flow.end_link(),
            Some(AtEnd::Bracket) => self.flow.verbatim(")"),
            Some(AtEnd::Nothing) | None => {}
        }
    }

    fn dollar(&mut self, source: &mut Source<'_>) {
        match source.mathematics() {
            Some(formula) => self.flow.words(formula),
            None => {
                source.take();
                self.flow.verbatim("$");
            }
        }
    }

    /// A formula on lines of its own.
    fn display(&mut self, formula: &str) {
        self.flow.widen(Gap::Paragraph);
        self.flow.words(&format!("$${}$$", formula.trim()));
        self.flow.widen(Gap::Paragraph);
    }

    fn control(&mut self, source: &mut Source<'_>) -> Result<(), Error> {
        let name = source.command();
        if let Some(level) = section_level(name, self.has_chapters) {
            source.skip_options();
            self.flow.begin_heading(level);
            return if source.enter_group() { self.open_group(AtEnd::Heading) } else { Ok(()) };
        }
        if let Some(mark) = accent(name) {
            let letter = source.accented();
            self.flow.verbatim(&commands::with_accent(letter, mark));
            return Ok(());
        }
        if let Some(symbol) = symbol(name) {
            self.flow.verbatim(symbol);
            source.skip_blanks_after(name);
            return Ok(());
        }
        match name {
            "begin" => self.begin(source)?,
            "end" => {
                let name = source.argument();
                self.end(name);
            }
            "item" => self.item(source)?,
            "\\" | "tabularnewline" => self.end_line(source),
            "par" | "newpage" | "clearpage" | "bigskip" | "medskip" | "smallskip" => {
                self.flow.widen(Gap::Paragraph);
            }
            "newline" | "linebreak" => self.flow.widen(Gap::Line),
            "quad" | "qquad" | "," | ";" | ":" | " " | "\n" => self.flow.widen(Gap::Space),
            "(" => self.flow.words(&format!("${}$", source.up_to_closing(name).trim())),
            "[" => self.display(source.up_to_closing(name)),
            // The second form is for bookmarks.
            "texorpdfstring" => {
                let shown = source.argument();
                source.argument();
                self.run_inside(shown)?;
            }
            // A table over several pages repeats its head.
            "endfirsthead" => source.skip_past("\\endhead"),
            "href" => {
                let target = source.argument();
                self.flow.begin_link(target);
                if source.enter_group() {
                    self.open_group(AtEnd::Link)?;
                } else {
                    self.flow.end_link();
                }
            }
            "url" | "nolinkurl" => self.flow.words(source.argument()),
            "verb" => self.flow.words(source.verb()),
            "footnote" | "thanks" => {
                source.skip_options();
                if source.enter_group() {
                    self.flow.widen(Gap::Space);
                    self.flow.verbatim("(");
                    self.open_group(AtEnd::Bracket)?;
                }
            }
            "caption" => {
                source.skip_options();
                self.flow.widen(Gap::Paragraph);
            }
            "multicolumn" => {
                self.wide = source.argument().trim().parse::<usize>().unwrap_or(1).clamp(1, 1_000) - 1;
                source.argument();
            }
            "input" | "include" | "subfile" => self.not_read.push(source.argument().to_owned()),
            _ => drop_command(name, source),
        }
        Ok(())
    }

    // --- Environments ---

    fn begin(&mut self, source: &mut Source<'_>) -> Result<(), Error> {
        let name = source.argument();
        let plain = name.trim_end_matches('*');
        if is_raw(plain) {
            let content = source.up_to_end(name);
            if plain == "Highlighting" {
                self.flow.code_block("", &commands::without_colours(content));
            } else if matches!(plain, "verbatim" | "Verbatim" | "lstlisting" | "minted" | "alltt") {
                let (language, code) = commands::listing(plain, content);
                self.flow.code_block(language, code);
            }
            return Ok(());
        }
        if is_mathematics(plain) {
            let content = source.up_to_end(name);
            self.display(content);
            return Ok(());
        }
        let environment = match plain {
            "itemize" | "description" => Environment::List { number: None, has_open_item: false },
            "enumerate" => Environment::List { number: Some(1), has_open_item: false },
            "tabular" | "tabularx" | "tabulary" | "longtable" | "array" => Environment::Table,
            "quote" | "quotation" | "verse" => Environment::Quote,
            _ => Environment::Other,
        };
        if self.groups.len() + self.open.len() > self.bounds.limits.depth {
            return Err(self.bounds.limits.too_deep());
        }
        source.skip_options();
        match environment {
            Environment::Table => {
                if plain == "tabularx" || plain == "tabulary" || name == "tabular*" {
                    source.argument();
                }
                source.skip_options();
                source.argument();
                if source.enter_command("\\caption") {
                    source.skip_options();
                    self.flow.widen(Gap::Paragraph);
                    let caption = source.argument();
                    self.run_inside(caption)?;
                    _ = source.enter_command("\\tabularnewline") || source.enter_command("\\\\");
                }
                self.flow.begin_table();
                self.flow.begin_row();
                self.flow.begin_cell();
            }
            Environment::Quote => self.flow.begin_quote(),
            Environment::List { .. } => {}
            Environment::Other => {
                if plain == "thebibliography" {
                    source.argument();
                }
                self.flow.widen(Gap::Paragraph);
            }
        }
        self.open.push(environment);
        Ok(())
    }

    fn end(&mut self, name: &str) {
        if name == "document" {
            self.ended = true;
        }
        match self.open.pop() {
            Some(Environment::List { has_open_item, .. }) => {
                if has_open_item {
                    self.flow.end_item();
                }
                self.flow.end_list();
            }
            Some(Environment::Table) => {
                self.end_cell();
                self.flow.end_table();
            }
            Some(Environment::Quote) => self.flow.end_quote(),
            Some(Environment::Other) | None => self.flow.widen(Gap::Paragraph),
        }
    }

    fn item(&mut self, source: &mut Source<'_>) -> Result<(), Error> {
        let label = source.option();
        let last = self
            .open
            .iter_mut()
            .rev()
            .find(|open| matches!(open, Environment::List { .. } | Environment::Table));
        let Some(Environment::List { number, has_open_item }) = last else {
            self.flow.widen(Gap::Line);
            return Ok(());
        };
        let marker = match number {
            Some(number) if label.is_none() => {
                *number += 1;
                format!("{}.", *number - 1)
            }
            _ => "-".to_owned(),
        };
        if std::mem::replace(has_open_item, true) {
            self.flow.end_item();
        }
        self.flow.begin_item(&marker);
        if let Some(label) = label {
            self.run(label)?;
            self.flow.widen(Gap::Space);
        }
        Ok(())
    }

    // --- Tables ---

    fn in_table(&self) -> bool {
        self.open.iter().any(|open| matches!(open, Environment::Table))
    }

    fn next_cell(&mut self) {
        self.end_cell();
        self.flow.begin_cell();
    }

    fn end_cell(&mut self) {
        self.flow.empty_cells(std::mem::take(&mut self.wide));
    }

    fn end_line(&mut self, source: &mut Source<'_>) {
        source.skip_options();
        if self.in_table() {
            self.end_cell();
            self.flow.begin_row();
            self.flow.begin_cell();
        } else {
            self.flow.widen(Gap::Line);
        }
    }
}

fn drop_command(name: &str, source: &mut Source<'_>) {
    match dropped(name) {
        Dropped::Arguments(number) => {
            source.skip_options();
            for _ in 0..number {
                source.argument();
                source.skip_options();
            }
        }
        Dropped::Definition => source.skip_definition(),
        // The argument of an unknown command is text, if it has one.
        Dropped::Name => {
            source.skip_options();
            source.skip_blanks_after(name);
        }
    }
}

/// Dashes and quotation marks as they are printed.
fn typeset(text: &str) -> String {
    if !text.contains(['-', '`', '\'']) {
        return text.to_owned();
    }
    text.replace("---", "—")
        .replace("--", "–")
        .replace("``", "“")
        .replace("''", "”")
        .replace('`', "‘")
        .replace('\'', "’")
}

#[cfg(test)]
mod tests;
