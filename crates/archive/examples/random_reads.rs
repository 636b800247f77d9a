//! Reads all files of a directory in random order, from the directory (openat, fstat, read, close) and from an
//! archive of it, in slices that take turns, and prints microseconds a file: the median over the slices, after one
//! untimed pass of each. Every arm walks the same order from another offset, and what is read is added up and compared.
//!
//! `cargo run --release --example random_reads -- DIRECTORY ARCHIVE [ROUNDS]`

use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use rustix::fs::{Mode, OFlags, openat};
use sqlitmus_archive::{Archive, Kind, OpenSettings};

/// Reads in a slice: some 5 to 10 ms.
const SLICE_READS: usize = 2000;

const ARMS: [&str; 4] = [
    "directory, openat",
    "archive, by name",
    "archive, mmap, by name",
    "archive, mmap, catalogue",
];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (directory, archive) = match words.as_slice() {
        [directory, archive] | [directory, archive, _] => (directory, archive),
        _ => return Err("usage: random_reads DIRECTORY ARCHIVE [ROUNDS]".into()),
    };
    let rounds = words.get(2).map_or(Ok(100), |rounds| rounds.parse())?;
    let text = run(Path::new(directory), Path::new(archive), rounds)?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn run(directory: &Path, path: &Path, rounds: usize) -> Result<String, Box<dyn Error>> {
    let plain = Archive::open(path)?.reader()?;
    let settings = OpenSettings {
        mmap_bytes: u64::MAX,
        ..OpenSettings::default()
    };
    let mapped = Archive::open_with(path, settings)?.reader()?;
    let catalogue = mapped.catalogue()?;
    let files = plain
        .entries()?
        .into_iter()
        .filter(|entry| entry.kind == Kind::File);
    let mut names: Vec<String> = files.map(|entry| entry.name).collect();
    shuffle(&mut names);
    let top = File::open(directory)?;
    let (mut by_name, mut by_mapped) = (plain.lookup()?, mapped.lookup()?);
    let mut by_place = mapped.lookup()?;
    let mut buffer = Vec::new();
    let mut read = |arm: usize, name: &str| -> Result<u64, Box<dyn Error>> {
        Ok(match arm {
            0 => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                let mut file = File::from(openat(&top, name, flags, Mode::empty())?);
                let length = file.metadata()?.len() as usize;
                if buffer.len() < length {
                    buffer.resize(length, 0);
                }
                file.read_exact(&mut buffer[..length])?;
                consume(&buffer[..length])
            }
            1 => by_name.with(name, consume)?.ok_or("no such entry")?,
            2 => by_mapped.with(name, consume)?.ok_or("no such entry")?,
            _ => consume(by_place.get_at(catalogue.place(name).ok_or("no such entry")?)?),
        })
    };
    let mut sums = [0_u64; ARMS.len()];
    for (arm, sum) in sums.iter_mut().enumerate() {
        for name in &names {
            *sum = sum.wrapping_add(read(arm, name)?);
        }
    }
    if sums.iter().any(|sum| *sum != sums[0]) {
        return Err("the archive and the directory are not the same".into());
    }
    let mut times = vec![Vec::with_capacity(rounds); ARMS.len()];
    for round in 0..rounds {
        for turn in 0..ARMS.len() {
            let arm = (turn + round) % ARMS.len();
            let from = round * SLICE_READS + arm * names.len() / ARMS.len();
            let begin = Instant::now();
            for number in from..from + SLICE_READS {
                std::hint::black_box(read(arm, &names[number % names.len()])?);
            }
            times[arm].push(begin.elapsed().as_secs_f64() * 1e6 / SLICE_READS as f64);
        }
    }
    let medians: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
    let mut text = String::new();
    for (arm, time) in ARMS.iter().zip(&medians) {
        text.push_str(&format!(
            "{arm:26} {time:7.3} us {:6.2} times as fast\n",
            medians[0] / time
        ));
    }
    Ok(text)
}

/// One load for every line of the cache.
fn consume(content: &[u8]) -> u64 {
    content
        .chunks_exact(64)
        .fold(content.len() as u64, |sum, line| {
            let mut word = [0; 8];
            word.copy_from_slice(&line[..8]);
            sum.wrapping_add(u64::from_le_bytes(word))
        })
}

fn shuffle(names: &mut [String]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for index in (1..names.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        names.swap(index, (state % (index as u64 + 1)) as usize);
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use sqlitmus_archive::{PackSettings, Watch, pack};

    use super::*;

    #[test]
    fn all_ways_read_the_same() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let directory = folder.path().join("from");
        std::fs::create_dir(&directory).expect("created");
        for number in 0..50_u8 {
            std::fs::write(directory.join(number.to_string()), vec![number; 1000])
                .expect("written");
        }
        let archive = folder.path().join("a.sqlar");
        pack(
            &[&directory],
            &archive,
            &PackSettings::default(),
            &Watch::new(),
        )
        .expect("packed");
        let text = run(&directory, &archive, 2).expect("the same");
        assert_eq!(text.lines().count(), ARMS.len(), "{text}");
        std::fs::write(directory.join("7"), vec![0; 1000]).expect("written");
        assert!(run(&directory, &archive, 1).is_err());
    }
}
