//! Numbers as text, as every format for people shows them. A number that is not there, or is not
//! one, is a dash: no reader is served by `NaN`.
//!
//! Units of time, size and ratio come from [`sqlitmus_core::units`]; what is added here is about
//! intervals and rates.

use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::statistics::{Interval, RatioEstimate};
use sqlitmus_core::units::{format_count, format_microseconds, format_ratio};
use sqlitmus_core::verdict::Verdict;

/// Stands for a figure that is not there.
pub(crate) const DASH: &str = "-";

/// Nanoseconds as microseconds, without the unit.
pub(crate) fn microseconds(ns: Option<f64>) -> String {
    ns.map_or_else(|| DASH.to_owned(), format_microseconds)
}

/// A latency quantile in microseconds, without the unit; `share` is 0.5 for the median.
pub(crate) fn quantile(latencies: &Latencies, share: f64) -> String {
    microseconds(latencies.quantile_ns(share).map(|ns| ns as f64))
}

/// Bytes per second as megabytes (10^6 bytes) per second, without the unit.
pub(crate) fn megabytes_per_second(bytes_per_second: Option<f64>) -> String {
    match bytes_per_second.filter(|rate| rate.is_finite() && *rate > 0.0) {
        None => DASH.to_owned(),
        Some(rate) if rate < 9.95e6 => format!("{:.1}", rate / 1e6),
        Some(rate) => format_count((rate / 1e6).round() as u64),
    }
}

/// A share as a percentage: `0.4%`, `2.1%`, `3%`, `14%`.
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return DASH.to_owned();
    }
    let percent = share * 100.0;
    if percent > 999.0 {
        return ">999%".to_owned();
    }
    let decimals = usize::from(percent.abs() < 9.95);
    let shown = format!("{percent:.decimals$}");
    format!("{}%", shown.trim_end_matches(".0"))
}

/// A ratio with its mark and how sure it is: `~1.02 ±3%`.
pub(crate) fn judged(estimate: &RatioEstimate, verdict: Verdict) -> String {
    let ratio = format_ratio(estimate.ratio);
    format!("{}{ratio} {}", mark(verdict), plus_minus(estimate.interval))
}

/// A ratio with its interval and no verdict: `1.68 (1.62–1.74)`.
pub(crate) fn judged_plainly(estimate: &RatioEstimate) -> String {
    format!(
        "{} ({})",
        format_ratio(estimate.ratio),
        range(estimate.interval)
    )
}

/// How sure a ratio is: half of its interval as a share of it, `±4%`; `±?` without an interval.
pub(crate) fn plus_minus(interval: Option<Interval>) -> String {
    let Some(interval) = interval else {
        return "±?".to_owned();
    };
    let half = interval.relative_half_width();
    if !half.is_finite() || half > 0.99 {
        return "±>99%".to_owned();
    }
    // Tenths matter where the whole interval is narrower than the smallest difference worth having.
    let decimals = usize::from(half < 0.0095);
    format!("±{:.decimals$}%", half * 100.0)
}

/// The two ends of an interval of ratios: `1.62–1.74`; a dash without an interval.
pub(crate) fn range(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || DASH.to_owned(),
        |ends| format!("{}–{}", format_ratio(ends.low), format_ratio(ends.high)),
    )
}

/// A ratio that was written down, not measured, without zeros that say nothing: `1.35`, `5`.
pub(crate) fn bare_ratio(ratio: f64) -> String {
    if !ratio.is_finite() {
        return DASH.to_owned();
    }
    let shown = format_ratio(ratio);
    if shown.contains('.') {
        return shown.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    shown
}

/// What became of a comparison, as one word of a class in a page: `good`, `bad`, `none`, `unsure`.
pub(crate) fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "good",
        Verdict::Slower => "bad",
        Verdict::NoDifferenceWorthHaving => "none",
        Verdict::NotSureYet => "unsure",
    }
}

/// The sign before a ratio that is not to be taken for a difference; see [`legend_of`].
pub(crate) fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster | Verdict::Slower => "",
        Verdict::NoDifferenceWorthHaving => "=",
        Verdict::NotSureYet => "~",
    }
}

/// What the sign of a verdict means; `None` for verdicts without one.
pub(crate) fn legend_of(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Faster | Verdict::Slower => None,
        Verdict::NoDifferenceWorthHaving => Some("= no difference worth having"),
        Verdict::NotSureYet => Some("~ not sure: within the noise floor, or too few rounds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(low: f64, high: f64) -> Option<Interval> {
        Some(Interval { low, high })
    }

    #[test]
    fn intervals_are_short_and_never_absurd() {
        assert_eq!(plus_minus(ends(1.6, 1.76)), "±5%");
        assert_eq!(plus_minus(ends(1.0, 1.008)), "±0.4%");
        assert_eq!(plus_minus(ends(1e-304, 1e304)), "±>99%");
        assert_eq!(plus_minus(ends(f64::NAN, 1.0)), "±>99%");
        assert_eq!(plus_minus(None), "±?");
        assert_eq!(range(ends(1.618, 1.744)), "1.62–1.74");
        assert_eq!(range(None), "-");
    }

    #[test]
    fn figures_that_are_not_there_are_dashes() {
        assert_eq!(microseconds(None), "-");
        assert_eq!(microseconds(Some(f64::NAN)), "-");
        assert_eq!(megabytes_per_second(Some(f64::INFINITY)), "-");
        assert_eq!(megabytes_per_second(None), "-");
        assert_eq!(percent(f64::NAN), "-");
        assert_eq!(bare_ratio(f64::NAN), "-");
        assert_eq!(quantile(&Latencies::default(), 0.5), "-");
    }

    #[test]
    fn figures_have_the_digits_that_matter() {
        assert_eq!(megabytes_per_second(Some(1.0638e9)), "1,064");
        assert_eq!(megabytes_per_second(Some(2.34e6)), "2.3");
        assert_eq!(percent(0.021), "2.1%");
        assert_eq!(percent(0.1384), "14%");
        assert_eq!(percent(0.03), "3%");
        assert_eq!(percent(45.15), ">999%");
        assert_eq!(bare_ratio(5.0), "5");
        assert_eq!(bare_ratio(10.0), "10");
        assert_eq!(bare_ratio(1.35), "1.35");
        assert_eq!(bare_ratio(0.5), "0.5");
    }
}
