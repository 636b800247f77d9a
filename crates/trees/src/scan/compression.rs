//! What a compressor would save: some files of every size class are compressed, one by one, as an
//! SQLite archive does it. What that means for the whole tree is computed by
//! [`Compressibility`].

use flate2::{Compress, Compression, FlushCompress};
use sqlitmus_core::tree_scan::content::CompressedClass;
use sqlitmus_core::tree_scan::{Candidates, Compressibility, FileAt, Oddities};

use super::content::{open, read_piece};
use crate::walk::Tree;

/// The format and level of SQLite archives.
const COMPRESSOR: &str = "zlib 6";
const LEVEL: u32 = 6;
/// Larger files are read in part, somewhere inside.
const PIECE_BYTES: u64 = 256 << 10;
/// Files of a class that are read at least, if there are so many and whatever its share of the bytes.
const FEWEST_PER_CLASS: usize = 4;
/// Files of a class that are read at most: more say little more.
const MOST_PER_CLASS: usize = 400;

/// Reads and compresses about so many bytes at most; classes by their share of the tree's bytes.
pub(super) fn sample(
    tree: &Tree,
    candidates: &Candidates,
    most_bytes: u64,
    oddities: &mut Oddities,
    should_stop: &dyn Fn() -> bool,
) -> Option<Compressibility> {
    let classes = candidates.classes();
    let whole: f64 = classes.iter().map(|class| class.bytes as f64).sum();
    let mut compressor = Compressor::new();
    let mut compressed = Vec::new();
    for class in &classes {
        let share = class.bytes as f64 / whole.max(1.0);
        let class_bytes = (most_bytes as f64 * share) as u64;
        let mut found = CompressedClass {
            tree_bytes: class.bytes,
            sampled_files: 0,
            sampled_bytes: 0,
            compressed_bytes: 0,
        };
        for (number, file) in class.candidates.iter().take(MOST_PER_CLASS).enumerate() {
            let is_enough = number >= FEWEST_PER_CLASS && found.sampled_bytes >= class_bytes;
            if file.bytes == 0 || is_enough || should_stop() {
                break;
            }
            if let Some((read, took)) = compressor.compress(tree, file, oddities) {
                found.sampled_files += 1;
                found.sampled_bytes += read;
                found.compressed_bytes += took;
            }
        }
        compressed.push(found);
    }
    Compressibility::new(COMPRESSOR, compressed, PIECE_BYTES)
}

struct Compressor {
    deflate: Compress,
    content: Vec<u8>,
    output: Vec<u8>,
}

impl Compressor {
    fn new() -> Self {
        Self {
            deflate: Compress::new(Compression::new(LEVEL), true),
            content: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Bytes read, and bytes that they take compressed, which are never more: what does not shrink is
    /// stored as it is.
    fn compress(
        &mut self,
        tree: &Tree,
        file: &FileAt,
        oddities: &mut Oddities,
    ) -> Option<(u64, u64)> {
        let opened = open(tree, file, oddities)?;
        let bytes = file.bytes.min(PIECE_BYTES);
        // The middle: beginnings are headers, and say little of what comes after them.
        let start = (file.bytes - bytes) / 2;
        let content = read_piece(&opened, file, start, bytes, &mut self.content, oddities)?;
        self.deflate.reset();
        self.output.clear();
        // If it does not fit into the room of the content, it has not shrunk.
        self.output.reserve(content.len());
        let took = match self
            .deflate
            .compress_vec(content, &mut self.output, FlushCompress::Finish)
        {
            Ok(flate2::Status::StreamEnd) => (self.output.len() as u64).min(bytes),
            _ => bytes,
        };
        Some((bytes, took))
    }
}
