//! The page that lists a directory. It jumps from name to name in the index, over all that lies
//! deeper, so that it takes as long as the page is, however much is below.

use std::collections::HashSet;
use std::fmt::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::entry::Kind;
use crate::error::ArchiveError;
use crate::reader::Reader;

/// Names on a page; a link leads to the next.
const PAGE_NAMES: usize = 1000;

/// What stays as it is in a path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/');

/// What is answered for a name that is no file.
pub(super) enum Page {
    Html(String),
    /// A directory whose address lacks the slash at the end: links on its page would lead elsewhere.
    MovedTo(String),
    Missing,
}

/// The page of a directory; the empty name is the top.
pub(super) fn page(
    reader: &Reader,
    name: &str,
    path: &str,
    query: &str,
) -> Result<Page, ArchiveError> {
    let prefix = match name {
        "" => String::new(),
        name if name.ends_with('/') => name.to_owned(),
        name => format!("{name}/"),
    };
    let after = query
        .strip_prefix("after=")
        .map(|text| percent_decode_str(text).decode_utf8_lossy());
    // A client's word: only what is in this directory counts.
    let after = after.filter(|after| after.starts_with(&prefix));
    let from = after.as_deref().unwrap_or(&prefix);
    let (names, next) = children(reader, &prefix, from)?;
    if names.is_empty() && !prefix.is_empty() {
        let directory = reader.entry(prefix.trim_end_matches('/'))?;
        if directory.is_none_or(|entry| entry.kind != Kind::Directory) {
            return Ok(Page::Missing);
        }
    }
    if !path.ends_with('/') {
        return Ok(Page::MovedTo(format!(
            "/{}",
            utf8_percent_encode(&prefix, PATH)
        )));
    }
    render(reader, &prefix, &names, next.as_deref()).map(Page::Html)
}

/// Names in a directory from a name on, those of directories with a slash at the end; and where the next page
/// begins, if there is one.
fn children(
    reader: &Reader,
    prefix: &str,
    from: &str,
) -> Result<(Vec<String>, Option<String>), ArchiveError> {
    // No name behind the prefix is larger.
    let last = match prefix.strip_suffix('/') {
        Some(directory) => format!("{directory}0"),
        None => char::MAX.to_string().repeat(2),
    };
    let mut names: Vec<String> = Vec::new();
    let mut at = from.to_owned();
    while let Some(name) = reader.name_after(&at, &last)? {
        let Some(rest) = name.strip_prefix(prefix) else {
            break;
        };
        if names.len() == PAGE_NAMES {
            return Ok((names, Some(at)));
        }
        match rest.split_once('/') {
            Some((child, _)) => {
                let directory = format!("{prefix}{child}/");
                // Over everything in it: `0` follows `/`.
                at = format!("{prefix}{child}/{}", char::MAX);
                if names.last() != Some(&directory) {
                    names.push(directory);
                }
            }
            None => {
                at.clone_from(&name);
                names.push(name);
            }
        }
    }
    Ok((names, None))
}

fn render(
    reader: &Reader,
    prefix: &str,
    names: &[String],
    next: Option<&str>,
) -> Result<String, ArchiveError> {
    let title = escape(&format!("/{prefix}"));
    let mut page = format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <style>body{{font-family:sans-serif}}td{{padding-right:2em}}td+td{{text-align:right}}</style>\
         </head><body><h1>{title}</h1><table>\n"
    );
    if !prefix.is_empty() {
        page.push_str("<tr><td><a href=\"../\">../</a></td></tr>\n");
    }
    let all: HashSet<&str> = names.iter().map(String::as_str).collect();
    for name in names {
        let is_below = name.ends_with('/');
        let entry = if is_below { None } else { reader.entry(name)? };
        let shown = escape(&name[prefix.len()..]);
        let address = utf8_percent_encode(name, PATH);
        // Writing to a string cannot fail.
        let _ = match entry {
            Some(entry) if entry.kind == Kind::File => writeln!(
                page,
                "<tr><td><a href=\"/{address}\">{shown}</a></td><td>{}</td></tr>",
                entry.size
            ),
            Some(entry) if entry.kind == Kind::Directory => {
                writeln!(
                    page,
                    "<tr><td><a href=\"/{address}/\">{shown}/</a></td></tr>"
                )
            }
            Some(_) => writeln!(page, "<tr><td>{shown}</td><td>link</td></tr>"),
            // A directory that has a line by its own entry.
            None if name
                .strip_suffix('/')
                .is_some_and(|entry| all.contains(entry)) =>
            {
                Ok(())
            }
            None => writeln!(page, "<tr><td><a href=\"/{address}\">{shown}</a></td></tr>"),
        };
    }
    page.push_str("</table>\n");
    if let Some(next) = next {
        let next = utf8_percent_encode(next, NON_ALPHANUMERIC);
        let _ = writeln!(page, "<p><a href=\"?after={next}\">more</a></p>");
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            character if character.is_control() => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}
