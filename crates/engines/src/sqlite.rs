//! SQLite: the driver that calls it (libraries, connections, statements, blob handles), and the
//! engine that is measured.
//!
//! The driver is also what `sqlitmus kvtest` stands on. It knows nothing of stores and sessions;
//! the engine (`engine`, `session`, `settings`, `force`) has no `unsafe`.

mod blob;
mod connection;
mod engine;
mod error;
mod force;
mod functions;
mod layout;
mod library;
mod row_session;
mod rows;
mod session;
mod settings;
mod statement;
mod table;

pub use blob::{BlobHandle, BlobId, BlobMode};
pub use connection::{CacheSharing, Checkpoint, Connection, ConnectionStatus, OpenMode};
pub use engine::Sqlite;
pub(crate) use engine::{connect_for_loading, create_file};
pub use error::SqliteError;
pub(crate) use force::{at, companions, connect, put_in_force, read_back, set_up};
pub use library::{Library, LibraryChoice, LibraryError, ProcessStatus, Status, Threading};
pub(crate) use settings::{
    Checkpoints, JournalMode, Plan, ReadTransaction, Transaction, specification,
};
pub use statement::{Row, Statement, StatementId};
