//! `journeyman setup`: accounts on GitHub and Jira, and the model. Existing configuration stays unchanged.

mod github;
mod installation;
mod jira;
mod kubernetes;
mod model;
mod page;
mod store;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use bootstrap::settings;
use clap::{Args, Subcommand};
use dialoguer::console::Term;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde::Deserialize;
use url::Url;

use self::store::SetupStore;
use super::{EXIT_INTERRUPTED, doctor, print_result, prompt, report_wrong_arguments};
use crate::args::SettingsArguments;

/// Set up the accounts of GitHub and Jira and the model: all that is missing, or one of them; ends with
/// `doctor`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = false)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
    #[command(subcommand)]
    step: Option<SetupStep>,
}

#[derive(Debug, Subcommand)]
enum SetupStep {
    Github(github::Arguments),
    Jira(jira::Arguments),
    Model(model::Arguments),
    Kubernetes(kubernetes::Arguments),
}

/// Existing settings that the setup reads.
#[derive(Default, Deserialize)]
#[serde(default)]
struct KnownSettings {
    github_reader: ::github::Settings,
    github_writer: ::github::Settings,
    jira_reader: ::jira::Settings,
    jira_writer: ::jira::Settings,
    rules: bootstrap::rules::Settings,
    ingest: KnownIngest,
    reporter: KnownReporter,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KnownIngest {
    github_webhook_secrets: settings::TextList,
    jira_webhook_secrets: settings::TextList,
    jira_trigger_group: String,
    jira_trigger_role: String,
    own_accounts: settings::TextList,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KnownReporter {
    run_url: Option<String>,
    guide_url: Option<String>,
}

impl KnownSettings {
    fn read(store: &SetupStore) -> Result<Self, settings::Error> {
        settings::load_process_settings(store.existing())
    }
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let [shutdown, _] = bootstrap::listen_for_signals();
    let before = tcgetattr(std::io::stdin());
    let done = shutdown.run_until_cancelled(Box::pin(run_steps(asked))).await;
    if !shutdown.is_cancelled() {
        return done.unwrap_or(Ok(EXIT_INTERRUPTED.into()));
    }
    // The thread that waits for a key cannot be canceled and restores nothing, so the terminal is restored
    // here.
    if let Ok(before) = before {
        // The process is about to exit, so a failed restore has no one to be reported to.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
        drop(Term::stderr().show_cursor());
    }
    Ok(EXIT_INTERRUPTED.into())
}

async fn run_steps(asked: Arguments) -> anyhow::Result<ExitCode> {
    let file = asked.settings.settings.clone();
    let file = file.unwrap_or_else(|| PathBuf::from("journeyman.toml"));
    let store = SetupStore::new(file, &asked.settings.data);
    bootstrap::install_process_proxy(store.existing())?;
    let done = match asked.step {
        Some(SetupStep::Kubernetes(step)) => {
            // The files are for another machine than the one that doctor would check.
            Box::pin(kubernetes::set_up_kubernetes(step, &store)).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(SetupStep::Github(step)) => Box::pin(github::set_up_github(step, &store)).await,
        Some(SetupStep::Jira(step)) => Box::pin(jira::set_up_jira(step, &store)).await,
        Some(SetupStep::Model(step)) => Box::pin(model::set_up_model(step, &store)).await,
        None => Box::pin(set_up_missing(&store)).await,
    };
    match done {
        Ok(()) => run_doctor(asked.settings, &store).await,
        Err(error) if error.is::<prompt::MissingAnswer>() => Ok(report_wrong_arguments(&error.to_string())),
        Err(error) => Err(error),
    }
}

/// Sets up the missing parts, and checks the existing ones.
async fn set_up_missing(store: &SetupStore) -> anyhow::Result<()> {
    let known = KnownSettings::read(store)?;
    let has_github = !known.github_reader.is_without_account() && !known.github_writer.is_without_account();
    let has_jira = !known.jira_reader.is_empty() && !known.jira_writer.is_empty();
    let is_all_there = has_github && has_jira && model::has_model(store)?;
    if !is_all_there && !prompt::can_ask() {
        let flags = "which step to do (`journeyman setup github`, `setup jira` or `setup model`)";
        return Err(prompt::MissingAnswer(flags.to_owned()).into());
    }
    if has_github || prompt::ask_confirmation("Work with repositories of GitHub?", true).await? {
        Box::pin(github::set_up_github(github::Arguments::default(), store)).await?;
    }
    if has_jira || prompt::ask_confirmation("Take tickets from Jira?", true).await? {
        Box::pin(jira::set_up_jira(jira::Arguments::default(), store)).await?;
    }
    Box::pin(model::set_up_model(model::Arguments::default(), store)).await
}

/// Runs `doctor`. Parts that are not set up fail there with a remedy.
async fn run_doctor(mut settings: SettingsArguments, store: &SetupStore) -> anyhow::Result<ExitCode> {
    // The steps may have created the settings file.
    settings.settings = store.existing().map(Path::to_owned);
    print_result("");
    doctor::run_command(doctor::Arguments {
        settings,
        offline: false,
        ingest_only: false,
    })
    .await
}

/// True for an `http` or `https` address with a host.
fn is_web_address(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Webhook address of a service.
fn build_hook_url(public: &str, service: &str) -> anyhow::Result<String> {
    let url = Url::parse(public).with_context(|| format!("--public-url {public}: not a URL"))?;
    anyhow::ensure!(
        url.scheme() == "https" && url.query().is_none(),
        "--public-url {public}: give the https:// address that {service} reaches Journeyman at"
    );
    let base = url.as_str().trim_end_matches('/');
    Ok(format!("{base}/webhooks/{}", service.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_address_requires_public_https() {
        for (service, path) in [("GitHub", "github"), ("Jira", "jira")] {
            assert_eq!(
                build_hook_url("https://jm.example/", service).unwrap(),
                format!("https://jm.example/webhooks/{path}")
            );
            for wrong in ["http://jm.example", "jm.example", "https://jm.example?x=1"] {
                assert!(build_hook_url(wrong, service).is_err(), "{wrong}");
            }
        }
    }
}
