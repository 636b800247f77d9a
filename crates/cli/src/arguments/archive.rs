//! Options of the verbs for archives.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sqlitmus_archive::Compression;
use sqlitmus_core::units::parse_bytes;

pub(super) const PACK_EXAMPLES: &str = "\
Examples:
  sqlitmus pack photos photos.sqlar
  sqlitmus pack src src.sqlar --compress auto --ignore-file src/.gitignore
  sqlitmus pack site site.sqlar --include '*.html' --include 'images/' --force --verify
  sqlitmus unpack photos.sqlar --into copy       the way back

Names in the archive are relative to DIR: photos/cats/tom.jpg becomes cats/tom.jpg. They have to be UTF-8. Kept are
permissions (rwx) and times of the last change in seconds; hard links become files of their own. Pipes, sockets and devices
are refused, unless excluded. A file that grows meanwhile is packed as long as it was when it was opened; one that shrinks
or vanishes ends the packing. The archive appears under its name when it is complete and synced.";

pub(super) const UNPACK_EXAMPLES: &str = "\
Examples:
  sqlitmus unpack photos.sqlar --into photos
  sqlitmus unpack photos.sqlar cats dogs/rex.jpg --into some
  sqlitmus unpack backup.sqlar --into here --links all     links that lead elsewhere too

Before anything is written, everything is checked: names that are absolute or have `..` in them, links that may lead out,
entries below a link or a file, devices, sizes that lie, what exists already, free space. One of these refuses the whole.
While writing, no link is followed. Set-user-id bits are never set. Nothing is synced. A file gets its name when it is
complete: a kill or a full disk leaves whole files (on filesystems without O_TMPFILE one of each thread may be cut short);
--force goes on then.";

pub(super) const VERIFY_EXAMPLES: &str = "\
Examples:
  sqlitmus verify photos.sqlar
  sqlitmus verify photos.sqlar --against photos

Exit code 1 means: the archive is damaged, or differs from the directory. Compared are names, kinds, permissions, targets
of links and hashes (BLAKE3) of content; times are not.";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  sqlitmus serve tiles.sqlar                           http://127.0.0.1:8080/
  sqlitmus serve tiles.sqlar --listen 127.0.0.1:0      on a free port
  curl -r 0-99 http://127.0.0.1:8080/index.html

GET and HEAD, with ETag, Last-Modified, ranges and conditional requests. Links are not followed. It ends with Ctrl-C.";

/// Options of `pack`.
#[derive(Debug, Args)]
pub struct PackArguments {
    /// Directories to pack, and last the archive to be made
    #[arg(required = true, num_args = 2.., value_names = ["DIR", "ARCHIVE"])]
    pub paths: Vec<PathBuf>,
    /// Compress: never, auto (what becomes smaller by it), or a level from 1 to 9
    #[arg(long, value_name = "never|auto|LEVEL", default_value = "never", value_parser = compression)]
    pub compress: Compression,
    /// Bytes of a database page: a power of two from 512 to 65536
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = page_bytes)]
    pub page_size: u32,
    /// What is packed
    #[command(flatten)]
    pub selection: SelectionArguments,
    /// Replace the archive if it exists, when the new one is complete
    #[arg(long)]
    pub force: bool,
    /// Read everything back, and compare, before the archive gets its name
    #[arg(long)]
    pub verify: bool,
    /// Go on without files that are larger than a blob of SQLite
    #[arg(long)]
    pub skip_too_large: bool,
    /// Go on without what vanishes, shrinks, cannot be read or cannot be held
    #[arg(long)]
    pub skip_unreadable: bool,
    /// Threads that read and compress
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// No progress: only what went wrong
    #[arg(long, short)]
    pub quiet: bool,
}

/// Which entries are taken.
#[derive(Debug, Args)]
pub struct SelectionArguments {
    /// Only what matches this pattern of .gitignore's kind; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// Not what matches this pattern; wins over --include; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Not what this file of patterns says, as .gitignore does; may be repeated
    #[arg(long, value_name = "FILE")]
    pub ignore_file: Vec<PathBuf>,
}

/// Options of `unpack`.
#[derive(Debug, Args)]
pub struct UnpackArguments {
    /// The archive
    pub archive: PathBuf,
    /// What to unpack, with all below it; everything if none is named
    pub names: Vec<String>,
    /// Directory to unpack into; it is made if it is missing
    #[arg(long, value_name = "DIR")]
    pub into: PathBuf,
    /// Replace files and links that exist
    #[arg(long)]
    pub force: bool,
    /// Symbolic links: make those that stay inside and refuse others, make all, or make none
    #[arg(long, value_enum, default_value_t = LinkChoice::Inside)]
    pub links: LinkChoice,
    /// Largest file that is unpacked
    #[arg(long, value_name = "BYTES", default_value = "2147483647", value_parser = parse_size)]
    pub max_entry: u64,
    /// Bytes of all files together; default: 100 times the archive, at least 1 GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub max_total: Option<u64>,
    /// Threads that read and write
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// No progress: only what went wrong
    #[arg(long, short)]
    pub quiet: bool,
}

/// What is done with symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LinkChoice {
    /// Make those that cannot lead out; refuse the archive if there are others
    Inside,
    /// Make all, wherever they lead
    All,
    /// Make none
    Skip,
}

/// Options of `ls`.
#[derive(Debug, Args)]
pub struct LsArguments {
    /// The archive
    pub archive: PathBuf,
    /// Names to list, with all below them; everything if none is named
    pub names: Vec<String>,
    /// Also mode, size, stored bytes and time
    #[arg(long, short)]
    pub long: bool,
    /// End names with a NUL instead of a line break
    #[arg(long, short = '0')]
    pub null: bool,
}

/// Options of `cat`.
#[derive(Debug, Args)]
pub struct CatArguments {
    /// The archive
    pub archive: PathBuf,
    /// Names of files in it
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// Options of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// The archive
    pub archive: PathBuf,
    /// A directory that should have the same in it
    #[arg(long, value_name = "DIR")]
    pub against: Option<PathBuf>,
    /// What of the directory is compared
    #[command(flatten)]
    pub selection: SelectionArguments,
    /// No progress: only the result
    #[arg(long, short)]
    pub quiet: bool,
}

/// Options of `serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// The archive
    pub archive: PathBuf,
    /// Address and port; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Read by memory map: faster, if no program truncates the archive meanwhile
    #[arg(long)]
    pub mmap: bool,
    /// Do not say where it listens
    #[arg(long, short)]
    pub quiet: bool,
}

fn compression(word: &str) -> Result<Compression, String> {
    match word {
        "never" => Ok(Compression::Never),
        "auto" => Ok(Compression::Auto),
        _ => match word.parse() {
            Ok(level @ 1..=9) => Ok(Compression::Level(level)),
            _ => Err("it is never, auto, or a level from 1 to 9".to_owned()),
        },
    }
}

fn page_bytes(word: &str) -> Result<u32, String> {
    match parse_size(word).map(u32::try_from) {
        Ok(Ok(bytes)) if bytes.is_power_of_two() && (512..=65_536).contains(&bytes) => Ok(bytes),
        _ => Err("it is a power of two from 512 to 65536".to_owned()),
    }
}

fn parse_size(word: &str) -> Result<u64, String> {
    parse_bytes(word).map_err(|error| error.to_string())
}
