//! This program's own code in the page cache. A trial with a cold cache must not read it from the
//! device while the clock runs: after all caches were dropped, even the code of the timed loop is
//! gone from memory.

use std::path::PathBuf;

use super::page_cache;

/// Reads the program and the libraries that it has loaded into the page cache. What cannot be read
/// is left out: its pages will then come in when they are needed.
pub fn keep_cached() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return;
    };
    for path in code_files(&maps) {
        let _ = page_cache::warm(&path);
    }
}

/// Files whose code is mapped, from `/proc/self/maps`; see proc(5).
fn code_files(maps: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| {
            let path = line.find('/').map(|start| &line[start..])?;
            let is_code = line.split_whitespace().nth(1)?.contains('x');
            is_code.then(|| PathBuf::from(path))
        })
        .collect();
    files.sort();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_code_count_each_once() {
        let maps = "\
55d0-55d1 r--p 00000000 fe:00 12 /usr/bin/a program
55d1-55d2 r-xp 00001000 fe:00 12 /usr/bin/a program
7f00-7f01 r-xp 00000000 fe:00 13 /lib/libc.so.6
7f01-7f02 r-xp 00000000 00:00 0 [vdso]
7f02-7f03 rw-p 00000000 fe:00 14 /tmp/data
7f03-7f04 r-xp 00002000 fe:00 13 /lib/libc.so.6
";
        let files = code_files(maps);
        assert_eq!(
            files,
            [
                PathBuf::from("/lib/libc.so.6"),
                PathBuf::from("/usr/bin/a program")
            ]
        );
    }
}
