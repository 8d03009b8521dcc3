//! A number in the fifteen decimal digits that Excel keeps, so that 1.005 is rounded to 1.01 as it is shown there.

/// The digits that Excel keeps of a number.
const DIGITS: usize = 15;

/// `0.d1 d2 d3 … × 10^exponent`, not negative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    digits: Vec<u8>,
    exponent: i32,
}

impl Decimal {
    pub fn new(value: f64) -> Self {
        let text = format!("{:.*e}", DIGITS - 1, value.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        let mut decimal = Self { digits, exponent: exponent.parse::<i32>().unwrap_or(0) + 1 };
        decimal.trim();
        decimal
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The power of ten of the first digit; 0 for zero.
    pub fn power(&self) -> i32 {
        if self.is_zero() { 0 } else { self.exponent - 1 }
    }

    #[must_use]
    pub fn shifted(mut self, powers: i32) -> Self {
        if !self.is_zero() {
            self.exponent += powers;
        }
        self
    }

    /// Rounded to so many digits after the point, half away from zero.
    #[must_use]
    pub fn rounded(mut self, places: usize) -> Self {
        let kept = i64::from(self.exponent) + i64::try_from(places).unwrap_or(i64::MAX / 2);
        let Ok(kept) = usize::try_from(kept) else {
            return Self { digits: Vec::new(), exponent: 0 };
        };
        if kept < self.digits.len() {
            let rounds_up = self.digits[kept] >= 5;
            self.digits.truncate(kept);
            if rounds_up {
                self.add_to_last();
            }
            self.trim();
        }
        self
    }

    fn add_to_last(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
        self.exponent += 1;
    }

    fn trim(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.exponent = 0;
        }
    }

    /// The digits before the point, without leading zeros: empty for a number below 1.
    pub fn whole(&self) -> String {
        let length = usize::try_from(self.exponent).unwrap_or(0);
        (0..length).map(|at| self.digit(at)).collect()
    }

    /// The digits after the point, without zeros at the end.
    pub fn fraction(&self) -> String {
        let zeros = usize::try_from(-self.exponent).unwrap_or(0);
        let from = usize::try_from(self.exponent).unwrap_or(0);
        std::iter::repeat_n('0', if self.is_zero() { 0 } else { zeros })
            .chain((from..self.digits.len()).map(|at| self.digit(at)))
            .collect()
    }

    fn digit(&self, at: usize) -> char {
        char::from(b'0' + self.digits.get(at).copied().unwrap_or(0))
    }
}
