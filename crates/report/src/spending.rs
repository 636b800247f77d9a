//! How figures scatter and what more time would buy, and which slices were far from the others: in
//! words, the same in every format.

use sqlitmus_core::analysis::{Analysis, GroupAnalysis};
use sqlitmus_core::outliers::Outliers;
use sqlitmus_core::spending::{ADVISED_PRECISION, Spending};
use sqlitmus_core::units::format_count;

use crate::figures::percent;
use crate::summary::{named, plural};

/// For every group: how its slices and rounds scatter, and how many of either to take.
pub(crate) fn scatter(analysis: &Analysis) -> Vec<String> {
    let groups = analysis.groups.iter();
    groups
        .filter_map(|group| Some(group_words(group, group.spending.as_ref()?)))
        .collect()
}

fn group_words(group: &GroupAnalysis, spending: &Spending) -> String {
    let Spending {
        scatter,
        slices,
        best_slices,
        rounds_advised,
    } = spending;
    let best = if *best_slices > 10 * slices {
        // Rounds that seem alike: an exact number would be luck.
        format!("more slices than {slices} a round pay")
    } else {
        format!("{best_slices} slices a round pay best ({slices} taken)")
    };
    let precision = percent(ADVISED_PRECISION);
    let rounds = match rounds_advised {
        Some(rounds) => format!("±{precision} takes {rounds} rounds"),
        None => format!("±{precision} is out of reach"),
    };
    format!(
        "{}: slices scatter by {}, processes by {}; {best}, {rounds}",
        named(&group.name, "one group"),
        percent(scatter.within_rounds),
        percent(scatter.between_rounds),
    )
}

/// The outliers of all arms together, with what the kernel says of them; `None` if there are none.
pub(crate) fn outliers(analysis: &Analysis) -> Option<String> {
    let mut all = Outliers::default();
    for arm in analysis.groups.iter().flat_map(|group| &group.arms) {
        all.slices += arm.outliers.slices;
        all.outliers += arm.outliers.outliers;
        all.not_in_cache_state += arm.outliers.not_in_cache_state;
        all.stolen += arm.outliers.stolen;
        all.preempted += arm.outliers.preempted;
        all.unexplained += arm.outliers.unexplained;
    }
    if all.outliers == 0 {
        return None;
    }
    let reasons = [
        (all.preempted, "taken off the core"),
        (all.stolen, "time taken by the host"),
        (all.not_in_cache_state, "read from the device (not counted)"),
        (all.unexplained, "unexplained"),
    ];
    let reasons: Vec<String> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, reason)| format!("{count} {reason}"))
        .collect();
    let verb = if all.outliers == 1 { "is" } else { "are" };
    Some(format!(
        "{} of {} {verb} far from the others of their arm (all kept): {}",
        format_count(all.outliers),
        plural(all.slices, "slice", "slices"),
        reasons.join(", ")
    ))
}
