//! All services in one process: `journeyman up`, and `journeyman serve` with typical server options on the command line.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
};

use clap::Args;
use secrecy::ExposeSecret;

use super::{EXIT_INTERRUPTED, console, find_settings_file, print_result};
use crate::{
    access::ApiAccess,
    args::SettingsArguments,
    local::{LocalServices, StartPlan},
};

/// Start NATS, Redis and all five services on this machine; data under .journeyman/
#[derive(Debug, Args)]
pub(in crate::commands) struct UpArguments {
    #[command(flatten)]
    settings: SettingsArguments,
}

/// Same as `up`, with the port and the folder of rules on the command line
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct ServeArguments {
    /// Port for webhooks and the API, at the address of `ingest.listen` [default: that of the settings, else 7401]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Folder with one rules file per repository [default: that of the settings]
    #[arg(long, value_name = "DIR")]
    config_dir: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingsArguments,
}

pub(super) async fn run_up(asked: UpArguments) -> anyhow::Result<ExitCode> {
    start_everything(asked.settings, Vec::new()).await
}

pub(super) async fn run_serve(asked: ServeArguments) -> anyhow::Result<ExitCode> {
    let mut more = Vec::new();
    if let Some(port) = asked.port {
        // The option replaces the port alone, so the configured address is kept.
        let file = find_settings_file(asked.settings.settings.clone());
        let known: IngestListenSection = bootstrap::settings::load_process_settings(file.as_deref())?;
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

/// Starts everything with additional settings from the command line.
async fn start_everything(
    settings: SettingsArguments,
    more: Vec<(String, String)>,
) -> anyhow::Result<ExitCode> {
    let file = find_settings_file(settings.settings);
    let shown: StartSections = bootstrap::settings::load_process_settings(file.as_deref())?;
    let telemetry = bootstrap::telemetry::install_logging("journeyman", &shown.telemetry)?;
    let [shutdown, at_once] = bootstrap::listen_for_signals();
    let data = settings.data;
    let mut environment = bootstrap::settings::read_environment()?;
    environment.extend(more);
    // The console's address must be known before the reporter starts, because its settings link to
    // the pages.
    let console = console::reserve_console(file.as_deref(), environment.clone()).await?;
    if let Some(console) = &console {
        environment.extend(console.links(&environment, &shown.reporter));
    }
    let plan = StartPlan {
        file,
        environment,
        data: data.clone(),
        free_ports: false,
        ..StartPlan::default()
    };
    let Some(local) = shutdown
        .run_until_cancelled(Box::pin(LocalServices::start(plan)))
        .await
    else {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    };
    let local = local?;
    local.remains().iter().for_each(|line| print_result(line));
    let console = console.map(|console| console.serve(&local.url));
    // The file appears once all services are ready, so that other commands find a working API.
    ApiAccess {
        url: local.url.clone(),
        token: local.token.expose_secret().to_owned(),
    }
    .save(&data)?;
    shown.lines(&local.url).iter().for_each(|line| print_result(line));
    if let Some(console) = &console {
        print_result(&console.announcement(&data));
    }
    // The second signal drops the future, which still stops NATS and Redis.
    let ended = at_once
        .run_until_cancelled(Box::pin(local.run_until(shutdown)))
        .await;
    // The token was valid for this process only.
    ApiAccess::forget(&data);
    // After the second signal the console is dropped without waiting for its requests.
    if let (Some(console), Some(_)) = (console, &ended) {
        console.stop().await;
    }
    // Telemetry ends last, so that it exports what the shutdown records.
    telemetry.shutdown().await;
    match ended {
        Some(ended) => ended.map(|()| ExitCode::SUCCESS),
        None => Ok(ExitCode::from(EXIT_INTERRUPTED)),
    }
}

/// Configured address of ingest.
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

/// Subset of the settings for the messages at the start.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct StartSections {
    telemetry: bootstrap::telemetry::Settings,
    github_reader: github::Settings,
    jira_reader: jira::Settings,
    reporter: console::ConsoleLinks,
}

impl StartSections {
    /// Messages about the addresses and the disabled services.
    fn lines(&self, url: &str) -> Vec<String> {
        let off = [
            ("jira", "Jira", self.jira_reader.is_empty()),
            ("github", "GitHub", self.github_reader.is_without_account()),
        ];
        let on = off.iter().filter(|(_, _, is_off)| !is_off);
        let hooks: Vec<String> = on.map(|(name, ..)| format!("/webhooks/{name}")).collect();
        let hooks = if hooks.is_empty() {
            String::new()
        } else {
            format!("{url}{}, ", hooks.join(" and "))
        };
        let mut lines = vec![format!("ready: {hooks}API at {url}/v1")];
        let off = off.iter().filter(|(_, _, is_off)| *is_off);
        lines.extend(off.map(|(name, title, _)| {
            format!("off: {title}, which the settings name no account for; `journeyman setup {name}` does")
        }));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_lists_disabled_and_listening_sources() {
        let mut sections = StartSections::default();
        let off = |title: &str, name: &str| {
            format!("off: {title}, which the settings name no account for; `journeyman setup {name}` does")
        };
        let neither = sections.lines("http://here");
        assert_eq!(neither[0], "ready: API at http://here/v1");
        assert_eq!(neither[1..], [off("Jira", "jira"), off("GitHub", "github")]);
        sections.github_reader.token = Some("t".to_owned().into());
        let one = sections.lines("http://here");
        assert_eq!(
            one[0],
            "ready: http://here/webhooks/github, API at http://here/v1"
        );
        assert_eq!(one[1..], [off("Jira", "jira")]);
        sections.jira_reader.base_url = "https://jira.example".to_owned();
        let both = sections.lines("http://here");
        assert_eq!(
            both,
            ["ready: http://here/webhooks/jira and /webhooks/github, API at http://here/v1"]
        );
    }
}
