//! A worker whose store is watched by an on-access scanner: it does as any other worker does, while
//! every file that it opens is first looked at by the scanner.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use sqlitmus_core::case::Scanner;

use super::Worker;
use crate::machine::scanner::{Scan, Scanned};
use crate::protocol::{Request, Response};

/// Serves as [`super::serve`] does, after the scanner has begun; where it cannot, the first request is
/// answered with the reason.
pub fn serve(requests: &mut dyn BufRead, responses: &mut dyn Write) -> bool {
    let mut begun = asked().and_then(|(scanner, directory)| Scan::begin(scanner, &directory));
    super::serve_with(
        requests,
        responses,
        &mut |worker, request| match &mut begun {
            Ok(scan) => answer(scan, worker, request),
            Err(reason) => Response::Unavailable {
                reason: reason.clone(),
            },
        },
    )
}

/// What the command line asks for: `__scanned PARENT SCANNER DIRECTORY`.
fn asked() -> Result<(Scanner, PathBuf), String> {
    let mut words = std::env::args_os().skip(3);
    let scanner = words.next().and_then(|word| Scanner::parse(word.to_str()?));
    scanner
        .zip(words.next().map(PathBuf::from))
        .ok_or_else(|| "a scanned worker is told by what, and where".to_owned())
}

/// Answers, and adds what the scanner did meanwhile to what a slice used: for its untimed operations
/// too, whose number is there as well.
fn answer(scan: &mut Scan, worker: &mut Worker, request: Request) -> Response {
    let is_slice = matches!(request, Request::Slice { .. });
    let before = if is_slice { scan.scanned() } else { None };
    let mut response = worker.answer(request);
    if !is_slice {
        return response;
    }
    let Some((before, after)) = before.zip(scan.scanned()) else {
        return Response::Failed {
            reason: "the scanner has ended: what was measured was not scanned".to_owned(),
            environment: false,
        };
    };
    let (operations, resources) = match &mut response {
        Response::Sliced {
            lead_in,
            timed,
            resources,
            ..
        } => (lead_in.operations + timed.operations, resources),
        Response::Measured {
            lead_in,
            timed,
            resources,
            ..
        } => {
            let spans = lead_in.iter().chain(timed.iter());
            (spans.map(|span| span.operations).sum(), resources)
        }
        _ => return response,
    };
    add(resources, &before, &after, operations);
    response
}

fn add(resources: &mut BTreeMap<String, u64>, before: &Scanned, after: &Scanned, operations: u64) {
    let scanned = after.since(before).into_iter();
    for (name, value) in scanned.chain([("scanned_operations", operations)]) {
        resources.insert(name.to_owned(), value);
    }
}
