//! Interruption: Ctrl-C (SIGINT) and SIGTERM ask a command to stop. The command looks when it can
//! stop cleanly, ends its workers, keeps what it has, and exits with 130. A second signal while
//! it is at that ends the process at once.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

static REQUESTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Starts to listen.
///
/// # Errors
/// The system refuses signal handlers.
pub fn listen() -> std::io::Result<()> {
    let requested = REQUESTED.get_or_init(|| Arc::new(AtomicBool::new(false)));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the flag set by the first, and ends the process.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(requested))?;
        flag::register(signal, Arc::clone(requested))?;
    }
    Ok(())
}

/// Whether the user has asked to stop.
#[must_use]
pub fn requested() -> bool {
    REQUESTED
        .get()
        .is_some_and(|requested| requested.load(Ordering::Relaxed))
}

/// Makes a worker deaf to these signals, which terminals and service managers send to the whole
/// group of processes: the orchestrator decides what becomes of its workers.
///
/// # Errors
/// The system refuses signal handlers.
pub fn ignore() -> std::io::Result<()> {
    let nobody = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&nobody))?;
    }
    Ok(())
}
