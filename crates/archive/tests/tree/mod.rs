//! What tests share: making trees, and telling whether two are the same.

#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What is in a directory: kind and permissions, time in seconds, and content or target.
pub type Tree = BTreeMap<String, (u32, i64, Vec<u8>)>;

/// Reads a directory.
pub fn read(top: &Path) -> Tree {
    let mut tree = Tree::new();
    read_below(top, "", &mut tree);
    tree
}

fn read_below(directory: &Path, prefix: &str, tree: &mut Tree) {
    for entry in fs::read_dir(directory).expect("readable") {
        let entry = entry.expect("entry");
        let name = format!("{prefix}{}", entry.file_name().to_str().expect("UTF-8"));
        let path = entry.path();
        let metadata = path.symlink_metadata().expect("metadata");
        let content = if metadata.is_symlink() {
            fs::read_link(&path)
                .expect("link")
                .as_os_str()
                .as_bytes()
                .to_vec()
        } else if metadata.is_file() {
            fs::read(&path).expect("file")
        } else {
            read_below(&path, &format!("{name}/"), tree);
            Vec::new()
        };
        tree.insert(name, (metadata.mode(), metadata.mtime(), content));
    }
}

/// Writes a file, and the directories above it.
pub fn write(top: &Path, name: &str, content: &[u8]) {
    let path = top.join(name);
    fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
    fs::write(path, content).expect("file");
}
