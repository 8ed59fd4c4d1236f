//! `journeyman serve`: variant of `up` with typical server options on the command line.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
};

use clap::Args;

use super::{find_settings_file, up::start_everything};
use crate::args::SettingsArguments;

/// Same as `up`, with the port and the folder of rules on the command line
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct Arguments {
    /// Port for webhooks and the API, at the address of `ingest.listen` [default: that of the settings, else 7401]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Folder with one rules file per repository [default: that of the settings]
    #[arg(long, value_name = "DIR")]
    config_dir: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingsArguments,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let mut more = Vec::new();
    if let Some(port) = asked.port {
        // The option replaces the port alone, so the configured address is kept.
        let file = find_settings_file(asked.settings.settings.clone());
        let known: IngestListenSection =
            bootstrap::settings::load_settings(file.as_deref(), std::env::vars())?;
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
    start_everything(asked.settings, more).await
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct IngestListenSection {
    ingest: ListenAddress,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct ListenAddress {
    listen: Option<SocketAddr>,
}
