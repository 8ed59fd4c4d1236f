//! `journeyman console`: pages for people, as a client of the API.

use std::{net::SocketAddr, process::ExitCode};

use anyhow::Context;
use clap::Args;
use tokio::net::TcpListener;

use super::{INTERRUPTED, say, settings_file};
use crate::access;

/// Serve the console: pages about tickets, runs and decisions, for whoever logs in with an API token
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Base URL of the API [default: that of the `journeyman up` in .journeyman/]
    #[arg(long, value_name = "URL", env = "JOURNEYMAN_API")]
    api: Option<String>,
    /// Where browsers reach it; put TLS in front of anything but a loopback address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7405")]
    listen: SocketAddr,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    let url = asked.api.or_else(access::local_url);
    let url = url.context("no API: start `journeyman up` here, or give --api URL")?;
    let config = pages::Config::new(&url)?;
    let shown: Telemetry = bootstrap::settings::load(settings_file(None).as_deref(), std::env::vars())?;
    let telemetry = bootstrap::telemetry::init("console", &shown.telemetry)?;
    let [shutdown, at_once] = bootstrap::signals();
    let listener = TcpListener::bind(asked.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}", asked.listen))?;
    say(&format!(
        "console at http://{}, a client of {url}",
        listener.local_addr()?
    ));
    let served = pages::serve(config, listener, shutdown);
    let ended = at_once.run_until_cancelled(Box::pin(served)).await;
    telemetry.shutdown().await;
    match ended {
        Some(ended) => ended.map(|()| ExitCode::SUCCESS),
        None => Ok(ExitCode::from(INTERRUPTED)),
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Telemetry {
    telemetry: bootstrap::telemetry::Settings,
}
