//! `journeyman up`: everything in one process.

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::ExitCode,
};

use secrecy::ExposeSecret;

use super::{say, settings_file};
use crate::{
    api::Access,
    args::{Serve, Settings},
    local::{Local, Plan},
};

pub(super) async fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    start(settings, Vec::new()).await
}

/// The same, with some settings from the command line.
pub(super) async fn serve(asked: Serve) -> anyhow::Result<ExitCode> {
    let mut more = Vec::new();
    if let Some(port) = asked.port {
        let file = settings_file(asked.settings.settings.clone());
        let known: Listening = bootstrap::settings::load(file.as_deref(), std::env::vars())?;
        let address = known
            .ingest
            .listen
            .map_or(Ipv4Addr::LOCALHOST.into(), |listen| listen.ip());
        let listen = SocketAddr::new(address, port);
        more.push(("JOURNEYMAN__INGEST__LISTEN".to_owned(), listen.to_string()));
    }
    if let Some(folder) = &asked.config_dir {
        anyhow::ensure!(folder.is_dir(), "--config-dir {} is no folder", folder.display());
        more.push(("JOURNEYMAN__RULES__DIR".to_owned(), folder.display().to_string()));
    }
    start(asked.settings, more).await
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Listening {
    ingest: Listen,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Listen {
    listen: Option<SocketAddr>,
}

async fn start(settings: Settings, more: Vec<(String, String)>) -> anyhow::Result<ExitCode> {
    let file = settings_file(settings.settings);
    let shown: Telemetry = bootstrap::settings::load(file.as_deref(), std::env::vars())?;
    let telemetry = bootstrap::telemetry::init("journeyman", &shown.telemetry)?;
    let [shutdown, at_once] = bootstrap::signals();
    let data = settings.data;
    let plan = Plan {
        file,
        environment: std::env::vars().chain(more).collect(),
        data: data.clone(),
        free_ports: false,
    };
    let Some(local) = shutdown.run_until_cancelled(Box::pin(Local::start(plan))).await else {
        return Ok(ExitCode::from(130));
    };
    let local = local?;
    Access {
        url: local.url.clone(),
        token: local.token.expose_secret().to_owned(),
    }
    .save(&data)?;
    say(&format!(
        "ready: {}/webhooks/jira and /webhooks/github, API at {}/v1",
        local.url, local.url
    ));
    // Dropped at the second signal, it ends NATS and Redis all the same.
    let ended = at_once
        .run_until_cancelled(Box::pin(local.run_until(shutdown)))
        .await;
    Access::forget(&data);
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
