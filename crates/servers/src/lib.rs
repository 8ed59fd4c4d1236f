//! Launchers of the two real servers: each is found, started on a loopback port, awaited, and reaped on drop.

mod cluster;
mod find;
mod nats;
mod process;
mod redis;
mod remains;

pub use cluster::NatsCluster;
pub use find::find_program;
pub use nats::{ClusterMember, FileSync, NatsOptions, NatsServer, TlsFiles, nats_version};
pub use redis::{RedisOptions, RedisServer, redis_version};
pub use remains::{ScratchFolder, ServerRemains};

use std::path::PathBuf;

/// Why a server could not be started. The audience is the operator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is in none of the places where it is looked for.
    #[error("{program} was not found: looked at {looked_at}")]
    NotFound {
        /// The program's name.
        program: String,
        /// The places, in order.
        looked_at: String,
    },
    /// The program could not be run at all.
    #[error("{} cannot be run: {source}", program.display())]
    Spawn {
        /// The program's path.
        program: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The server ended, or did not answer, within the time allowed.
    #[error("{program} {problem}; the end of its log:\n{log_tail}")]
    NotReady {
        /// The program's name.
        program: String,
        /// What happened instead.
        problem: String,
        /// The last lines of the server's log.
        log_tail: String,
    },
    /// A data directory or a settings file could not be written or read.
    #[error("{}: {source}", path.display())]
    Files {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The program's `--version` says nothing that looks like a version.
    #[error("{} does not tell its version: {output:?}", program.display())]
    Version {
        /// The program's path.
        program: PathBuf,
        /// What it said.
        output: String,
    },
}
