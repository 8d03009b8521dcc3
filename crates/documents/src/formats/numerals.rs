//! Numbers as lists write them: 1, iv, B, and so on.

/// The marker of an item without a number.
pub const BULLET: &str = "•";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Numerals {
    #[default]
    Decimal,
    /// 01, 02, … 10.
    Padded,
    LowerLetter,
    UpperLetter,
    LowerRoman,
    UpperRoman,
    /// 1st, 2nd, 3rd.
    Ordinal,
    /// ①, ②, ③.
    Circled,
    /// The item has the text of its level alone.
    None,
    Bullet,
}

impl Numerals {
    /// By the names of DOCX. Numerals of other scripts are written in digits.
    pub fn of_word(name: &str) -> Self {
        match name {
            "decimalZero" => Self::Padded,
            "lowerLetter" => Self::LowerLetter,
            "upperLetter" => Self::UpperLetter,
            "lowerRoman" => Self::LowerRoman,
            "upperRoman" => Self::UpperRoman,
            "ordinal" => Self::Ordinal,
            "decimalEnclosedCircle" | "decimalEnclosedCircleChinese" => Self::Circled,
            "none" => Self::None,
            "bullet" => Self::Bullet,
            _ => Self::Decimal,
        }
    }

    /// By the numbers of the binary format of Word and of RTF.
    pub fn of_number(number: i32) -> Self {
        match number {
            1 => Self::UpperRoman,
            2 => Self::LowerRoman,
            3 => Self::UpperLetter,
            4 => Self::LowerLetter,
            5 => Self::Ordinal,
            18 | 28 => Self::Circled,
            22 => Self::Padded,
            23 => Self::Bullet,
            255 => Self::None,
            _ => Self::Decimal,
        }
    }

    /// By the first number of a list, as OpenDocument has it: `1`, `a`, `A`, `i`, `I`.
    pub fn of_example(example: &str) -> Self {
        match example {
            "" => Self::None,
            "a" => Self::LowerLetter,
            "A" => Self::UpperLetter,
            "i" => Self::LowerRoman,
            "I" => Self::UpperRoman,
            _ => Self::Decimal,
        }
    }

    pub fn write(self, number: u32) -> String {
        match self {
            Self::Decimal => number.to_string(),
            Self::Padded => format!("{number:02}"),
            Self::LowerLetter => letter(number).to_lowercase(),
            Self::UpperLetter => letter(number),
            Self::LowerRoman => roman(number).to_lowercase(),
            Self::UpperRoman => roman(number),
            Self::Ordinal => format!("{number}{}", ordinal_ending(number)),
            Self::Circled => match number {
                1..=20 => char::from_u32(0x245F + number).map(String::from).unwrap_or_default(),
                _ => number.to_string(),
            },
            Self::None | Self::Bullet => String::new(),
        }
    }
}

/// A to Z, then AA, BB, as word processors count.
fn letter(number: u32) -> String {
    const MOST: u32 = 26 * 30;
    if number == 0 || number > MOST {
        return number.to_string();
    }
    let letter = char::from_u32(u32::from('A') + (number - 1) % 26).unwrap_or('A');
    let times = usize::try_from((number - 1) / 26 + 1).unwrap_or(1);
    String::from(letter).repeat(times)
}

fn roman(number: u32) -> String {
    const MOST: u32 = 3_999;
    const PARTS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if number == 0 || number > MOST {
        return number.to_string();
    }
    let mut left = number;
    let mut roman = String::new();
    for (value, letters) in PARTS {
        while left >= value {
            roman.push_str(letters);
            left -= value;
        }
    }
    roman
}

fn ordinal_ending(number: u32) -> &'static str {
    match (number % 10, number % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_lists_write_them() {
        for (numerals, number, written) in [
            (Numerals::LowerLetter, 27, "aa"),
            (Numerals::UpperLetter, 26, "Z"),
            (Numerals::LowerRoman, 1994, "mcmxciv"),
            (Numerals::UpperRoman, 4_000_000, "4000000"),
            (Numerals::UpperLetter, u32::MAX, "4294967295"),
            (Numerals::Padded, 7, "07"),
            (Numerals::Ordinal, 112, "112th"),
            (Numerals::Ordinal, 22, "22nd"),
            (Numerals::Circled, 3, "③"),
            (Numerals::None, 3, ""),
        ] {
            assert_eq!(numerals.write(number), written);
        }
    }
}
