//! The text of a LaTeX file while it is read.

/// The longest formula between dollars.
const MAX_FORMULA: usize = 4_000;
/// The most bytes of the head of a table.
const MAX_HEAD: usize = 16 << 10;
/// The longest option, and the longest code in a line.
const MAX_OPTION: usize = 1_000;

pub struct Source<'a> {
    rest: &'a str,
}

impl<'a> Source<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub fn is_reference(&self) -> bool {
        ["\\cite", "\\ref", "\\eqref"].iter().any(|command| self.rest.starts_with(command))
    }

    pub fn take(&mut self) -> Option<char> {
        let first = self.peek()?;
        self.rest = &self.rest[first.len_utf8()..];
        Some(first)
    }

    fn split(&mut self, at: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(at);
        self.rest = rest;
        taken
    }

    /// The words up to the next character that means something.
    pub fn text(&mut self) -> &'a str {
        let first = self.peek().map_or(0, char::len_utf8);
        let length = self.rest[first..].find(['%', '\\', '{', '}', '$', '~', '&']);
        self.split(length.map_or(self.rest.len(), |length| length + first))
    }

    /// A comment goes to the end of its line. The blanks before the next line are a part of it, an empty line is not.
    pub fn skip_comment(&mut self) {
        let end = self.rest.find('\n').map_or(self.rest.len(), |end| end + 1);
        self.split(end);
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// The name of a command: letters, or one other character.
    pub fn command(&mut self) -> &'a str {
        self.take();
        let letters = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let length = if letters > 0 { letters } else { self.peek().map_or(0, char::len_utf8) };
        let name = self.split(length);
        if self.rest.starts_with('*') && letters > 0 {
            self.take();
        }
        name
    }

    /// Blanks after a command of letters are no text.
    pub fn skip_blanks_after(&mut self, command: &str) {
        if command.ends_with(|c: char| c.is_ascii_alphabetic()) {
            let trimmed = self.rest.trim_start_matches([' ', '\t']);
            // An empty line ends the paragraph all the same.
            let line = trimmed
                .strip_prefix('\n')
                .filter(|rest| !rest.trim_start_matches([' ', '\t']).starts_with('\n'));
            self.rest = line.unwrap_or(trimmed);
        }
    }

    /// `[…]`, if there is one.
    pub fn option(&mut self) -> Option<&'a str> {
        let inner = self.rest.trim_start_matches([' ', '\t']).strip_prefix('[')?;
        let mut depth = 0_usize;
        for (at, byte) in inner.bytes().enumerate().take(MAX_OPTION) {
            match byte {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                b']' if depth == 0 => {
                    self.rest = &inner[at + 1..];
                    return Some(&inner[..at]);
                }
                b'\n' if inner[at + 1..].starts_with('\n') => return None,
                _ => {}
            }
        }
        None
    }

    pub fn skip_options(&mut self) {
        while self.option().is_some() {}
    }

    /// Whether a group begins here. Its brace is taken.
    pub fn enter_group(&mut self) -> bool {
        let trimmed = self.rest.trim_start();
        let has_group = trimmed.starts_with('{');
        if has_group {
            self.rest = &trimmed[1..];
        }
        has_group
    }

    /// The content of a group, as it is written. Without a brace there is none.
    pub fn argument(&mut self) -> &'a str {
        if !self.enter_group() {
            return "";
        }
        let mut depth = 1_usize;
        let mut is_escaped = false;
        for (at, byte) in self.rest.bytes().enumerate() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let argument = self.split(at);
                self.take();
                return argument;
            }
        }
        self.split(self.rest.len())
    }

    /// `\def\name#1{…}` or `\newcommand{\name}[1]{…}`.
    pub fn skip_definition(&mut self) {
        if self.rest.trim_start().starts_with('{') {
            self.argument();
        }
        let to_body = self.rest.find(['{', '\n']).unwrap_or(self.rest.len());
        self.split(to_body);
        self.argument();
    }

    /// A formula between dollars, with them; `None` if the dollar is only a dollar.
    pub fn mathematics(&mut self) -> Option<&'a str> {
        let mark = if self.rest.starts_with("$$") { "$$" } else { "$" };
        let end = self.rest.floor_char_boundary(MAX_FORMULA);
        let content = &self.rest[mark.len()..end.max(mark.len())];
        let mut from = 0;
        loop {
            let at = from + content[from..].find(mark)?;
            if !content[..at].ends_with('\\') {
                let is_formula = at > 0 && !content[..at].contains("\n\n");
                return is_formula.then(|| self.split(at + 2 * mark.len()));
            }
            from = at + mark.len();
        }
    }

    /// A formula after `\(` or `\[`, with its brackets.
    pub fn up_to_closing(&mut self, bracket: &str) -> &'a str {
        let closing = if bracket == "(" { "\\)" } else { "\\]" };
        let end = self.rest.find(closing).unwrap_or(self.rest.len());
        let content = self.split(end);
        self.split(closing.len().min(self.rest.len()));
        content
    }

    /// The content of an environment, as it is written. Its end is taken.
    pub fn up_to_end(&mut self, environment: &str) -> &'a str {
        let end = format!("\\end{{{environment}}}");
        let at = self.rest.find(&end).unwrap_or(self.rest.len());
        let content = self.split(at);
        self.split(end.len().min(self.rest.len()));
        content
    }

    /// Whether this command is next, apart from blanks. It is taken.
    pub fn enter_command(&mut self, command: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(command);
        let rest = rest.filter(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()));
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Goes on after this command of the environment that is open, if it is there.
    pub fn skip_past(&mut self, command: &str) {
        let near = &self.rest[..self.rest.floor_char_boundary(MAX_HEAD)];
        let inside = near.find("\\end{").map_or(near, |end| &near[..end]);
        if let Some(at) = inside.find(command) {
            self.split(at + command.len());
        }
    }

    /// The words of `\verb|…|`.
    pub fn verb(&mut self) -> &'a str {
        let Some(mark) = self.take() else { return "" };
        let line = &self.rest[..self.rest.floor_char_boundary(MAX_OPTION)];
        let line = line.split('\n').next().unwrap_or_default();
        let Some(end) = line.find(mark) else { return "" };
        let words = self.split(end);
        self.take();
        words
    }

    /// The letter that an accent is on.
    pub fn accented(&mut self) -> char {
        self.rest = self.rest.trim_start_matches(' ');
        let in_group = self.rest.starts_with('{');
        let inner = self.rest.trim_start_matches('{');
        let inner = inner.strip_prefix('\\').unwrap_or(inner);
        let Some(letter) = inner.chars().next().filter(|c| c.is_alphabetic()) else { return ' ' };
        self.rest = &inner[letter.len_utf8()..];
        if in_group && self.rest.starts_with('}') {
            self.take();
        }
        letter
    }
}
