use super::*;

fn shown(code: &str, value: f64) -> String {
    NumberFormat::new(code).number(value, Epoch::Year1900)
}

#[test]
fn digits_thousands_and_signs_are_shown_as_in_excel() {
    for (code, value, expected) in [
        ("0", 2.5, "3"),
        ("0.00", 1.005, "1.01"),
        ("0.00", -1.005, "-1.01"),
        ("#,##0", 1_234_567.0, "1,234,567"),
        ("#,##0.00", 0.5, "0.50"),
        ("#,##0", 0.0, "0"),
        ("#,###", 0.0, ""),
        ("0,000", 12.0, "0,012"),
        ("00000", 42.0, "00042"),
        ("0.0#", 1.0, "1.0"),
        ("0.0#", 1.234, "1.23"),
        ("#.##", 0.25, ".25"),
        ("0.00,,\" M\"", 12_345_678.0, "12.35 M"),
        ("#,##0,", 1_234_567.0, "1,235"),
        ("000-00-0000", 123_456_789.0, "123-45-6789"),
        ("(###) ###-####", 5_551_234_567.0, "(555) 123-4567"),
        ("0.000", 1e-7, "0.000"),
        ("0", 1e20, "100000000000000000000"),
    ] {
        assert_eq!(shown(code, value), expected, "{code} of {value}");
    }
}

#[test]
fn percentages_and_currencies_are_shown_as_in_excel() {
    for (code, value, expected) in [
        ("0%", 0.256, "26%"),
        ("0.00%", 0.025, "2.50%"),
        ("$#,##0.00", 1_599.99, "$1,599.99"),
        ("[$€-407] #,##0.00", 12.5, "€ 12.50"),
        ("#,##0.00\\ [$€-1]", 1_234.5, "1,234.50 €"),
        ("[$-409]#,##0", 1_234.0, "1,234"),
        ("\"$\"#,##0_);[Red]\\(\"$\"#,##0\\)", -1_234.0, "($1,234)"),
        ("_($* #,##0.00_);_($* (#,##0.00);_($* \"-\"??_);_(@_)", 0.0, "$-"),
        ("_($* #,##0.00_);_($* (#,##0.00);_($* \"-\"??_);_(@_)", 7.0, "$7.00"),
    ] {
        assert_eq!(shown(code, value), expected, "{code} of {value}");
    }
    assert_eq!(NumberFormat::built_in(44).number(-2.0, Epoch::Year1900), "$(2.00)");
    assert_eq!(NumberFormat::built_in(10).number(0.1234, Epoch::Year1900), "12.34%");
}

#[test]
fn sections_and_conditions_choose_by_the_value() {
    let code = "0.0;-0.0;\"none\";\"Mr. \"@";
    assert_eq!([5.0, -5.0, 0.0].map(|value| shown(code, value)), ["5.0", "-5.0", "none"]);
    assert_eq!(NumberFormat::new(code).words("Hood").unwrap(), "Mr. Hood");
    assert_eq!(NumberFormat::new("@").words("Hood"), None);
    assert_eq!(NumberFormat::new("0.0;-0.0").words("Hood"), None);
    let code = "[>=1000000]0.0,,\"M\";[>=1000]0.0,\"K\";0";
    assert_eq!(
        [2_500_000.0, 1_500.0, 15.0, -15.0].map(|value| shown(code, value)),
        ["2.5M", "1.5K", "15", "-15"]
    );
    assert_eq!(shown("[<0]\"below \"0;0", -3.0), "below 3");
    assert_eq!(shown("0;-0;;@", 0.0), "");
    assert_eq!(shown("[=1]\"yes\";[=0]\"no\";General", 1.0), "yes");
    assert_eq!(shown("[=1]\"yes\";[=0]\"no\";General", 7.5), "7.5");
}

#[test]
fn dates_and_times_are_shown_as_in_excel() {
    let value = 45_000.0 + (13.0 * 3_600.0 + 5.0 * 60.0 + 9.0) / 86_400.0;
    for (code, expected) in [
        ("yyyy-mm-dd", "2023-03-15"),
        ("m/d/yy", "3/15/23"),
        ("dd.mm.yyyy hh:mm:ss", "15.03.2023 13:05:09"),
        ("dddd, mmmm d, yyyy", "Wednesday, March 15, 2023"),
        ("ddd d-mmm-yy", "Wed 15-Mar-23"),
        ("[$-x-sysdate]d mmm yyyy", "15 Mar 2023"),
        ("[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy", "Wednesday, March 15, 2023"),
        ("h:mm AM/PM", "1:05 PM"),
        ("hh:mm A/P", "01:05 P"),
        ("mm:ss", "05:09"),
        ("h\"h\" m\"m\"", "13h 5m"),
        ("mmmmm", "M"),
        ("yyyy\"年\"m\"月\"d\"日\"", "2023年3月15日"),
    ] {
        assert_eq!(shown(code, value), expected, "{code}");
    }
    assert_eq!(shown("[h]:mm", 1.5), "36:00");
    assert_eq!(shown("[hh]:mm:ss", 0.0625), "01:30:00");
    assert_eq!(shown("[mm]:ss", 0.0625), "90:00");
    assert_eq!(shown("mm:ss.0", 0.000_821_8), "01:11.0");
    assert_eq!(shown("h:mm:ss.000", 0.5 + 0.123 / 86_400.0), "12:00:00.123");
    // Just below a whole second, as sums of times are.
    assert_eq!(shown("h:mm:ss", 0.499_999_999_999), "12:00:00");
}

#[test]
fn the_calendar_is_that_of_excel() {
    let iso = |value: f64, epoch| NumberFormat::new("yyyy-mm-dd ddd").number(value, epoch);
    assert_eq!(iso(1.0, Epoch::Year1900), "1900-01-01 Sun");
    assert_eq!(iso(59.0, Epoch::Year1900), "1900-02-28 Tue");
    assert_eq!(iso(60.0, Epoch::Year1900), "1900-02-29 Wed");
    assert_eq!(iso(61.0, Epoch::Year1900), "1900-03-01 Thu");
    assert_eq!(iso(36_585.0, Epoch::Year1900), "2000-02-29 Tue");
    assert_eq!(iso(2_958_465.0, Epoch::Year1900), "9999-12-31 Fri");
    assert_eq!(iso(43_538.0, Epoch::Year1904), "2023-03-15 Wed");
    // No days of the calendar.
    assert_eq!(iso(-1.0, Epoch::Year1900), "-1");
    assert_eq!(iso(1e15, Epoch::Year1900), "1E+15");
}

#[test]
fn exponents_and_fractions_are_shown_as_in_excel() {
    for (code, value, expected) in [
        ("0.00E+00", 12_345.0, "1.23E+04"),
        ("0.00E+00", 0.000_999_99, "1.00E-03"),
        ("0.0E-0", 12_345.0, "1.2E4"),
        ("##0.0E+0", 12_345.0, "12.3E+3"),
        ("0E+0", 0.0, "0E+0"),
        ("# ?/?", 1.5, "1 1/2"),
        ("# ??/??", 2.37, "2 27/73"),
        ("# ?/?", 2.0, "2"),
        ("# ?/?", 0.25, "1/4"),
        ("# ?/8", 1.25, "1 2/8"),
        ("# ?/?", 0.99, "1"),
        ("?/?", 1.5, "3/2"),
        ("# ?/?", -1.5, "-1 1/2"),
    ] {
        assert_eq!(shown(code, value), expected, "{code} of {value}");
    }
}

#[test]
fn a_number_without_a_format_has_the_digits_that_fit() {
    for (value, expected) in [
        (2.5, "2.5"),
        (0.1 + 0.2, "0.3"),
        (std::f64::consts::PI, "3.141592654"),
        (1_234_567_890_123.0, "1234567890123"),
        (-0.5, "-0.5"),
        (1e15, "1E+15"),
        (1.234_567_89e-7, "1.23457E-07"),
        (0.0, "0"),
        (-0.0, "0"),
    ] {
        assert_eq!(NumberFormat::general().number(value, Epoch::Year1900), expected);
        assert_eq!(shown("General", value), expected);
    }
    assert_eq!(shown("General\" pcs\"", 3.0), "3 pcs");
}

#[test]
fn no_code_breaks_the_reader() {
    let pieces = [
        "[", "]", "\"", "\\", "_", "*", ";", "0", "#", "?", ".", ",", "%", "E+", "/", "@", "y", "m", "[h",
        "é", "General",
    ];
    for first in pieces {
        for second in pieces {
            for third in pieces {
                let format = NumberFormat::new(&format!("{first}{second}{third}"));
                for value in [0.0, -1.5, 1e300, 45_000.25, f64::NAN, f64::INFINITY, 1e-300] {
                    format.number(value, Epoch::Year1904);
                }
                format.words("words");
            }
        }
    }
    assert_eq!(shown(&"0".repeat(100_000), 5.0), "5");
}
