//! The bytes of a packfile: its header, and its frames' headers and tables, to and from memory.
//!
//! When they are written and read is left to the other modules.

use super::checksum::checksum;

/// Bytes of the file's header.
pub(super) const FILE_HEADER_BYTES: u64 = 32;

/// Version of the format.
pub(super) const VERSION: u32 = 1;

/// Bytes of a frame's header.
pub(super) const FRAME_HEADER_BYTES: usize = 48;

/// Bytes of one line of a frame's table.
pub(super) const RECORD_BYTES: usize = 24;

/// A frame is written when its payload has reached this many bytes.
pub(super) const FRAME_PAYLOAD_BYTES: usize = 1 << 20;

const FILE_MAGIC: &[u8; 16] = b"sqlitmus pack\r\n\0";
/// What a frame begins with.
pub(super) const FRAME_MAGIC: &[u8; 8] = b"PackFrm\0";
const LAST_OF_BATCH: u32 = 1;
/// Start of what the frame's checksum covers.
const CHECKED_FROM: usize = 16;

/// The header of a file.
pub(super) fn file_header() -> [u8; FILE_HEADER_BYTES as usize] {
    let mut header = [0; FILE_HEADER_BYTES as usize];
    header[..16].copy_from_slice(FILE_MAGIC);
    header[16..20].copy_from_slice(&VERSION.to_le_bytes());
    let sum = checksum(&header[..24]);
    header[24..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// What is wrong with the header of a file, if anything is.
pub(super) fn check_file_header(header: &[u8; FILE_HEADER_BYTES as usize]) -> Result<(), String> {
    if &header[..16] != FILE_MAGIC {
        return Err("it does not begin as a packfile does".to_owned());
    }
    if number64(header, 24) != checksum(&header[..24]) {
        return Err("its header does not match its checksum".to_owned());
    }
    match number32(header, 16) {
        VERSION => Ok(()),
        other => Err(format!("its format has version {other}, not {VERSION}")),
    }
}

/// What a frame's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Position of the frame in the file.
    pub position: u64,
    /// Number of its batch.
    pub batch: u64,
    /// Length of the payload.
    pub payload_bytes: u64,
    /// Number of records.
    pub records: u32,
    /// Whether the batch is complete with this frame.
    pub last_of_batch: bool,
}

impl FrameHeader {
    /// Header and table together, in bytes. Cannot overflow: at most 2^32 records.
    pub(super) fn head_bytes(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.records) * RECORD_BYTES as u64
    }

    /// Position of the payload in the file.
    pub(super) fn payload_position(&self) -> u64 {
        self.position + self.head_bytes()
    }

    /// Position of whatever follows the frame; `None` if there is no such number.
    pub(super) fn end(&self) -> Option<u64> {
        let end = self
            .position
            .checked_add(self.head_bytes())?
            .checked_add(self.payload_bytes)?;
        end.checked_next_multiple_of(8)
    }

    /// Reads a header that claims to stand at `position`. The claim is not proved before the
    /// checksum of header and table is ([`is_intact`]).
    pub(super) fn parse(bytes: &[u8], position: u64) -> Option<Self> {
        if bytes.len() < FRAME_HEADER_BYTES || !bytes.starts_with(FRAME_MAGIC) {
            return None;
        }
        let header = Self {
            position: number64(bytes, 16),
            batch: number64(bytes, 24),
            payload_bytes: number64(bytes, 32),
            records: number32(bytes, 40),
            last_of_batch: number32(bytes, 44) & LAST_OF_BATCH != 0,
        };
        (header.position == position).then_some(header)
    }

    /// Writes the header over the start of `head`, which holds the table behind it.
    pub(super) fn seal(&self, head: &mut [u8]) {
        head[..8].copy_from_slice(FRAME_MAGIC);
        head[16..24].copy_from_slice(&self.position.to_le_bytes());
        head[24..32].copy_from_slice(&self.batch.to_le_bytes());
        head[32..40].copy_from_slice(&self.payload_bytes.to_le_bytes());
        head[40..44].copy_from_slice(&self.records.to_le_bytes());
        let flags = if self.last_of_batch { LAST_OF_BATCH } else { 0 };
        head[44..48].copy_from_slice(&flags.to_le_bytes());
        let sum = checksum(&head[CHECKED_FROM..]);
        head[8..16].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Whether a frame's header and table match their checksum.
pub(super) fn is_intact(head: &[u8]) -> bool {
    head.len() >= FRAME_HEADER_BYTES && number64(head, 8) == checksum(&head[CHECKED_FROM..])
}

/// One line of a frame's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// Key of the blob.
    pub key: u64,
    /// Checksum of the blob.
    pub checksum: u64,
    /// Length of the blob in bytes.
    pub length: u32,
    /// Whether the blob was removed: there is none.
    pub removed: bool,
}

impl Record {
    /// Appends the record to a table.
    pub(super) fn append_to(&self, table: &mut Vec<u8>) {
        table.extend_from_slice(&self.key.to_le_bytes());
        table.extend_from_slice(&self.checksum.to_le_bytes());
        table.extend_from_slice(&self.length.to_le_bytes());
        table.extend_from_slice(&u32::from(self.removed).to_le_bytes());
    }

    /// All records of a head (header and table).
    pub(super) fn all_in(head: &[u8]) -> impl Iterator<Item = Self> + '_ {
        head[FRAME_HEADER_BYTES..]
            .chunks_exact(RECORD_BYTES)
            .map(|line| Self {
                key: number64(line, 0),
                checksum: number64(line, 8),
                length: number32(line, 16),
                removed: number32(line, 20) != 0,
            })
    }
}

fn number64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_as_it_was_sealed() {
        let record = Record {
            key: 7,
            checksum: 8,
            length: 9,
            removed: false,
        };
        let header = FrameHeader {
            position: 32,
            batch: 1,
            payload_bytes: 9,
            records: 1,
            last_of_batch: true,
        };
        let mut head = vec![0; FRAME_HEADER_BYTES];
        record.append_to(&mut head);
        header.seal(&mut head);
        assert!(is_intact(&head));
        assert_eq!(FrameHeader::parse(&head, 32), Some(header));
        assert_eq!(FrameHeader::parse(&head, 40), None);
        assert_eq!(Record::all_in(&head).collect::<Vec<_>>(), [record]);
        assert_eq!(header.end(), Some(32 + 48 + 24 + 9 + 7));
        for position in 0..head.len() {
            head[position] ^= 1;
            let accepted = is_intact(&head) && FrameHeader::parse(&head, 32).is_some();
            assert!(!accepted, "byte {position}");
            head[position] ^= 1;
        }
    }

    #[test]
    fn other_files_are_told_apart() {
        let header = file_header();
        assert_eq!(check_file_header(&header), Ok(()));
        assert!(check_file_header(b"SQLite format 3\0................").is_err());
        let mut newer = header;
        newer[16] = 2;
        assert!(check_file_header(&newer).is_err());
    }
}
