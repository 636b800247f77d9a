//! Axes: from numbers to places, and which numbers are written beside them. Round numbers of linear
//! axes are chosen by `plotters`; logarithmic ones and those of percentiles are ours.

use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;

use sqlitmus_core::units::{format_count, format_ratio};

/// How numbers lie along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal factors are equally far apart; there is no zero.
    Logarithmic,
    /// Shares from 0 to 1, each further nine as far as the last: 0.9, 0.99, 0.999.
    Nines,
}

/// An axis: a heading and the numbers it reaches from and to.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What is along it, with its unit.
    pub heading: String,
    /// How numbers lie along it.
    pub scale: Scale,
    /// How a number is written beside it.
    pub format: fn(f64) -> String,
    low: f64,
    high: f64,
    /// The only numbers that may be written beside it; empty for round ones.
    chosen_ticks: Vec<f64>,
}

/// Beyond so many factors of ten a picture says nothing that its figures do not.
const MOST_DECADES: f64 = 12.0;

impl Axis {
    /// An axis without numbers as yet.
    #[must_use]
    pub fn new(heading: &str, scale: Scale, format: fn(f64) -> String) -> Self {
        Self {
            heading: heading.to_owned(),
            scale,
            format,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            chosen_ticks: Vec::new(),
        }
    }

    /// With no other numbers beside it than these, as far as they are on it: for things that are counted.
    #[must_use]
    pub fn with_ticks(mut self, ticks: &[f64]) -> Self {
        self.chosen_ticks = ticks.to_vec();
        self
    }

    /// Stretches the axis so that a number is on it; what cannot be on it changes nothing.
    pub fn include(&mut self, value: f64) {
        if self.accepts(value) {
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
    }

    /// Whether a number has a place on such an axis.
    #[must_use]
    pub fn accepts(&self, value: f64) -> bool {
        value.is_finite()
            && match self.scale {
                Scale::Linear => value.abs() < 1e15,
                Scale::Logarithmic => (1e-15..1e15).contains(&value),
                Scale::Nines => (0.0..=1.0).contains(&value),
            }
    }

    /// The place of a number as a share of the axis, 0 to 1; `None` if it has none. What is outside
    /// stands at the border.
    #[must_use]
    pub fn place(&self, value: f64) -> Option<f64> {
        if !self.accepts(value) {
            return None;
        }
        let (low, high) = self.ends();
        let share = (self.along(value) - self.along(low)) / (self.along(high) - self.along(low));
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }

    /// Numbers to write beside it, at most so many.
    #[must_use]
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let (low, high) = self.ends();
        if !self.chosen_ticks.is_empty() {
            let inside = self.chosen_ticks.iter().copied();
            let inside: Vec<f64> = inside.filter(|tick| (low..=high).contains(tick)).collect();
            let every = inside.len().div_ceil(most.max(1)).max(1);
            return inside.into_iter().step_by(every).collect();
        }
        match self.scale {
            // Both ends are finite and differ: plotters asks for that.
            Scale::Linear => RangedCoordf64::from(low..high).key_points(most.max(2)),
            Scale::Logarithmic => logarithmic_ticks(low, high, most),
            Scale::Nines => {
                let all = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 1.0];
                let inside: Vec<f64> = all
                    .into_iter()
                    .filter(|tick| (low..=high).contains(tick))
                    .collect();
                let skip = inside.len().div_ceil(most.max(1));
                inside.into_iter().step_by(skip.max(1)).collect()
            }
        }
    }

    /// The numbers it reaches from and to, never the same.
    #[must_use]
    pub fn ends(&self) -> (f64, f64) {
        let (low, high) = (self.low, self.high);
        if low > high {
            return match self.scale {
                Scale::Logarithmic => (0.1, 10.0),
                _ => (0.0, 1.0),
            };
        }
        match self.scale {
            Scale::Nines => (0.0, 1.0),
            Scale::Linear if high - low <= low.abs().max(1e-9) * 1e-9 => {
                let around = low.abs().max(1.0) * 0.5;
                (low - around, high + around)
            }
            Scale::Linear => (low, high),
            Scale::Logarithmic => {
                let low = low.max(high / 10f64.powf(MOST_DECADES));
                if high / low < 1.5 {
                    (low / 1.5, high * 1.5)
                } else {
                    (low, high)
                }
            }
        }
    }

    fn along(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.ln(),
            // The largest of all stands where a millionth more would.
            Scale::Nines => -(1.0 - value).max(1e-6).log10(),
        }
    }
}

fn logarithmic_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let inside = |steps: &[f64], every: i32| -> Vec<f64> {
        let decades = (-15..=15).filter(|power| power % every == 0);
        let all = decades.flat_map(|power: i32| {
            let decade = 10f64.powi(power);
            steps
                .iter()
                .map(move |step| step * decade)
                .collect::<Vec<_>>()
        });
        all.filter(|tick| (low * 0.999..=high * 1.001).contains(tick))
            .collect()
    };
    let finer: [(&[f64], i32); 5] = [
        (&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], 1),
        (&[1.0, 2.0, 5.0], 1),
        (&[1.0, 3.0], 1),
        (&[1.0], 1),
        (&[1.0], 3),
    ];
    let tries = finer.into_iter().map(|(steps, every)| inside(steps, every));
    tries
        .into_iter()
        .find(|ticks| ticks.len() <= most.max(1))
        .filter(|ticks| !ticks.is_empty())
        .unwrap_or_else(|| vec![low, high])
}

/// A number of an axis without zeros that say nothing: `0.5`, `20`, `5,000`.
#[must_use]
pub fn plain(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value.abs() >= 1000.0 && value.abs() < 1e15 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", format_count(value.abs().round() as u64));
    }
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    rounded.to_string()
}

/// A ratio beside an axis: `0.5`, `1`, `2.5`.
#[must_use]
pub fn ratio(value: f64) -> String {
    let shown = format_ratio(value);
    if shown.contains('.') {
        shown.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        shown
    }
}

/// A number of bytes beside an axis: `1 kB`, `2.5 MB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    for (unit, size) in [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)] {
        if value >= size {
            return format!("{} {unit}", plain(value / size));
        }
    }
    format!("{} B", plain(value))
}

/// A share beside an axis of percentiles: `p50`, `p99.9`, `max`.
#[must_use]
pub fn percentile(share: f64) -> String {
    match share {
        0.0 => "min".to_owned(),
        1.0 => "max".to_owned(),
        _ => {
            let shown = format!("{:.4}", share * 100.0);
            format!("p{}", shown.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale, values: &[f64]) -> Axis {
        let mut axis = Axis::new("", scale, plain);
        for value in values {
            axis.include(*value);
        }
        axis
    }

    #[test]
    fn every_number_has_a_place_or_none() {
        let odd = [
            0.0,
            -1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN_POSITIVE,
            f64::MAX,
            1.0,
            0.5,
        ];
        for scale in [Scale::Linear, Scale::Logarithmic, Scale::Nines] {
            for first in odd {
                for second in odd {
                    let axis = axis(scale, &[first, second]);
                    let (low, high) = axis.ends();
                    assert!(low < high && low.is_finite() && high.is_finite());
                    for value in odd {
                        let place = axis.place(value);
                        assert!(place.is_none_or(|place| (0.0..=1.0).contains(&place)));
                    }
                    let ticks = axis.ticks(6);
                    assert!(ticks.len() <= 12, "{scale:?} {first} {second}: {ticks:?}");
                    assert!(ticks.iter().all(|tick| tick.is_finite()));
                }
            }
        }
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(
            axis(Scale::Linear, &[0.0, 10.0]).ticks(6),
            [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        );
        assert_eq!(
            axis(Scale::Logarithmic, &[1.0, 1000.0]).ticks(4),
            [1.0, 10.0, 100.0, 1000.0]
        );
        assert_eq!(
            axis(Scale::Logarithmic, &[0.8, 6.0]).ticks(4),
            [1.0, 2.0, 5.0]
        );
    }

    #[test]
    fn numbers_beside_axes_are_short() {
        assert_eq!(plain(0.1 + 0.2), "0.3");
        assert_eq!(plain(20_000.0), "20,000");
        assert_eq!(bytes(1_500_000.0), "1.5 MB");
        assert_eq!(percentile(0.999), "p99.9");
        assert_eq!(percentile(0.99999), "p99.999");
        assert_eq!(percentile(0.1), "p10");
        assert_eq!(ratio(2.50), "2.5");
    }
}
