//! Promises of the crate, tested against a real server.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the helpers of tests fail as tests do"
)]

mod backups;
mod bodies;
mod calls;
mod corrupt;
mod deliveries;
mod full;
mod identities;
mod journals;
mod logs;
mod maintenance;
mod model;
mod readiness;
mod runs;
mod silence;
mod singletons;
mod spend;
mod tables;
mod tls;
mod topology;
mod wakeups;
mod world;
