//! `journeyman process-ticket`: one ticket, now, to the end of its run.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use bootstrap::rules::{Connections, RulesBook};
use domain::{Entry, Fact, Instance, Job, StopReason, TicketKey, Timestamp};
use futures::{Stream, TryStreamExt};
use serde::{Deserialize, de::IgnoredAny};
use tokio_util::sync::CancellationToken;

use super::{say, say_error, settings_file};
use crate::{
    api::Client,
    args::{self, InFolder},
    local::{Local, Plan},
    timeline,
};

pub(super) async fn run(ticket: &str, asked: InFolder) -> anyhow::Result<ExitCode> {
    if asked.accept || asked.dry_run || asked.model.is_some() || asked.base_url.is_some() {
        return Ok(wrong(
            "--accept, --dry-run, --model and --base-url go with --repository",
        ));
    }
    let ticket = match args::ticket(ticket) {
        Ok(ticket) => ticket,
        Err(problem) => return Ok(wrong(&problem)),
    };
    let Some(rules) = asked.rules else {
        return Ok(wrong(
            "name the repository's rules file by --config, or a folder by --repository",
        ));
    };
    let data = asked.data.unwrap_or_else(|| PathBuf::from(".journeyman"));
    work_on(ticket, &rules, settings_file(asked.settings), data).await
}

/// Wrong arguments, as the parser of the command line would end it.
fn wrong(problem: &str) -> ExitCode {
    say_error(&format!("journeyman: {problem}"));
    ExitCode::from(2)
}

async fn work_on(
    ticket: TicketKey,
    rules: &Path,
    file: Option<PathBuf>,
    data: PathBuf,
) -> anyhow::Result<ExitCode> {
    // The directory of rules holds this one file, so no other repository is touched.
    let folder = tempfile::tempdir()?;
    let target = folder
        .path()
        .join(rules.file_name().context("--config must name a file")?);
    let target = target.with_extension("yaml");
    std::fs::copy(rules, target).with_context(|| format!("cannot read {}", rules.display()))?;
    let connections = connections(file.as_deref())?;
    refuse_problems(folder.path(), rules, &connections)?;
    let [shutdown, at_once] = bootstrap::signals();
    let plan = Plan {
        file,
        environment: environment(folder.path()),
        data,
        free_ports: true,
    };
    let Some(local) = shutdown.run_until_cancelled(Box::pin(Local::start(plan))).await else {
        return Ok(ExitCode::from(130));
    };
    let local = local?;
    let client = Client::new(&local.url, local.token.clone())?;
    let worked = Box::pin(work(&client, &ticket, shutdown)).await;
    // Dropped at the second signal, it ends NATS and Redis all the same.
    at_once.run_until_cancelled(local.stop()).await.transpose()?;
    worked
}

/// The instances that the settings name; what else they say of them is for the services.
fn connections(file: Option<&Path>) -> anyhow::Result<Connections> {
    let Instances { github, jira, folder } = bootstrap::settings::load(file, std::env::vars())?;
    Ok(Connections {
        github: github.into_keys().collect(),
        jira: jira.into_keys().collect(),
        folders: folder.into_keys().collect(),
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Instances {
    github: BTreeMap<Instance, IgnoredAny>,
    jira: BTreeMap<Instance, IgnoredAny>,
    folder: BTreeMap<Instance, IgnoredAny>,
}

/// A file with a problem disables its repository, and the ticket would seem to belong to none.
pub(super) fn refuse_problems(folder: &Path, rules: &Path, connections: &Connections) -> anyhow::Result<()> {
    match RulesBook::read(folder, connections)?.problems().first() {
        None => Ok(()),
        Some(found) => {
            let line = if found.line == 0 {
                String::new()
            } else {
                format!(":{}", found.line)
            };
            bail!("{}{line} {}: {}", rules.display(), found.key, found.problem)
        }
    }
}

/// The process environment with this rules directory. Nothing outside can reach the webhooks of this short life, so
/// their secrets are random unless set.
fn environment(rules: &Path) -> Vec<(String, String)> {
    let mut environment: Vec<_> = std::env::vars().collect();
    environment.push(("JOURNEYMAN__RULES__DIR".to_owned(), rules.display().to_string()));
    for key in [
        "JOURNEYMAN__INGEST__GITHUB_WEBHOOK_SECRETS",
        "JOURNEYMAN__INGEST__JIRA_WEBHOOK_SECRETS",
    ] {
        if !environment.iter().any(|(name, _)| name == key) {
            environment.push((key.to_owned(), uuid::Uuid::new_v4().simple().to_string()));
        }
    }
    environment
}

async fn work(client: &Client, ticket: &TicketKey, shutdown: CancellationToken) -> anyhow::Result<ExitCode> {
    let run: domain::RunId = client.dispatch(ticket, Job::Implement).await?.run.parse()?;
    say(&format!("run {run}"));
    let events = client.follow(&run).await?;
    match shutdown.run_until_cancelled(show(events)).await {
        Some(reason) => Ok(exit_code(&reason?)),
        None => {
            say_error("stopped; the run carries on when journeyman starts again");
            Ok(ExitCode::from(130))
        }
    }
}

/// Prints the journal as it comes and gives the reason of its end.
async fn show(events: impl Stream<Item = anyhow::Result<Entry>>) -> anyhow::Result<StopReason> {
    let mut events = std::pin::pin!(events);
    let mut start: Option<Timestamp> = None;
    while let Some(entry) = events.try_next().await? {
        let start = *start.get_or_insert(entry.at);
        if let Some(line) = timeline::line(&entry, start) {
            say(&line);
        }
        if let Fact::RunFinished { reason } = entry.fact {
            return Ok(reason);
        }
    }
    anyhow::bail!("the live journal ended before the run did")
}

fn exit_code(reason: &StopReason) -> ExitCode {
    match reason {
        StopReason::Completed => ExitCode::SUCCESS,
        other => {
            say_error(&format!("journeyman: the run ended: {}", other.as_str()));
            ExitCode::FAILURE
        }
    }
}
