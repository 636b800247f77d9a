//! Which SQLite: the bundled one with our options, the same source without options, the one the
//! system ships, or any file. All are driven through one table of function pointers.
//!
//! Why a table: one program then measures all of them, and nothing differs but SQLite. Calling
//! through a pointer costs the same for every one of them, as much as the call of a shared
//! library's function from any program.
//!
//! Opening databases is [`super::connection`]'s business. One rule is the caller's: no database
//! may be open in two libraries of one process at the same time, because closing it in one drops
//! the POSIX locks of the other ("How To Corrupt An SQLite Database File", section 2.2.1).

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::{Library as SharedObject, RTLD_LOCAL, RTLD_NOW};
use libsqlite3_sys as ffi;

use super::functions::{Address, Functions};

/// Which SQLite to use. Written `bundled`, `default-options`, `system`, as an absolute path, or as
/// `@` and a name that each machine has its own path for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LibraryChoice {
    /// The bundled source, compiled with the recommended options.
    Bundled,
    /// The bundled source, compiled without any option.
    DefaultOptions,
    /// The shared library that the system's loader finds.
    System,
    /// A shared library.
    Path(PathBuf),
    /// A shared library that whoever starts a worker knows the path of. Here nobody does: what is
    /// still a name when it is to be loaded is not there.
    Named(String),
}

impl fmt::Display for LibraryChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundled => formatter.write_str("bundled"),
            Self::DefaultOptions => formatter.write_str("default-options"),
            Self::System => formatter.write_str("system"),
            Self::Path(path) => path.display().fmt(formatter),
            Self::Named(name) => write!(formatter, "@{name}"),
        }
    }
}

/// Why a library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// There is none: what needed it can be skipped.
    #[error("there is no SQLite library: {0}")]
    Missing(String),
    /// Nobody has said where it is: what needed it can be skipped.
    #[error(
        "there is no SQLite library `@{0}`: `cargo xtask workers` builds those of the suites, and \
         `--sqlite-library {0}=PATH` names one"
    )]
    Unnamed(String),
    /// The file is there, but the loader does not take it.
    #[error("{} is not a shared library that this program can load: {reason}", path.display())]
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// The loader's reason.
        reason: String,
    },
    /// A library, but not SQLite.
    #[error("{} is a shared library, but not SQLite", path.display())]
    NotSqlite {
        /// The file.
        path: PathBuf,
    },
    /// An SQLite that lacks a function; the first that has them all is 3.8.7.
    #[error("the SQLite library `{library}` ({version}) lacks the function {function}")]
    Incomplete {
        /// Which one was asked for.
        library: LibraryChoice,
        /// What it says its version is.
        version: String,
        /// What is not there.
        function: &'static str,
    },
    /// It has been set up already, and in another way than it is to be.
    #[error(
        "the SQLite library `{library}` is in use: memory statistics cannot be switched any more"
    )]
    InUse {
        /// Which one was asked for.
        library: LibraryChoice,
    },
    /// It cannot set itself up.
    #[error("the SQLite library `{library}` cannot be initialised: SQLite code {code}")]
    Initialise {
        /// Which one was asked for.
        library: LibraryChoice,
        /// SQLite's result code.
        code: i32,
    },
}

/// How a library was compiled to be used from several threads (`SQLITE_THREADSAFE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threading {
    /// 0: no mutexes; one thread at a time in the whole library.
    Single,
    /// 2: several threads, each with connections of its own.
    Multi,
    /// 1: connections, too, may be shared; every call takes a mutex.
    Serialized,
}

/// A figure that SQLite keeps for the whole process (`sqlite3_status`). Libraries compiled with
/// `SQLITE_DEFAULT_MEMSTATUS=0`, such as the bundled one, keep none of them and report 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum ProcessStatus {
    /// Bytes allocated.
    MemoryUsed = ffi::SQLITE_STATUS_MEMORY_USED,
    /// Number of allocations not yet freed.
    Allocations = ffi::SQLITE_STATUS_MALLOC_COUNT,
    /// Pages used of memory given to SQLite for its page caches.
    PageCacheUsed = ffi::SQLITE_STATUS_PAGECACHE_USED,
    /// Bytes of page cache that had to come from the heap.
    PageCacheOverflow = ffi::SQLITE_STATUS_PAGECACHE_OVERFLOW,
    /// Largest single allocation, bytes (as highest value).
    LargestAllocation = ffi::SQLITE_STATUS_MALLOC_SIZE,
    /// Largest single allocation for a page cache, bytes (as highest value).
    LargestPageCacheAllocation = ffi::SQLITE_STATUS_PAGECACHE_SIZE,
}

/// A figure of SQLite's, now and at its highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Now.
    pub current: i64,
    /// Highest so far.
    pub highest: i64,
}

/// One SQLite, ready to open databases. Loaded once and kept until the process ends.
pub struct Library {
    choice: LibraryChoice,
    pub(super) functions: Functions,
    threading: Threading,
    /// Whether memory statistics were switched, and to what; `None` is as it was compiled.
    memory_statistics: Option<bool>,
    /// Whether a connection is open; kept only for [`Threading::Single`].
    occupied: AtomicBool,
}

/// Everything loaded so far. A library is never unloaded: function pointers into it are copied
/// freely.
static LOADED: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

/// Names of the system's library, the one that programs are linked to first: on Debian the name
/// without a number exists only where the development package is installed.
#[cfg(target_os = "macos")]
const SYSTEM_NAMES: &[&str] = &["libsqlite3.dylib", "/usr/lib/libsqlite3.dylib"];
#[cfg(not(target_os = "macos"))]
const SYSTEM_NAMES: &[&str] = &["libsqlite3.so.0", "libsqlite3.so"];

impl Library {
    /// The library chosen; loaded at the first call for a choice and the same one ever after.
    ///
    /// # Errors
    /// See [`LibraryError`]. [`LibraryError::Missing`] means that nothing is broken, there is
    /// just no such library here.
    ///
    /// The system's loader takes two files of the same internal name for one: after a path to a
    /// `libsqlite3.so.0`, `system` may be that library again. What is really in use,
    /// [`Library::source_id`] says.
    pub fn load(choice: &LibraryChoice) -> Result<&'static Self, LibraryError> {
        Self::load_with(choice, None)
    }

    /// As [`Library::load`], with memory statistics switched on or off (`SQLITE_CONFIG_MEMSTATUS`).
    /// That can be done once, before anything else in the process uses the library.
    ///
    /// # Errors
    /// As [`Library::load`]; and [`LibraryError::InUse`] if it was loaded otherwise before.
    pub fn load_with(
        choice: &LibraryChoice,
        memory_statistics: Option<bool>,
    ) -> Result<&'static Self, LibraryError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = loaded.iter().find(|library| library.choice == *choice) {
            let is_other =
                memory_statistics.is_some() && memory_statistics != library.memory_statistics;
            return if is_other {
                Err(LibraryError::InUse {
                    library: choice.clone(),
                })
            } else {
                Ok(library)
            };
        }
        let functions = match choice {
            LibraryChoice::Bundled => Functions::linked(),
            LibraryChoice::DefaultOptions => {
                Functions::default_options().map_err(|function| LibraryError::Incomplete {
                    library: choice.clone(),
                    version: "bundled source".to_owned(),
                    function,
                })?
            }
            LibraryChoice::System => functions_of(open_system()?, Path::new("system"), choice)?,
            LibraryChoice::Path(path) => functions_of(open_path(path)?, path, choice)?,
            LibraryChoice::Named(name) => return Err(LibraryError::Unnamed(name.clone())),
        };
        let initialised = Self::initialised(choice.clone(), functions, memory_statistics)?;
        let library = Box::leak(Box::new(initialised));
        loaded.push(library);
        Ok(library)
    }

    fn initialised(
        choice: LibraryChoice,
        functions: Functions,
        memory_statistics: Option<bool>,
    ) -> Result<Self, LibraryError> {
        if let Some(on) = memory_statistics {
            // SAFETY: this option takes one int. It must not be called while another thread is in
            // the library: the library is being loaded, under the lock of all that is loaded. If
            // something else in the process has set it up already, SQLite refuses.
            let code = unsafe {
                (functions.sqlite3_config)(ffi::SQLITE_CONFIG_MEMSTATUS, c_int::from(on))
            };
            if code != ffi::SQLITE_OK {
                return Err(LibraryError::InUse { library: choice });
            }
        }
        // Libraries compiled with SQLITE_OMIT_AUTOINIT need it; elsewhere it does no harm.
        // SAFETY: may be called at any time, any number of times, from any thread.
        let code = unsafe { (functions.sqlite3_initialize)() };
        if code != ffi::SQLITE_OK {
            return Err(LibraryError::Initialise {
                library: choice,
                code,
            });
        }
        // SAFETY: returns a compile-time constant.
        let threading = match unsafe { (functions.sqlite3_threadsafe)() } {
            0 => Threading::Single,
            2 => Threading::Multi,
            _ => Threading::Serialized,
        };
        Ok(Self {
            choice,
            functions,
            threading,
            memory_statistics,
            occupied: AtomicBool::new(false),
        })
    }

    /// Which one this is.
    #[must_use]
    pub fn choice(&self) -> &LibraryChoice {
        &self.choice
    }

    /// Version, such as `3.40.1`, as the library itself says.
    #[must_use]
    pub fn version(&self) -> String {
        // SAFETY: the function takes nothing and returns a constant C string.
        unsafe { constant_text((self.functions.sqlite3_libversion)()) }
    }

    /// Date, time and hash of the source it was compiled from; distributions that change the
    /// source change the end of it.
    #[must_use]
    pub fn source_id(&self) -> String {
        // SAFETY: the function takes nothing and returns a constant C string.
        unsafe { constant_text((self.functions.sqlite3_sourceid)()) }
    }

    /// How it may be used from several threads.
    #[must_use]
    pub fn threading(&self) -> Threading {
        self.threading
    }

    /// Compile options, without the prefix `SQLITE_`, in the library's order. Empty where the
    /// library was told to leave them out.
    #[must_use]
    pub fn compile_options(&self) -> Vec<String> {
        let Some(get) = self.functions.sqlite3_compileoption_get else {
            return Vec::new();
        };
        (0..)
            // SAFETY: any number may be asked for; beyond the last the answer is null.
            .map(|index: c_int| unsafe { get(index) })
            .take_while(|text| !text.is_null())
            // SAFETY: not null, hence a constant C string.
            .map(|text| unsafe { constant_text(text) })
            .collect()
    }

    /// Compiler and options it was built with, if it says so: SQLite itself does not, libraries
    /// made by `cargo xtask workers` do.
    #[must_use]
    pub fn build(&self) -> Option<String> {
        let build = self.functions.sqlitmus_build?;
        // SAFETY: takes nothing and returns a constant C string.
        Some(unsafe { constant_text(build()) })
    }

    /// A figure kept for the whole process; `None` before SQLite 3.8.9.
    #[must_use]
    pub fn status(&self, which: ProcessStatus) -> Option<Status> {
        let status64 = self.functions.sqlite3_status64?;
        let (mut current, mut highest) = (0, 0);
        // SAFETY: both pointers are to live variables of the right type; the function takes the
        // mutexes it needs.
        let code = unsafe { status64(which as c_int, &mut current, &mut highest, 0) };
        (code == ffi::SQLITE_OK).then_some(Status { current, highest })
    }

    /// Whether it keeps memory statistics: every allocation then takes one mutex of the whole
    /// process. `None` if that cannot be told. To be asked while a connection is open, which has
    /// memory.
    #[must_use]
    pub fn keeps_memory_statistics(&self) -> Option<bool> {
        let used = self.status(ProcessStatus::MemoryUsed)?;
        Some(used.highest > 0)
    }

    /// Notes that a connection is about to be opened. A library without mutexes keeps state of
    /// its own (memory, open files), so that two threads must not even use different
    /// connections: it gets one connection at a time, which one thread at a time can hold.
    pub(super) fn occupy(&self) -> bool {
        self.threading != Threading::Single || !self.occupied.swap(true, Ordering::AcqRel)
    }

    /// Notes that the connection is closed.
    pub(super) fn vacate(&self) {
        if self.threading == Threading::Single {
            self.occupied.store(false, Ordering::Release);
        }
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Library({} {})", self.choice, self.version())
    }
}

/// Text of a constant C string.
///
/// # Safety
/// `text` must point to a C string.
unsafe fn constant_text(text: *const c_char) -> String {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

fn open_system() -> Result<SharedObject, LibraryError> {
    let mut reasons = Vec::new();
    for name in SYSTEM_NAMES {
        match open_shared(OsStr::new(name)) {
            Ok(shared) => return Ok(shared),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(LibraryError::Missing(reasons.join("; ")))
}

fn open_path(path: &Path) -> Result<SharedObject, LibraryError> {
    let refuse = |reason: String| LibraryError::NotALibrary {
        path: path.to_owned(),
        reason,
    };
    match path.metadata() {
        Err(error) => Err(LibraryError::Missing(format!(
            "{}: {error}",
            path.display()
        ))),
        // Asked first, because the loader would wait at a named pipe.
        Ok(metadata) if !metadata.is_file() => Err(refuse("it is not a file".to_owned())),
        Ok(_) => open_shared(path.as_os_str()).map_err(refuse),
    }
}

fn open_shared(name: &OsStr) -> Result<SharedObject, String> {
    // All functions are bound now, so that no first call is slower than the others; locally, so
    // that nothing else in this process is bound to them.
    // SAFETY: loading runs the library's initialisers: the user asked for this library, as with
    // any program that is linked to it.
    unsafe { SharedObject::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        match std::error::Error::source(&error) {
            Some(loader) => loader.to_string(),
            None => error.to_string(),
        }
    })
}

fn functions_of(
    shared: SharedObject,
    path: &Path,
    choice: &LibraryChoice,
) -> Result<Functions, LibraryError> {
    let find = |name: &CStr| -> Option<Address> {
        // SAFETY: the symbol is only taken as an address here.
        let symbol = unsafe { shared.get::<*mut ()>(name.to_bytes_with_nul()) };
        NonNull::new(symbol.ok()?.into_raw().cast())
    };
    if find(c"sqlite3_libversion").is_none() {
        return Err(LibraryError::NotSqlite {
            path: path.to_owned(),
        });
    }
    // SAFETY: a library that has `sqlite3_libversion` is SQLite, which defines what the other
    // names mean; it is never closed (below).
    let functions =
        unsafe { Functions::found_by(&find) }.map_err(|function| LibraryError::Incomplete {
            library: choice.clone(),
            version: version_of(&find),
            function,
        })?;
    std::mem::forget(shared);
    Ok(functions)
}

/// Version of a library that is not complete enough for a [`Library`].
fn version_of(find: &dyn Fn(&CStr) -> Option<Address>) -> String {
    let Some(address) = find(c"sqlite3_libversion") else {
        return "unknown version".to_owned();
    };
    // SAFETY: the signature that every version of SQLite gives it.
    let libversion =
        unsafe { std::mem::transmute::<Address, unsafe extern "C" fn() -> *const c_char>(address) };
    // SAFETY: takes nothing, returns a constant C string.
    unsafe { constant_text(libversion()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_without_mutexes_has_one_connection_at_a_time() {
        let mut library = Library::initialised(LibraryChoice::Bundled, Functions::linked(), None)
            .expect("linked");
        assert!(library.occupy() && library.occupy(), "it has mutexes");
        library.threading = Threading::Single;
        assert!(library.occupy());
        assert!(!library.occupy());
        library.vacate();
        assert!(library.occupy());
    }

    #[test]
    fn a_library_that_lacks_a_function_is_incomplete() {
        let version = version_of(&|_| None);
        assert_eq!(version, "unknown version");
        // SAFETY: nothing is found, so nothing is called.
        let missing = unsafe { Functions::found_by(&|_| None) };
        assert_eq!(missing.err(), Some("sqlite3_backup_finish"));
    }
}
