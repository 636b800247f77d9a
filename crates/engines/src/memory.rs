//! The `memory` engine copies blobs from anonymous private memory: the physical limit that every
//! store is held against, because whoever delivers bytes from memory must at least copy them (or,
//! with `copy = no`, touch them where they lie).
//!
//! The blobs lie in chunks of anonymous memory in ordinary pages: huge pages are refused, because
//! the page cache, which the other engines read from, has none. Nothing outlives the store.
//!
//! Sessions share the blobs under a reader-writer lock; an uncontended read takes it and gives it
//! back in about 10 ns. With `copy = no` the blob is consumed while it is held. Every `put` is visible at once, `begin` and `commit` do nothing. A blob of
//! the same size is overwritten in place; one of another size goes to a new place, and its old
//! place is not used again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use memmap2::MmapMut;
use sqlitmus_core::case::Durability;
use sqlitmus_core::settings::{SettingKind, SettingSpecification, Settings};

use crate::engine::{Capabilities, Content, Engine, EngineError, ReadBack, Session, Store, Writer};
use crate::key_map::KeyMap;

/// Blobs in anonymous memory.
#[derive(Debug, Clone, Copy)]
pub struct Memory;

const SETTINGS: &[SettingSpecification] = &[SettingSpecification {
    name: "copy",
    kind: SettingKind::Choice(&["yes", "no"]),
    default: "yes",
    stored: false,
    about: "copy each blob to a buffer before it is consumed, or consume it where it lies",
}];

/// Size of a chunk in bytes; a larger blob gets a chunk of its own.
const CHUNK_BYTES: usize = 64 << 20;

/// Blobs between two reports of progress.
const PROGRESS_BLOBS: u64 = 1024;

impl Engine for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn about(&self) -> &'static str {
        "a copy from anonymous memory: the physical limit"
    }

    fn settings(&self) -> &'static [SettingSpecification] {
        SETTINGS
    }

    fn capabilities(&self, _settings: &Settings) -> Capabilities {
        Capabilities {
            keeps_content: true,
            persistent: false,
            writes: true,
        }
    }

    fn durability(&self, _settings: &Settings) -> Durability {
        Durability::None
    }

    fn create(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        let resolved = settings.resolve(self.name(), self.settings())?;
        if path.symlink_metadata().is_ok() {
            return Err(EngineError::Exists(path.to_owned()));
        }
        Ok(Box::new(MemoryStore {
            path: path.to_owned(),
            copy: resolved.get("copy") == Some("yes"),
            arena: Arc::new(RwLock::new(Arena::default())),
        }))
    }

    /// There is never a store to open: nothing outlives [`Engine::create`]'s result.
    fn open(&self, path: &Path, _settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        Err(EngineError::NoStore(path.to_owned()))
    }
}

struct MemoryStore {
    /// Names the store in errors; there is nothing at that path.
    path: PathBuf,
    copy: bool,
    arena: Arc<RwLock<Arena>>,
}

impl Store for MemoryStore {
    fn load(
        &self,
        content: &dyn Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        let mut arena = write_guard(&self.arena);
        let mut blob = Vec::new();
        for key in 1..=content.count() {
            content
                .fill(key, &mut blob)
                .map_err(EngineError::io("make the content of", &self.path))?;
            arena
                .put(key, &blob)
                .map_err(EngineError::io("get memory for", &self.path))?;
            if key % PROGRESS_BLOBS == 0 || key == content.count() {
                progress(key);
            }
        }
        Ok(())
    }

    fn session(&self) -> Result<Box<dyn Session>, EngineError> {
        Ok(Box::new(MemorySession {
            path: self.path.clone(),
            arena: Arc::clone(&self.arena),
            copy: self.copy,
            buffer: Vec::new(),
        }))
    }
}

struct MemorySession {
    path: PathBuf,
    arena: Arc<RwLock<Arena>>,
    copy: bool,
    buffer: Vec<u8>,
}

impl Session for MemorySession {
    fn read(&mut self, key: u64, consume: &mut dyn FnMut(&[u8])) -> Result<(), EngineError> {
        let arena = read_guard(&self.arena);
        let Some(blob) = arena.get(key) else {
            return Err(EngineError::Missing {
                key,
                path: self.path.clone(),
            });
        };
        if self.copy {
            self.buffer.clear();
            self.buffer.extend_from_slice(blob);
            // Writers need not wait for the consumer.
            drop(arena);
            consume(&self.buffer);
        } else {
            consume(blob);
        }
        Ok(())
    }

    fn keys(&mut self, visit: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
        let mut keys: Vec<u64> = read_guard(&self.arena).places.keys().copied().collect();
        keys.sort_unstable();
        keys.into_iter().for_each(visit);
        Ok(())
    }

    fn writer(&mut self) -> Option<&mut dyn Writer> {
        Some(self)
    }

    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        let arena = read_guard(&self.arena);
        let reserved: usize = arena.chunks.iter().map(|chunk| chunk.len()).sum();
        let yes_or_no = if self.copy { "yes" } else { "no" };
        Ok(ReadBack::from([
            ("copy".to_owned(), yes_or_no.to_owned()),
            ("chunk_bytes".to_owned(), CHUNK_BYTES.to_string()),
            ("reserved_bytes".to_owned(), reserved.to_string()),
        ]))
    }
}

impl Writer for MemorySession {
    fn begin(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<(), EngineError> {
        write_guard(&self.arena)
            .put(key, value)
            .map_err(EngineError::io("get memory for", &self.path))
    }

    fn delete(&mut self, key: u64) -> Result<bool, EngineError> {
        Ok(write_guard(&self.arena).places.remove(&key).is_some())
    }

    fn commit(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// All blobs, and where they lie.
#[derive(Default)]
struct Arena {
    chunks: Vec<MmapMut>,
    /// Bytes used of the last chunk.
    used_bytes: usize,
    places: KeyMap<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    chunk: u32,
    offset: u32,
    length: u32,
}

impl Place {
    fn range(self) -> std::ops::Range<usize> {
        self.offset as usize..self.offset as usize + self.length as usize
    }
}

impl Arena {
    fn get(&self, key: u64) -> Option<&[u8]> {
        let place = *self.places.get(&key)?;
        Some(&self.chunks[place.chunk as usize][place.range()])
    }

    fn put(&mut self, key: u64, value: &[u8]) -> std::io::Result<()> {
        let place = match self.places.get(&key) {
            Some(place) if place.length as usize == value.len() => *place,
            _ => self.reserve(value.len())?,
        };
        self.chunks[place.chunk as usize][place.range()].copy_from_slice(value);
        self.places.insert(key, place);
        Ok(())
    }

    /// A new place for a blob.
    fn reserve(&mut self, bytes: usize) -> std::io::Result<Place> {
        let length = u32::try_from(bytes).map_err(|_| std::io::ErrorKind::FileTooLarge)?;
        let free = match self.chunks.last() {
            Some(chunk) => chunk.len() - self.used_bytes,
            None => 0,
        };
        if self.chunks.is_empty() || bytes > free {
            let chunk = MmapMut::map_anon(bytes.max(CHUNK_BYTES))?;
            #[cfg(target_os = "linux")]
            refuse_huge_pages(&chunk)?;
            self.chunks.push(chunk);
            self.used_bytes = 0;
        }
        let place = Place {
            chunk: (self.chunks.len() - 1) as u32,
            offset: self.used_bytes as u32,
            length,
        };
        self.used_bytes += bytes;
        Ok(place)
    }
}

/// A kernel without huge pages does not know the advice, which is as good as taking it.
#[cfg(target_os = "linux")]
fn refuse_huge_pages(chunk: &MmapMut) -> std::io::Result<()> {
    match chunk.advise(memmap2::Advice::NoHugePage) {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => Ok(()),
        answer => answer,
    }
}

/// A writer that panicked has at worst left one blob half written, which verification finds.
fn read_guard(arena: &RwLock<Arena>) -> RwLockReadGuard<'_, Arena> {
    arena.read().unwrap_or_else(PoisonError::into_inner)
}

fn write_guard(arena: &RwLock<Arena>) -> RwLockWriteGuard<'_, Arena> {
    arena.write().unwrap_or_else(PoisonError::into_inner)
}
