//! Compressing and decompressing as the format wants it: zlib streams, and content as it is where that
//! is smaller. Decompression makes no byte more than was claimed.

use std::io::{Read, Write};

use flate2::write::ZlibEncoder;
use flate2::{Decompress, FlushDecompress, Status};

use crate::error::ArchiveError;

/// Bytes that are made at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// zlib's default level, which `sqlite3 -A` uses too.
pub const DEFAULT_LEVEL: u32 = 6;

/// Whether and how content is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Everything is stored as it is.
    Never,
    /// At zlib's level 6, unless a first piece of the file says that it will not become smaller.
    Auto,
    /// At a level from 1 to 9, whatever the content.
    Level(u32),
}

/// Bytes at the beginning and in the middle of a file that `auto` tries.
const TRIAL_BYTES: usize = 4 * 1024;

impl Compression {
    fn level(self) -> Option<u32> {
        match self {
            Self::Never => None,
            Self::Auto => Some(DEFAULT_LEVEL),
            Self::Level(level) => Some(level.clamp(1, 9)),
        }
    }

    /// The zlib stream of the content; `None` if it is to be stored as it is, because it is told so or
    /// because it would not become smaller.
    #[must_use]
    pub fn compress(self, content: &[u8]) -> Option<Vec<u8>> {
        let level = self.level()?;
        if self == Self::Auto && !is_worth_trying(content) {
            return None;
        }
        let stream = stream_of(content, level)?;
        (stream.len() < content.len()).then_some(stream)
    }

    /// Copies a source, compressed, into `sink`; gives the bytes that were read. For content that is not to
    /// be in memory as a whole.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub(crate) fn copy(self, source: &mut dyn Read, sink: &mut dyn Write) -> std::io::Result<u64> {
        let level = flate2::Compression::new(self.level().unwrap_or(DEFAULT_LEVEL));
        let mut encoder = ZlibEncoder::new(sink, level);
        let bytes = std::io::copy(source, &mut encoder)?;
        encoder.finish()?;
        Ok(bytes)
    }
}

/// Whether a trial with a fast level saves at least a twentieth: of the first piece, or of one in the
/// middle, where a file with a text before pictures is pictures.
pub(crate) fn is_worth_trying(content: &[u8]) -> bool {
    if content.len() <= TRIAL_BYTES {
        return true;
    }
    let middle = (content.len() - TRIAL_BYTES) / 2;
    [0, middle].into_iter().any(|from| {
        let piece = &content[from..from + TRIAL_BYTES];
        stream_of(piece, 1).is_some_and(|stream| stream.len() < TRIAL_BYTES - TRIAL_BYTES / 20)
    })
}

/// `None` cannot happen with a vector as the target, and would mean: store it as it is.
fn stream_of(content: &[u8], level: u32) -> Option<Vec<u8>> {
    let target = Vec::with_capacity(content.len() / 2 + 64);
    let mut encoder = ZlibEncoder::new(target, flate2::Compression::new(level));
    encoder.write_all(content).ok()?;
    encoder.finish().ok()
}

/// Decompresses zlib streams, one after the other.
pub(crate) struct Inflater {
    stream: Decompress,
    output: Vec<u8>,
    /// Bytes that are still to come of the present stream.
    left_bytes: u64,
    ended: bool,
}

impl Inflater {
    pub(crate) fn new() -> Self {
        Self {
            stream: Decompress::new(true),
            output: Vec::new(),
            left_bytes: 0,
            ended: false,
        }
    }

    /// Begins a stream that is to give `size` bytes.
    pub(crate) fn begin(&mut self, size: u64) {
        self.stream.reset(true);
        self.left_bytes = size;
        self.ended = false;
        let wanted = (size as usize).min(PIECE_BYTES);
        if self.output.len() < wanted {
            self.output.resize(wanted, 0);
        }
    }

    /// Decompresses a piece of the stream into `sink`.
    pub(crate) fn piece(
        &mut self,
        name: &str,
        mut input: &[u8],
        sink: &mut dyn FnMut(&[u8]) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        loop {
            if self.ended {
                return match input {
                    [] => Ok(()),
                    _ => Err(ArchiveError::bad_entry(
                        name,
                        "bytes follow its zlib stream",
                    )),
                };
            }
            let room = self.left_bytes.min(self.output.len() as u64) as usize;
            // With no room left, one byte shows whether there is more than there should be.
            let mut excess = [0];
            let output = if room == 0 {
                &mut excess[..]
            } else {
                &mut self.output[..room]
            };
            let (read_before, made_before) = (self.stream.total_in(), self.stream.total_out());
            let status = self
                .stream
                .decompress(input, output, FlushDecompress::None)
                .map_err(|_| ArchiveError::bad_entry(name, "its zlib stream is corrupt"))?;
            let read = (self.stream.total_in() - read_before) as usize;
            let made = (self.stream.total_out() - made_before) as usize;
            input = &input[read..];
            if room == 0 && made > 0 {
                return Err(ArchiveError::bad_entry(
                    name,
                    "its content is longer than its sz",
                ));
            }
            if made > 0 {
                self.left_bytes -= made as u64;
                sink(&self.output[..made])?;
            }
            self.ended = status == Status::StreamEnd;
            if !self.ended && read == 0 && made == 0 {
                return match input {
                    [] => Ok(()),
                    _ => Err(ArchiveError::bad_entry(name, "its zlib stream is corrupt")),
                };
            }
        }
    }

    /// Checks that the stream is over, and has given what it should.
    pub(crate) fn end(&self, name: &str) -> Result<(), ArchiveError> {
        if !self.ended {
            return Err(ArchiveError::bad_entry(
                name,
                "its zlib stream is cut short",
            ));
        }
        match self.left_bytes {
            0 => Ok(()),
            left => {
                let reason = format!("its content is {left} bytes shorter than its sz");
                Err(ArchiveError::bad_entry(name, reason))
            }
        }
    }

    /// Decompresses a whole stream.
    pub(crate) fn whole(
        &mut self,
        name: &str,
        stored: &[u8],
        size: u64,
        content: &mut Vec<u8>,
    ) -> Result<(), ArchiveError> {
        self.begin(size);
        self.piece(name, stored, &mut |piece| {
            content.extend_from_slice(piece);
            Ok(())
        })?;
        self.end(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inflate(stored: &[u8], size: u64) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        let done = Inflater::new().whole("x", stored, size, &mut content);
        done.map(|()| content).map_err(|error| error.to_string())
    }

    #[test]
    fn what_becomes_smaller_is_compressed_and_comes_back() {
        let text = b"the same words ".repeat(5000);
        for compression in [
            Compression::Auto,
            Compression::Level(1),
            Compression::Level(9),
        ] {
            let stream = compression.compress(&text).expect("smaller");
            assert_eq!(inflate(&stream, text.len() as u64), Ok(text.clone()));
        }
        assert_eq!(Compression::Never.compress(&text), None);
        assert_eq!(Compression::Level(9).compress(b"abc"), None);
        assert_eq!(Compression::Auto.compress(b""), None);
    }

    #[test]
    fn a_size_that_lies_and_a_broken_stream_are_found() {
        let text = vec![7; 1_000_000];
        let stream = Compression::Level(6).compress(&text).expect("smaller");
        let fault = |stored: &[u8], size| inflate(stored, size).expect_err("a fault");
        assert!(fault(&stream, 999_999).contains("longer than its sz"));
        assert!(fault(&stream, 1_000_001).contains("1 bytes shorter"));
        assert!(fault(&stream[..stream.len() / 2], 1_000_000).contains("cut short"));
        assert!(fault(b"no zlib stream", 5).contains("corrupt"));
        let mut longer = stream.clone();
        longer.push(0);
        assert!(fault(&longer, 1_000_000).contains("follow"));
        let mut changed = stream;
        let last = changed.len() - 1;
        changed[last] ^= 1;
        assert!(
            fault(&changed, 1_000_000).contains("corrupt"),
            "the checksum is checked"
        );
    }
}
