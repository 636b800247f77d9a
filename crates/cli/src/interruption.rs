//! Interruption: Ctrl-C (SIGINT) once asks a command to stop after what it is at, so that it counts: of a run the
//! round, whose trials are measured in turns and end together. Twice, or SIGTERM, asks it to stop now: what is
//! under way is kept and does not count. Either way the command ends its workers, reports what it has, and exits
//! with 130. A further signal ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

static FLAGS: OnceLock<Flags> = OnceLock::new();

/// What signals have come.
struct Flags {
    once: Arc<AtomicBool>,
    now: Arc<AtomicBool>,
}

/// Starts to listen.
///
/// # Errors
/// The system refuses signal handlers.
pub fn listen() -> std::io::Result<()> {
    let flags = FLAGS.get_or_init(|| Flags {
        once: Arc::new(AtomicBool::new(false)),
        now: Arc::new(AtomicBool::new(false)),
    });
    // The third signal finds `now` set by the second. Registered first, so that it does so even while the
    // thread below is busy.
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&flags.now))?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (once, now) = (Arc::clone(&flags.once), Arc::clone(&flags.now));
    std::thread::spawn(move || {
        for signal in signals.forever() {
            // Who terminates a program waits a short while and then kills it: that is no first Ctrl-C.
            let again = once.swap(true, Ordering::SeqCst);
            if again || signal == SIGTERM {
                now.store(true, Ordering::SeqCst);
            }
        }
    });
    Ok(())
}

/// Whether the user has asked to stop, after what is under way or now.
#[must_use]
pub fn requested() -> bool {
    FLAGS
        .get()
        .is_some_and(|flags| flags.once.load(Ordering::Relaxed))
}

/// Whether what is under way is to stop now.
#[must_use]
pub fn now() -> bool {
    FLAGS
        .get()
        .is_some_and(|flags| flags.now.load(Ordering::Relaxed))
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
