//! A trial of a workload that may have several threads: rows and jobs. What is done is the
//! workload's business ([`sqlitmus_engines::workloads`]); here it is only asked for and metered.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use sqlitmus_core::case::Workload;
use sqlitmus_engines::EngineError;
use sqlitmus_engines::workloads::{self, Running};

use super::index_trial::IndexTrial;
use super::lifecycle_trial::LifecycleTrial;
use super::meter::TrialMeter;
use super::{check_version, split, sync_filesystem};
use crate::machine::device_reads::StoreDevice;
use crate::machine::processor;
use crate::protocol::{PROTOCOL_VERSION, Preparation, Request, Response};

/// A trial under way.
pub(super) struct TeamTrial {
    store: PathBuf,
    running: Box<dyn Running>,
    /// Its slices are long enough to be worth asking what its device does meanwhile.
    device: Option<StoreDevice>,
}

impl TeamTrial {
    /// Opens the store and makes everything that must not be made while the clock runs.
    pub(super) fn prepare(preparation: Preparation) -> Result<(Self, Response), EngineError> {
        check_version(&preparation)?;
        let case = &preparation.case;
        // Neither is wrong where it fails, only noisier: the attempt is enough. Several threads
        // get all cores; the process has begun on the one that the orchestrator stays on.
        let _ = match preparation.core {
            Some(core) if case.workload.threads() == 1 => processor::pin_to_core(core),
            _ => processor::use_cores(&preparation.cores),
        };
        let (directory, store) = split(&preparation.store);
        std::env::set_current_dir(directory)
            .map_err(EngineError::io("enter the directory", directory))?;
        let engine = sqlitmus_engines::find(&case.engine)
            .map_err(|error| EngineError::Unavailable(error.to_string()))?;
        engine.set_up_process(&case.settings)?;
        let of_workload = workloads::Preparation {
            case,
            store,
            key_offset: preparation.key_offset,
            order_seed: preparation.order_seed,
            slice: Duration::from_nanos(preparation.slice_ns),
            slice_lead_in: Duration::from_nanos(preparation.slice_lead_in_ns),
        };
        let mut running: Box<dyn Running> = match case.workload {
            Workload::Index { .. } => Box::new(IndexTrial::prepare(&of_workload)?),
            Workload::Lifecycle { .. } => Box::new(LifecycleTrial::prepare(&of_workload)?),
            _ => workloads::prepare(&of_workload)?,
        };
        let read_back = running.read_back()?;
        let trial = Self {
            device: StoreDevice::of(store),
            store: store.to_owned(),
            running,
        };
        let response = Response::Prepared {
            protocol_version: PROTOCOL_VERSION,
            read_back,
        };
        Ok((trial, response))
    }

    /// Does what a request asks for.
    pub(super) fn answer(&mut self, request: Request) -> Result<Response, EngineError> {
        match request {
            Request::LeadIn { generation } => {
                let spans = self.running.lead_in(generation)?;
                Ok(Response::Started { spans })
            }
            Request::Slice { generation } => self.slice(generation),
            Request::Settle => self.settle(),
            Request::Finish { verify } => {
                let digests = self.running.verify(&verify)?;
                Ok(Response::Finished { digests })
            }
            other => Ok(super::failed(format!("out of order: {other:?}"))),
        }
    }

    fn slice(&mut self, generation: u64) -> Result<Response, EngineError> {
        let mut meter = TrialMeter::of_warm_device(self.device.as_ref());
        let stretch = self.running.slice(generation, &mut meter)?;
        let mut resources = meter.into_used();
        resources.extend(stretch.counters);
        Ok(Response::Measured {
            lead_in: stretch.lead_in,
            timed: stretch.timed,
            elapsed_ns: stretch.elapsed_ns,
            latencies: stretch.latencies,
            resources,
        })
    }

    fn settle(&mut self) -> Result<Response, EngineError> {
        let start = Instant::now();
        self.running.settle()?;
        sync_filesystem(&self.store)?;
        Ok(Response::Settled {
            elapsed_ns: start.elapsed().as_nanos() as u64,
        })
    }
}
