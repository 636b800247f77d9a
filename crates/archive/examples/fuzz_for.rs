//! A fuzzer that needs no nightly compiler: changes files of the corpus at random, for some seconds.
//! It sees no coverage; `fuzz/` has the target for cargo-fuzz, which does.
//!
//! `cargo run --release --example fuzz_for -- SECONDS [SEED]`

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let seconds = words
        .next()
        .ok_or("usage: fuzz_for SECONDS [SEED]")?
        .parse()?;
    let seed = words.next().map_or(Ok(1), |seed| seed.parse())?;
    let tried = run(Duration::from_secs(seconds), seed)?;
    writeln!(
        std::io::stdout(),
        "{tried} inputs in {seconds} s, nothing found"
    )?;
    Ok(())
}

fn run(time: Duration, seed: u64) -> Result<u64, Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/read_archive");
    let mut inputs = Vec::new();
    for entry in std::fs::read_dir(corpus)? {
        inputs.push(std::fs::read(entry?.path())?);
    }
    let mut random = Random(seed | 1);
    let begin = Instant::now();
    let mut tried = 0;
    while begin.elapsed() < time {
        let mut input = inputs[random.below(inputs.len())].clone();
        for _ in 0..=random.below(8) {
            change(&mut input, &inputs, &mut random);
        }
        // What makes it panic is what is to be kept.
        let last = std::env::temp_dir().join("sqlitmus-archive-fuzz-last");
        let found = std::panic::catch_unwind(|| sqlitmus_archive::exercise(&input));
        if let Err(panic) = found {
            std::fs::write(&last, &input)?;
            std::panic::resume_unwind(panic);
        }
        tried += 1;
    }
    Ok(tried)
}

fn change(input: &mut Vec<u8>, inputs: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len().max(1));
    match random.below(6) {
        0 if !input.is_empty() => input[at] ^= 1 << random.below(8),
        1 if !input.is_empty() => input[at] = random.below(256) as u8,
        2 => input.insert(at.min(input.len()), random.below(256) as u8),
        3 => input.truncate(input.len() - random.below(input.len() / 4 + 1)),
        4 => {
            let other = &inputs[random.below(inputs.len())];
            let from = random.below(other.len().max(1));
            let length = random.below(64).min(other.len().saturating_sub(from));
            let end = (at + length).min(input.len());
            input.splice(at.min(end)..end, other[from..from + length].iter().copied());
        }
        _ => {
            for _ in 0..random.below(16) {
                let at = random.below(input.len().max(1));
                if let Some(byte) = input.get_mut(at) {
                    *byte = [0, 1, 0x7f, 0x80, 0xff][random.below(5)];
                }
            }
        }
    }
}

/// xorshift64, as fast as it has to be.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_it_finds_nothing() {
        assert!(run(Duration::from_secs(1), 7).expect("runs") > 0);
    }
}
