//! One thread's handle on a packfile: looks blobs up in the shared catalog, reads them through a
//! view of its own, and writes batches when it has the permission.

use std::io;
use std::sync::Arc;

use super::Reading;
use super::access::View;
use super::compaction::compact;
use super::store::{Permit, Shared, synchronise_parent};
use super::write::{Batching, FrameWriter};
use super::{catalog::Place, format};
use crate::engine::{EngineError, ReadBack, Session, Writer};
use crate::key_map::KeyMap;

pub(super) struct PackfileSession {
    shared: Arc<Shared>,
    view: View,
    /// The batch in hand; its records are in `writer`.
    permit: Option<Permit>,
    writer: FrameWriter,
    /// Keys that the batch has changed, and whether there is a blob now.
    changed: KeyMap<bool>,
}

impl PackfileSession {
    pub(super) fn new(shared: &Arc<Shared>) -> Result<Self, EngineError> {
        let view = View::of(&shared.catalog(), shared.means.reading)
            .map_err(EngineError::io("map", &shared.path))?;
        Ok(Self {
            shared: Arc::clone(shared),
            view,
            permit: None,
            writer: FrameWriter::new(),
            changed: KeyMap::default(),
        })
    }

    /// Where a blob lies; afterwards the view covers it.
    fn look_up(&mut self, key: u64) -> Result<Option<Place>, EngineError> {
        let catalog = self.shared.catalog();
        let Some(place) = catalog.places.get(&key).copied() else {
            return Ok(None);
        };
        if !self.view.covers(catalog.generation, place) {
            self.view = View::of(&catalog, self.shared.means.reading)
                .map_err(EngineError::io("map", &self.shared.path))?;
        }
        Ok(Some(place))
    }

    fn add(&mut self, key: u64, blob: Option<&[u8]>) -> Result<(), EngineError> {
        let Some(permit) = &self.permit else {
            return Err(self.misuse("there is no batch to write to"));
        };
        self.writer
            .add(&permit.file, key, blob)
            .map_err(EngineError::io("write", &self.shared.path))?;
        self.changed.insert(key, blob.is_some());
        Ok(())
    }

    fn misuse(&self, reason: &'static str) -> EngineError {
        let reason = io::Error::new(io::ErrorKind::InvalidInput, reason);
        EngineError::io("write to", &self.shared.path)(reason)
    }
}

impl Session for PackfileSession {
    fn read(&mut self, key: u64, consume: &mut dyn FnMut(&[u8])) -> Result<(), EngineError> {
        let Some(place) = self.look_up(key)? else {
            return Err(EngineError::Missing {
                key,
                path: self.shared.path.clone(),
            });
        };
        self.view
            .deliver(place, consume)
            .map_err(EngineError::io("read", &self.shared.path))
    }

    fn keys(&mut self, visit: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
        let mut keys: Vec<u64> = self.shared.catalog().places.keys().copied().collect();
        keys.sort_unstable();
        keys.into_iter().for_each(visit);
        Ok(())
    }

    fn writer(&mut self) -> Option<&mut dyn Writer> {
        Some(self)
    }

    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        let catalog = self.shared.catalog();
        let reading = match self.view.reading() {
            Reading::Pread => "pread",
            Reading::Mmap => "mmap",
            Reading::Pages => "pages",
        };
        let sync = match self.shared.means.synchronises {
            true => "fdatasync",
            false => "none",
        };
        let figures = [
            ("format_version", u64::from(format::VERSION)),
            ("frame_bytes", format::FRAME_PAYLOAD_BYTES as u64),
            ("file_bytes", catalog.end),
            ("dead_bytes", catalog.dead_bytes()),
            ("ignored_bytes", catalog.ignored_bytes),
        ];
        let mut back: ReadBack = figures
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_string()))
            .collect();
        back.insert("read".to_owned(), reading.to_owned());
        back.insert("sync".to_owned(), sync.to_owned());
        Ok(back)
    }
}

impl Writer for PackfileSession {
    fn begin(&mut self) -> Result<(), EngineError> {
        if self.permit.is_some() {
            return Err(self.misuse("a batch has begun already"));
        }
        let permit = Permit::acquire(&self.shared)?;
        let catalog = self.shared.catalog();
        self.writer
            .start(Batching::Whole, catalog.end, catalog.batch);
        self.changed.clear();
        self.permit = Some(permit);
        Ok(())
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<(), EngineError> {
        self.add(key, Some(value))
    }

    fn delete(&mut self, key: u64) -> Result<bool, EngineError> {
        let was_there = match self.changed.get(&key) {
            Some(is_there) => *is_there,
            None => self.shared.catalog().places.contains_key(&key),
        };
        if was_there {
            self.add(key, None)?;
        }
        Ok(was_there)
    }

    fn commit(&mut self) -> Result<(), EngineError> {
        let Some(permit) = self.permit.take() else {
            return Err(self.misuse("there is no batch to commit"));
        };
        let path = &self.shared.path;
        self.writer
            .finish(&permit.file)
            .map_err(EngineError::io("write", path))?;
        if self.shared.means.synchronises {
            permit
                .file
                .sync_data()
                .map_err(EngineError::io("synchronise", path))?;
        }
        self.shared.catalog_mut().absorb(&mut self.writer);
        permit.keep();
        Ok(())
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        if self.permit.is_some() {
            return Err(self.misuse("a batch has not been committed"));
        }
        if !self.shared.catalog().wants_compaction() {
            return Ok(());
        }
        let permit = Permit::acquire(&self.shared)?;
        // Readers go on reading the old file meanwhile; the permission keeps writers away.
        let path = &self.shared.path;
        let compacted = compact(&self.shared.catalog(), path)?;
        let view = View::of(&compacted, self.shared.means.reading);
        // The old file has lost its name: whatever fails from here on, nobody may write to it.
        *self.shared.catalog_mut() = compacted;
        permit.keep();
        // At once, because whoever looks at the old file keeps its space from being freed.
        self.view = view.map_err(EngineError::io("map", path))?;
        if self.shared.means.synchronises {
            synchronise_parent(path)?;
        }
        Ok(())
    }
}
