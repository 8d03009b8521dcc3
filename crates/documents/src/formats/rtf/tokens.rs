//! Divides an RTF into groups, control words and text.

pub enum Token<'a> {
    Open,
    Close,
    Word(&'a str, Option<i32>),
    Symbol(u8),
    /// A byte spelled out as `\'hh`.
    Byte(u8),
    Text(&'a [u8]),
}

pub struct Tokens<'a> {
    pub rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    pub fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let (first, rest) = self.rest.split_first()?;
            match first {
                b'{' | b'}' => {
                    self.rest = rest;
                    return Some(if *first == b'{' { Token::Open } else { Token::Close });
                }
                // Line breaks mean nothing.
                b'\r' | b'\n' | 0 => self.rest = rest,
                b'\\' => {
                    self.rest = rest;
                    return self.control();
                }
                _ => {
                    let ends = |byte: &u8| matches!(byte, b'{' | b'}' | b'\\' | b'\r' | b'\n' | 0);
                    let length = self.rest.iter().position(ends).unwrap_or(self.rest.len());
                    return Some(Token::Text(self.take(length)));
                }
            }
        }
    }

    fn control(&mut self) -> Option<Token<'a>> {
        let letters = self.rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        if letters == 0 {
            let symbol = *self.take(1).first()?;
            if symbol != b'\'' {
                return Some(Token::Symbol(symbol));
            }
            let digits = std::str::from_utf8(self.take(2)).ok();
            // If they are no number, both characters are dropped.
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            return Some(byte.map_or(Token::Symbol(b' '), Token::Byte));
        }
        let name = std::str::from_utf8(self.take(letters)).unwrap_or_default();
        let sign = usize::from(self.rest.first() == Some(&b'-'));
        let digits = self.rest.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
        let number = if digits == 0 {
            None
        } else {
            std::str::from_utf8(self.take(sign + digits)).ok().and_then(|digits| digits.parse().ok())
        };
        if self.rest.first() == Some(&b' ') {
            self.take(1);
        }
        Some(Token::Word(name, number))
    }

    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}
