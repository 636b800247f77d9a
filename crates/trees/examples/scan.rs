//! Scans a tree and prints its summary, and how many files a sample of so many bytes would have, as
//! JSON: `cargo run --release -p sqlitmus-trees --example scan -- DIR [SAMPLE_BYTES]`. Tests run it under
//! strace.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use sqlitmus_core::tree_scan::sample::draw;
use sqlitmus_trees::scan::{ScanOptions, scan};
use sqlitmus_trees::walk::Tree;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let directory = words.next().ok_or("usage: scan DIR [SAMPLE_BYTES]")?;
    let sample_bytes = match words.next() {
        Some(word) => word.to_str().ok_or("not a number")?.parse()?,
        None => 200_000_000,
    };
    let started = Instant::now();
    let tree = Tree::open(Path::new(&directory))?;
    let mut walked = None;
    let scanned = scan(&tree, &ScanOptions::default(), &|| false, &mut |progress| {
        if progress == sqlitmus_trees::scan::ScanProgress::Reading {
            walked = Some(started.elapsed());
        }
    });
    let elapsed = started.elapsed();
    let sample = draw(&scanned.candidates, sample_bytes, 1);
    let shown = serde_json::json!({
        "summary": scanned.summary,
        "classes": scanned.summary.file_bytes.classes(),
        "extensions": scanned.summary.names.most_frequent(10),
        "walk_ms": walked.map(|walked| walked.as_secs_f64() * 1e3),
        "elapsed_ms": elapsed.as_secs_f64() * 1e3,
        "sample": {
            "files": sample.files.len(),
            "bytes": sample.bytes,
            "share": sample.share,
            "is_whole": sample.is_whole,
            "is_short_of_candidates": sample.is_short_of_candidates,
        },
    });
    let text = serde_json::to_string_pretty(&shown)?;
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
