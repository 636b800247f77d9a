//! A trial whose readers are processes: this worker starts one worker for each reader, tells all
//! of them at once what it is told, and puts together what they answer. Each of them is a trial of
//! one thread, and nothing is shared between them but the store.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlitmus_core::case::Case;
use sqlitmus_core::keys::thread_offset;
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::run::is_level;
use sqlitmus_engines::EngineError;

use super::check_version;
use crate::orchestrator::worker_process::{WorkerError, WorkerProcess, WorkerProgram};
use crate::protocol::{Preparation, Request, Response, Span};

/// Longest wait for a reader's answer; the orchestrator's own ends sooner or the trial is long.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// A trial under way.
pub(super) struct CrewTrial {
    members: Vec<WorkerProcess>,
}

impl CrewTrial {
    /// Starts the processes and has them make ready.
    pub(super) fn prepare(preparation: Preparation) -> Result<(Self, Response), EngineError> {
        check_version(&preparation)?;
        let path = std::env::current_exe()
            .map_err(|error| unavailable(&format!("this program's own file: {error}")))?;
        let program = WorkerProgram {
            path,
            timeout: TIMEOUT,
        };
        let readers = preparation.case.workload.threads();
        let case = Case {
            workload: preparation.case.workload.of_one_process(),
            ..preparation.case.clone()
        };
        let mut crew = Self {
            members: Vec::new(),
        };
        let mut requests = Vec::new();
        for reader in 0..readers {
            crew.members
                .push(WorkerProcess::start(&program, None).map_err(failed)?);
            requests.push(Request::Prepare(Box::new(Preparation {
                case: case.clone(),
                key_offset: thread_offset(preparation.key_offset, reader, readers),
                // Each has the cores that threads would share.
                core: None,
                ..preparation.clone()
            })));
        }
        let prepared = crew.ask(&requests)?;
        match prepared.into_iter().next() {
            Some(first) => Ok((crew, first)),
            None => Err(unavailable("a crew of no processes")),
        }
    }

    /// Does what a request asks for.
    pub(super) fn answer(&mut self, request: &Request) -> Result<Response, EngineError> {
        if let Request::Settle | Request::Finish { .. } = request {
            return self.by_the_first(request);
        }
        let requests = vec![request.clone(); self.members.len()];
        let answers = self.ask(&requests)?;
        match request {
            Request::LeadIn { .. } => {
                let spans = answers.into_iter().map(|answer| match answer {
                    Response::Started { spans } => Ok(spans),
                    other => Err(unexpected(&other)),
                });
                let spans = spans.collect::<Result<Vec<_>, _>>()?.concat();
                Ok(Response::Started { spans })
            }
            Request::Slice { .. } => together(answers),
            other => Ok(super::failed(format!("out of order: {other:?}"))),
        }
    }

    /// Readers leave nothing to be settled, and one of them is enough to verify.
    fn by_the_first(&mut self, request: &Request) -> Result<Response, EngineError> {
        match self.members.first_mut() {
            Some(first) => first.ask(request).map_err(failed),
            None => Err(unavailable("a crew of no processes")),
        }
    }

    /// Asks all at once, and waits for all.
    fn ask(&mut self, requests: &[Request]) -> Result<Vec<Response>, EngineError> {
        let answers: Vec<Result<Response, WorkerError>> = std::thread::scope(|scope| {
            let asked: Vec<_> = self
                .members
                .iter_mut()
                .zip(requests)
                .map(|(member, request)| scope.spawn(move || member.ask(request)))
                .collect();
            let joined = asked.into_iter().map(|thread| match thread.join() {
                Ok(answer) => answer,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect()
        });
        answers
            .into_iter()
            .map(|answer| answer.map_err(failed))
            .collect()
    }
}

/// The slices of all as one.
fn together(answers: Vec<Response>) -> Result<Response, EngineError> {
    let (mut lead_ins, mut all_timed) = (Vec::<Span>::new(), Vec::<Span>::new());
    let mut all_latencies = Vec::new();
    let mut used = BTreeMap::<String, u64>::new();
    let mut longest_ns = 0;
    for answer in answers {
        let Response::Measured {
            lead_in,
            timed,
            elapsed_ns,
            latencies,
            resources,
        } = answer
        else {
            return Err(unexpected(&answer));
        };
        lead_ins.extend(lead_in);
        all_timed.extend(timed);
        all_latencies.push(latencies);
        longest_ns = longest_ns.max(elapsed_ns);
        for (name, value) in resources {
            // What the machine as a whole counts, each of them has counted.
            let is_common = is_level(&name) || name.starts_with("machine_");
            let sum = used.entry(name).or_default();
            *sum = if is_common {
                value.max(*sum)
            } else {
                value.saturating_add(*sum)
            };
        }
    }
    Ok(Response::Measured {
        lead_in: lead_ins,
        timed: all_timed,
        elapsed_ns: longest_ns,
        latencies: Latencies::merged(&all_latencies),
        resources: used,
    })
}

fn unavailable(reason: &str) -> EngineError {
    EngineError::Unavailable(reason.to_owned())
}

fn unexpected(response: &Response) -> EngineError {
    let word = format!("{response:?}");
    let word = word.split([' ', '(', '{']).next().unwrap_or_default();
    failed(WorkerError::Rubbish(word.to_owned()))
}

/// A reader's failure is the trial's; what the machine lacks, it lacks for all.
fn failed(error: WorkerError) -> EngineError {
    match error {
        WorkerError::Unavailable(reason) => EngineError::Unavailable(reason),
        other => EngineError::Io {
            doing: "read in another process of",
            path: "the crew".into(),
            source: std::io::Error::other(other.to_string()),
        },
    }
}
