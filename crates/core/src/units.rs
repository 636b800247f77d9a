//! Sizes as people write them, read into whole numbers; and sizes, counts and durations printed.
//!
//! Numbers are read exactly (no floating point) and refused when they do not fit; what is printed is
//! rounded for reading and never the place to keep a figure. Which option takes which unit, and what a
//! sensible range is, is left to the callers.

use thiserror::Error;

/// Why a text is not a size or a whole number.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// Nothing but white space.
    #[error("a number is missing")]
    Empty,
    /// The text does not begin with digits where a number must stand.
    #[error("`{text}` is not a number")]
    NotANumber {
        /// The text as it was given.
        text: String,
    },
    /// A number, then something that is not a unit of this kind.
    #[error("`{unit}` in `{text}` is not a unit; valid are {valid}")]
    UnknownUnit {
        /// The text as it was given.
        text: String,
        /// The part of it that is not a unit.
        unit: String,
        /// The units that are, for people.
        valid: &'static str,
    },
    /// A fraction of something that comes whole only.
    #[error("`{text}` is not a whole number")]
    NotWhole {
        /// The text as it was given.
        text: String,
    },
    /// Below zero where that has no meaning.
    #[error("`{text}` is below zero")]
    Negative {
        /// The text as it was given.
        text: String,
    },
    /// More than the type can hold.
    #[error("`{text}` is too large")]
    TooLarge {
        /// The text as it was given.
        text: String,
    },
}

/// Suffixes in small letters, and what each multiplies by.
type Suffixes = [(&'static str, u64)];

/// kvtest's own table, from the function `integerValue` of SQLite's `test/kvtest.c`. K, M and G are
/// powers of ten there, so they are here.
const KVTEST_SUFFIXES: &Suffixes = &[
    ("", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
];
/// Disks have grown since.
const LARGER_SUFFIXES: &Suffixes = &[
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
    ("t", 1_000_000_000_000),
];

/// A kind of unit: the suffixes, and how to name them all in an error.
struct Units {
    suffixes: &'static [&'static Suffixes],
    valid: &'static str,
}

const KVTEST: Units = Units {
    suffixes: &[KVTEST_SUFFIXES],
    valid: "K M G KB MB GB KiB MiB GiB",
};
const BYTES: Units = Units {
    suffixes: &[KVTEST_SUFFIXES, LARGER_SUFFIXES, &[("b", 1)]],
    valid: "B K M G T KB MB GB TB KiB MiB GiB TiB",
};

/// Reads a number of bytes: `8192`, `0x2000`, `10kB`, `1.5 MB`, `4KiB`, `512 B`.
///
/// Suffixes are kvtest's (K M G KB MB GB are powers of 1000, KiB MiB GiB powers of 1024, whatever the
/// case), T TB TiB, and a `B` alone. Decimals need a suffix, and are rounded to the nearest byte (1.1 GiB
/// is not a whole number of bytes, and nobody minds). `0x` begins a hexadecimal number, which takes a
/// suffix too, but no decimals; `0x1B` is 27.
///
/// # Errors
/// Every [`UnitError`].
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let bare = text.trim();
    refuse_sign(bare, text)?;
    let (number, unit) = read_number(bare, text)?;
    scale(&number, find_unit(unit, &BYTES, text)?, text)
}

/// Reads an integer in the way of kvtest: an optional `+` or `-`, then decimal digits or `0x` and
/// hexadecimal ones, then one of kvtest's suffixes, whatever its case.
///
/// Two things differ, both towards the error that kvtest does not give: text after the number that is
/// not a suffix is refused, not skipped; and a number that does not fit is refused, not wrapped round.
///
/// # Errors
/// Every [`UnitError`] but [`Negative`](UnitError::Negative).
pub fn parse_kvtest_integer(text: &str) -> Result<i64, UnitError> {
    let bare = text.trim();
    let (negative, unsigned) = match bare.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, bare.strip_prefix('+').unwrap_or(bare)),
    };
    let (number, unit) = read_number(unsigned, text)?;
    let magnitude = i128::from(scale(&number, find_unit(unit, &KVTEST, text)?, text)?);
    let value = if negative { -magnitude } else { magnitude };
    i64::try_from(value).map_err(|_| too_large(text))
}

/// A number of bytes with three significant digits in SI units, as disks are sold: `512 B`, `10.2 kB`,
/// `1.05 GB`.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1_000.0;
    let mut unit = 0;
    // 999.5 rounds to 1000, which is the next unit's 1.00.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1_000.0;
        unit += 1;
    }
    format!("{} {}", significant(value, 3), UNITS[unit])
}

/// A count with a comma between thousands: `20,000`.
pub fn format_count(count: u64) -> String {
    group_thousands(&count.to_string())
}

/// Nanoseconds as a number of microseconds without the unit, for a column that has it in its head:
/// `1,240`, `31.2`, `9.4`, `0.031`. Whole from 100 on, three significant digits from 10 on, two below.
/// What is not a finite number at or above zero is `-`.
pub fn format_microseconds(ns: f64) -> String {
    let microseconds = ns / 1_000.0;
    if !microseconds.is_finite() || microseconds < 0.0 {
        return "-".to_owned();
    }
    significant(microseconds, if microseconds >= 10.0 { 3 } else { 2 })
}

/// A duration for people, from nanoseconds, with two or three significant digits below a minute and
/// to the second or minute above: `812 ns`, `9.4 us`, `2.1 ms`, `38 s`, `1 min 20 s`, `2 h 5 min`.
pub fn format_duration(ns: u64) -> String {
    const SECOND_NS: u64 = 1_000_000_000;
    if ns < 1_000 {
        return format!("{ns} ns");
    }
    for (unit, unit_ns) in [("us", 1e3), ("ms", 1e6), ("s", 1e9)] {
        let value = ns as f64 / unit_ns;
        let limit = if unit == "s" { 59.5 } else { 999.5 };
        if value < limit {
            // Tenths of 38.4 ms say nothing that anyone acts on.
            let decimals = usize::from(value < 9.95);
            let shown = format!("{value:.decimals$}");
            return format!("{} {unit}", shown.trim_end_matches(".0"));
        }
    }
    let seconds = ns / SECOND_NS + u64::from(ns % SECOND_NS >= SECOND_NS / 2);
    let (large, large_unit, small, small_unit) = if seconds < 3_600 {
        (seconds / 60, "min", seconds % 60, "s")
    } else {
        let minutes = (seconds + 30) / 60;
        (minutes / 60, "h", minutes % 60, "min")
    };
    if small == 0 {
        format!("{} {large_unit}", format_count(large))
    } else {
        format!("{} {large_unit} {small} {small_unit}", format_count(large))
    }
}

/// A ratio without a unit: two decimals below 10 (`1.68`), one below 100 (`12.3`), none above (`143`),
/// and two significant digits below a tenth (`0.031`). What is not a finite number at or above zero
/// is `-`.
pub fn format_ratio(ratio: f64) -> String {
    if !ratio.is_finite() || ratio < 0.0 {
        return "-".to_owned();
    }
    if (0.1..9.995).contains(&ratio) {
        return format!("{ratio:.2}");
    }
    significant(ratio, if ratio < 0.1 { 2 } else { 3 })
}

/// A decimal number before it is multiplied: `whole_and_fraction / 10^decimals`.
struct Number {
    whole_and_fraction: u128,
    decimals: u32,
}

fn refuse_sign(text: &str, original: &str) -> Result<(), UnitError> {
    match text.strip_prefix('-') {
        Some(rest) if rest.starts_with(|first: char| first.is_ascii_digit()) => {
            Err(UnitError::Negative {
                text: original.to_owned(),
            })
        }
        _ => Ok(()),
    }
}

/// The number at the start of `text`, and what follows it without the white space between.
fn read_number<'a>(text: &'a str, original: &str) -> Result<(Number, &'a str), UnitError> {
    if text.is_empty() {
        return Err(UnitError::Empty);
    }
    let not_a_number = || UnitError::NotANumber {
        text: original.to_owned(),
    };
    if is_hexadecimal(text) {
        let digits = leading(&text[2..], |letter| letter.is_ascii_hexdigit());
        if digits.is_empty() {
            return Err(not_a_number());
        }
        let whole_and_fraction =
            u128::from_str_radix(digits, 16).map_err(|_| too_large(original))?;
        let number = Number {
            whole_and_fraction,
            decimals: 0,
        };
        return Ok((number, text[2 + digits.len()..].trim_start()));
    }

    let whole = leading(text, |letter| letter.is_ascii_digit());
    let mut rest = &text[whole.len()..];
    let mut fraction = "";
    if let Some(after_point) = rest.strip_prefix('.') {
        fraction = leading(after_point, |letter| letter.is_ascii_digit());
        rest = &after_point[fraction.len()..];
        if fraction.is_empty() {
            return Err(not_a_number());
        }
    }
    if whole.is_empty() {
        return Err(not_a_number());
    }
    // Eighteen decimals are finer than one byte in the largest unit; zeros at the end
    // say nothing.
    let fraction = fraction[..fraction.len().min(18)].trim_end_matches('0');
    let whole_and_fraction = format!("{whole}{fraction}")
        .parse()
        .map_err(|_| too_large(original))?;
    let number = Number {
        whole_and_fraction,
        decimals: fraction.len() as u32,
    };
    Ok((number, rest.trim_start()))
}

fn is_hexadecimal(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}

fn leading(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|letter| !belongs(letter)).unwrap_or(text.len())]
}

fn find_unit(unit: &str, units: &Units, original: &str) -> Result<u64, UnitError> {
    let lower = unit.to_lowercase();
    units
        .suffixes
        .iter()
        .flat_map(|suffixes| suffixes.iter())
        .find(|(suffix, _)| *suffix == lower)
        .map(|(_, factor)| *factor)
        .ok_or_else(|| UnitError::UnknownUnit {
            text: original.to_owned(),
            unit: unit.to_owned(),
            valid: units.valid,
        })
}

/// Number times factor, rounded half up; without a unit there is nothing that a fraction could be of.
fn scale(number: &Number, factor: u64, original: &str) -> Result<u64, UnitError> {
    if factor == 1 && number.decimals > 0 {
        return Err(UnitError::NotWhole {
            text: original.to_owned(),
        });
    }
    let divisor = 10u128.pow(number.decimals);
    number
        .whole_and_fraction
        .checked_mul(u128::from(factor))
        .and_then(|product| product.checked_add(divisor / 2))
        .and_then(|sum| u64::try_from(sum / divisor).ok())
        .ok_or_else(|| too_large(original))
}

fn too_large(original: &str) -> UnitError {
    UnitError::TooLarge {
        text: original.to_owned(),
    }
}

/// A finite number at or above zero with so many significant digits, whole numbers never cut: 1240.6
/// with two digits is `1,241`. Below a billionth it is `0`, from 10^15 on in powers of ten.
fn significant(value: f64, digits: usize) -> String {
    const MOST_DECIMALS: i32 = 9;
    if value >= 1e15 {
        return format!("{value:.2e}");
    }
    // Rounding first, so that 9.96 with two digits is "10" and not "10.0".
    let rounded = format!("{value:.*e}", digits.saturating_sub(1));
    let exponent: i32 = rounded
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    if value == 0.0 || exponent < -MOST_DECIMALS {
        return "0".to_owned();
    }
    let decimals = (digits as i32 - 1 - exponent).clamp(0, MOST_DECIMALS);
    let plain = format!("{value:.*}", decimals as usize);
    match plain.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", group_thousands(whole)),
        None => group_thousands(&plain),
    }
}

fn group_thousands(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks every line `what is given => what comes out` of a table.
    fn check(table: &str, answer: impl Fn(&str) -> String) {
        for line in table
            .split(['\n', ';'])
            .filter(|line| !line.trim().is_empty())
        {
            let (given, wanted) = line.split_once("=>").expect("a line of two columns");
            assert_eq!(answer(given.trim()), wanted.trim(), "given {given:?}");
        }
    }

    fn show(result: Result<impl ToString, UnitError>) -> String {
        match result {
            Ok(value) => value.to_string(),
            Err(UnitError::Empty) => "empty".to_owned(),
            Err(UnitError::NotANumber { .. }) => "not a number".to_owned(),
            Err(UnitError::UnknownUnit { unit, .. }) => format!("unit {unit}?"),
            Err(UnitError::NotWhole { .. }) => "not whole".to_owned(),
            Err(UnitError::Negative { .. }) => "negative".to_owned(),
            Err(UnitError::TooLarge { .. }) => "too large".to_owned(),
        }
    }

    #[test]
    fn sizes_are_read_with_every_suffix() {
        let table = "0 => 0; 8192 => 8192; 8.000 => 8; 512 B => 512; 0.5k => 500; 10K => 10000
            10kb => 10000; 10 kB => 10000; 4KiB => 4096; 4kib => 4096; 2M => 2000000; 2m => 2000000
            2MIB => 2097152; 1.5MB => 1500000; 1G => 1000000000; 1gb => 1000000000
            1GiB => 1073741824; 1.1 GiB => 1181116006; 3TB => 3000000000000; 1TiB => 1099511627776
            0x2000 => 8192; 0X1B => 27; 0x10KB => 16000; 0xffffffffffffffff => 18446744073709551615
            18446744073709551615 => 18446744073709551615";
        check(table, |text| show(parse_bytes(text)));
        assert_eq!(parse_bytes(" 8192\t"), Ok(8192));
    }

    #[test]
    fn bad_sizes_are_refused_with_the_reason() {
        let table = "=> empty; x => not a number; KB => not a number; .5K => not a number
            1.K => not a number; 0x => not a number; 0xK => not a number; NaN => not a number
            +5 => not a number; --5 => not a number; - => not a number; -5 => negative
            -5K => negative; 1.5 => not whole; 1.5B => not whole; 18446744073709551616 => too large
            18446744073709551615K => too large; 0x10000000000000000 => too large
            99999999999999999999999999999999999999999999 => too large; 10 parsecs => unit parsecs?
            1K2 => unit K2?; 1,000 => unit ,000?; 0x1.8 => unit .8?; 1e3 => unit e3?
            5ms => unit ms?";
        check(table, |text| show(parse_bytes(text)));
        assert_eq!(
            parse_bytes("12 x").expect_err("x is no unit").to_string(),
            "`x` in `12 x` is not a unit; valid are B K M G T KB MB GB TB KiB MiB GiB TiB"
        );
    }

    #[test]
    fn integers_are_read_as_kvtest_does() {
        let table = "1000 => 1000; -1 => -1; +7 => 7; -2k => -2000; 64MiB => 67108864; 0x1f => 31
            -0x10 => -16; 9223372036854775807 => 9223372036854775807
            -9223372036854775808 => -9223372036854775808; 9223372036854775808 => too large
            -9223372036854775809 => too large; 9223372036854775807K => too large; => empty
            - => empty; --1 => not a number; +-1 => not a number; 1T => unit T?; 12B => unit B?
            10 apples => unit apples?; 1.5 => not whole";
        check(table, |text| show(parse_kvtest_integer(text)));
    }

    #[test]
    fn figures_are_printed_for_reading() {
        let bytes = "0 => 0 B; 999 => 999 B; 1000 => 1.00 kB; 10240 => 10.2 kB; 999499 => 999 kB
            999500 => 1.00 MB; 1048576000 => 1.05 GB; 18446744073709551615 => 18.4 EB";
        check(bytes, |text| format_bytes(text.parse().expect("a number")));
        let counts = "0 => 0; 999 => 999; 20000 => 20,000; 1234567 => 1,234,567";
        check(counts, |text| format_count(text.parse().expect("a number")));
        let microseconds =
            "9420 => 9.4; 31 => 0.031; 1240000 => 1,240; 1240600 => 1,241; 9960 => 10
            12345 => 12.3; 99960 => 100; 994 => 0.99; 996 => 1.0; 0 => 0; 1e-12 => 0
            1e30 => 1.00e27; -1 => -; NaN => -; inf => -";
        check(microseconds, |text| {
            format_microseconds(text.parse().expect("a number"))
        });
        let ratios = "1.684 => 1.68; 1 => 1.00; 0.997 => 1.00; 0.673 => 0.67; 0.0996 => 0.10
            0.0312 => 0.031; 9.996 => 10.0; 12.34 => 12.3; 143.4 => 143; 1430.2 => 1,430; 0 => 0
            -inf => -; NaN => -";
        check(ratios, |text| format_ratio(text.parse().expect("a number")));
    }

    #[test]
    fn durations_are_printed_for_people() {
        let table = "0 => 0 ns; 812 => 812 ns; 9420 => 9.4 us; 2100000 => 2.1 ms; 2000000 => 2 ms
            38400000000 => 38 s; 999600000 => 1 s; 59600000000 => 1 min; 80000000000 => 1 min 20 s
            7500000000000 => 2 h 5 min; 3599900000000 => 1 h; 18446744073709551615 => 5,124,095 h 35 min";
        check(table, |text| {
            format_duration(text.parse().expect("a number"))
        });
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in ".{0,40}") {
            let _ = (parse_bytes(&text), parse_kvtest_integer(&text));
        }

        #[test]
        fn reading_what_looks_like_a_number_never_panics(
            text in "[-+]?(0x)?[0-9a-fA-F.]{0,45} ?[a-zA-Zµ]{0,4}",
        ) {
            let _ = (parse_bytes(&text), parse_kvtest_integer(&text));
        }

        #[test]
        fn counts_and_integers_survive_a_round_trip(count: u64, signed: i64) {
            prop_assert_eq!(parse_bytes(&format_count(count).replace(',', "")), Ok(count));
            prop_assert_eq!(parse_bytes(&format!("{count:#x}")), Ok(count));
            prop_assert_eq!(parse_kvtest_integer(&signed.to_string()), Ok(signed));
        }

        #[test]
        fn sizes_survive_a_round_trip_to_three_digits(bytes in 0u64..999_000_000_000_000) {
            let read = parse_bytes(&format_bytes(bytes)).expect("what is printed can be read") as f64;
            prop_assert!((read - bytes as f64).abs() <= 0.0051 * bytes as f64);
        }

        #[test]
        fn any_float_is_printed_as_a_short_number_or_a_dash(bits: u64) {
            let value = f64::from_bits(bits);
            for text in [format_ratio(value), format_microseconds(value)] {
                prop_assert!(text.len() <= 24, "{}", text);
                prop_assert!(text == "-" || text.starts_with(|first: char| first.is_ascii_digit()));
            }
        }
    }
}
