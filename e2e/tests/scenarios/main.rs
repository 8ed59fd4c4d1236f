//! Scenarios of the binary `scenarios` that `make test` plays: samples of the crash matrix and of the faults.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that fails fails its test"
)]

mod crash_matrix;
mod faults;

use tokio::sync::{Mutex, MutexGuard};

/// One scenario at a time: each starts many processes and brings its own parallelism.
static MACHINE: Mutex<()> = Mutex::const_new(());

async fn lock_machine() -> MutexGuard<'static, ()> {
    MACHINE.lock().await
}
