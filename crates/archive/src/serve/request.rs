//! What a request asks for: the name in its path, and its conditions and range (RFC 9110, sections 13
//! and 14), judged against what there is. Nothing here reads an archive or a socket.

use std::time::SystemTime;

use hyper::HeaderMap;
use hyper::header::{self, HeaderName};
use percent_encoding::percent_decode_str;

/// The entry that a path names; `None` if it can name none. A name is only ever looked up in a table, so no path
/// leads anywhere else; one that tries to is refused all the same.
pub(crate) fn name_of(path: &str) -> Option<String> {
    let path = path.strip_prefix('/')?;
    let name = percent_decode_str(path).decode_utf8().ok()?;
    let is_bad = |part: &str| part == ".." || part == "." || part.contains('\0');
    if name.split('/').any(is_bad) {
        return None;
    }
    Some(name.into_owned())
}

/// A half-open range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// What tells one state of a file from another.
pub(crate) struct Validators {
    /// With quotes.
    pub(crate) tag: String,
    pub(crate) modified: Option<SystemTime>,
}

/// What a client makes its request depend on.
#[derive(Debug, Default, Clone)]
pub(crate) struct Conditions {
    match_tags: Option<String>,
    none_match_tags: Option<String>,
    modified_since: Option<SystemTime>,
    unmodified_since: Option<SystemTime>,
    if_range: Option<String>,
    range: Option<String>,
}

/// What is to be answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Everything.
    Whole,
    /// A part.
    Part(Range),
    /// The client has it already.
    NotModified,
    /// It is not what the client thinks it is.
    Failed,
    /// There are no such bytes.
    Unsatisfiable,
}

impl Conditions {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let all = |name: HeaderName| {
            let values: Vec<&str> = headers
                .get_all(name)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .collect();
            (!values.is_empty()).then(|| values.join(","))
        };
        let date = |name| all(name).and_then(|text| httpdate::parse_http_date(&text).ok());
        Self {
            match_tags: all(header::IF_MATCH),
            none_match_tags: all(header::IF_NONE_MATCH),
            modified_since: date(header::IF_MODIFIED_SINCE),
            unmodified_since: date(header::IF_UNMODIFIED_SINCE),
            if_range: all(header::IF_RANGE),
            range: all(header::RANGE),
        }
    }

    /// In the order of RFC 9110, section 13.2.2. Only GET has ranges.
    pub(crate) fn judge(&self, validators: &Validators, size: u64, head_only: bool) -> Verdict {
        match (&self.match_tags, self.unmodified_since, validators.modified) {
            (Some(tags), _, _) if !names_strongly(tags, &validators.tag) => return Verdict::Failed,
            (None, Some(since), Some(modified)) if modified > since => return Verdict::Failed,
            _ => {}
        }
        match (
            &self.none_match_tags,
            self.modified_since,
            validators.modified,
        ) {
            (Some(tags), _, _) if names_weakly(tags, &validators.tag) => {
                return Verdict::NotModified;
            }
            (None, Some(since), Some(modified)) if modified <= since => {
                return Verdict::NotModified;
            }
            _ => {}
        }
        match &self.range {
            Some(range) if !head_only && self.range_holds(validators) => judge_range(range, size),
            _ => Verdict::Whole,
        }
    }

    fn range_holds(&self, validators: &Validators) -> bool {
        match self.if_range.as_deref().map(str::trim) {
            None => true,
            Some(tag) if tag.starts_with('"') => tag == validators.tag,
            // A date has to be the very same; a weak tag never holds.
            Some(date) => httpdate::parse_http_date(date)
                .ok()
                .is_some_and(|date| validators.modified == Some(date)),
        }
    }
}

fn names_strongly(tags: &str, tag: &str) -> bool {
    tags.split(',')
        .map(str::trim)
        .any(|each| each == "*" || each == tag)
}

fn names_weakly(tags: &str, tag: &str) -> bool {
    tags.split(',')
        .map(str::trim)
        .any(|each| each == "*" || each.strip_prefix("W/").unwrap_or(each) == tag)
}

/// One range is answered; several, and what is no range of bytes, are not understood, and then the whole is sent,
/// as section 14.2 allows.
fn judge_range(text: &str, size: u64) -> Verdict {
    let unit_and_range = text.split_once('=');
    let Some((_, range)) =
        unit_and_range.filter(|(unit, _)| unit.trim().eq_ignore_ascii_case("bytes"))
    else {
        return Verdict::Whole;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return Verdict::Whole;
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(first) || !is_number(last) || first.is_empty() && last.is_empty() {
        return Verdict::Whole;
    }
    // A number that is too large for us is beyond every end.
    let number = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
    let range = match (first, last) {
        ("", last) => Range {
            begin: size.saturating_sub(number(last)),
            end: size,
        },
        (first, "") => Range {
            begin: number(first),
            end: size,
        },
        (first, last) => {
            if number(last) < number(first) {
                return Verdict::Whole;
            }
            Range {
                begin: number(first),
                end: number(last).saturating_add(1).min(size),
            }
        }
    };
    if range.begin >= range.end {
        Verdict::Unsatisfiable
    } else {
        Verdict::Part(range)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn judge(headers: &[(&str, &str)]) -> Verdict {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            map.append(name, value.parse().expect("a value"));
        }
        let validators = Validators {
            tag: "\"abc\"".to_owned(),
            modified: Some(UNIX_EPOCH + Duration::from_secs(784_111_777)),
        };
        Conditions::of(&map).judge(&validators, 1000, false)
    }

    #[test]
    fn names_are_decoded_and_tricks_are_refused() {
        assert_eq!(name_of("/a/b%20c"), Some("a/b c".to_owned()));
        assert_eq!(name_of("/"), Some(String::new()));
        assert_eq!(name_of("/%C3%A4"), Some("\u{e4}".to_owned()));
        for bad in [
            "/../a",
            "/a/%2e%2e/b",
            "/a/..",
            "/a%2f..%2fb",
            "/%00",
            "/%ff",
            "a",
            "",
            "/./a",
            "*",
        ] {
            assert_eq!(name_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn ranges_are_cut_to_what_there_is() {
        let range = |text| judge(&[("range", text)]);
        let part = |begin, end| Verdict::Part(Range { begin, end });
        assert_eq!(range("bytes=0-0"), part(0, 1));
        assert_eq!(range("bytes=10-19"), part(10, 20));
        assert_eq!(range("bytes=990-"), part(990, 1000));
        assert_eq!(range("bytes=990-99999999999999999999999"), part(990, 1000));
        assert_eq!(range("bytes=-10"), part(990, 1000));
        assert_eq!(range("bytes=-5000"), part(0, 1000));
        assert_eq!(range("bytes=1000-"), Verdict::Unsatisfiable);
        assert_eq!(range("bytes=-0"), Verdict::Unsatisfiable);
        for whole in [
            "bytes=5-4",
            "bytes=a-b",
            "bytes=-",
            "bytes",
            "items=0-1",
            "bytes=0-1,3-4",
            "bytes=+1-2",
        ] {
            assert_eq!(range(whole), Verdict::Whole, "{whole}");
        }
    }

    #[test]
    fn conditions_are_judged_in_the_order_of_the_standard() {
        let same = "Sun, 06 Nov 1994 08:49:37 GMT";
        let before = "Sun, 06 Nov 1994 08:49:36 GMT";
        assert_eq!(judge(&[("if-none-match", "\"abc\"")]), Verdict::NotModified);
        assert_eq!(
            judge(&[("if-none-match", "\"x\", W/\"abc\"")]),
            Verdict::NotModified
        );
        assert_eq!(judge(&[("if-none-match", "*")]), Verdict::NotModified);
        assert_eq!(
            judge(&[("if-none-match", "\"x\""), ("if-modified-since", same)]),
            Verdict::Whole
        );
        assert_eq!(judge(&[("if-modified-since", same)]), Verdict::NotModified);
        assert_eq!(judge(&[("if-modified-since", before)]), Verdict::Whole);
        assert_eq!(judge(&[("if-modified-since", "rubbish")]), Verdict::Whole);
        assert_eq!(judge(&[("if-match", "\"x\"")]), Verdict::Failed);
        assert_eq!(judge(&[("if-match", "W/\"abc\"")]), Verdict::Failed);
        assert_eq!(judge(&[("if-match", "\"abc\"")]), Verdict::Whole);
        assert_eq!(judge(&[("if-unmodified-since", before)]), Verdict::Failed);
        let range = ("range", "bytes=0-0");
        assert_eq!(judge(&[range, ("if-range", "\"x\"")]), Verdict::Whole);
        assert_eq!(judge(&[range, ("if-range", "W/\"abc\"")]), Verdict::Whole);
        assert_ne!(judge(&[range, ("if-range", "\"abc\"")]), Verdict::Whole);
        assert_ne!(judge(&[range, ("if-range", same)]), Verdict::Whole);
        assert_eq!(judge(&[range, ("if-range", before)]), Verdict::Whole);
    }
}
