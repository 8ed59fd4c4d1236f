//! `journeyman up`: everything in one process.

use std::process::ExitCode;

use clap::Args;
use secrecy::ExposeSecret;

use super::{console, say, settings_file};
use crate::{
    access::Access,
    args::Settings,
    local::{Local, Plan},
};

/// Start NATS, Redis and all five services on this machine; data under .journeyman/
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    settings: Settings,
}

pub(super) async fn run(asked: Arguments) -> anyhow::Result<ExitCode> {
    start(asked.settings, Vec::new()).await
}

/// With some settings from the command line.
pub(super) async fn start(settings: Settings, more: Vec<(String, String)>) -> anyhow::Result<ExitCode> {
    let file = settings_file(settings.settings);
    let shown: Telemetry = bootstrap::settings::load(file.as_deref(), std::env::vars())?;
    let telemetry = bootstrap::telemetry::init("journeyman", &shown.telemetry)?;
    let [shutdown, at_once] = bootstrap::signals();
    let data = settings.data;
    let environment: Vec<_> = std::env::vars().chain(more).collect();
    let plan = Plan {
        file: file.clone(),
        environment: environment.clone(),
        data: data.clone(),
        free_ports: false,
        ..Plan::default()
    };
    let Some(local) = shutdown.run_until_cancelled(Box::pin(Local::start(plan))).await else {
        return Ok(ExitCode::from(130));
    };
    let local = local?;
    let console = console::beside(file.as_deref(), environment, &local.url).await?;
    Access {
        url: local.url.clone(),
        token: local.token.expose_secret().to_owned(),
    }
    .save(&data)?;
    say(&format!(
        "ready: {}/webhooks/jira and /webhooks/github, API at {}/v1",
        local.url, local.url
    ));
    if let Some(console) = &console {
        say(&console.announcement(&data));
    }
    // Dropped at the second signal, it ends NATS and Redis all the same.
    let ended = at_once
        .run_until_cancelled(Box::pin(local.run_until(shutdown)))
        .await;
    Access::forget(&data);
    if let (Some(console), Some(_)) = (console, &ended) {
        console.stop().await;
    }
    telemetry.shutdown().await;
    match ended {
        Some(ended) => ended.map(|()| ExitCode::SUCCESS),
        None => Ok(ExitCode::from(130)),
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Telemetry {
    telemetry: bootstrap::telemetry::Settings,
}
