//! Where the file of a blob is below a directory, for looking at it and for messages. Reading and
//! writing by key is the `files` engine's business, and so are its names, which these match.

use sqlitmus_engines::files::Layout;

/// The path of a blob's file, relative to the directory.
pub(super) fn file_name(layout: Layout, key: i64) -> String {
    match layout {
        Layout::Flat => format!("{key:06}"),
        Layout::Tree => format!("{}/{:02}", inner_folder(key), key % 100),
    }
}

/// The folder of a blob's file in a tree, with the folder above it.
pub(super) fn inner_folder(key: i64) -> String {
    format!("{:02}/{:02}", key / 10_000, key / 100 % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kvtest() {
        assert_eq!(file_name(Layout::Flat, 1), "000001");
        assert_eq!(file_name(Layout::Flat, 1_234_567), "1234567");
        assert_eq!(file_name(Layout::Tree, 1), "00/00/01");
        assert_eq!(file_name(Layout::Tree, 1_234_567), "123/45/67");
        assert_eq!(inner_folder(123_456), "12/34");
    }
}
