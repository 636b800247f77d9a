//! What the content of sampled files says about the whole tree: how much a compressor saves, and how
//! much is there more than once. Reading and compressing is left to the scan.

use serde::Serialize;

/// What compressing the sampled files of one size class gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CompressedClass {
    /// Content of all files of the class in the tree, in bytes.
    pub tree_bytes: u64,
    /// Files that were read.
    pub sampled_files: u64,
    /// Bytes that were read and compressed.
    pub sampled_bytes: u64,
    /// What they took compressed; what did not shrink counts at its own length.
    pub compressed_bytes: u64,
}

/// What a compressor saves, one file at a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compressibility {
    /// Name of the compressor and its level.
    pub compressor: String,
    /// Size classes that something was read of.
    pub classes: Vec<CompressedClass>,
    /// Estimate for the tree: compressed bytes for every byte of content, from 0 to 1.
    pub ratio: f64,
    /// Most bytes that were read of one file; larger ones were read in part.
    pub most_bytes_per_file: u64,
}

impl Compressibility {
    /// Weights each class by its bytes in the tree. `None` if nothing was read.
    #[must_use]
    pub fn new(
        compressor: &str,
        classes: Vec<CompressedClass>,
        most_bytes_per_file: u64,
    ) -> Option<Self> {
        let read: Vec<CompressedClass> = classes
            .into_iter()
            .filter(|class| class.sampled_bytes > 0)
            .collect();
        let whole: f64 = read.iter().map(|class| class.tree_bytes as f64).sum();
        if whole <= 0.0 {
            return None;
        }
        let compressed: f64 = read
            .iter()
            .map(|class| {
                let ratio = class.compressed_bytes as f64 / class.sampled_bytes as f64;
                class.tree_bytes as f64 * ratio
            })
            .sum();
        Some(Self {
            compressor: compressor.to_owned(),
            classes: read,
            ratio: compressed / whole,
            most_bytes_per_file,
        })
    }
}

/// What is there more than once, among all files of sampled sizes (see [`super::SizeGroups`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// Files of the sampled sizes.
    pub compared_files: u64,
    /// Their content.
    pub compared_bytes: u64,
    /// Files whose content another of them has already.
    pub duplicate_files: u64,
    /// Their content: what would be saved by keeping each content once.
    pub duplicate_bytes: u64,
    /// Whether all files that are not empty were compared.
    pub is_whole: bool,
    /// Whether more may be there than was found: of some sizes not all files were compared.
    pub is_lower_bound: bool,
    /// Of files larger than this, only as much at the beginning and at the end was compared.
    pub most_bytes_per_file: u64,
}

impl Duplicates {
    /// Share of the files that are duplicates, from 0 to 1.
    #[must_use]
    pub fn share_of_files(&self) -> Option<f64> {
        let compared = self.compared_files;
        (compared > 0).then(|| self.duplicate_files as f64 / compared as f64)
    }

    /// Share of the bytes that would be saved, from 0 to 1.
    #[must_use]
    pub fn share_of_bytes(&self) -> Option<f64> {
        let compared = self.compared_bytes;
        (compared > 0).then(|| self.duplicate_bytes as f64 / compared as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_weigh_what_they_have_in_the_tree() {
        let class = |tree_bytes, sampled_bytes, compressed_bytes| CompressedClass {
            tree_bytes,
            sampled_files: 1,
            sampled_bytes,
            compressed_bytes,
        };
        // 100 bytes that shrink to half, 300 that do not, and a class that nothing was read of.
        let classes = vec![class(100, 10, 5), class(300, 10, 10), class(999, 0, 0)];
        let found = Compressibility::new("zlib 6", classes, 1).expect("something was read");
        assert!((found.ratio - 350.0 / 400.0).abs() < 1e-12);
        assert_eq!(found.classes.len(), 2);
        assert_eq!(
            Compressibility::new("zlib 6", vec![class(9, 0, 0)], 1),
            None
        );
    }
}
