//! Names in an archive and targets of its symbolic links: which of them stay inside the directory
//! that they are unpacked into. Nothing here looks at a disk.

/// Splits a name into its components, without `.` and empty ones, as `sqlite3 -A` writes them.
///
/// # Errors
/// What makes the name unusable: it is empty or absolute, leaves the directory, or holds a NUL.
pub fn components(name: &str) -> Result<Vec<&str>, &'static str> {
    if name.starts_with('/') {
        return Err("its name is absolute");
    }
    if name.contains('\0') {
        return Err("its name has a NUL in it");
    }
    let parts: Vec<&str> = name
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.contains(&"..") {
        return Err("its name has `..` in it");
    }
    Ok(parts)
}

/// Whether a link that lies `depth` directories below the top cannot lead out of it: it is relative,
/// and climbs at the most `depth` times, all of them first. A `..` behind a name may lead anywhere,
/// since that name may be another link.
///
/// That links of this form never lead out, however many of them are passed, follows by induction: each
/// starts in a real directory below the top, climbs to one that is not above the top, and goes down.
#[must_use]
pub fn link_stays_inside(depth: usize, target: &[u8]) -> bool {
    if target.is_empty() || target[0] == b'/' || target.contains(&0) {
        return false;
    }
    let mut climbed = 0;
    let mut went_down = false;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if went_down => return false,
            b".." => climbed += 1,
            _ => went_down = true,
        }
    }
    climbed <= depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_and_those_that_leave_are_refused() {
        assert_eq!(components("a/b"), Ok(vec!["a", "b"]));
        assert_eq!(components("./a//b/."), Ok(vec!["a", "b"]));
        assert_eq!(components("."), Ok(vec![]));
        assert_eq!(components("..a/b.."), Ok(vec!["..a", "b.."]));
        assert_eq!(components("a\\..\\b"), Ok(vec!["a\\..\\b"]));
        for bad in ["/a", "..", "a/..", "../a", "a/../b", "a\0b", "./../a"] {
            assert!(components(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn links_that_climb_too_far_or_late_are_refused() {
        for (depth, target) in [
            (0, "a"),
            (0, "./a/b"),
            (1, "../a"),
            (2, "../../a"),
            (1, ".."),
        ] {
            assert!(
                link_stays_inside(depth, target.as_bytes()),
                "{depth} {target}"
            );
        }
        for (depth, target) in [
            (0, ".."),
            (0, "/etc/passwd"),
            (1, "../../a"),
            (3, "a/../b"),
            (3, "a/../../../b"),
            (3, ""),
            (3, "a\0b"),
        ] {
            assert!(
                !link_stays_inside(depth, target.as_bytes()),
                "{depth} {target}"
            );
        }
    }
}
