//! Packs a directory, lists the archive, and unpacks it into another: the library as a program uses it.
//!
//! `cargo run --release --example whole_directory -- DIRECTORY NEW.sqlar NEW_DIRECTORY`

use std::error::Error;
use std::io::Write;
use std::path::Path;

use sqlitmus_archive::{Archive, PackSettings, UnpackSettings, Watch, pack, unpack};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, archive, target] = words.as_slice() else {
        return Err("usage: whole_directory DIRECTORY NEW.sqlar NEW_DIRECTORY".into());
    };
    let text = run(Path::new(directory), Path::new(archive), Path::new(target))?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn run(directory: &Path, path: &Path, target: &Path) -> Result<String, Box<dyn Error>> {
    let packed = pack(&[directory], path, &PackSettings::default(), &Watch::new())?;
    let mut text = format!(
        "packed {} files in {:.3} s and {:.3} s of sync\n",
        packed.files,
        packed.packing.as_secs_f64(),
        packed.sync.as_secs_f64()
    );
    let archive = Archive::open(path)?;
    let begin = std::time::Instant::now();
    let unpacked = unpack(&archive, target, &UnpackSettings::default(), &Watch::new())?;
    text.push_str(&format!(
        "unpacked {} files in {:.3} s\n",
        unpacked.files,
        begin.elapsed().as_secs_f64()
    ));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("from")).expect("created");
        std::fs::write(at("from/a"), "content").expect("written");
        let text = run(&at("from"), &at("a.sqlar"), &at("to")).expect("runs");
        assert!(text.contains("packed 1 files"), "{text}");
        assert_eq!(std::fs::read(at("to/a")).expect("read"), b"content");
    }
}
