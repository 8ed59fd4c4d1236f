//! `journeyman dispatch`: manual dispatch of a job, up to the end of its run.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use api::{
    Client,
    types::{ContextBody, JobAccepted, JobBody, JobPlanned, JobStarted},
};
use clap::{Args, ValueEnum, builder::PossibleValue};
use domain::{
    DiscussionTask, Fact, Job, JobAccess, JobInput, JournalEntry, OutboundOutcome, OutboundReceipt,
    RehearsedEffects, RepairResult, RepositoryName, RunId, StopReason, TicketKey, WaitCondition,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    EXIT_INTERRUPTED,
    follow::{FollowOutcome, choose_exit_code, print_journal},
    print_error, print_json, print_result,
};
use crate::{
    access,
    args::{ApiArguments, OutputFormat, parse_ticket},
};

/// Request a job on a ticket or pull request and wait for the end of its run (needs an operator's token)
#[derive(Debug, Clone, Args)]
#[command(after_help = render_after_help())]
pub(super) struct Arguments {
    /// The kind of work
    #[arg(long, value_enum)]
    job: JobArgument,
    /// The ticket, pull request or discussion: ENG-12, acme/shop#7, acme/shop/discussions/7, or with its tracker: jira:ENG-12
    #[arg(long, value_parser = parse_ticket, value_name = "KEY")]
    ticket: TicketKey,
    #[arg(
        long,
        value_enum,
        help = format!("For {}: the task in the discussion", list_jobs_with(JobInput::Task))
    )]
    task: Option<TaskArgument>,
    #[arg(long, value_name = "FILE|-", help = render_context_help())]
    context: Option<PathBuf>,
    #[arg(
        long,
        value_name = "OWNER/NAME",
        help = format!("For {}: another repository than that of the ticket's project", list_jobs_with(JobInput::Repository))
    )]
    repository: Option<RepositoryName>,
    /// Start the job once, even when the command is repeated with this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Rehearse the job: everything from the request to the reporter, without model, workspace, push and outside writes; print
    /// what it would write
    #[arg(long, conflicts_with = "dry_run")]
    mock: bool,
    /// Print the job that would start, and start none
    #[arg(long, conflicts_with_all = ["detach", "key"])]
    dry_run: bool,
    /// Do not wait for the end of the run
    #[arg(long)]
    detach: bool,
    /// Output format: json without a timeline; jsonl with the accepted job, each entry of the journal, and the result
    #[arg(long, short, value_enum, default_value = "text")]
    output: OutputFormat,
    #[command(flatten)]
    api: ApiArguments,
}

const EXAMPLES: &str = "Examples:
  journeyman dispatch --job implement --ticket ENG-12
  journeyman dispatch --job fix_ci --ticket acme/shop#7
  journeyman dispatch --job discuss --task plan --ticket acme/shop/discussions/7
  echo '{\"question\": \"Why is tax 5 %?\"}' | journeyman dispatch --job answer --ticket ENG-12 --context -";

/// Job that users can dispatch, by one of its names.
#[derive(Debug, Clone, Copy)]
struct JobArgument {
    name: &'static str,
    /// Names of the job in other dispatchers.
    aliases: &'static [&'static str],
    help: &'static str,
    job: Job,
    /// Task that the name of the job implies.
    task: Option<TaskArgument>,
}

impl JobArgument {
    // The order of `--help`.
    const ALL: [Self; 11] = [
        Self::of(
            Job::Implement,
            &["issue-iterate"],
            "Write the change that a ticket requests",
        ),
        Self::of(Job::Triage, &["issue-triage"], "Label a ticket"),
        Self::of(
            Job::Answer,
            &["issue-comment", "discussion-respond"],
            "Answer a question on a ticket, in a discussion or on our pull request",
        ),
        Self::of(Job::Discuss, &[], "Do the --task in a discussion"),
        Self::of_task(
            "discussion-research",
            TaskArgument::Research,
            "Same as discuss --task research",
        ),
        Self::of_task(
            "discussion-summarize",
            TaskArgument::Summarize,
            "Same as discuss --task summarize",
        ),
        Self::of_task(
            "discussion-plan",
            TaskArgument::Plan,
            "Same as discuss --task plan",
        ),
        Self::of_task(
            "discussion-complete",
            TaskArgument::Complete,
            "Same as discuss --task complete",
        ),
        Self::of(Job::Review, &["pr-review"], "Review a pull request of others"),
        Self::of(Job::FixCi, &[], "Repair the failed checks of our pull request"),
        Self::of(
            Job::AddressReview,
            &["pr-response", "pr-human-response"],
            "Make the changes that a review of our pull request requests",
        ),
    ];

    const fn of(job: Job, aliases: &'static [&'static str], help: &'static str) -> Self {
        Self {
            name: job.as_str(),
            aliases,
            help,
            job,
            task: None,
        }
    }

    const fn of_task(name: &'static str, task: TaskArgument, help: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            help,
            job: Job::Discuss,
            task: Some(task),
        }
    }
}

impl ValueEnum for JobArgument {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.name).help(self.help);
        Some(value.aliases(self.aliases.iter().copied()))
    }
}

/// Task in a discussion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TaskArgument {
    /// Answer its questions from the code
    Research,
    /// Summarize it in one comment that is kept up to date
    Summarize,
    /// Open the issues that follow from it
    Plan,
    /// Post the conclusion and close it
    Complete,
}

impl From<TaskArgument> for DiscussionTask {
    fn from(task: TaskArgument) -> Self {
        match task {
            TaskArgument::Research => Self::Research,
            TaskArgument::Summarize => Self::Summarize,
            TaskArgument::Plan => Self::Plan,
            TaskArgument::Complete => Self::Complete,
        }
    }
}

/// Names of the jobs at the end of `--help`, by the list above and the profiles of the jobs.
fn render_after_help() -> String {
    let named = JobArgument::ALL
        .iter()
        .filter(|argument| !argument.aliases.is_empty());
    let aliases: Vec<String> = named
        .map(|argument| format!("{} ({})", join_names(argument.aliases), argument.name))
        .collect();
    let of_events = Job::ALL
        .into_iter()
        .filter(|job| matches!(job.profile().access, JobAccess::Event));
    let of_events: Vec<&str> = of_events.map(Job::as_str).collect();
    format!(
        "Other names of the jobs: {}.\n{} cannot be requested: they follow from checks, merges, pushes and time.\n\n{EXAMPLES}",
        aliases.join(", "),
        join_names(&of_events)
    )
}

/// Fields of the context with the jobs that read them, by the profiles of the jobs.
fn render_context_help() -> String {
    let inputs = [JobInput::Instructions, JobInput::Question, JobInput::Feedback];
    let fields = inputs
        .into_iter()
        .filter_map(|input| Some(format!("`{}` ({})", input.text_field()?, list_jobs_with(input))));
    format!(
        "File with a JSON object, or - for standard input: {}, `pr_number`; the rest is read from Jira or GitHub",
        fields.collect::<Vec<_>>().join(", ")
    )
}

/// Names of the jobs whose requests may contain this input.
fn list_jobs_with(input: JobInput) -> String {
    let jobs = Job::ALL.into_iter().filter(|job| job.inputs().contains(&input));
    let names = jobs.map(|job| match job.as_str() {
        name if name.contains('_') => format!("`{name}`"),
        name => name.to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn join_names(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        names => names.concat(),
    }
}

/// Result of the job.
#[derive(Serialize)]
struct DispatchResult {
    #[serde(flatten)]
    accepted: JobAccepted,
    /// Stop reason of the run, e.g. `completed`; absent while it waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<StopReason>,
    /// Action of a person that the run waits for: `decision` or `answer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<WaitCondition>,
    /// Effects of a rehearsed job.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<Vec<RehearsedEffects>>,
    /// Result of the repair of failed checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    repair: Option<RepairResult>,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let wanted = JobBody {
        ticket: asked.ticket.to_string(),
        job: asked.job.job,
        repository: asked.repository.as_ref().map(ToString::to_string),
        text: None,
        context: build_context(&asked)?,
        dry_run: false,
        mock: asked.mock,
    };
    let client = access::build_client(&asked.api)?;
    let is_json = asked.output != OutputFormat::Text;
    if asked.dry_run {
        let planned = client.jobs().plan(&wanted).await?;
        if is_json {
            print_json(&planned)?
        } else {
            print_result(&render_planned_job(&planned))
        }
        return Ok(ExitCode::SUCCESS);
    }
    let accepted = match client.jobs().start(&wanted, asked.key.as_deref()).await? {
        JobStarted::Accepted(accepted) => accepted,
        JobStarted::Needless(result) => {
            if is_json {
                print_json(&result)?
            } else {
                print_result(result.message.as_deref().unwrap_or_default())
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    if !is_json {
        print_result(&format!("run {}", accepted.run));
    }
    if asked.detach {
        if is_json {
            print_json(&accepted)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if asked.output == OutputFormat::Jsonl {
        print_json(&accepted)?;
    }
    follow_dispatched_run(&client, accepted, asked.output).await
}

async fn follow_dispatched_run(
    client: &Client,
    accepted: JobAccepted,
    output: OutputFormat,
) -> anyhow::Result<ExitCode> {
    let run: RunId = accepted.run.parse()?;
    // An interruption ends only the following. The services continue the run.
    let [shutdown, _] = bootstrap::listen_for_signals();
    let ended = shutdown
        .run_until_cancelled(print_journal(client, &run, output))
        .await;
    let Some(followed) = ended.transpose()? else {
        print_error(&format!(
            "the run continues without being watched: journeyman journal {run} --follow"
        ));
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    };
    let code = choose_exit_code(&followed);
    let (stop, waits_for) = match followed {
        FollowOutcome::Over(stop) => (Some(stop), None),
        FollowOutcome::Waits(waits_for) => (None, Some(waits_for)),
    };
    // Following prints entries without keeping them, so the journal is read again.
    let journal = client.runs().journal(&run).await?;
    let repair = RepairResult::of(&journal);
    let would = find_rehearsed_effects(journal);
    if output != OutputFormat::Text {
        print_json(&DispatchResult {
            accepted,
            stop,
            waits_for,
            would,
            repair,
        })?;
    } else {
        render_rehearsal(would.as_deref().unwrap_or_default())
            .iter()
            .for_each(|line| print_result(line));
    }
    Ok(code)
}

/// Follows a rehearsal to its end, and prints its effects.
#[cfg(feature = "local")]
pub(super) async fn follow_rehearsal(client: &Client, run: &RunId) -> anyhow::Result<ExitCode> {
    let followed = print_journal(client, run, OutputFormat::Text).await?;
    let would = find_rehearsed_effects(client.runs().journal(run).await?);
    render_rehearsal(would.as_deref().unwrap_or_default())
        .iter()
        .for_each(|line| print_result(line));
    Ok(choose_exit_code(&followed))
}

/// Effects of a rehearsed job; `None` for a real one.
fn find_rehearsed_effects(journal: Vec<JournalEntry>) -> Option<Vec<RehearsedEffects>> {
    journal.into_iter().find_map(|entry| {
        let Fact::ReportSettled {
            outcome: OutboundOutcome::Done(OutboundReceipt::Rehearsed { would }),
            ..
        } = entry.fact
        else {
            return None;
        };
        Some(would)
    })
}

/// One line per request with its effects, followed by the text that it would post.
fn render_rehearsal(would: &[RehearsedEffects]) -> Vec<String> {
    let mut lines = Vec::new();
    for rehearsed in would {
        lines.push(format!(
            "would {}: {}",
            rehearsed.request,
            rehearsed.effects.join(", ")
        ));
        let words = rehearsed.words.lines().filter(|line| !line.trim().is_empty());
        lines.extend(words.map(|line| format!("  > {line}")));
    }
    lines
}

/// Output of a dry run.
pub(super) fn render_planned_job(planned: &JobPlanned) -> String {
    let JobPlanned {
        ticket,
        job,
        repository,
        summary,
        ..
    } = planned;
    let place = match &planned.pull_request {
        Some(url) => format!(" about {url}"),
        None => String::new(),
    };
    format!("would start {job} on {ticket} in {repository}{place}: {summary}")
}

/// Context of the job: the given object, completed by the task.
fn build_context(asked: &Arguments) -> anyhow::Result<Option<Map<String, Value>>> {
    let mut context = asked.context.as_deref().map(read_json_object).transpose()?;
    for task in [asked.job.task, asked.task].into_iter().flatten() {
        let name = DiscussionTask::from(task).as_str();
        let replaced = context
            .get_or_insert_default()
            .insert("task".to_owned(), name.into());
        // An empty or equal task in the context does not contradict the flag.
        let other = replaced.filter(|task| *task != name && *task != "" && !task.is_null());
        if let Some(other) = other {
            bail!("two tasks are requested: {name} and {other}");
        }
    }
    Ok(context)
}

/// Reads the JSON object in a file or on standard input, up to the size limit.
fn read_json_object(file: &Path) -> anyhow::Result<Map<String, Value>> {
    // One byte more than allowed, so that a context that is too large is noticed.
    let most = ContextBody::BYTES as u64 + 1;
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().take(most).read_to_string(&mut text)
    } else {
        let open = std::fs::File::open(file);
        open.and_then(|open| open.take(most).read_to_string(&mut text))
    };
    read.with_context(|| format!("the context {} cannot be read", file.display()))?;
    if text.len() > ContextBody::BYTES {
        bail!(
            "the context {} is larger than {} bytes",
            file.display(),
            ContextBody::BYTES
        );
    }
    serde_json::from_str(&text)
        .with_context(|| format!("the context {} is not a JSON object", file.display()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        asked: Arguments,
    }

    fn parse_dispatch(job: &str, more: &[&str]) -> Arguments {
        let line = ["dispatch", "--ticket", "acme/shop/discussions/7", "--job", job];
        Line::try_parse_from(line.iter().chain(more)).expect(job).asked
    }

    #[test]
    fn job_arguments_accept_foreign_names() {
        for (name, job, task) in [
            ("implement", Job::Implement, None),
            ("issue-iterate", Job::Implement, None),
            ("issue-triage", Job::Triage, None),
            ("issue-comment", Job::Answer, None),
            ("pr-review", Job::Review, None),
            ("pr-response", Job::AddressReview, None),
            ("pr-human-response", Job::AddressReview, None),
            ("discussion-respond", Job::Answer, None),
            ("discussion-research", Job::Discuss, Some("research")),
            ("discussion-summarize", Job::Discuss, Some("summarize")),
            ("discussion-plan", Job::Discuss, Some("plan")),
            ("discussion-complete", Job::Discuss, Some("complete")),
        ] {
            let asked = parse_dispatch(name, &[]);
            let context = build_context(&asked).unwrap();
            let given = context.as_ref().map(|context| context["task"].as_str().unwrap());
            assert_eq!((asked.job.job, given), (job, task), "{name}");
        }
        for name in ["mark_ready", "finish", "remind", "rehearse", "push-to-draft"] {
            let line = ["dispatch", "--ticket", "ENG-1", "--job", name];
            assert!(Line::try_parse_from(line).is_err(), "{name}");
        }
    }

    #[test]
    fn jobs_of_users_alone_are_listed() {
        for job in Job::ALL {
            let is_listed = JobArgument::ALL.iter().any(|argument| argument.job == job);
            let is_for_users = matches!(job.profile().access, JobAccess::Users { .. });
            assert_eq!(is_listed, is_for_users, "{job}");
        }
    }

    #[test]
    fn dispatch_rejects_two_discussion_tasks() {
        for task in DiscussionTask::ALL {
            let asked = parse_dispatch("discuss", &["--task", task.as_str()]);
            assert_eq!(build_context(&asked).unwrap().unwrap()["task"], task.as_str());
        }
        let both = parse_dispatch("discussion-plan", &["--task", "complete"]);
        let problem = build_context(&both).unwrap_err().to_string();
        assert_eq!(problem, "two tasks are requested: complete and \"plan\"");
        assert!(build_context(&parse_dispatch("discuss", &[])).unwrap().is_none());
    }
}
