//! Common parts of every service's main: settings, rules, telemetry, health, TLS, signals and the run itself.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod expiry;
pub mod health;
pub mod http;
pub mod jitter;
pub mod memory;
mod outbound;
mod programs;
pub mod rules;
mod run;
mod secret_files;
pub mod service;
pub mod settings;
pub mod span_buffer;
pub mod span_forwarder;
pub mod suggestion;
pub mod telemetry;
pub mod tls;
pub mod trace;

use std::time::{SystemTime, UNIX_EPOCH};

use domain::Timestamp;

pub use outbound::{install_process_proxy, install_proxy};
pub use programs::own_program;
pub use run::{
    ServiceApp, ServiceConfig, install_tls_provider, listen_for_signals, run_app, run_service, serve_app,
    shutdown_signal,
};
pub use telemetry::name_process_instance;

/// Current wall-clock time, to the millisecond.
pub fn read_wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}
