//! The table of SQLite's C functions that everything else calls through: which functions, and
//! how the table is filled from a linked or a loaded library. Which library that is, is
//! [`super::library`]'s business; calling them safely is [`super::connection`]'s.

use std::ffi::{CStr, c_char, c_double, c_int, c_uchar, c_void};
use std::ptr::NonNull;

use libsqlite3_sys as ffi;
use libsqlite3_sys::{
    sqlite3, sqlite3_backup, sqlite3_blob, sqlite3_int64, sqlite3_stmt, sqlite3_uint64,
};

/// What SQLite calls when it no longer needs a bound value; `None` is `SQLITE_STATIC`.
type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

/// A row callback of `sqlite3_exec`; always `None` here.
type ExecCallback =
    Option<unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int>;

/// Address of a function, found by name.
pub(super) type Address = NonNull<c_void>;

macro_rules! functions {
    (
        required { $($name:ident: fn($($argument:ty),*) -> $result:ty;)* }
        variadic { $($variadic:ident: fn($variadic_argument:ty) -> $variadic_result:ty;)* }
        optional { $($option:ident: fn($($option_argument:ty),*) -> $option_result:ty;)* }
        own { $($own:ident: fn() -> $own_result:ty;)* }
    ) => {
        /// SQLite's functions, each under its own name.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> $result,)*
            $(pub(super) $variadic:
                unsafe extern "C" fn($variadic_argument, ...) -> $variadic_result,)*
            $(pub(super) $option:
                Option<unsafe extern "C" fn($($option_argument),*) -> $option_result>,)*
            $(pub(super) $own: Option<unsafe extern "C" fn() -> $own_result>,)*
        }

        impl Functions {
            /// The library that is linked in. The compiler checks every signature above against
            /// SQLite's header here.
            pub(super) fn linked() -> Self {
                Self {
                    $($name: ffi::$name,)*
                    $($variadic: ffi::$variadic,)*
                    $($option: Some(ffi::$option),)*
                    $($own: None,)*
                }
            }

            /// A library whose functions `find` knows by name.
            ///
            /// # Errors
            /// The name of a function that is not there.
            ///
            /// # Safety
            /// What `find` returns for a name must be SQLite's function of that name and stay
            /// callable for the rest of the process.
            pub(super) unsafe fn found_by(
                find: &dyn Fn(&CStr) -> Option<Address>,
            ) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        let address = find(c_name!($name)).ok_or(stringify!($name))?;
                        // SAFETY: the caller vouches that this is SQLite's function of that
                        // name, and SQLite never changes a function's signature ("Long Term
                        // Support"); `linked` checks the signature against the header.
                        unsafe { std::mem::transmute::<
                            Address,
                            unsafe extern "C" fn($($argument),*) -> $result,
                        >(address) }
                    },)*
                    $($variadic: {
                        let address = find(c_name!($variadic)).ok_or(stringify!($variadic))?;
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<
                            Address,
                            unsafe extern "C" fn($variadic_argument, ...) -> $variadic_result,
                        >(address) }
                    },)*
                    $($option: find(c_name!($option)).map(|address| {
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<
                            Address,
                            unsafe extern "C" fn($($option_argument),*) -> $option_result,
                        >(address) }
                    }),)*
                    $($own: find(c_name!($own)).map(|address| {
                        // SAFETY: the name is one of ours; what we build with it has this type.
                        unsafe { std::mem::transmute::<
                            Address,
                            unsafe extern "C" fn() -> $own_result,
                        >(address) }
                    }),)*
                })
            }
        }
    };
}

macro_rules! c_name {
    ($name:ident) => {
        const {
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("an identifier contains no zero byte"),
            }
        }
    };
}

// `prepare_v3` is left out on purpose: with `prepare_v2`, which is what kvtest calls, all
// libraries from 3.8.7 on are driven in the same way.
functions! {
    required {
        sqlite3_backup_finish: fn(*mut sqlite3_backup) -> c_int;
        sqlite3_backup_init:
            fn(*mut sqlite3, *const c_char, *mut sqlite3, *const c_char) -> *mut sqlite3_backup;
        sqlite3_backup_pagecount: fn(*mut sqlite3_backup) -> c_int;
        sqlite3_backup_step: fn(*mut sqlite3_backup, c_int) -> c_int;
        sqlite3_bind_blob64:
            fn(*mut sqlite3_stmt, c_int, *const c_void, sqlite3_uint64, Destructor) -> c_int;
        sqlite3_bind_int64: fn(*mut sqlite3_stmt, c_int, sqlite3_int64) -> c_int;
        sqlite3_bind_text:
            fn(*mut sqlite3_stmt, c_int, *const c_char, c_int, Destructor) -> c_int;
        sqlite3_blob_bytes: fn(*mut sqlite3_blob) -> c_int;
        sqlite3_blob_close: fn(*mut sqlite3_blob) -> c_int;
        sqlite3_blob_open:
            fn(
                *mut sqlite3, *const c_char, *const c_char, *const c_char, sqlite3_int64, c_int,
                *mut *mut sqlite3_blob
            ) -> c_int;
        sqlite3_blob_read: fn(*mut sqlite3_blob, *mut c_void, c_int, c_int) -> c_int;
        sqlite3_blob_reopen: fn(*mut sqlite3_blob, sqlite3_int64) -> c_int;
        sqlite3_blob_write: fn(*mut sqlite3_blob, *const c_void, c_int, c_int) -> c_int;
        sqlite3_busy_timeout: fn(*mut sqlite3, c_int) -> c_int;
        sqlite3_changes: fn(*mut sqlite3) -> c_int;
        sqlite3_clear_bindings: fn(*mut sqlite3_stmt) -> c_int;
        sqlite3_close: fn(*mut sqlite3) -> c_int;
        sqlite3_column_blob: fn(*mut sqlite3_stmt, c_int) -> *const c_void;
        sqlite3_column_bytes: fn(*mut sqlite3_stmt, c_int) -> c_int;
        sqlite3_column_double: fn(*mut sqlite3_stmt, c_int) -> c_double;
        sqlite3_column_int64: fn(*mut sqlite3_stmt, c_int) -> sqlite3_int64;
        sqlite3_column_text: fn(*mut sqlite3_stmt, c_int) -> *const c_uchar;
        sqlite3_db_status: fn(*mut sqlite3, c_int, *mut c_int, *mut c_int, c_int) -> c_int;
        sqlite3_errmsg: fn(*mut sqlite3) -> *const c_char;
        sqlite3_exec:
            fn(
                *mut sqlite3, *const c_char, ExecCallback, *mut c_void, *mut *mut c_char
            ) -> c_int;
        sqlite3_extended_errcode: fn(*mut sqlite3) -> c_int;
        sqlite3_finalize: fn(*mut sqlite3_stmt) -> c_int;
        sqlite3_get_autocommit: fn(*mut sqlite3) -> c_int;
        sqlite3_initialize: fn() -> c_int;
        sqlite3_libversion: fn() -> *const c_char;
        sqlite3_open_v2: fn(*const c_char, *mut *mut sqlite3, c_int, *const c_char) -> c_int;
        sqlite3_prepare_v2:
            fn(
                *mut sqlite3, *const c_char, c_int, *mut *mut sqlite3_stmt, *mut *const c_char
            ) -> c_int;
        sqlite3_reset: fn(*mut sqlite3_stmt) -> c_int;
        sqlite3_sourceid: fn() -> *const c_char;
        sqlite3_step: fn(*mut sqlite3_stmt) -> c_int;
        sqlite3_threadsafe: fn() -> c_int;
        sqlite3_wal_checkpoint_v2:
            fn(*mut sqlite3, *const c_char, c_int, *mut c_int, *mut c_int) -> c_int;
    }
    variadic {
        sqlite3_config: fn(c_int) -> c_int;
    }
    optional {
        // Left out by -DSQLITE_OMIT_COMPILEOPTION_DIAGS.
        sqlite3_compileoption_get: fn(c_int) -> *const c_char;
        // From 3.8.9 on.
        sqlite3_status64: fn(c_int, *mut sqlite3_int64, *mut sqlite3_int64, c_int) -> c_int;
    }
    own {
        // In libraries made by `cargo xtask workers`: compiler and options, as a constant text.
        sqlitmus_build: fn() -> *const c_char;
    }
}

// SAFETY: declares the one function that default_options.c makes visible; its type there is a
// function taking a C string and returning a function pointer or null.
unsafe extern "C" {
    fn sqlitmus_default_options_function(name: *const c_char) -> *mut c_void;
}

impl Functions {
    /// The second linked copy, compiled without options.
    ///
    /// # Errors
    /// The name of a function that `default_options.c` does not list.
    pub(super) fn default_options() -> Result<Self, &'static str> {
        let find = |name: &CStr| {
            // SAFETY: the name is a C string and only read during the call.
            NonNull::new(unsafe { sqlitmus_default_options_function(name.as_ptr()) })
        };
        // SAFETY: default_options.c pairs SQLite's own names with SQLite's own functions, by
        // macro; linked code stays.
        unsafe { Self::found_by(&find) }
    }
}
