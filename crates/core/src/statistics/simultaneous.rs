//! Judging many comparisons at once, so that the chance of even one wrong verdict stays what it is
//! said to be. Knows nothing of what is compared.

/// The confidence with which each of `members` comparisons has to be judged, so that the chance that
/// any of them is wrongly told apart is at most 1 - `confidence`.
///
/// `is_told_apart(member, confidence)` says whether the member's interval of that confidence is
/// decided; what is decided at a higher confidence must be so at a lower one.
///
/// Holm's procedure, step by step: with alpha = 1 - confidence and m members all are judged at
/// 1 - alpha/m; those told apart are done, and the r that remain are judged at 1 - alpha/r, until a step
/// tells none apart. Each member's answer is the confidence of the step that told it apart, or of
/// the last step. No assumption is made about how members depend on one another as far as it is
/// said *that* two differ (S. Holm, "A simple sequentially rejective multiple test procedure",
/// Scandinavian Journal of Statistics 6(2), 1979); that the *direction* is right with the same
/// certainty is proved for independent members (J. P. Shaffer, "Control of directional errors with
/// stagewise multiple test procedures", Annals of Statistics 8(6), 1980), and shown by simulation
/// for members that share a baseline.
pub fn simultaneous(
    members: usize,
    confidence: f64,
    mut is_told_apart: impl FnMut(usize, f64) -> bool,
) -> Vec<f64> {
    let rates = step_down(members, 1.0 - confidence, |member, rate| {
        is_told_apart(member, 1.0 - rate)
    });
    rates.into_iter().map(|rate| 1.0 - rate).collect()
}

/// Which members of a family are told apart by Holm's procedure, given the error rate of each and
/// that of the family. A member without one is no part of the family and is not told apart.
pub(crate) fn holm(error_rates: &[Option<f64>], of_family: f64) -> Vec<bool> {
    let family: Vec<(usize, f64)> = error_rates
        .iter()
        .enumerate()
        .filter_map(|(place, rate)| Some((place, (*rate)?)))
        .collect();
    let allowed = step_down(family.len(), of_family, |member, rate| {
        family[member].1 <= rate
    });
    let mut stands = vec![false; error_rates.len()];
    for ((place, rate), allowed) in family.into_iter().zip(allowed) {
        stands[place] = rate <= allowed;
    }
    stands
}

/// The error rate that Holm's procedure leaves for each member.
fn step_down(
    members: usize,
    of_family: f64,
    mut is_told_apart: impl FnMut(usize, f64) -> bool,
) -> Vec<f64> {
    let mut rates = vec![of_family; members];
    let mut remaining: Vec<usize> = (0..members).collect();
    while !remaining.is_empty() {
        let rate = of_family / remaining.len() as f64;
        for &member in &remaining {
            rates[member] = rate;
        }
        let before = remaining.len();
        remaining.retain(|&member| !is_told_apart(member, rate));
        if remaining.len() == before {
            break;
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members whose p-values are known: told apart where p is at most 1 - confidence.
    fn levels(p_values: &[f64]) -> Vec<f64> {
        simultaneous(p_values.len(), 0.95, |member, level| {
            // Rounding: 1 - (1 - a) is not a to the last place.
            p_values[member] <= 1.0 - level + 1e-12
        })
    }

    fn told_apart(p_values: &[f64]) -> Vec<bool> {
        let levels = levels(p_values);
        let pairs = p_values.iter().zip(levels);
        pairs.map(|(p, level)| *p <= 1.0 - level + 1e-12).collect()
    }

    #[test]
    fn steps_are_those_of_holm() {
        // Holm, four members, 5%: 0.01 <= 0.0125, then 0.015 <= 0.0166.., then 0.03 > 0.025: stop.
        assert_eq!(
            told_apart(&[0.03, 0.01, 0.015, 0.04]),
            [false, true, true, false]
        );
        let found = levels(&[0.03, 0.01, 0.015, 0.04]);
        for (found, alpha) in found.iter().zip([0.025, 0.0125, 0.05 / 3.0, 0.025]) {
            assert!((1.0 - found - alpha).abs() < 1e-12, "{found}");
        }
        // Alone every one is below 5%; together none can be told apart.
        assert_eq!(told_apart(&[0.02, 0.03, 0.04]), [false; 3]);
        assert_eq!(told_apart(&[0.0; 5]), [true; 5]);
    }

    #[test]
    fn one_member_needs_no_correction_and_none_no_answer() {
        assert_eq!(levels(&[0.04]), [0.95]);
        assert!(levels(&[]).is_empty());
    }
}
