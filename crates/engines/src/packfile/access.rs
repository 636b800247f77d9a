//! How a session reaches the bytes of a blob whose place it knows: by `pread` or in a mapping.
//! Which place is current is left to the catalog.

use std::fs::File;
use std::io;
use std::sync::Arc;

use memmap2::{Mmap, MmapOptions};
use rustix::io::{Errno, pread, retry_on_intr};

use super::catalog::{Catalog, Place};
use super::{PAGE_BYTES, Reading};

/// Bytes that a mapping covers beyond what it needs, at the least.
const MAPPING_HEADROOM_BYTES: u64 = 64 << 20;

/// One session's view of one generation of the data file. What a catalog has ever shown never
/// changes in that generation, so a view needs no lock.
#[derive(Debug)]
pub(super) struct View {
    generation: u64,
    access: Access,
}

#[derive(Debug)]
enum Access {
    Pread {
        file: Arc<File>,
        buffer: Vec<u8>,
        /// Bytes of one call, at the most.
        call_bytes: usize,
    },
    Mapped(Mmap),
}

impl View {
    /// A view that covers all of the catalog.
    pub(super) fn of(catalog: &Catalog, reading: Reading) -> io::Result<Self> {
        let access = match reading {
            Reading::Pread | Reading::Pages => Access::Pread {
                file: Arc::clone(&catalog.file),
                buffer: Vec::new(),
                call_bytes: match reading {
                    Reading::Pages => PAGE_BYTES,
                    _ => usize::MAX,
                },
            },
            Reading::Mmap => Access::Mapped(map(&catalog.file, catalog.end)?),
        };
        Ok(Self {
            generation: catalog.generation,
            access,
        })
    }

    /// Whether a blob of a generation can be reached.
    pub(super) fn covers(&self, generation: u64, place: Place) -> bool {
        self.generation == generation
            && match &self.access {
                Access::Pread { .. } => true,
                Access::Mapped(mapping) => place.end() <= mapping.len() as u64,
            }
    }

    /// How blobs are really read.
    pub(super) fn reading(&self) -> Reading {
        match self.access {
            Access::Pread { call_bytes, .. } if call_bytes == PAGE_BYTES => Reading::Pages,
            Access::Pread { .. } => Reading::Pread,
            Access::Mapped(_) => Reading::Mmap,
        }
    }

    /// Hands the bytes of a blob that the view covers to `consume`.
    pub(super) fn deliver(
        &mut self,
        place: Place,
        consume: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        match &mut self.access {
            Access::Pread {
                file,
                buffer,
                call_bytes,
            } => {
                let bytes = place.length as usize;
                if buffer.len() < bytes {
                    buffer.resize(bytes, 0);
                }
                read_whole(file, &mut buffer[..bytes], place.position, *call_bytes)?;
                consume(&buffer[..bytes]);
            }
            Access::Mapped(mapping) => {
                let start = place.position as usize;
                consume(&mapping[start..start + place.length as usize]);
            }
        }
        Ok(())
    }
}

fn read_whole(file: &File, target: &mut [u8], position: u64, call_bytes: usize) -> io::Result<()> {
    let mut filled = 0;
    while filled < target.len() {
        let end = filled.saturating_add(call_bytes).min(target.len());
        let rest = &mut target[filled..end];
        match retry_on_intr(|| pread(file, &mut *rest, position + filled as u64))? {
            0 => return Err(Errno::IO.into()),
            more => filled += more,
        }
    }
    Ok(())
}

/// Maps the file up to `end` and as far again: as the file grows, the part of the mapping behind
/// its end comes to life, and the page tables of the rest need not be built anew. The headroom
/// costs addresses, not memory.
fn map(file: &File, end: u64) -> io::Result<Mmap> {
    let bytes = end + end.max(MAPPING_HEADROOM_BYTES);
    let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    // SAFETY: only places that a catalog has shown are read. They lie before the end of the file,
    // and neither change nor go away: the log is only appended to, what is cut off lies behind
    // them, and a compaction makes another file. Other stores are kept from writing by a lock.
    unsafe { MmapOptions::new().len(bytes).map(file) }
}
