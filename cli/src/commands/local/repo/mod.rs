//! `journeyman repo add`: rules file of a repository from its checkout, or of many from a template, with a preview of tickets.

mod checkout;
mod declared_setup;
mod organization;
mod template;
mod week;

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use api::{
    Client, build_implement_job,
    types::{TicketLine, TicketsQuery},
};
use bootstrap::{rules::RulesBook, settings};
use clap::{Args, Subcommand};
use domain::{RepositoryName, TicketKey};
use ingest::IngestMode;
use reqwest::StatusCode;
use serde::Deserialize;

pub(super) use self::checkout::list_declared_setup;
use self::{checkout::CheckoutFindings, template::TicketMark};
use super::{
    EXIT_ARGUMENTS, EXIT_INTERRUPTED,
    commit_signing::{SigningSections, find_signing_support},
    dispatch::render_planned_job,
    find_settings_file,
    list_tickets::print_list_problems,
    one_shot::{OneShotServices, read_connections},
    print_result, report_wrong_arguments,
    writer_rights::find_writer_rights,
};
use crate::{args::SettingsArguments, exit_codes::derive_exit_code};

// Tickets in the preview.
const SHOWN: usize = 10;

/// Configure repositories
#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(subcommand)]
    what: RepoAction,
}

#[derive(Debug, Subcommand)]
enum RepoAction {
    Add(AddArguments),
}

/// Write the rules file of a repository, and preview the work on its last 10 tickets, open ones first; with --org those of
/// many repositories and of the last week. Nothing is started
#[derive(Debug, Args)]
struct AddArguments {
    /// The repository, e.g. acme/shop
    #[arg(value_name = "OWNER/NAME", required_unless_present = "org")]
    repository: Option<RepositoryName>,
    /// A checkout of it
    #[arg(long, value_name = "DIR", default_value = ".", conflicts_with = "org")]
    from: PathBuf,
    /// Organization or user whose repositories to add: those that the reader App sees, without archived ones
    #[arg(long, value_name = "ORG", conflicts_with = "repository")]
    org: Option<String>,
    /// Only repositories with names of this form, e.g. 'shop-*'; '!NAME' excludes; can be repeated
    #[arg(long, value_name = "GLOB", requires = "org")]
    filter: Vec<String>,
    /// Forks too
    #[arg(long, requires = "org")]
    forks: bool,
    /// Rules file with `{{owner}}`, `{{name}}` and `{{default_branch}}` for the values of each repository
    #[arg(long, value_name = "FILE", requires = "org", conflicts_with_all = ["project", "issue_label"])]
    template: Option<PathBuf>,
    /// Mark on a ticket of the Jira project that assigns it to a repository: its component or label of that name
    #[arg(long, value_enum, default_value_t = TicketMark::default(), requires = "org", requires = "project", conflicts_with = "template")]
    assign_by: TicketMark,
    /// Write no file, only show the names and the preview
    #[arg(long, requires = "org")]
    preview: bool,
    /// Jira project with its tickets
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// Label that requests work on an issue of the repository
    #[arg(long, value_name = "LABEL")]
    issue_label: Option<String>,
    #[command(flatten)]
    settings: SettingsArguments,
}

/// Subset of the settings with the place of the rules.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RulesSection {
    rules: bootstrap::rules::Settings,
    github_writer: Option<github::Settings>,
    reporter: SigningSections,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let RepoAction::Add(asked) = asked.what;
    let file = find_settings_file(asked.settings.settings.clone());
    let needs_trigger = asked.project.is_none() && asked.issue_label.is_none() && asked.template.is_none();
    match (&asked.repository, &asked.org) {
        (Some(repository), _) => Box::pin(add_repository(&asked, repository, needs_trigger, file)).await,
        (None, Some(_)) if needs_trigger => Ok(report_missing_trigger()),
        (None, Some(org)) => {
            let folder = Box::pin(organization::add_repositories(&asked, org, file.as_deref())).await?;
            Box::pin(preview_rules(&asked, folder.path(), file)).await
        }
        // The arguments require one of the two.
        (None, None) => Ok(ExitCode::from(EXIT_ARGUMENTS)),
    }
}

fn report_missing_trigger() -> ExitCode {
    report_wrong_arguments("give --project KEY or --issue-label LABEL: what asks for work on this repository")
}

/// Prints the preview of a week with the rules of a folder.
async fn preview_rules(
    asked: &AddArguments,
    folder: &Path,
    file: Option<PathBuf>,
) -> anyhow::Result<ExitCode> {
    let rules = ("JOURNEYMAN__RULES__DIR".to_owned(), folder.display().to_string());
    let alone = OneShotServices {
        rules: None,
        file,
        data: asked.settings.data.clone(),
        more: vec![rules],
        extent: IngestMode::Answers,
    };
    let previewed = Box::pin(alone.run(async |client, _| week::preview_week(&client).await)).await?;
    Ok(previewed.unwrap_or(EXIT_INTERRUPTED.into()))
}

/// Writes the rules file of a repository from its checkout, and previews its tickets.
async fn add_repository(
    asked: &AddArguments,
    repository: &RepositoryName,
    needs_trigger: bool,
    file: Option<PathBuf>,
) -> anyhow::Result<ExitCode> {
    let RulesSection {
        rules,
        github_writer,
        reporter,
    } = settings::load_process_settings(file.as_deref())?;
    let known = find_rules_file(&rules.dir, file.as_deref(), repository)?;
    let path = match known {
        Some(path) => {
            print_result(&format!(
                "{repository} has rules in {} already: they stay",
                path.display()
            ));
            path
        }
        None => {
            if needs_trigger {
                return Ok(report_missing_trigger());
            }
            let found = CheckoutFindings::in_checkout(&asked.from).await?;
            found.lines().iter().for_each(|line| print_result(line));
            let path = build_rules_path(&rules.dir, repository);
            let (project, label) = (asked.project.as_deref(), asked.issue_label.as_deref());
            create_rules_file(&path, &found.rules(repository, project, label)?)?;
            print_result(&format!("rules    {}", path.display()));
            path
        }
    };
    // `doctor` checks the accounts of other instances.
    let is_default = repository.instance().is_none();
    if let Some(writer) = github_writer.filter(|writer| is_default && !writer.is_without_account()) {
        let rights = find_writer_rights(&writer, repository, asked.issue_label.is_some()).await;
        print_result(&format!("rights   {}", rights.describe()));
        let support = find_signing_support(&writer, repository, None, reporter.has_key()).await;
        print_result(&format!("signed   {}", support.describe()));
    }
    let alone = OneShotServices {
        rules: Some(path),
        file,
        data: asked.settings.data.clone(),
        more: Vec::new(),
        extent: IngestMode::Answers,
    };
    let previewed = Box::pin(alone.run(async |client, _| preview_tickets(&client).await)).await?;
    Ok(previewed.unwrap_or(EXIT_INTERRUPTED.into()))
}

/// File with the rules of the repository. `doctor` reports problems of other files.
fn find_rules_file(
    folder: &Path,
    file: Option<&Path>,
    repository: &RepositoryName,
) -> anyhow::Result<Option<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", folder.display())),
    };
    let connections = read_connections(file)?;
    for entry in entries {
        let path = entry?.path();
        let is_rules = path
            .extension()
            .is_some_and(|ending| ending == "yaml" || ending == "yml");
        if !is_rules {
            continue;
        }
        // Each file is read alone, so that a problem in another file does not matter.
        let alone = tempfile::tempdir()?;
        std::fs::copy(&path, alone.path().join("rules.yaml"))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let book = RulesBook::read(alone.path(), &connections)?;
        let has_it = book
            .repositories()
            .filter_map(|rules| rules.repository().ok())
            .any(|known| fold_repository_name(&known) == fold_repository_name(repository));
        if has_it {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Name of a repository for comparisons: GitHub ignores the case of names.
fn fold_repository_name(repository: &RepositoryName) -> String {
    repository.to_string().to_ascii_lowercase()
}

/// Path of the rules file of a repository.
fn build_rules_path(folder: &Path, repository: &RepositoryName) -> PathBuf {
    folder.join(format!("{}.yaml", repository.path().replace('/', "-")))
}

/// Writes a rules file in a folder that is created if missing, and never replaces an existing one.
fn create_rules_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Prints the dry run of each ticket. Only the API runs, so that nothing can start work.
async fn preview_tickets(client: &Client) -> anyhow::Result<ExitCode> {
    let listed = client.tickets().list(&TicketsQuery::default()).await?;
    print_list_problems(&listed.problems);
    if listed.tickets.is_empty() {
        print_result("tickets  none is open");
    }
    for ticket in listed.tickets.iter().take(SHOWN) {
        print_result(&describe_planned_work(client, ticket).await?);
    }
    let room = SHOWN.saturating_sub(listed.tickets.len());
    for ticket in list_finished_tickets(client, room).await? {
        print_result(&describe_past_work(client, &ticket).await?);
    }
    Ok(derive_exit_code(listed.problems.is_empty()))
}

/// Finished tickets, so that the preview of a repository without open tickets has examples.
async fn list_finished_tickets(client: &Client, most: usize) -> anyhow::Result<Vec<TicketLine>> {
    let mut found = Vec::new();
    // Default names of the final status in Jira and GitHub.
    for status in ["Done", "closed"] {
        let query = TicketsQuery {
            status: Some(status.to_owned()),
            ..TicketsQuery::default()
        };
        match client.tickets().list(&query).await {
            Ok(listed) => found.extend(listed.tickets),
            // No tracker has this status.
            Err(api::Error::Refused { status, .. }) if status == StatusCode::UNPROCESSABLE_ENTITY => {}
            Err(error) => return Err(error.into()),
        }
    }
    found.truncate(most);
    Ok(found)
}

async fn describe_past_work(client: &Client, ticket: &TicketLine) -> anyhow::Result<String> {
    let key: TicketKey = ticket.ticket.parse()?;
    let (name, status) = (&ticket.ticket, &ticket.status);
    Ok(match client.jobs().plan(&build_implement_job(&key)).await {
        Ok(planned) => format!(
            "would have worked on {name} in {} if a user had asked ({status}): {}",
            planned.repository, ticket.summary
        ),
        Err(refused) => format!("would have left {name} alone ({status}): {refused}"),
    })
}

async fn describe_planned_work(client: &Client, ticket: &TicketLine) -> anyhow::Result<String> {
    let key: TicketKey = ticket.ticket.parse()?;
    let (name, status) = (&ticket.ticket, &ticket.status);
    Ok(match client.jobs().plan(&build_implement_job(&key)).await {
        Ok(planned) if ticket.asks => render_planned_job(&planned),
        Ok(_) => format!(
            "would leave {name} until a user asks for it ({status}): {}",
            ticket.summary
        ),
        Err(refused) => format!("would leave {name} alone: {refused}"),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn ticket_mark_requires_jira_project() {
        let parse = |more: &[&str]| {
            let line = [&["journeyman", "repo", "add", "--org", "acme"][..], more].concat();
            crate::Arguments::command().try_get_matches_from(line)
        };
        assert!(parse(&["--project", "ENG", "--assign-by", "label"]).is_ok());
        for wrong in [
            ["--issue-label", "agent", "--assign-by", "label"],
            ["--template", "rules.yaml", "--assign-by", "label"],
        ] {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
    }
}
