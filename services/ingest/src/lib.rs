//! Ingest: the only service that receives and reads outside events, and the server of the API. It writes nothing
//! outside, calls no model and runs no code.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod api;
mod config;
mod events;
mod facts;
mod hex;
mod loops;
mod maintenance;
mod policy;
mod poll;
mod router;
mod service;
mod text;
mod webhook;

pub use api::ApiToken;
pub use config::{Config, SecretList, Settings};
pub use loops::IngestMode;
pub use poll::{
    check_schedule::{CHECKS_AN_HOUR, ReadAllowance, TrackedPullRequest},
    command_rounds::CommandRounds,
    context::OVERLAP_MS,
    dry_round::{DryRound, run_dry_round},
};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serves webhooks and the API, routes deliveries, polls and wakes tickets, until shutdown.
///
/// # Errors
/// When NATS stays unreachable for a minute, when its streams differ from the topology, or when settings turn out not
/// to work.
pub async fn serve_ingest(
    config: Config,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    serve_as(IngestMode::Whole, config, listener, shutdown).await
}

/// Variant of [`serve_ingest`] that runs a part of ingest, for the duration of one command.
///
/// # Errors
/// Those of [`serve_ingest`].
pub async fn serve_as(
    extent: IngestMode,
    config: Config,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    bootstrap::expiry::publish_credential_ends(&config.credential_ends());
    service::IngestService::new(&config, shutdown)?
        .run(extent, config, listener)
        .await
}
