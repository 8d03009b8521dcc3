//! Dates, times and durations.

use super::Epoch;
use super::parse::{Part, Section, Token};

const DAY_IN_MILLISECONDS: i64 = 86_400_000;
/// The last day of the year 9999.
const LAST_DAY: f64 = 2_958_466.0;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A day of the calendar and a time of it.
struct Moment {
    year: i64,
    month: usize,
    day: i64,
    weekday: usize,
    /// Of the day, and of all the days together.
    milliseconds: i64,
    elapsed: i64,
}

/// Returns `None` for a number that is no day.
pub fn format(section: &Section, value: f64, epoch: Epoch) -> Option<String> {
    if value.abs() >= LAST_DAY {
        return None;
    }
    let is_elapsed = section.tokens.iter().any(|token| matches!(token, Token::Elapsed(..)));
    if value < 0.0 && !is_elapsed {
        return None;
    }
    let moment = Moment::new(value.abs(), epoch, precision(section));
    let has_half = section.tokens.iter().any(|token| matches!(token, Token::HalfOfDay { .. }));
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for token in &section.tokens {
        match token {
            Token::Part(part, length) => moment.write(*part, *length, has_half, &mut text),
            Token::Elapsed(part, length) => {
                let unit = match part {
                    Part::Hour => 3_600_000,
                    Part::Minute => 60_000,
                    _ => 1_000,
                };
                text.push_str(&format!("{:0length$}", moment.elapsed / unit));
            }
            Token::HalfOfDay { is_short } => {
                let half = if moment.hour() < 12 { "AM" } else { "PM" };
                text.push_str(if *is_short { &half[..1] } else { half });
            }
            Token::Literal(literal) => text.push_str(literal),
            Token::Slash => text.push('/'),
            Token::Point => text.push('.'),
            Token::Comma => text.push(','),
            Token::Percent => text.push('%'),
            Token::Digit(_) | Token::Exponent(_) | Token::General | Token::Words => {}
        }
    }
    Some(text)
}

/// The milliseconds to which a time is rounded: to its shown digits if seconds are shown.
fn precision(section: &Section) -> i64 {
    let shown = section.tokens.iter().filter_map(|token| match token {
        Token::Part(Part::Fraction, digits) => {
            Some(10_i64.pow(3_u32.saturating_sub(u32::try_from(*digits).unwrap_or(3))))
        }
        Token::Part(Part::Second, _) | Token::Elapsed(Part::Second, _) => Some(1_000),
        _ => None,
    });
    shown.min().unwrap_or(1)
}

impl Moment {
    fn new(value: f64, epoch: Epoch, precision: i64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "below three million days")]
        let exact = (value * 86_400_000.0).round() as i64;
        let elapsed = (exact + precision / 2) / precision * precision;
        let days = elapsed / DAY_IN_MILLISECONDS;
        let milliseconds = elapsed % DAY_IN_MILLISECONDS;
        // Excel has a 29 February 1900, which is day 60. The days before it are one later than they should be.
        let since_1900 = match epoch {
            Epoch::Year1904 => days + 1_462,
            Epoch::Year1900 => days,
        };
        let weekday = usize::try_from((since_1900 + 6).rem_euclid(7)).unwrap_or(0);
        let (year, month, day) = match since_1900 {
            60 => (1900, 2, 29),
            0 => (1900, 1, 0),
            // Days since 1 January 1970.
            days => calendar(days - 25_569 + i64::from(days < 60)),
        };
        Self { year, month, day, weekday, milliseconds, elapsed }
    }

    fn hour(&self) -> i64 {
        self.milliseconds / 3_600_000
    }

    fn write(&self, part: Part, length: usize, has_half: bool, text: &mut String) {
        let two = |text: &mut String, value: i64| {
            text.push_str(&if length >= 2 { format!("{value:02}") } else { value.to_string() });
        };
        match part {
            Part::Year if length <= 2 => text.push_str(&format!("{:02}", self.year % 100)),
            Part::Year => text.push_str(&self.year.to_string()),
            Part::Month => match (length, MONTHS[self.month - 1]) {
                (0..=2, _) => two(text, i64::try_from(self.month).unwrap_or(1)),
                (3, name) => text.push_str(&name[..3]),
                (5, name) => text.push_str(&name[..1]),
                (_, name) => text.push_str(name),
            },
            Part::Day if length <= 2 => two(text, self.day),
            Part::Day | Part::Weekday => {
                let name = WEEKDAYS[self.weekday];
                text.push_str(if length == 3 { &name[..3] } else { name });
            }
            Part::Hour if has_half => two(text, (self.hour() + 11) % 12 + 1),
            Part::Hour => two(text, self.hour()),
            Part::Minute => two(text, self.milliseconds / 60_000 % 60),
            Part::Second => two(text, self.milliseconds / 1_000 % 60),
            Part::Fraction => {
                let digits = format!("{:03}", self.milliseconds % 1_000);
                text.push('.');
                text.push_str(&digits[..length.min(3)]);
            }
        }
    }
}

/// The year, month and day of a number of days since 1 January 1970, in the Gregorian calendar.
fn calendar(days: i64) -> (i64, usize, i64) {
    // Counted in eras of 400 years, which begin on 1 March.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), usize::try_from(month).unwrap_or(1), day)
}
