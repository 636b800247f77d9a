//! The `null` engine does nothing and delivers an empty blob: what a trial of it takes is the
//! cost of the harness itself.
//!
//! It keeps nothing, so whether a key was ever stored is not its concern, and nothing that it
//! delivers can be verified.

use std::path::{Path, PathBuf};

use sqlitmus_core::case::Durability;
use sqlitmus_core::settings::{SettingSpecification, Settings};

use crate::engine::{Capabilities, Content, Engine, EngineError, ReadBack, Session, Store, Writer};

/// The engine that does nothing.
#[derive(Debug, Clone, Copy)]
pub struct Null;

impl Engine for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn about(&self) -> &'static str {
        "does nothing: what the harness itself costs"
    }

    fn settings(&self) -> &'static [SettingSpecification] {
        &[]
    }

    fn capabilities(&self, _settings: &Settings) -> Capabilities {
        Capabilities {
            keeps_content: false,
            persistent: false,
            writes: true,
        }
    }

    fn durability(&self, _settings: &Settings) -> Durability {
        Durability::None
    }

    fn create(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        settings.resolve(self.name(), self.settings())?;
        if path.symlink_metadata().is_ok() {
            return Err(EngineError::Exists(path.to_owned()));
        }
        Ok(Box::new(NullStore))
    }

    /// There is never a store to open: nothing outlives [`Engine::create`]'s result.
    fn open(&self, path: &Path, _settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        Err(EngineError::NoStore(PathBuf::from(path)))
    }
}

struct NullStore;

impl Store for NullStore {
    fn load(
        &self,
        content: &dyn Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        progress(content.count());
        Ok(())
    }

    fn session(&self) -> Result<Box<dyn Session>, EngineError> {
        Ok(Box::new(NullSession))
    }
}

struct NullSession;

impl Session for NullSession {
    fn read(&mut self, _key: u64, consume: &mut dyn FnMut(&[u8])) -> Result<(), EngineError> {
        consume(&[]);
        Ok(())
    }

    fn keys(&mut self, _visit: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
        Ok(())
    }

    fn writer(&mut self) -> Option<&mut dyn Writer> {
        Some(self)
    }

    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        Ok(ReadBack::new())
    }
}

impl Writer for NullSession {
    fn begin(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn put(&mut self, _key: u64, _value: &[u8]) -> Result<(), EngineError> {
        Ok(())
    }

    fn delete(&mut self, _key: u64) -> Result<bool, EngineError> {
        Ok(false)
    }

    fn commit(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}
