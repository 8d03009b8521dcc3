//! Numbers: digits, thousands, percentages, exponents, fractions.

use super::decimal::Decimal;
use super::parse::{Section, Token};

/// The most characters of a number without a format, with its point, as in a cell that is wide enough.
const GENERAL_WIDTH: usize = 11;
/// Whole numbers are written out up to here. A narrower cell of Excel would show an exponent, and an order number would
/// not be found.
const WRITTEN_OUT: i32 = 15;
/// The largest denominators of fractions, by their digits.
const MAX_DENOMINATOR: u32 = 9_999;

/// A number without a format.
pub fn general(value: f64) -> String {
    let decimal = Decimal::new(value);
    let sign = if value < 0.0 && !decimal.is_zero() { "-" } else { "" };
    let power = decimal.power();
    if power >= WRITTEN_OUT || power < -4 && !decimal.is_zero() {
        return format!("{sign}{}", scientific(&decimal));
    }
    let whole = decimal.whole();
    let places = (GENERAL_WIDTH - 1).saturating_sub(whole.len().max(1));
    let rounded = decimal.rounded(places);
    let (whole, fraction) = (rounded.whole(), rounded.fraction());
    let whole = if whole.is_empty() { "0" } else { &whole };
    let sign = if rounded.is_zero() { "" } else { sign };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn scientific(decimal: &Decimal) -> String {
    let power = decimal.power();
    let mut mantissa = decimal.clone().shifted(-power).rounded(5);
    let mut power = power;
    if mantissa.power() > 0 {
        mantissa = mantissa.shifted(-1);
        power += 1;
    }
    let fraction = mantissa.fraction();
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if power < 0 { '-' } else { '+' };
    format!("{}{point}{fraction}E{sign}{:02}", mantissa.whole(), power.abs())
}

/// A number that is not negative; the minus comes before everything else.
pub fn format(section: &Section, value: f64, is_negative: bool) -> String {
    let mut text = String::from(if is_negative { "-" } else { "" });
    let tokens = &section.tokens;
    if let Some(slash) = fraction_mark(tokens) {
        text.push_str(&fraction(tokens, slash, value));
        return text;
    }
    let layout = Layout::of(tokens);
    let mut decimal = Decimal::new(value).shifted(layout.powers);
    let mut power = 0;
    if layout.exponent.is_some() {
        power = exponent_of(&decimal, layout.whole);
        decimal = decimal.shifted(-power).rounded(layout.places);
        // 9.99 may have become 10.
        let again = exponent_of(&decimal, layout.whole);
        decimal = decimal.shifted(-again);
        power += again;
    }
    layout.write(tokens, &decimal.rounded(layout.places), power, &mut text);
    text
}

/// The exponent is a multiple of the number of digits before the point, if there are several.
fn exponent_of(decimal: &Decimal, whole: usize) -> i32 {
    let step = i32::try_from(whole.max(1)).unwrap_or(1);
    decimal.power().div_euclid(step) * step
}

/// Where the digits of a section are.
struct Layout {
    /// Placeholders before and after the point.
    whole: usize,
    places: usize,
    exponent: Option<usize>,
    /// Whether thousands are separated.
    has_thousands: bool,
    /// The powers of ten of percentages and of commas at the end, which divide by a thousand.
    powers: i32,
}

impl Layout {
    fn of(tokens: &[Token]) -> Self {
        let exponent = tokens.iter().position(|token| matches!(token, Token::Exponent(_)));
        let mantissa = &tokens[..exponent.unwrap_or(tokens.len())];
        let point = mantissa.iter().position(|token| *token == Token::Point).unwrap_or(mantissa.len());
        let is_digit = |token: &&Token| matches!(token, Token::Digit(_));
        let last = mantissa.iter().rposition(|token| is_digit(&token));
        let mut has_thousands = false;
        let mut powers = 0;
        let last_whole = mantissa[..point].iter().rposition(|token| is_digit(&token));
        for (at, token) in mantissa.iter().enumerate() {
            match token {
                Token::Comma
                    if last.is_none_or(|last| at > last)
                        || at < point && last_whole.is_some_and(|last| at > last) =>
                {
                    powers -= 3;
                }
                Token::Comma if at < point => has_thousands = true,
                _ => {}
            }
        }
        let percents = tokens.iter().filter(|token| **token == Token::Percent).count();
        powers += 2 * i32::try_from(percents).unwrap_or(0);
        Self {
            whole: mantissa[..point].iter().filter(is_digit).count(),
            places: mantissa[point..].iter().filter(is_digit).count(),
            exponent,
            has_thousands,
            powers,
        }
    }

    fn write(&self, tokens: &[Token], decimal: &Decimal, power: i32, text: &mut String) {
        let whole = decimal.whole();
        let fraction = decimal.fraction();
        // How many placeholders before the point are left, and digits after it that were written.
        let mut left = self.whole;
        let mut after = 0;
        let mut is_after_point = false;
        for (at, token) in tokens.iter().enumerate() {
            if self.exponent.is_some_and(|exponent| at > exponent) && matches!(token, Token::Digit(_)) {
                continue;
            }
            match token {
                Token::Digit(kind) if is_after_point => {
                    match fraction.as_bytes().get(after) {
                        Some(digit) => text.push(char::from(*digit)),
                        None if *kind == '0' => text.push('0'),
                        None => {}
                    }
                    after += 1;
                }
                Token::Digit(kind) => {
                    self.write_whole(&whole, left, *kind, text);
                    left -= 1;
                }
                Token::Point => {
                    // Without a placeholder before the point the digits are shown all the same.
                    if self.whole == 0 && !is_after_point {
                        text.push_str(&whole);
                    }
                    is_after_point = true;
                    text.push('.');
                }
                Token::Percent => text.push('%'),
                Token::Exponent(shows_plus) => {
                    let digits = tokens[at..].iter().filter(|token| matches!(token, Token::Digit(_))).count();
                    text.push('E');
                    text.push_str(if power < 0 {
                        "-"
                    } else if *shows_plus {
                        "+"
                    } else {
                        ""
                    });
                    text.push_str(&format!("{:0digits$}", power.unsigned_abs()));
                }
                Token::Literal(literal) => text.push_str(literal),
                Token::Slash => text.push('/'),
                _ => {}
            }
        }
    }

    /// The digit for a placeholder before the point. The first placeholder takes all digits that have none of their own.
    fn write_whole(&self, whole: &str, left: usize, kind: char, text: &mut String) {
        let is_first = left == self.whole;
        let from = if is_first { 0 } else { whole.len().saturating_sub(left) };
        let to = (whole.len() + 1).saturating_sub(left).max(from);
        if whole.len() < left {
            match kind {
                '0' => text.push('0'),
                '?' => text.push(' '),
                _ => return,
            }
            self.separate(left - 1, text);
            return;
        }
        for (at, digit) in whole[from..to].char_indices() {
            text.push(digit);
            self.separate(whole.len() - from - at - 1, text);
        }
    }

    fn separate(&self, digits_after: usize, text: &mut String) {
        if self.has_thousands && digits_after > 0 && digits_after.is_multiple_of(3) {
            text.push(',');
        }
    }
}

/// The slash of a fraction, which has placeholders around it.
fn fraction_mark(tokens: &[Token]) -> Option<usize> {
    let slash = tokens.iter().position(|token| *token == Token::Slash)?;
    let is_before = matches!(tokens[..slash].last(), Some(Token::Digit(_)));
    let is_after = match tokens.get(slash + 1) {
        Some(Token::Digit(_)) => true,
        Some(Token::Literal(literal)) => literal.starts_with(|c: char| c.is_ascii_digit()),
        _ => false,
    };
    (is_before && is_after).then_some(slash)
}

fn fraction(tokens: &[Token], slash: usize, value: f64) -> String {
    let is_digit = |token: &Token| matches!(token, Token::Digit(_));
    // The numerator is the last group of placeholders before the slash; one before it is for the whole number.
    let numerator = tokens[..slash].iter().rposition(|token| !is_digit(token)).map_or(0, |at| at + 1);
    let has_whole = tokens[..numerator].iter().any(is_digit);
    let fixed: String = tokens[slash + 1..]
        .iter()
        .map_while(|token| match token {
            Token::Literal(literal) => {
                Some(literal.chars().take_while(char::is_ascii_digit).collect::<String>())
            }
            Token::Digit('0') => Some("0".to_owned()),
            _ => None,
        })
        .collect();
    let whole = if has_whole { value.floor() } else { 0.0 };
    let part = value - whole;
    let (mut above, below) = match fixed.trim_start_matches('0').parse::<u32>() {
        Ok(below @ 1..) => ((part * f64::from(below)).round(), below),
        _ => {
            let digits = tokens[slash + 1..].iter().take_while(|token| is_digit(token)).count();
            let most = 10_u32.saturating_pow(u32::try_from(digits).unwrap_or(4)) - 1;
            nearest_fraction(part, most.clamp(1, MAX_DENOMINATOR))
        }
    };
    let mut whole = whole;
    if has_whole && above >= f64::from(below) {
        whole += 1.0;
        above = 0.0;
    }
    match (has_whole, above == 0.0) {
        (true, true) => format!("{whole}"),
        (true, false) if whole == 0.0 => format!("{above}/{below}"),
        (true, false) => format!("{whole} {above}/{below}"),
        (false, _) => format!("{above}/{below}"),
    }
}

/// The fraction nearest to a number, with a denominator up to `most`.
fn nearest_fraction(value: f64, most: u32) -> (f64, u32) {
    let error = |below: u32| {
        let above = (value * f64::from(below)).round();
        (value - above / f64::from(below)).abs()
    };
    let mut best = 1;
    for below in 2..=most {
        // Only one that is clearly nearer: 0.5 is 1/2 and not 2/4.
        if error(below) + 1e-12 < error(best) {
            best = below;
        }
    }
    ((value * f64::from(best)).round(), best)
}
