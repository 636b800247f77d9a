//! Reading what is to be packed: small files into a buffer that many share, large ones as an open file,
//! or compressed into a temporary file, so that memory stays bounded. It never blocks on a pipe and follows no
//! link, whatever has been put in a file's place since the directory was listed.

use std::fs::File;
use std::io::{Read, Seek};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::PackSettings;
use super::listing::Listed;
use crate::deflate::{Compression, is_worth_trying};
use crate::directory::{Directory, is_link};
use crate::entry::Kind;
use crate::error::ArchiveError;

/// Files larger than this are not read into memory as a whole.
pub(super) const LARGE_BYTES: u64 = 8 * 1024 * 1024;

/// Bytes of a large file that decide whether compressing it is tried.
const TRIAL_BYTES: usize = 64 * 1024;

/// What a file, a directory or a link has become.
pub(super) enum Content {
    /// A directory.
    Nothing,
    /// The target of a link.
    Target(Vec<u8>),
    /// A part of the batch's buffer.
    Raw(Range<usize>),
    /// A zlib stream, and the size of what it was made of.
    Deflated(Vec<u8>, u64),
    /// An open file of this size, to be copied as it is.
    Large(File, u64),
    /// A temporary file with a zlib stream: bytes of the stream and of what it was made of.
    Spooled(File, u64, u64),
}

/// Where things are read from, and how; the same for all threads.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) roots: &'a [&'a Path],
    pub(super) settings: &'a PackSettings,
    /// Where temporary files go: beside the archive, where there must be space anyway.
    pub(super) spool: &'a Path,
    /// Bytes of content that no row can hold more of.
    pub(super) most_content_bytes: u64,
}

impl Sources<'_> {
    pub(super) fn path(&self, entry: &Listed) -> PathBuf {
        self.roots[entry.root].join(&*entry.name)
    }
}

/// Reads entries of one thread.
pub(super) struct SourceReader<'a> {
    sources: Sources<'a>,
    directories: Vec<Option<Directory>>,
}

impl<'a> SourceReader<'a> {
    pub(super) fn new(sources: Sources<'a>) -> Self {
        let directories = sources.roots.iter().map(|_| None).collect();
        Self {
            sources,
            directories,
        }
    }

    /// Reads one entry; what goes into `buffer` is added at its end. With `hash`, the hash of the content;
    /// that of large files is made when they are copied.
    pub(super) fn read(
        &mut self,
        entry: &Listed,
        buffer: &mut Vec<u8>,
        hash: bool,
    ) -> Result<(Content, Option<blake3::Hash>), ArchiveError> {
        match entry.kind {
            Kind::Symlink => {
                let target = self.read_link(entry)?;
                let hash = hash.then(|| blake3::hash(&target));
                Ok((Content::Target(target), hash))
            }
            Kind::File => self.read_file(entry, buffer, hash),
            Kind::Directory | Kind::Other => Ok((Content::Nothing, None)),
        }
    }

    fn read_file(
        &mut self,
        entry: &Listed,
        buffer: &mut Vec<u8>,
        hash: bool,
    ) -> Result<(Content, Option<blake3::Hash>), ArchiveError> {
        let path = self.path(entry);
        let mut file = self.open(entry)?;
        let size = file
            .metadata()
            .map_err(ArchiveError::io("look at", &path))?
            .len();
        if size > LARGE_BYTES {
            return self.large(file, size, &path);
        }
        let begin = buffer.len();
        // The file has been found to be small, so it fits.
        buffer.resize(begin + size as usize, 0);
        if let Err(error) = file.read_exact(&mut buffer[begin..]) {
            buffer.truncate(begin);
            return Err(shrank_or_failed(&path)(error));
        }
        let content = &buffer[begin..];
        let hash = hash.then(|| blake3::hash(content));
        let stored = match self.sources.settings.compression.compress(content) {
            None => Content::Raw(begin..buffer.len()),
            Some(stream) => {
                buffer.truncate(begin);
                Content::Deflated(stream, size)
            }
        };
        Ok((stored, hash))
    }

    fn large(
        &self,
        mut file: File,
        size: u64,
        path: &Path,
    ) -> Result<(Content, Option<blake3::Hash>), ArchiveError> {
        let limit_bytes = self.sources.most_content_bytes;
        if size > limit_bytes {
            return Err(ArchiveError::TooLarge {
                path: path.to_owned(),
                bytes: size,
                limit_bytes,
            });
        }
        if !self.is_worth_compressing(&file, size, path)? {
            return Ok((Content::Large(file, size), None));
        }
        let mut spool = tempfile::tempfile_in(self.sources.spool)
            .map_err(ArchiveError::io("create a file in", self.sources.spool))?;
        let compression = self.sources.settings.compression;
        let mut source = Hashing::new((&mut file).take(size), self.sources.settings.verify);
        let read = compression
            .copy(&mut source, &mut spool)
            .map_err(ArchiveError::io("compress", path))?;
        let hash = source.finish();
        if read < size {
            return Err(shrank(path));
        }
        let failed = || ArchiveError::io("read", path);
        let stream_bytes = spool.stream_position().map_err(failed())?;
        if stream_bytes < size {
            spool.rewind().map_err(failed())?;
            Ok((Content::Spooled(spool, stream_bytes, size), hash))
        } else {
            file.rewind().map_err(failed())?;
            Ok((Content::Large(file, size), None))
        }
    }

    fn is_worth_compressing(
        &self,
        file: &File,
        size: u64,
        path: &Path,
    ) -> Result<bool, ArchiveError> {
        match self.sources.settings.compression {
            Compression::Never => Ok(false),
            Compression::Level(_) => Ok(true),
            Compression::Auto => {
                let mut piece = vec![0; TRIAL_BYTES];
                for offset in [0, size / 2] {
                    file.read_exact_at(&mut piece, offset)
                        .map_err(shrank_or_failed(path))?;
                    if is_worth_trying(&piece) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    fn open(&mut self, entry: &Listed) -> Result<File, ArchiveError> {
        let path = self.path(entry);
        let opened = self.directory(entry.root)?.open_file(&entry.name);
        opened.map_err(vanished_or_failed(&path))
    }

    fn read_link(&mut self, entry: &Listed) -> Result<Vec<u8>, ArchiveError> {
        let path = self.path(entry);
        let target = self.directory(entry.root)?.read_link(&entry.name);
        target.map_err(vanished_or_failed(&path))
    }

    fn directory(&mut self, root: usize) -> Result<&mut Directory, ArchiveError> {
        let slot = &mut self.directories[root];
        match slot {
            Some(directory) => Ok(directory),
            None => {
                let path = self.sources.roots[root];
                Ok(slot.insert(Directory::open(path).map_err(ArchiveError::io("open", path))?))
            }
        }
    }

    fn path(&self, entry: &Listed) -> PathBuf {
        self.sources.path(entry)
    }
}

/// A file that is shorter than it was.
pub(super) fn shrank(path: &Path) -> ArchiveError {
    ArchiveError::SourceChanged {
        path: path.to_owned(),
        reason: "it became shorter".to_owned(),
    }
}

fn shrank_or_failed(path: &Path) -> impl FnOnce(std::io::Error) -> ArchiveError {
    move |error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => shrank(path),
        _ => ArchiveError::io("read", path)(error),
    }
}

fn vanished_or_failed(path: &Path) -> impl FnOnce(std::io::Error) -> ArchiveError {
    let changed = |reason: &str| ArchiveError::SourceChanged {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    move |error| match error.kind() {
        _ if is_link(&error) => changed("it became a link"),
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => changed("it vanished"),
        std::io::ErrorKind::InvalidInput => changed("it is of another kind now"),
        _ => ArchiveError::io("read", path)(error),
    }
}

/// A source that is hashed as it is read, if that is asked for.
pub(super) struct Hashing<S> {
    source: S,
    hasher: Option<blake3::Hasher>,
}

impl<S: Read> Hashing<S> {
    pub(super) fn new(source: S, hash: bool) -> Self {
        Self {
            source,
            hasher: hash.then(blake3::Hasher::new),
        }
    }

    pub(super) fn finish(self) -> Option<blake3::Hash> {
        self.hasher.map(|hasher| hasher.finalize())
    }
}

impl<S: Read> Read for Hashing<S> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..read]);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::pack::listing::list;
    use crate::watch::Watch;

    /// Lists a directory, changes it, and reads its one entry.
    fn read_after(size: u64, change: impl FnOnce(&Path)) -> Result<Content, String> {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("entry");
        let file = File::create(&path).expect("created");
        file.set_len(size).expect("grown");
        let settings = PackSettings::default();
        let roots = [folder.path()];
        let listing = list(&roots, &settings, &[], &Watch::new()).expect("listed");
        let [entry] = listing.entries.as_slice() else {
            panic!("one entry");
        };
        change(&path);
        let sources = Sources {
            roots: &roots,
            settings: &settings,
            spool: folder.path(),
            most_content_bytes: 1 << 30,
        };
        let read = SourceReader::new(sources).read(entry, &mut Vec::new(), false);
        read.map(|(content, _)| content).map_err(|error| {
            assert!(
                matches!(error, ArchiveError::SourceChanged { .. }),
                "{error}"
            );
            error.to_string()
        })
    }

    #[test]
    fn what_became_of_a_file_since_it_was_listed_is_said_with_its_name() {
        let remove = |path: &Path| std::fs::remove_file(path).expect("removed");
        let link = |path: &Path| {
            remove(path);
            symlink("elsewhere", path).expect("link");
        };
        let directory = |path: &Path| {
            remove(path);
            std::fs::create_dir(path).expect("directory");
        };
        type Change<'a> = &'a dyn Fn(&Path);
        let cases: [(Change<'_>, &str); 3] = [
            (&remove, "it vanished"),
            (&link, "it became a link"),
            (&directory, "it is of another kind now"),
        ];
        for (change, expected) in cases {
            for size in [100, LARGE_BYTES + 1] {
                let message = read_after(size, change).err().expect("an error");
                assert!(
                    message.contains(expected) && message.contains("entry"),
                    "{message}"
                );
            }
        }
    }

    #[test]
    fn a_file_that_changed_its_size_before_it_was_opened_is_read_as_it_is() {
        for (size, now) in [(100, 60), (60, 100)] {
            let resize = |path: &Path| {
                let file = File::options().write(true).open(path).expect("opened");
                file.set_len(now).expect("resized");
            };
            let content = read_after(size, resize).expect("read");
            assert!(matches!(content, Content::Raw(range) if range.len() as u64 == now));
        }
    }

    #[test]
    fn a_large_file_that_became_shorter_while_it_was_compressed_is_said_to_be() {
        // A source that ends before its size is what a file that shrinks looks like.
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("entry");
        std::fs::write(&path, "short").expect("written");
        let settings = PackSettings {
            compression: Compression::Level(6),
            ..PackSettings::default()
        };
        let roots = [folder.path()];
        let reader = SourceReader::new(Sources {
            roots: &roots,
            settings: &settings,
            spool: folder.path(),
            most_content_bytes: 1 << 30,
        });
        let file = File::open(&path).expect("opened");
        let error = reader.large(file, LARGE_BYTES + 1, &path).err();
        let message = error.expect("an error").to_string();
        assert!(message.contains("it became shorter"), "{message}");
    }
}
