//! Which numbers of system calls stand under which name.

use std::collections::BTreeMap;

use super::OTHER;

/// Kinds of calls, each with the numbers that belong to it. Old and new forms of one call share
/// a kind, since which of them is used is the C library's choice and not the caller's.
pub const KINDS: &[(&str, &[libc::c_long])] = &[
    (
        "openat",
        &[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open,
            libc::SYS_openat,
            libc::SYS_openat2,
        ],
    ),
    ("close", &[libc::SYS_close]),
    ("read", &[libc::SYS_read]),
    ("pread64", &[libc::SYS_pread64]),
    (
        "readv",
        &[libc::SYS_readv, libc::SYS_preadv, libc::SYS_preadv2],
    ),
    ("write", &[libc::SYS_write]),
    ("pwrite64", &[libc::SYS_pwrite64]),
    (
        "writev",
        &[libc::SYS_writev, libc::SYS_pwritev, libc::SYS_pwritev2],
    ),
    ("lseek", &[libc::SYS_lseek]),
    ("fstat", &[libc::SYS_fstat]),
    (
        "newfstatat",
        &[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_stat,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_lstat,
            libc::SYS_newfstatat,
        ],
    ),
    ("statx", &[libc::SYS_statx]),
    (
        "faccessat",
        &[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_access,
            libc::SYS_faccessat,
            libc::SYS_faccessat2,
        ],
    ),
    ("fsync", &[libc::SYS_fsync]),
    ("fdatasync", &[libc::SYS_fdatasync]),
    ("ftruncate", &[libc::SYS_ftruncate]),
    ("fallocate", &[libc::SYS_fallocate]),
    (
        "rename",
        &[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename,
            #[cfg(not(target_arch = "riscv64"))]
            libc::SYS_renameat,
            libc::SYS_renameat2,
        ],
    ),
    (
        "unlink",
        &[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink,
            libc::SYS_unlinkat,
        ],
    ),
    ("mmap", &[libc::SYS_mmap]),
    ("munmap", &[libc::SYS_munmap]),
    ("madvise", &[libc::SYS_madvise]),
    ("futex", &[libc::SYS_futex]),
    ("fcntl", &[libc::SYS_fcntl]),
    ("ioctl", &[libc::SYS_ioctl]),
    (
        "getdents64",
        &[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_getdents,
            libc::SYS_getdents64,
        ],
    ),
    ("io_uring_enter", &[libc::SYS_io_uring_enter]),
];

/// Calls by name from calls by number; only those that occurred.
pub fn by_name(numbers: impl IntoIterator<Item = (u64, u64)>) -> BTreeMap<&'static str, u64> {
    let mut calls = BTreeMap::new();
    for (number, count) in numbers.into_iter().filter(|(_, count)| *count > 0) {
        let is_meant = |known: &libc::c_long| u64::try_from(*known) == Ok(number);
        let kind = KINDS
            .iter()
            .find(|(_, numbers)| numbers.iter().any(is_meant));
        *calls
            .entry(kind.map_or(OTHER, |(name, _)| *name))
            .or_insert(0) += count;
    }
    calls
}
