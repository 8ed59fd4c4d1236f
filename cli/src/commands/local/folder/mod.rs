//! Work on a local folder, `journeyman try` and `process-ticket --repository`: from a text to a branch and a patch.

mod brief_view;
mod environment;
mod interactive_run;
mod model;
mod model_notice;
mod questions;
mod result;
mod run_end;
mod setup_plan;
mod shell_words;
mod state;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use api::{Client, types::TextBody};
use clap::Args;
use domain::{StopReason, cause::format_error_chain};
use git::{FolderHead, FolderRepository};

pub(super) use self::{
    environment::FolderEnvironment,
    model::{
        ConfiguredModel, FolderRunSettings, ModelSection, find_environment_provider, load_folder_settings,
    },
    setup_plan::{FolderSetup, find_registry_hosts, name_registry},
    shell_words::quote_for_shell,
};
use self::{
    interactive_run::{AttendedRun, RunViewForm},
    result::ResultFrame,
    setup_plan::SetupOptions,
};
use super::{EXIT_INTERRUPTED, EXIT_PERSON, print_error, refuse_single_json};
use crate::{
    args::{OutputFormat, parse_dollars},
    local::LocalServices,
};

/// Work on a text in a local git folder: needs a model's key, and neither Jira nor GitHub
#[derive(Debug, Args)]
pub(in crate::commands) struct TryArguments {
    /// The task: one line, and more lines with details
    text: String,
    /// The folder with a git repository: the change becomes a branch in it and a patch, the files in it stay unchanged
    #[arg(long, value_name = "DIR", default_value = ".")]
    repository: PathBuf,
    /// The model, by its provider's name for it
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The provider's address
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Check the branch out at the end; refused while there are uncommitted changes
    #[arg(long, conflicts_with = "dry_run")]
    accept: bool,
    /// Write no branch; print the text and the change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    options: FolderRunOptions,
    /// Rules file, without `repo:`
    #[arg(long = "config", value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Settings file, of which only the model and the limits count
    #[arg(long, value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    settings: Option<PathBuf>,
    /// Folder for data [default: below ~/.local/state/journeyman]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Options for the work on one ticket.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct InFolder {
    /// A folder with a git repository: the change becomes a branch in it and a patch, the files in it stay unchanged
    #[arg(long, value_name = "DIR")]
    pub(super) repository: Option<PathBuf>,
    /// The repository's rules file; optional for a folder, and without `repo:`
    #[arg(long = "config", value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
    /// Settings file; for a ticket of a folder only its model and limits count [for Jira: journeyman.toml, when it exists]
    #[arg(long, value_name = "FILE", env = "JOURNEYMAN_CONFIG")]
    pub(super) settings: Option<PathBuf>,
    /// Folder for data [for Jira: .journeyman; for a folder: below ~/.local/state/journeyman]
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// The model, by its provider's name for it
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// The provider's address
    #[arg(long, value_name = "URL")]
    pub(super) base_url: Option<String>,
    /// In a folder: check the branch out at the end; refused while there are uncommitted changes
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) accept: bool,
    /// Write nothing: in a folder print the text and the change, for a ticket the job that would start
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// Options for a run in a folder.
#[derive(Debug, Clone, Args)]
pub(super) struct FolderRunOptions {
    /// Print the timeline of the whole journal
    #[arg(long, short)]
    verbose: bool,
    /// Output format: text, or jsonl for the entries of the journal
    #[arg(long, short, value_enum, default_value = "text", conflicts_with = "verbose")]
    output: OutputFormat,
    /// End the run when its models have cost this much, in dollars; the price of the model must be known
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    max_cost: Option<f64>,
    #[command(flatten)]
    setup: SetupOptions,
}

impl FolderRunOptions {
    /// True when no option is given.
    pub(super) fn is_default(&self) -> bool {
        let is_shown_as_usual = !self.verbose && self.output == OutputFormat::Text;
        is_shown_as_usual && self.max_cost.is_none() && self.setup.is_default()
    }

    /// Form of the view; `None` for a format that has to wait for the end.
    const fn view_form(&self) -> Option<RunViewForm> {
        match self.output {
            OutputFormat::Text if self.verbose => Some(RunViewForm::Timeline),
            OutputFormat::Text => Some(RunViewForm::Brief),
            OutputFormat::Jsonl => Some(RunViewForm::Entries),
            OutputFormat::Json => None,
        }
    }
}

pub(super) async fn run_try(asked: TryArguments) -> anyhow::Result<ExitCode> {
    let place = InFolder {
        repository: Some(asked.repository),
        rules: asked.rules,
        settings: asked.settings,
        data: asked.data,
        model: asked.model,
        base_url: asked.base_url,
        accept: asked.accept,
        dry_run: asked.dry_run,
    };
    work_in_folder(parse_ticket_text(&asked.text)?, place, &asked.options).await
}

/// Ticket from a text: its first line without heading marks becomes the summary, the rest the description.
pub(super) fn parse_ticket_text(text: &str) -> anyhow::Result<TextBody> {
    let (first, rest) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
    let summary = first.trim_start_matches('#').trim();
    if summary.is_empty() {
        bail!("there is nothing to do: the text is empty");
    }
    Ok(TextBody {
        summary: summary.to_owned(),
        description: rest.trim().to_owned(),
    })
}

/// Ticket from the text in a file.
pub(super) fn read_ticket_file(file: &Path) -> anyhow::Result<TextBody> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    parse_ticket_text(&text)
}

pub(super) async fn work_in_folder(
    ticket: TextBody,
    asked: InFolder,
    options: &FolderRunOptions,
) -> anyhow::Result<ExitCode> {
    let Some(form) = options.view_form() else {
        return Ok(refuse_single_json());
    };
    let place = asked.repository.clone().unwrap_or_else(|| PathBuf::from("."));
    let folder = FolderRepository::open(&place).map_err(|error| explain_repository_error(&place, &error))?;
    let head = folder
        .head()
        .map_err(|error| explain_repository_error(&place, &error))?;
    let mut settings = load_folder_settings(&asked)?;
    settings.add_interactive(&folder);
    if let Some(usd) = options.max_cost {
        settings.limit_cost(usd);
    }
    // The check precedes the start of the services, so that a refused --accept costs nothing.
    report_uncommitted_changes(&folder, &head, asked.accept, form)?;
    let (data, defaults) = (asked.data.as_deref(), asked.rules.as_deref());
    let setup = setup_plan::plan_setup(&folder, &head, &options.setup, defaults.is_some(), form).await?;
    let environment = FolderEnvironment::new(&folder, data, &settings, defaults, &setup, !asked.dry_run)?;
    environment
        .describe_obstacles()
        .for_each(|line| form.print_note(&line));
    if !setup.hosts.is_empty() && !environment.has_setup() {
        form.print_note(setup_plan::ALLOW_WITHOUT_SETUP);
    }
    // The state exists by now, and no text has gone to the model.
    model_notice::print_model_notice(&state::find_state_base(data)?, &settings, form)?;
    let [shutdown, at_once] = bootstrap::listen_for_signals();
    let Some(local) = shutdown
        .run_until_cancelled(Box::pin(LocalServices::start(environment.plan())))
        .await
    else {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    };
    let local = local?;
    local.remains().iter().for_each(|line| form.print_note(line));
    let client = Client::new(&local.url, local.token.clone())?;
    let attended = Box::pin(interactive_run::work_on_text(
        &client,
        environment.ticket(),
        ticket,
        form,
        shutdown,
    ))
    .await;
    // The second signal drops the future, which still stops NATS and Redis.
    at_once.run_until_cancelled(local.stop()).await.transpose()?;
    let attended = attended?;
    // A branch that cannot be checked out is still a result.
    let checked_out = if asked.accept {
        check_out_result(&folder, &attended, form)
    } else {
        Ok(())
    };
    let git = result::find_git_command(&folder.path());
    let frame = ResultFrame {
        git: &git,
        head: &head,
        dry_run: asked.dry_run,
        accept: asked.accept && checked_out.is_ok(),
    };
    // Programs find the same facts in the entries.
    if form != RunViewForm::Entries {
        result::print_run_result(&attended, &frame)?;
    }
    checked_out?;
    let switch = result::render_switch_command(&attended, &frame);
    Ok(report_end(&attended, switch.as_deref()))
}

fn explain_repository_error(place: &Path, error: &git::Error) -> anyhow::Error {
    let place = place.display();
    match error {
        git::Error::NotFound(_) => anyhow::anyhow!(
            "{place} is not in a git repository: run `git init && git add -A && git commit -m Start` there"
        ),
        git::Error::Missing { .. } => anyhow::anyhow!(
            "the git repository of {place} has no commit: run `git add -A && git commit -m Start` there"
        ),
        git::Error::LeaseStale(_)
        | git::Error::Rejected(_)
        | git::Error::BranchNotWritable { .. }
        | git::Error::CheckoutRefused { .. }
        | git::Error::PatchDoesNotApply(_)
        | git::Error::PathNotUtf8(_)
        | git::Error::Denied(_)
        | git::Error::Unavailable(_)
        | git::Error::BranchInTheWay { .. }
        | git::Error::Queued(_)
        | git::Error::RefusedObject { .. }
        | git::Error::RefusedHistory(_)
        | git::Error::Unusable(_)
        | git::Error::NotReady { .. }
        | git::Error::HistoryIncomplete
        | git::Error::Stalled(_)
        | git::Error::TimedOut(_)
        | git::Error::BadPack(_)
        | git::Error::Failed(_) => {
            anyhow::anyhow!("{place} cannot be worked on: {}", format_error_chain(error))
        }
    }
}

/// Prints the base of the work, with a warning about uncommitted changes, which are not part of it.
fn report_uncommitted_changes(
    folder: &FolderRepository,
    head: &FolderHead,
    accept: bool,
    form: RunViewForm,
) -> anyhow::Result<()> {
    let uncommitted = folder.uncommitted()?;
    if accept {
        refuse_uncommitted_changes(uncommitted)?;
    }
    let (branch, commit) = (&head.branch, head.commit.short());
    form.print_note(&format!(
        "{}: work starts from {branch} at {commit}",
        folder.path().display()
    ));
    if uncommitted > 0 {
        form.print_note(&format!(
            "uncommitted changes to {} are not seen; commit them first if they matter",
            count_files(uncommitted)
        ));
    }
    Ok(())
}

fn count_files(count: usize) -> String {
    match count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    }
}

fn refuse_uncommitted_changes(uncommitted: usize) -> anyhow::Result<()> {
    if uncommitted > 0 {
        bail!(
            "--accept checks the branch out, but there are uncommitted changes to {}: commit or stash them, or omit \
             --accept",
            count_files(uncommitted)
        );
    }
    Ok(())
}

/// Checks the branch out. The user may have changed files during the run, so uncommitted changes are checked again.
fn check_out_result(
    folder: &FolderRepository,
    attended: &AttendedRun,
    form: RunViewForm,
) -> anyhow::Result<()> {
    // The end of the command contains the reason for a missing branch.
    let Some(branch) = &attended.branch else {
        return Ok(());
    };
    refuse_uncommitted_changes(folder.uncommitted()?)?;
    folder.check_out(branch)?;
    form.print_note(&format!("checked out {branch}"));
    Ok(())
}

/// Reports an end that is not the completion, and returns the exit code. `switch` checks the change so far out.
fn report_end(attended: &AttendedRun, switch: Option<&str>) -> ExitCode {
    let (lines, code) = match &attended.reason {
        Some(StopReason::Completed) => return ExitCode::SUCCESS,
        None => return ExitCode::from(EXIT_INTERRUPTED),
        Some(_) if !attended.unanswered.is_empty() => (
            run_end::explain_open_question(&attended.unanswered, attended.has_input_ended),
            EXIT_PERSON.into(),
        ),
        Some(other) => (run_end::explain_end(other, switch), ExitCode::FAILURE),
    };
    print_error(&format!("journeyman: {}", lines.join("\n")));
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_text_splits_summary_from_description() {
        let ticket = parse_ticket_text("\n## Fix the cart \n\nIt rounds.\n\n- half up\n").unwrap();
        assert_eq!(ticket.summary, "Fix the cart");
        assert_eq!(ticket.description, "It rounds.\n\n- half up");
        let short = parse_ticket_text("Fix it").unwrap();
        assert_eq!(
            (short.summary.as_str(), short.description.as_str()),
            ("Fix it", "")
        );
        assert!(parse_ticket_text(" \n ").is_err() && parse_ticket_text("#\n").is_err());
    }

    #[test]
    fn worse_checks_end_with_failure() {
        let exit = |reason: Option<StopReason>| {
            let attended = AttendedRun {
                reason,
                ..AttendedRun::default()
            };
            format!("{:?}", report_end(&attended, None))
        };
        let fails = StopReason::ChecksFail {
            commands: vec!["pytest".to_owned()],
            uncompared: Vec::new(),
            failing: vec!["test_total".to_owned()],
            missing: Vec::new(),
        };
        assert_eq!(exit(Some(fails)), format!("{:?}", ExitCode::FAILURE));
        assert_eq!(
            exit(Some(StopReason::Completed)),
            format!("{:?}", ExitCode::SUCCESS)
        );
        assert_eq!(exit(None), format!("{:?}", ExitCode::from(EXIT_INTERRUPTED)));
    }

    #[test]
    fn open_question_ends_with_code_of_person() {
        let attended = AttendedRun {
            reason: Some(StopReason::Stopped { by: "ada".to_owned() }),
            unanswered: vec!["question: Gross or net?".to_owned()],
            ..AttendedRun::default()
        };
        let code: ExitCode = EXIT_PERSON.into();
        assert_eq!(format!("{:?}", report_end(&attended, None)), format!("{code:?}"));
    }

    #[test]
    fn options_choose_form_of_view() {
        let form = |verbose, output| {
            let options = FolderRunOptions {
                verbose,
                output,
                max_cost: None,
                setup: SetupOptions::default(),
            };
            options.view_form()
        };
        assert_eq!(form(false, OutputFormat::Text), Some(RunViewForm::Brief));
        assert_eq!(form(true, OutputFormat::Text), Some(RunViewForm::Timeline));
        assert_eq!(form(false, OutputFormat::Jsonl), Some(RunViewForm::Entries));
        assert_eq!(form(false, OutputFormat::Json), None);
    }
}
