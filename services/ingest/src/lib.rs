//! Ingest: the only service that receives and reads outside events, and the server of the API. It writes nothing
//! outside, calls no model and runs no code.

pub mod api;
mod approved;
mod background;
mod body;
mod catch_up;
mod census;
mod command;
mod config;
mod cost;
mod deciders;
mod discussions;
mod extent;
mod facts;
mod gates;
mod gather;
mod hex;
mod hidden;
mod instructors;
mod issues;
mod kinds;
mod listed;
mod log;
mod look;
mod looks;
mod loops;
mod memory;
mod mention;
mod named;
mod networks;
mod outcome;
mod outside;
mod own;
mod patches;
mod payload;
mod pin;
mod poller;
mod projector;
mod pulls;
mod read_error;
mod reconcile;
mod reminders;
mod repair;
mod router;
mod seen;
mod server;
mod signature;
mod since;
mod skip;
mod standing;
mod sweeper;
mod tracked;
mod tracker;
mod work;

pub use api::ApiToken;
pub use config::{Config, SecretList, Settings};
pub use extent::Extent;
pub use look::{Look, look};
pub use reconcile::OVERLAP_MS;
pub use tracked::{Allowance, CHECKS_AN_HOUR, Tracked};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serves webhooks and the API, routes deliveries, polls and wakes tickets, until shutdown.
///
/// # Errors
/// When NATS stays unreachable for a minute, when its streams differ from the topology, or when settings turn out not
/// to work.
pub async fn serve(config: Config, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
    serve_as(Extent::Whole, config, listener, shutdown).await
}

/// Variant of [`serve`] that runs a part of ingest, for the duration of one command.
///
/// # Errors
/// Those of [`serve`].
pub async fn serve_as(
    extent: Extent,
    config: Config,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    bootstrap::expiry::tell(&config.credential_ends());
    work::Service::new(&config, shutdown)?
        .run(extent, config, listener)
        .await
}
