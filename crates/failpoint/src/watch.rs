//! Mode of this process at its failpoints: ignore them, record them, or abort at one.

#[cfg(debug_assertions)]
use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::FailpointPass;
#[cfg(debug_assertions)]
use crate::FailpointPhase;

/// True in builds with failpoints.
pub const IS_ACTIVE: bool = cfg!(debug_assertions);

#[cfg(debug_assertions)]
static IS_WATCHING: AtomicBool = AtomicBool::new(false);
#[cfg(debug_assertions)]
static WATCH: Mutex<Option<FailpointWatch>> = Mutex::new(None);

#[cfg(debug_assertions)]
#[derive(Default)]
struct FailpointWatch {
    armed: Option<FailpointPass>,
    passed: HashMap<(String, String, FailpointPhase), u32>,
    order: Vec<FailpointPass>,
}

/// Starts recording of all points that this process passes, see [`list_recorded_passes`].
pub fn start_recording() {
    #[cfg(debug_assertions)]
    start_watch(None);
}

/// Points that were passed since [`start_recording`], in order.
pub fn list_recorded_passes() -> Vec<FailpointPass> {
    #[cfg(debug_assertions)]
    return lock_watch()
        .as_ref()
        .map(|watch| watch.order.clone())
        .unwrap_or_default();
    #[cfg(not(debug_assertions))]
    return Vec::new();
}

/// Aborts this process with SIGABRT when it passes the point. Only the crash matrix calls it.
pub fn arm_failpoint(point: FailpointPass) {
    #[cfg(debug_assertions)]
    start_watch(Some(point));
    #[cfg(not(debug_assertions))]
    drop(point);
}

#[cfg(debug_assertions)]
fn start_watch(armed: Option<FailpointPass>) {
    // The counts restart, so that the number of a pass is independent of earlier work of the process.
    *lock_watch() = Some(FailpointWatch {
        armed,
        ..FailpointWatch::default()
    });
    IS_WATCHING.store(true, Ordering::SeqCst);
}

#[cfg(debug_assertions)]
fn lock_watch() -> MutexGuard<'static, Option<FailpointWatch>> {
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(debug_assertions)]
pub(crate) fn is_watching() -> bool {
    IS_WATCHING.load(Ordering::Relaxed)
}

#[cfg(debug_assertions)]
pub(crate) fn record_pass(site: &str, kind: &str, phase: FailpointPhase) {
    let mut watch = lock_watch();
    let Some(watch) = watch.as_mut() else { return };
    let nth = watch
        .passed
        .entry((site.to_owned(), kind.to_owned(), phase))
        .and_modify(|nth| *nth += 1)
        .or_insert(1);
    let point = FailpointPass {
        site: site.to_owned(),
        kind: kind.to_owned(),
        phase,
        nth: *nth,
    };
    match &watch.armed {
        // `abort` runs no destructors and flushes no buffers, like a crash.
        Some(armed) if *armed == point => std::process::abort(),
        Some(_) => {}
        None => watch.order.push(point),
    }
}
