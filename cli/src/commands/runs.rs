//! Lists of runs: `journeyman runs`, and `journeyman pending` for those that wait for a person.

use std::process::ExitCode;

use api::types::{CredentialView, RunState, RunView, RunsQuery};
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use domain::{Job, RunId, StopReason, TicketKey, Timestamp};
use serde::de::DeserializeOwned;

use super::{print_list, print_long, print_result};
use crate::{
    access,
    args::{ApiArguments, OutputFormat, PagerOptions, parse_ticket},
};

/// List runs, newest last
#[derive(Debug, Args)]
pub(super) struct RunsArguments {
    /// Only runs of this ticket
    #[arg(long, value_parser = parse_ticket)]
    ticket: Option<TicketKey>,
    /// Only runs in this repository
    #[arg(long, value_name = "OWNER/NAME")]
    repository: Option<String>,
    /// Only this kind of job, e.g. implement
    #[arg(long, value_parser = parse_known_name::<Job>(Job::ALL.map(Job::as_str)))]
    job: Option<Job>,
    /// Only runs in this state
    #[arg(long, value_parser = parse_known_name::<RunState>(RunState::ALL.map(RunState::as_str)))]
    status: Option<RunState>,
    /// Only runs that ended for this reason; failed means every reason but completed
    #[arg(long, value_name = "REASON")]
    stop: Option<String>,
    /// Only runs that were requested before this run
    #[arg(long, value_name = "RUN")]
    before: Option<RunId>,
    /// At most this many, the newest of them
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    limit: u16,
    /// Output format: text, or the runs of /v1/runs in the order of the text, as one JSON array or one JSON object
    /// per line
    #[arg(long, short, value_enum, default_value = "text")]
    output: OutputFormat,
    #[command(flatten)]
    paging: PagerOptions,
    #[command(flatten)]
    api: ApiArguments,
}

/// List the runs that wait for a person's decision or answer, the longest wait first, each with the next step, and
/// credentials that expire soon
#[derive(Debug, Args)]
pub(super) struct PendingArguments {
    /// Output format: text, or the runs of /v1/runs as one JSON array or one JSON object per line
    #[arg(long, short, value_enum, default_value = "text")]
    output: OutputFormat,
    #[command(flatten)]
    api: ApiArguments,
}

pub(super) async fn list_runs(asked: RunsArguments) -> anyhow::Result<ExitCode> {
    let query = RunsQuery {
        ticket: asked.ticket.map(|ticket| ticket.to_string()),
        repository: asked.repository,
        job: asked.job,
        status: asked.status,
        stop: asked.stop,
        before: asked.before.map(|run| run.to_string()),
        limit: Some(asked.limit.into()),
        ..RunsQuery::default()
    };
    let mut runs = access::build_client(&asked.api)?.runs().list(&query).await?;
    // The API returns the newest run first. On a terminal the last line is next to the prompt.
    runs.reverse();
    match asked.output {
        OutputFormat::Json | OutputFormat::Jsonl => print_list(&runs, asked.output == OutputFormat::Json)?,
        OutputFormat::Text => print_long(runs.iter().map(render_run_line), asked.paging),
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn list_pending(asked: PendingArguments) -> anyhow::Result<ExitCode> {
    let PendingArguments { output, api } = asked;
    let query = RunsQuery {
        waits_for: Some(RunsQuery::PERSON.to_owned()),
        limit: Some(RunsQuery::MOST),
        ..RunsQuery::default()
    };
    let client = access::build_client(&api)?;
    let mut runs = client.runs().list(&query).await?;
    sort_by_wait(&mut runs);
    if output != OutputFormat::Text {
        print_list(&runs, output == OutputFormat::Json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let credentials = client.installation().credentials().await?;
    let mut lines: Vec<String> = runs.iter().flat_map(render_waiting_run).collect();
    lines.extend(
        credentials
            .iter()
            .filter(|end| end.is_due)
            .flat_map(render_credential_lines),
    );
    if lines.is_empty() {
        print_result("nothing waits for a person")
    } else {
        lines.iter().for_each(|line| print_result(line))
    }
    Ok(ExitCode::SUCCESS)
}

/// Sorts runs that wait, the longest wait first. The API sorts by the request, and an early request may have begun to
/// wait a minute ago.
fn sort_by_wait(runs: &mut [RunView]) {
    runs.sort_by_key(|run| Timestamp::parse(run.waits_since()));
}

/// Parser for one of these names. `--help` and completions list them.
fn parse_known_name<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = &'static str>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value(name.into()))
}

fn render_run_line(run: &RunView) -> String {
    let stop = run.stop.as_ref().map(StopReason::as_str);
    let reason = stop.or(run.waits_for.as_deref()).unwrap_or_default();
    let known = run.overview.as_ref();
    let cost = known
        .map(|known| format!("${:.2}", known.cost_usd.micros() as f64 / 1e6))
        .unwrap_or_default();
    let title = known.map(|known| known.title.as_str()).unwrap_or_default();
    format!(
        "{:<28} {:<14} {:<8} {reason:<12} {cost:>7}  {title}",
        run.id,
        run.job.as_str(),
        run.status.as_str(),
    )
    .trim_end()
    .to_owned()
}

/// Credential that expires, with the next step.
fn render_credential_lines(of: &CredentialView) -> [String; 2] {
    let what = "  make a new one, put it where the old one is, and set its end in `expires`";
    [of.words(), what.to_owned()]
}

/// Run that waits, with the time of the wait and the next step.
fn render_waiting_run(run: &RunView) -> Vec<String> {
    let known = run.overview.as_ref();
    let title = known.map(|known| known.title.as_str()).unwrap_or_default();
    let since = run.waits_since();
    let first = format!("{} {} waits since {since}  {title}", run.id, run.job.as_str());
    let mut lines = vec![first.trim_end().to_owned()];
    match known.and_then(|known| known.decides_about.as_deref()) {
        Some(head) => lines.extend([
            format!("  read it   journeyman diff {}", run.id),
            format!(
                "  decide    journeyman decide {} approve --head {}",
                run.id,
                head.get(..12).unwrap_or(head)
            ),
        ]),
        // No tracker has the ticket of a folder, so only the API takes its comments.
        None if run.ticket.starts_with("folder:") => {
            lines.push(format!("  answer    journeyman say {} TEXT", run.ticket));
        }
        None => lines.push(format!("  answer its question in a comment on {}", run.ticket)),
    }
    lines
}

#[cfg(test)]
mod tests {
    use api::types::OverviewView;
    use domain::{RunStatus, RunSummary, WaitCondition};

    use super::*;

    fn build_waiting_run(waits_for: WaitCondition, decides_about: Option<String>) -> RunView {
        let overview = OverviewView {
            title: "Prices wander".to_owned(),
            updated_at: "2026-11-25T09:00:00Z".to_owned(),
            decides_about,
            ..OverviewView::default()
        };
        let run = RunSummary {
            id: "jira:ENG-12@57".parse().unwrap(),
            job: Job::Implement,
            status: RunStatus::Parked { waits_for },
            started_at: Timestamp::default(),
            finished_at: None,
            turns: 3,
        };
        RunView {
            overview: Some(overview),
            ..(&run).into()
        }
    }

    #[test]
    fn longest_wait_comes_first() {
        let [mut newer, mut older] = [(); 2].map(|()| build_waiting_run(WaitCondition::Answer, None));
        newer.id = "jira:ENG-13@58".to_owned();
        if let Some(overview) = &mut older.overview {
            overview.parked_at = Some("2026-11-25T10:00:00Z".to_owned());
        }
        let mut runs = [older, newer];
        sort_by_wait(&mut runs);
        assert_eq!(runs.map(|run| run.id), ["jira:ENG-13@58", "jira:ENG-12@57"]);
    }

    #[test]
    fn pending_run_shows_next_command_or_place() {
        let decision = render_waiting_run(&build_waiting_run(WaitCondition::Decision, Some("ab".repeat(20))));
        assert_eq!(
            decision,
            [
                "jira:ENG-12@57 implement waits since 2026-11-25T09:00:00Z  Prices wander",
                "  read it   journeyman diff jira:ENG-12@57",
                "  decide    journeyman decide jira:ENG-12@57 approve --head abababababab",
            ]
        );
        let question = render_waiting_run(&build_waiting_run(WaitCondition::Answer, None));
        assert_eq!(
            question[1..],
            ["  answer its question in a comment on jira:ENG-12"]
        );
        let of_folder = render_waiting_run(&RunView {
            ticket: "folder:shop#1".to_owned(),
            ..build_waiting_run(WaitCondition::Answer, None)
        });
        assert_eq!(of_folder[1..], ["  answer    journeyman say folder:shop#1 TEXT"]);
    }
}
