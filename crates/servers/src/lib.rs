//! Launchers of real NATS and Redis servers: each is found, started on a loopback port, awaited, and reaped
//! on drop.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod cleanup;
mod cluster;
#[cfg(test)]
mod killed_owner_tests;
mod nats;
mod ports;
mod process;
mod program_search;
mod redis;

pub use cleanup::{ScratchFolder, ServerRemains};
pub use cluster::NatsCluster;
pub use nats::{ClusterMember, FileSync, NatsOptions, NatsServer, TlsFiles, nats_version};
pub use ports::{bind_free_port, free_port, has_listener};
pub use program_search::find_program;
pub use redis::{RedisOptions, RedisServer, redis_version};

use std::path::PathBuf;

/// Reason why a server could not be started, for the operator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is in none of the searched places.
    #[error("{program} was not found in {looked_at}: install it as docs/install.md describes")]
    NotFound {
        /// Name of the program.
        program: String,
        /// Searched places, in order.
        looked_at: String,
    },
    /// The program could not be executed.
    #[error("{} cannot be run: {source}", program.display())]
    Spawn {
        /// Path of the program.
        program: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The server ended, or did not answer in time.
    #[error("{program} {problem}; the end of its log:\n{log_tail}")]
    NotReady {
        /// Name of the program.
        program: String,
        /// Observed problem.
        problem: String,
        /// Last lines of the server's log.
        log_tail: String,
    },
    /// A data directory or settings file could not be read or written.
    #[error("{}: {source}", path.display())]
    Files {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// No port of the loopback interface is free.
    #[error("no free port on 127.0.0.1: {source}")]
    Port {
        /// Error of the system.
        source: std::io::Error,
    },
    /// The output of `--version` contains no version.
    #[error("{} prints no version: {output:?}", program.display())]
    Version {
        /// Path of the program.
        program: PathBuf,
        /// Output of the program.
        output: String,
    },
}
