//! How often something happens, from how often it was seen: exact bounds of a binomial share.

use statrs::distribution::{Beta, ContinuousCDF};

/// The largest share that `seen` of `trials` leaves possible, with one-sided `confidence` (0.95):
/// the upper bound of Clopper and Pearson ("The use of confidence or fiducial limits illustrated in
/// the case of the binomial", 1934). With nothing seen it is `1 - (1 - confidence)^(1/trials)`, which
/// the "rule of three" approximates by 3 / trials. 1 without trials.
#[must_use]
pub fn upper_bound(seen: u32, trials: u32, confidence: f64) -> f64 {
    if seen >= trials {
        return 1.0;
    }
    if seen == 0 {
        return 1.0 - (1.0 - confidence).powf(1.0 / f64::from(trials));
    }
    let (seen, trials) = (f64::from(seen), f64::from(trials));
    Beta::new(seen + 1.0, trials - seen).map_or(1.0, |share| share.inverse_cdf(confidence))
}

/// The smallest share that `seen` of `trials` leaves possible, likewise. 0 if nothing was seen.
#[must_use]
pub fn lower_bound(seen: u32, trials: u32, confidence: f64) -> f64 {
    if seen == 0 || seen > trials {
        return 0.0;
    }
    1.0 - upper_bound(trials - seen, trials, confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 5e-5, "{found} for {expected}");
    }

    #[test]
    fn bounds_are_those_of_the_tables() {
        // Nothing in 20: 1 - 0.05^(1/20).
        close(upper_bound(0, 20, 0.95), 0.13911);
        close(upper_bound(0, 3, 0.95), 0.63160);
        close(upper_bound(0, 300, 0.95), 0.00994);
        // The two-sided 90% interval of 1 and of 4 in 20.
        close(upper_bound(1, 20, 0.95), 0.21611);
        close(lower_bound(1, 20, 0.95), 0.00256);
        close(upper_bound(4, 20, 0.95), 0.40103);
        close(lower_bound(4, 20, 0.95), 0.07135);
        close(lower_bound(20, 20, 0.95), 1.0 - 0.13911);
    }

    #[test]
    fn the_edges_are_defined() {
        assert!((upper_bound(0, 0, 0.95) - 1.0).abs() < f64::EPSILON);
        assert!((upper_bound(5, 5, 0.95) - 1.0).abs() < f64::EPSILON);
        assert!(lower_bound(0, 0, 0.95).abs() < f64::EPSILON);
        assert!(lower_bound(0, 9, 0.95).abs() < f64::EPSILON);
    }

    /// By definition: were the share at the upper bound, so few would be seen with probability 5%.
    #[test]
    fn the_bound_is_where_its_definition_puts_it() {
        for (seen, trials) in [(1u32, 7u32), (3, 20), (10, 40)] {
            let share = upper_bound(seen, trials, 0.95);
            let mut tail = 0.0;
            let mut ways = 1.0;
            for count in 0..=seen {
                let (hits, rest) = (count as i32, (trials - count) as i32);
                tail += ways * share.powi(hits) * (1.0 - share).powi(rest);
                ways *= f64::from(trials - count) / f64::from(count + 1);
            }
            close(tail, 0.05);
        }
    }
}
