//! Takes a format code apart.

#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    pub condition: Option<Condition>,
    pub kind: Kind,
    pub tokens: Vec<Token>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    General,
    Number,
    Date,
    /// `@`: the words of the cell.
    Text,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Literal(String),
    /// `0`, `#` or `?`.
    Digit(char),
    Point,
    Comma,
    Percent,
    /// `E+` or `E-`; whether a plus is shown.
    Exponent(bool),
    Slash,
    /// `General`: the number itself.
    General,
    /// `@`: the words themselves.
    Words,
    Part(Part, usize),
    /// `[h]`, `[mm]`, `[ss]`: the time as one number of these, with so many digits.
    Elapsed(Part, usize),
    /// `AM/PM`, or `A/P` if it is short.
    HalfOfDay {
        is_short: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Year,
    Month,
    Day,
    Weekday,
    Hour,
    Minute,
    Second,
    /// The digits after the point of a second.
    Fraction,
}

/// When a section is used, such as `[>=100]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    comparison: Comparison,
    with: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

impl Condition {
    #[expect(clippy::float_cmp, reason = "a condition compares exactly")]
    pub fn holds(self, value: f64) -> bool {
        match self.comparison {
            Comparison::Less => value < self.with,
            Comparison::LessOrEqual => value <= self.with,
            Comparison::Greater => value > self.with,
            Comparison::GreaterOrEqual => value >= self.with,
            Comparison::Equal => value == self.with,
            Comparison::NotEqual => value != self.with,
        }
    }

    /// A section for negative numbers alone shows its own minus.
    pub fn is_of_negatives(self) -> bool {
        matches!(self.comparison, Comparison::Less | Comparison::LessOrEqual) && self.with <= 0.0
    }

    fn parse(inside: &str) -> Option<Self> {
        let comparisons = [
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<>", Comparison::NotEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
            ("=", Comparison::Equal),
        ];
        let (mark, comparison) = comparisons.into_iter().find(|(mark, _)| inside.starts_with(mark))?;
        Some(Self { comparison, with: inside[mark.len()..].trim().parse().ok()? })
    }
}

impl Section {
    fn new(tokens: Vec<Token>, condition: Option<Condition>) -> Self {
        let has = |wanted: fn(&Token) -> bool| tokens.iter().any(wanted);
        let kind =
            if has(|token| matches!(token, Token::Part(..) | Token::Elapsed(..) | Token::HalfOfDay { .. })) {
                Kind::Date
            } else if has(|token| matches!(token, Token::Digit(_))) {
                Kind::Number
            } else if has(|token| *token == Token::General) {
                Kind::General
            } else if has(|token| *token == Token::Words) {
                Kind::Text
            } else {
                Kind::Number
            };
        Self { condition, kind, tokens }
    }

    /// A value between the literals of the section.
    pub fn around(&self, value: &str) -> String {
        let mut text = String::new();
        for token in &self.tokens {
            match token {
                Token::Literal(literal) => text.push_str(literal),
                Token::General | Token::Words => text.push_str(value),
                Token::Percent => text.push('%'),
                Token::Comma => text.push(','),
                Token::Point => text.push('.'),
                Token::Slash => text.push('/'),
                _ => {}
            }
        }
        text
    }
}

pub fn sections(code: &str) -> Vec<Section> {
    let mut parser = Parser { rest: code, tokens: Vec::new(), condition: None, sections: Vec::new() };
    while parser.step() {}
    parser.end_section();
    let mut sections = parser.sections;
    sections.truncate(4);
    // A code without anything in it is no format.
    if sections.len() == 1 && sections[0].tokens.is_empty() {
        sections.clear();
    }
    sections
}

struct Parser<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    condition: Option<Condition>,
    sections: Vec<Section>,
}

impl Parser<'_> {
    fn step(&mut self) -> bool {
        let Some(character) = self.rest.chars().next() else { return false };
        let mut taken = character.len_utf8();
        match character {
            ';' => self.end_section(),
            '"' => {
                let inside = &self.rest[1..];
                let end = inside.find('"').unwrap_or(inside.len());
                taken = (end + 2).min(self.rest.len());
                self.literal(&self.rest[1..=end]);
            }
            // The next character as it is, a space as wide as it, or as many of it as fit.
            '\\' | '!' | '_' | '*' => {
                let next = self.rest[taken..].chars().next().unwrap_or(' ');
                if taken < self.rest.len() {
                    taken += next.len_utf8();
                }
                match character {
                    '_' => self.literal(" "),
                    '*' => {}
                    _ => self.literal(next.encode_utf8(&mut [0; 4])),
                }
            }
            '[' => {
                let end = self.rest.find(']').unwrap_or(self.rest.len());
                taken = (end + 1).min(self.rest.len());
                self.brackets(&self.rest[1..end]);
            }
            '0' | '#' | '?' => self.tokens.push(Token::Digit(character)),
            '.' => self.tokens.push(Token::Point),
            ',' => self.tokens.push(Token::Comma),
            '%' => self.tokens.push(Token::Percent),
            '/' => self.tokens.push(Token::Slash),
            '@' => self.tokens.push(Token::Words),
            _ => taken = self.letters(character),
        }
        self.rest = &self.rest[taken..];
        true
    }

    /// Letters that mean something, or a literal. Returns how many bytes were taken.
    fn letters(&mut self, character: char) -> usize {
        let starts =
            |word: &str| self.rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        for (word, token) in [
            ("general", Token::General),
            ("am/pm", Token::HalfOfDay { is_short: false }),
            ("a/p", Token::HalfOfDay { is_short: true }),
            ("e+", Token::Exponent(true)),
            ("e-", Token::Exponent(false)),
        ] {
            if starts(word) {
                self.tokens.push(token);
                return word.len();
            }
        }
        let lower = character.to_ascii_lowercase();
        let length = self.rest.chars().take_while(|c| c.to_ascii_lowercase() == lower).count();
        let part = match lower {
            'y' => Token::Part(Part::Year, length),
            'e' => Token::Part(Part::Year, 4),
            'm' => Token::Part(Part::Month, length),
            'd' => Token::Part(Part::Day, length),
            'a' if length >= 3 => Token::Part(Part::Weekday, length),
            'h' => Token::Part(Part::Hour, length),
            's' => Token::Part(Part::Second, length),
            // The name of an era.
            'g' => return length,
            _ => {
                self.literal(character.encode_utf8(&mut [0; 4]));
                return character.len_utf8();
            }
        };
        self.tokens.push(part);
        length
    }

    /// A condition, a currency, elapsed time; colours and languages are left out.
    fn brackets(&mut self, inside: &str) {
        if let Some(currency) = inside.strip_prefix('$') {
            self.literal(currency.split_once('-').map_or(currency, |(symbol, _)| symbol));
        } else if let Some(condition) = Condition::parse(inside) {
            self.condition = Some(condition);
        } else {
            let lower = inside.to_ascii_lowercase();
            let is_only = |letter: char| !lower.is_empty() && lower.chars().all(|c| c == letter);
            for (letter, part) in [('h', Part::Hour), ('m', Part::Minute), ('s', Part::Second)] {
                if is_only(letter) {
                    self.tokens.push(Token::Elapsed(part, lower.len()));
                }
            }
        }
    }

    fn literal(&mut self, words: &str) {
        match self.tokens.last_mut() {
            Some(Token::Literal(literal)) => literal.push_str(words),
            _ if words.is_empty() => {}
            _ => self.tokens.push(Token::Literal(words.to_owned())),
        }
    }

    fn end_section(&mut self) {
        let mut tokens = std::mem::take(&mut self.tokens);
        find_minutes(&mut tokens);
        find_fractions(&mut tokens);
        self.sections.push(Section::new(tokens, self.condition.take()));
    }
}

/// `m` is a minute after an hour or before a second, and otherwise a month.
fn find_minutes(tokens: &mut [Token]) {
    let parts: Vec<usize> =
        (0..tokens.len()).filter(|at| matches!(tokens[*at], Token::Part(..) | Token::Elapsed(..))).collect();
    let part = |tokens: &[Token], at: Option<&usize>| match at.map(|at| &tokens[*at]) {
        Some(Token::Part(part, _) | Token::Elapsed(part, _)) => Some(*part),
        _ => None,
    };
    for (number, at) in parts.iter().enumerate() {
        let before = number.checked_sub(1).and_then(|number| part(tokens, parts.get(number)));
        let after = part(tokens, parts.get(number + 1));
        if let Token::Part(month @ Part::Month, 1..=2) = &mut tokens[*at]
            && (before == Some(Part::Hour) || after == Some(Part::Second))
        {
            *month = Part::Minute;
        }
    }
}

/// `.00` after seconds is a part of them.
fn find_fractions(tokens: &mut Vec<Token>) {
    let is_second =
        |token: &Token| matches!(token, Token::Part(Part::Second, _) | Token::Elapsed(Part::Second, _));
    let mut at = 1;
    while at < tokens.len() {
        if tokens[at] == Token::Point && is_second(&tokens[at - 1]) {
            let digits = tokens[at + 1..].iter().take_while(|token| **token == Token::Digit('0')).count();
            if digits > 0 {
                tokens.splice(at..=at + digits, [Token::Part(Part::Fraction, digits)]);
            }
        }
        at += 1;
    }
}
