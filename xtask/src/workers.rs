//! `cargo xtask workers`: builds the SQLites that the suite `builds` measures beside the one that is
//! linked into the program. Each is a shared library of the very `sqlite3.c` that libsqlite3-sys
//! ships, and differs from the first of them, `recommended`, in one thing.
//!
//! They are shared libraries and not programs of their own, because a second program would differ
//! in everything else too (ARCHITECTURE.md). Each carries the options of the compiler in a function
//! of its own, since SQLite's `PRAGMA compile_options` does not tell them. What is measured with
//! them is the suite's business.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};

use crate::{cargo_program, complain};

/// Folder below the target directory: `measure` looks there for libraries named `@NAME`.
const FOLDER: &str = "sqlite-builds";

/// What libsqlite3-sys compiles its copy with before the words of `LIBSQLITE3_FLAGS`, so that
/// `recommended` has the options of the linked one and `rusqlite` those of every program that uses
/// that crate (its `build.rs`, version 0.39).
const CRATE_OPTIONS: &[&str] = &[
    "-DSQLITE_CORE",
    "-DSQLITE_DEFAULT_FOREIGN_KEYS=1",
    "-DSQLITE_ENABLE_API_ARMOR",
    "-DSQLITE_ENABLE_COLUMN_METADATA",
    "-DSQLITE_ENABLE_DBSTAT_VTAB",
    "-DSQLITE_ENABLE_FTS3",
    "-DSQLITE_ENABLE_FTS3_PARENTHESIS",
    "-DSQLITE_ENABLE_FTS5",
    "-DSQLITE_ENABLE_JSON1",
    "-DSQLITE_ENABLE_LOAD_EXTENSION=1",
    "-DSQLITE_ENABLE_RTREE",
    "-DSQLITE_ENABLE_STAT4",
    "-DSQLITE_SOUNDEX",
    "-DSQLITE_THREADSAFE=1",
    "-DSQLITE_USE_URI",
    "-DHAVE_USLEEP=1",
    "-DHAVE_ISNAN",
    "-DHAVE_LOCALTIME_R",
];

/// One library.
struct Variant {
    /// Its name in suites, behind an `@`.
    name: &'static str,
    /// The compiler's optimisation.
    optimisation: &'static str,
    /// Whether it has our options, those of `LIBSQLITE3_FLAGS`.
    recommended: bool,
    /// What it differs in from `recommended`.
    options: &'static [&'static str],
}

/// A library with our options that differs in some.
const fn variant(name: &'static str, options: &'static [&'static str]) -> Variant {
    Variant {
        name,
        optimisation: "-O3",
        recommended: true,
        options,
    }
}

/// All of them.
static VARIANTS: &[Variant] = &[
    variant("recommended", &[]),
    Variant {
        name: "os",
        optimisation: "-Os",
        recommended: true,
        options: &[],
    },
    variant(
        "threadsafe-0",
        &["-USQLITE_THREADSAFE", "-DSQLITE_THREADSAFE=0"],
    ),
    variant(
        "threadsafe-1",
        &["-USQLITE_THREADSAFE", "-DSQLITE_THREADSAFE=1"],
    ),
    variant(
        "no-direct-overflow-read",
        &["-DSQLITE_DIRECT_OVERFLOW_READ=0"],
    ),
    variant(
        "memory-statistics",
        &["-USQLITE_DEFAULT_MEMSTATUS", "-DSQLITE_DEFAULT_MEMSTATUS=1"],
    ),
    variant("api-armor", &["-DSQLITE_ENABLE_API_ARMOR"]),
    variant("memory-management", &["-DSQLITE_ENABLE_MEMORY_MANAGEMENT"]),
    Variant {
        name: "rusqlite",
        optimisation: "-O3",
        recommended: false,
        options: &[],
    },
];

/// Builds all libraries that are missing or were built otherwise.
pub fn run(words: &[&str]) -> anyhow::Result<()> {
    let chosen: Vec<&Variant> = match words {
        [] => VARIANTS.iter().collect(),
        names => names
            .iter()
            .map(|name| named(name))
            .collect::<anyhow::Result<_>>()?,
    };
    let metadata = metadata()?;
    let source = source_folder(&metadata)?;
    let folder = target_folder(&metadata)?.join(FOLDER);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let flags = std::env::var("LIBSQLITE3_FLAGS")
        .context("LIBSQLITE3_FLAGS is not set: run this as `cargo xtask workers`")?;
    let compiler = Compiler::find()?;
    let builds: Vec<Build> = chosen
        .iter()
        .map(|variant| Build::new(variant, &flags, &source, &folder, &compiler))
        .collect::<anyhow::Result<_>>()?;
    let errors = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(builds.len()) {
            scope.spawn(|| {
                while let Some(build) = builds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = build.run()
                        && let Ok(mut errors) = errors.lock()
                    {
                        errors.push(error);
                    }
                }
            });
        }
    });
    if let Some(error) = errors.into_inner().unwrap_or_default().into_iter().next() {
        return Err(error);
    }
    complain(&format!(
        "{} libraries are in {}; sqlitmus measure builds finds them there",
        builds.len(),
        folder.display()
    ));
    Ok(())
}

fn named(name: &str) -> anyhow::Result<&'static Variant> {
    let found = VARIANTS.iter().find(|variant| variant.name == name);
    found.with_context(|| {
        let names: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
        format!(
            "there is no variant `{name}`: there are {}",
            names.join(", ")
        )
    })
}

/// The C compiler.
struct Compiler {
    program: String,
    version: String,
}

impl Compiler {
    fn find() -> anyhow::Result<Self> {
        let program = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let output = Command::new(&program)
            .arg("--version")
            .output()
            .with_context(|| format!("cannot run the C compiler `{program}`"))?;
        let version = String::from_utf8_lossy(&output.stdout);
        let version = version.lines().next().unwrap_or_default().to_owned();
        Ok(Self { program, version })
    }
}

/// How one library is built.
struct Build {
    name: &'static str,
    program: String,
    arguments: Vec<String>,
    wrapper: String,
    /// All that the library depends on: it is built anew when this has changed.
    stamp: String,
    folder: PathBuf,
}

impl Build {
    fn new(
        variant: &'static Variant,
        flags: &str,
        source: &Path,
        folder: &Path,
        compiler: &Compiler,
    ) -> anyhow::Result<Self> {
        let mut options: Vec<String> = CRATE_OPTIONS.iter().map(|&word| word.to_owned()).collect();
        if variant.recommended {
            options.extend(options_of(flags));
        }
        options.extend(variant.options.iter().map(|&word| word.to_owned()));
        // As hidden as in the linked library: SQLite's own functions are inlined into each other,
        // and its names do not mix with those of another loaded SQLite.
        let mut arguments = vec![
            variant.optimisation.to_owned(),
            "-fPIC".to_owned(),
            "-shared".to_owned(),
            "-w".to_owned(),
            "-fno-semantic-interposition".to_owned(),
        ];
        if cfg!(target_os = "linux") {
            arguments.push("-Wl,-Bsymbolic".to_owned());
        }
        let build = format!("{} {}", compiler.version, arguments.join(" "));
        arguments.push(format!("-I{}", source.display()));
        arguments.extend(options);
        // What the linked library is linked with.
        let libraries = ["-lm", "-lpthread", "-ldl"].map(str::to_owned);
        let wrapper = format!(
            "#include \"sqlite3.c\"\n/* What SQLite does not tell of itself. */\n\
             const char *sqlitmus_build(void){{ return \"{}\"; }}\n",
            build.replace(['"', '\\'], " ")
        );
        let amalgamation = source.join("sqlite3.c");
        let length = std::fs::metadata(&amalgamation)
            .with_context(|| format!("cannot read {}", amalgamation.display()))?
            .len();
        let stamp = format!(
            "{}\n{} bytes\n{} {}\n{wrapper}",
            amalgamation.display(),
            length,
            compiler.program,
            arguments.join(" ")
        );
        arguments.extend(libraries);
        Ok(Self {
            name: variant.name,
            program: compiler.program.clone(),
            arguments,
            wrapper,
            stamp,
            folder: folder.to_owned(),
        })
    }

    /// The library appears under its name when it is complete.
    fn run(&self) -> anyhow::Result<()> {
        let file = |ending: &str| self.folder.join(format!("{}.{ending}", self.name));
        let (library, stamp) = (file("so"), file("txt"));
        let is_current = std::fs::read_to_string(&stamp).is_ok_and(|text| text == self.stamp);
        if is_current && library.is_file() {
            complain(&format!("{}: up to date", self.name));
            return Ok(());
        }
        let (wrapper, partial) = (file("c"), file("partial"));
        let write = |path: &Path, text: &str| {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        write(&wrapper, &self.wrapper)?;
        // Libraries last: a linker takes from them what the code before them has asked for.
        let status = Command::new(&self.program)
            .arg(&wrapper)
            .args(&self.arguments)
            .arg("-o")
            .arg(&partial)
            .stdin(Stdio::null())
            .status()
            .with_context(|| format!("cannot run the C compiler `{}`", self.program))?;
        if !status.success() {
            bail!("{}: the C compiler failed: {status}", self.name);
        }
        std::fs::rename(&partial, &library)
            .with_context(|| format!("cannot rename {}", partial.display()))?;
        write(&stamp, &self.stamp)?;
        complain(&format!("{}: {}", self.name, library.display()));
        Ok(())
    }
}

/// The compiler's options in `LIBSQLITE3_FLAGS`, read as libsqlite3-sys reads it. The visibility of
/// SQLite's interface is left out: a shared library without an interface is none.
fn options_of(flags: &str) -> Vec<String> {
    flags
        .split_whitespace()
        .filter(|word| !word.starts_with("-DSQLITE_API="))
        .map(
            |word| match word.starts_with("-D") || word.starts_with("-U") {
                true => word.to_owned(),
                false => format!("-D{word}"),
            },
        )
        .collect()
}

fn metadata() -> anyhow::Result<serde_json::Value> {
    let output = Command::new(cargo_program())
        .args(["metadata", "--format-version", "1"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")
}

/// Where libsqlite3-sys keeps its `sqlite3.c`.
fn source_folder(metadata: &serde_json::Value) -> anyhow::Result<PathBuf> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|package| package["name"] == "libsqlite3-sys")
        .find_map(|package| package["manifest_path"].as_str())
        .context("libsqlite3-sys is not among the dependencies")?;
    let folder = Path::new(manifest)
        .parent()
        .unwrap_or(Path::new("."))
        .join("sqlite3");
    if !folder.join("sqlite3.c").is_file() {
        bail!("there is no sqlite3.c in {}", folder.display());
    }
    Ok(folder)
}

fn target_folder(metadata: &serde_json::Value) -> anyhow::Result<PathBuf> {
    let folder = metadata["target_directory"].as_str();
    folder
        .map(PathBuf::from)
        .context("cargo metadata does not name the target directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_as_the_crate_reads_them() {
        let options = options_of("-DSQLITE_API=hidden -USQLITE_X SQLITE_Y=1 -DHAVE_Z=1");
        assert_eq!(options, ["-USQLITE_X", "-DSQLITE_Y=1", "-DHAVE_Z=1"]);
    }

    #[test]
    fn variants_have_names_of_their_own() {
        for variant in VARIANTS {
            let named = named(variant.name).expect("known");
            assert!(std::ptr::eq(named, variant), "{}", variant.name);
        }
        let unknown = named("-O3").err().expect("unknown").to_string();
        assert!(unknown.contains("recommended"), "{unknown}");
    }

    /// A small source that has the name of the large one: what is built carries its options.
    #[test]
    fn a_library_is_built_once_and_again_when_its_options_change() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let source = "int sqlite3_threadsafe(void){ return SQLITE_THREADSAFE; }";
        std::fs::write(folder.path().join("sqlite3.c"), source).expect("write");
        let compiler = Compiler::find().expect("a C compiler");
        let build = |name: &str| {
            let variant = named(name).expect("known");
            let flags = "-USQLITE_THREADSAFE SQLITE_THREADSAFE=2";
            Build::new(variant, flags, folder.path(), folder.path(), &compiler).expect("planned")
        };
        build("recommended").run().expect("built");
        let library = folder.path().join("recommended.so");
        let first = std::fs::metadata(&library).expect("there").modified().ok();
        build("recommended").run().expect("still there");
        let second = std::fs::metadata(&library).expect("there").modified().ok();
        assert_eq!(first, second, "it was up to date");
        std::fs::write(folder.path().join("recommended.txt"), "other").expect("write");
        build("recommended").run().expect("built again");
        let third = std::fs::metadata(&library).expect("there").modified().ok();
        assert_ne!(first, third);
        let bytes = std::fs::read(&library).expect("read");
        let has = |text: &str| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        assert!(has("sqlitmus_build") && has("-O3 -fPIC"));
    }
}
