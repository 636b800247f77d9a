//! What is said of an advice run, sentence by sentence: of the files, the answer, what is beside it, and
//! what would change it. A ratio never stands without its interval.

use sqlitmus_core::advice::{
    AdviceRecord, Answer, CacheWish, Composed, Part, Recommendation, SampleFacts, Stage, Standing,
    Store, Wish,
};
use sqlitmus_core::case::Durability;
use sqlitmus_core::dataset::SizeDistribution;
use sqlitmus_core::run::Run;
use sqlitmus_core::statistics::{FEWEST_BATCHES, Interval};
use sqlitmus_core::units::{format_bytes, format_count, format_duration, format_ratio};

use crate::terminal::Tone;
use crate::text::clean;

/// Differences of space below this are not worth a word.
const SAME_SPACE: f64 = 0.03;

/// A file that is so many times as large as all that were measured is another matter.
const MUCH_LARGER: u64 = 4;

/// Heads the page.
pub(crate) fn question(record: &AdviceRecord) -> String {
    format!(
        "Where should the files of {} live?",
        clean(&record.tree.path)
    )
}

/// The files, what was asked, and what it was measured with.
pub(crate) fn about(
    run: &Run,
    record: &AdviceRecord,
    recommendation: &Recommendation,
) -> Vec<String> {
    let tree = &record.tree;
    let mut files = format!(
        "{} files, {} in {} folders, {} deep, at most {} entries in one | half of them below {}, the largest {}",
        format_count(tree.files),
        format_bytes(tree.bytes),
        format_count(tree.folders),
        tree.deepest,
        format_count(tree.most_entries),
        format_bytes(tree.median_bytes),
        format_bytes(tree.largest_bytes),
    );
    if let Some(share) = tree.compressed_share {
        files.push_str(&format!(" | compress to {:.0}%", share * 100.0));
    }
    if let Some(share) = tree.duplicate_share.filter(|share| *share >= 0.005) {
        files.push_str(&format!(" | {:.0}% are there twice", share * 100.0));
    }
    let sample = |facts: &SampleFacts| {
        format!(
            "{} files ({})",
            format_count(facts.files),
            format_bytes(facts.bytes)
        )
    };
    let asked = format!(
        "Asked: {} | selected with {}, confirmed with {} in {} rounds{}",
        wish_words(&record.wish),
        sample(&record.selected_with),
        sample(&record.confirmed_with),
        recommendation.rounds,
        match recommendation.fillings {
            0 | 1 => String::new(),
            fillings => format!(" on {fillings} fillings of the stores"),
        },
    );
    let fact = |name: &str| {
        let mut facts = run.environment.iter();
        facts
            .find(|(known, _)| known == name)
            .map(|(_, value)| clean(value))
    };
    let machine = ["cpu_model", "place_description", "kernel"];
    let mut machine: Vec<String> = machine.iter().filter_map(|name| fact(name)).collect();
    let versions = recommendation.versions.iter();
    machine.extend(versions.map(|(what, version)| format!("SQLite {}, {what}", clean(version))));
    let mut lines = vec![files, asked, machine.join(" | ")];
    lines.extend(unmeasured(run, record));
    let odd: Vec<String> = tree
        .oddities
        .iter()
        .map(|(count, what)| format!("{} {what}", format_count(*count)))
        .collect();
    if !odd.is_empty() {
        lines.push(format!("Not counted as files, or odd: {}", odd.join(", ")));
    }
    lines
}

/// What of the files was too large to be measured: a sample holds none that would fill it.
fn unmeasured(run: &Run, record: &AdviceRecord) -> Option<String> {
    let sizes = run
        .plan
        .arms()
        .filter_map(|(_, arm)| match &arm.case.dataset.size {
            SizeDistribution::Files(files) => files.bytes.iter().copied().max(),
            _ => None,
        });
    let measured = u64::from(sizes.max()?);
    let largest = record.tree.largest_bytes;
    (largest / MUCH_LARGER > measured).then(|| {
        format!(
            "The largest file that was measured has {}, the largest of all {}: nothing here is about files of such \
             a size",
            format_bytes(measured),
            format_bytes(largest)
        )
    })
}

fn wish_words(wish: &Wish) -> String {
    let circumstances = &wish.circumstances;
    let cache = match (circumstances.memory_bytes, wish.cache) {
        (Some(bytes), _) => format!(
            "with {} of memory for the process and what is cached for it",
            format_bytes(bytes)
        ),
        (None, CacheWish::Warm) => "warm".to_owned(),
        (None, CacheWish::Cold) => "cold".to_owned(),
        (None, CacheWish::Both) => "warm and cold".to_owned(),
    };
    let at_once = |number: u32, what: &str| match number {
        0 | 1 => String::new(),
        _ => format!(", {number} {what} at once"),
    };
    format!(
        "{} reads to {} writes, {}{}{}, {cache}, writes survive {}",
        wish.reads,
        wish.writes,
        wish.skew,
        at_once(circumstances.readers, "readers"),
        at_once(circumstances.writers, "writers"),
        match wish.durability {
            Durability::None => "nothing",
            Durability::ProcessCrash => "a crash of the process",
            Durability::PowerLoss => "loss of power",
        }
    )
}

/// The colour of the answer.
pub(crate) fn tone(recommendation: &Recommendation) -> Tone {
    match recommendation.answer {
        Answer::Move | Answer::KeepFiles => Tone::Good,
        Answer::NotSure => Tone::Unsure,
    }
}

/// The answer in one or two sentences.
pub(crate) fn answer(record: &AdviceRecord, recommendation: &Recommendation) -> String {
    let Some(database) = &recommendation.database else {
        return "Not sure: no database could be measured to the end. A longer --budget, such as 5m, leaves time for the \
                confirmation; what was tried is below."
            .to_owned();
    };
    let label = clean(&database.label);
    let Some(composed) = database.composed else {
        return "Not sure: the best database has no figures.".to_owned();
    };
    let mix = mix_words(&record.wish);
    let gain = format!(
        "{label} is {} your files are now, {mix}{}",
        times_as_fast(composed.ratio, composed.interval),
        parts_words(&composed)
    );
    match recommendation.answer {
        Answer::Move => format!(
            "{} {gain}.{}",
            match database.store {
                Store::Hybrid => "Move the small ones into a database.",
                Store::External => "Move their names into a database.",
                Store::Files | Store::Sqlite => "Move them into a database.",
            },
            cut_off(recommendation, database)
        ),
        Answer::KeepFiles => match better_files(record, recommendation, &composed) {
            Some(files) => {
                format!("Keep the files, and use them in a better way. {files}. {gain}.")
            }
            None => format!(
                "Keep the files. {gain}; moving is worth it from {:.2} on.",
                1.0 + record.wish.worth
            ),
        },
        Answer::NotSure => format!(
            "Not sure. {gain}: what was measured does not decide whether that is {:.2} or more. \
             --budget 5m measures longer; a quieter machine helps as much.",
            1.0 + record.wish.worth
        ),
    }
}

/// Files, read and written in another way, that are faster than the best database.
fn better_files(
    record: &AdviceRecord,
    recommendation: &Recommendation,
    database: &Composed,
) -> Option<String> {
    let mut standings = recommendation.standings.iter();
    let files = standings.find(|one| {
        let ratio = one.composed.map_or(0.0, |composed| composed.ratio);
        one.store == Store::Files && one.stage == Stage::Confirm && ratio > database.ratio.max(1.0)
    })?;
    let composed = files.composed?;
    let gain = times_as_fast(composed.ratio, composed.interval);
    let parts = parts_words(&composed);
    let mut candidates = record.candidates.iter();
    let candidate = candidates.find(|one| one.name == files.name)?;
    let ways = [
        match candidate.reading.get("api") {
            Some("openat") if record.wish.reads > 0 => Some("opened relative to a folder"),
            Some("mmap") if record.wish.reads > 0 => Some("mapped into memory"),
            _ => None,
        },
        match candidate.writing.get("write") {
            Some("in-place") if record.wish.writes > 0 => {
                Some("written over instead of emptied first")
            }
            _ => None,
        },
    ];
    let ways: Vec<&str> = ways.into_iter().flatten().collect();
    let ways = match ways.is_empty() {
        true => String::new(),
        false => format!(" ({})", ways.join(", ")),
    };
    Some(format!(
        "{}{ways} is {gain} they are now{parts}",
        capital(&clean(&files.label))
    ))
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn cut_off(recommendation: &Recommendation, database: &Standing) -> String {
    match recommendation.sensitivity.slower_from {
        Some(bytes) if bytes > 0 && database.store == Store::Sqlite => format!(
            " Files from {} on are read more slowly from it: leave those outside.",
            format_bytes(bytes)
        ),
        _ => String::new(),
    }
}

fn mix_words(wish: &Wish) -> String {
    match (wish.reads, wish.writes) {
        (_, 0) => "reading".to_owned(),
        (0, _) => "writing".to_owned(),
        (reads, writes) => format!("at {reads} reads to {writes} writes"),
    }
}

fn parts_words(composed: &Composed) -> String {
    let (Some(read), Some(write)) = (composed.read, composed.write) else {
        return String::new();
    };
    format!(
        " (reading {}, {} instead of {}; writing {}, {} instead of {})",
        ratio_words(read.ratio, read.interval),
        time_words(read.operation_ns),
        time_words(read.reference_ns),
        ratio_words(write.ratio, write.interval),
        time_words(write.operation_ns),
        time_words(write.reference_ns),
    )
}

/// What stands beside the answer: a tie, space, the better way to read files.
pub(crate) fn beside(record: &AdviceRecord, recommendation: &Recommendation) -> Vec<String> {
    let mut sentences = Vec::new();
    let Some(database) = &recommendation.database else {
        return sentences;
    };
    let label_of = |name: &str| {
        let mut all = recommendation.standings.iter();
        // Files that are as fast are no tie: they need not be moved.
        all.find(|standing| standing.name == name && standing.store.has_database())
            .map(|standing| clean(&standing.label))
    };
    if let Some(tie) = recommendation.tie.as_deref().and_then(label_of) {
        sentences.push(format!(
            "A tie: {tie} may be as fast; choose by what suits you better."
        ));
    }
    sentences.extend(space(database));
    if record.wish.reads > 0 && record.wish.writes > 0 {
        sentences.push(
            "Reads and writes were measured apart and weighed; every write is a transaction by itself."
                .to_owned(),
        );
    }
    if record.wish.writes > 0 {
        sentences.push(format!(
            "How your programs write the files is not known: they are taken to be {}.",
            match record.wish.durability {
                Durability::PowerLoss => "replaced by new ones, which are synchronised and renamed",
                _ => "emptied and filled again, as most programs do",
            }
        ));
    }
    if record.wish.writes > 0 && record.wish.durability != Durability::PowerLoss {
        sentences.push(
            "If the process dies in the middle of a write, a file that is emptied first or written over is left half \
             done; a transaction is done or is not."
                .to_owned(),
        );
    }
    if !record.fillings.is_empty() {
        let is_in_them = recommendation.fillings >= FEWEST_BATCHES as u32;
        sentences.push(
            match is_in_them {
                true => {
                    "These intervals have in them what differs from one filling of the stores to the next; those of charts \
                     have not."
                }
                false => {
                    "What differs from one filling of the stores to the next is not in the intervals: --budget 5m leaves \
                     time for more of them."
                }
            }
            .to_owned(),
        );
    }
    sentences
}

fn space(database: &Standing) -> Option<String> {
    // Of files without content there is no ratio.
    let space = database
        .space
        .filter(|space| space.is_finite() && *space > 0.0)?;
    Some(if space > 1.0 + SAME_SPACE {
        format!(
            "On disk the files take {} times what it takes.",
            format_ratio(space)
        )
    } else if space < 1.0 - SAME_SPACE {
        format!(
            "On disk it takes {} times what the files take.",
            format_ratio(1.0 / space)
        )
    } else {
        "On disk both take the same.".to_owned()
    })
}

/// What would change the answer.
pub(crate) fn sensitivity(record: &AdviceRecord, recommendation: &Recommendation) -> Vec<String> {
    let found = &recommendation.sensitivity;
    let mut changes = Vec::new();
    if let Some(composed) = recommendation
        .database
        .as_ref()
        .and_then(|one| one.composed)
    {
        changes.extend(share_of_reads(found.break_even_read_share, &composed));
    }
    if let Some((durability, part, whole)) = &found.durability {
        let whole = whole.map_or(String::new(), |whole| {
            let ratio = ratio_words(whole.ratio, whole.interval);
            format!("; {} {ratio}", mix_words(&record.wish))
        });
        changes.push(format!(
            "If writes had to survive {durability}: writing {}, {} instead of {}{whole}.",
            ratio_words(part.ratio, part.interval),
            time_words(part.operation_ns),
            time_words(part.reference_ns)
        ));
    }
    if let Some(held) = &found.held {
        changes.push(format!(
            "Many reads in a transaction: {} each by itself, {} a read.",
            times_as_fast(held.ratio, held.interval),
            time_words(held.operation_ns)
        ));
    }
    if let Some(batched) = &found.batched {
        changes.push(format!(
            "Many writes to a transaction: {} one a transaction, {} a write.",
            times_as_fast(batched.ratio, batched.interval),
            time_words(batched.operation_ns)
        ));
    }
    match (&found.cold, record.wish.cache) {
        (Some(cold), _) => changes.push(format!(
            "Read from a cold cache: {}, {} instead of {}.",
            ratio_words(cold.ratio, cold.interval),
            time_words(cold.operation_ns),
            time_words(cold.reference_ns)
        )),
        (None, CacheWish::Warm) => {
            let words = match record.wish.circumstances.memory_bytes {
                Some(_) => {
                    "With as much memory as there is, everything is cached: leave --memory out."
                }
                None => "A cold cache was not measured: --cache both does.",
            };
            changes.push(words.to_owned());
        }
        _ => {}
    }
    changes.extend(sizes(&found.classes));
    changes
}

fn share_of_reads(share: Option<f64>, composed: &Composed) -> Option<String> {
    let (read, write) = (composed.read?, composed.write?);
    Some(match share {
        Some(share) if read.ratio > write.ratio => format!(
            "With fewer than {:.0}% reads the files are faster: it gains in reading and loses in writing.",
            share * 100.0
        ),
        Some(share) => format!(
            "With more than {:.0}% reads the files are faster: it gains in writing and loses in reading.",
            share * 100.0
        ),
        None if read.ratio > 1.0 => {
            "The share of reads changes nothing: it gains in reading and in writing.".to_owned()
        }
        None => "The share of reads changes nothing: it gains in neither.".to_owned(),
    })
}

fn sizes(classes: &[(sqlitmus_core::advice::SizeClass, Part)]) -> Option<String> {
    let of = |(class, part): &(sqlitmus_core::advice::SizeClass, Part)| {
        let range = match (class.from, class.below) {
            (0, Some(below)) => format!("below {}", binary(below)),
            (from, Some(below)) => format!("{} to {}", binary(from), binary(below)),
            (from, None) => format!("from {}", binary(from)),
        };
        format!("{range} {}", ratio_words(part.ratio, part.interval))
    };
    let parts: Vec<String> = classes.iter().map(of).collect();
    (!parts.is_empty()).then(|| format!("By size of the files, reading: {}.", parts.join("; ")))
}

/// Sizes that are powers of two, short: `64 KiB`.
pub(crate) fn binary(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

/// Which SQLite the figures hold for, and how the files get into it.
pub(crate) fn paste(run: &Run, record: &AdviceRecord, recommendation: &Recommendation) -> String {
    let system = recommendation
        .references
        .iter()
        .find(|(name, _)| name == "system-library");
    let built_in = recommendation
        .database
        .as_ref()
        .and_then(|database| database.composed)
        .and_then(|composed| composed.read);
    let library = match (system, built_in) {
        (Some((_, system)), Some(built_in)) => format!(
            " Your system's library reads in {} where ours, with its recommended options, takes {}.",
            time_words(system.operation_ns),
            time_words(built_in.operation_ns)
        ),
        _ => String::new(),
    };
    let best = recommendation.database.as_ref();
    let best = best.and_then(|best| {
        let mut candidates = record.candidates.iter();
        candidates.find(|one| one.name == best.name)
    });
    let is_by_handle = best
        .is_some_and(|best| best.store == Store::Sqlite && best.reading.get("api") == Some("blob"));
    let api = if is_by_handle {
        " It was measured through blob handles (sqlite3_blob_reopen, sqlite3_blob_read), which not all of these \
         languages have; the code uses SELECT, whose figure is in the table above."
    } else {
        ""
    };
    let place = clean(&run.head.place);
    let path = clean(&record.tree.path);
    format!(
        "It runs on your own SQLite.{library}{api} The Python of it (--snippet python) fills a database from a \
         directory. `sqlitmus pack {path} {place}/files.sqlar` makes an archive of another kind (sqlar), with \
         names, modes and times: good for keeping and serving files, and not what was measured here."
    )
}

/// `1.68 times as fast as (1.62 to 1.74)`.
pub(crate) fn times_as_fast(ratio: f64, interval: Option<Interval>) -> String {
    format!("{} times as fast as", ratio_words(ratio, interval))
}

/// `1.68 (1.62-1.74)`.
pub(crate) fn ratio_words(ratio: f64, interval: Option<Interval>) -> String {
    match interval {
        Some(found) => format!(
            "{} ({}-{})",
            format_ratio(ratio),
            format_ratio(found.low),
            format_ratio(found.high)
        ),
        None => format!("about {}", format_ratio(ratio)),
    }
}

/// A time of one operation.
pub(crate) fn time_words(ns: f64) -> String {
    format_duration(ns.max(0.0) as u64)
}
