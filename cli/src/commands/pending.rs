//! `journeyman pending`: runs and credentials that wait for a person.

use std::process::ExitCode;

use api::types::{CredentialView, RunView, RunsQuery};
use clap::Args;

use super::{print_list, print_result};
use crate::{
    access,
    args::{ApiArguments, OutputFormat},
};

/// List the runs that wait for a person's decision or answer, the longest wait first, each with the next step, and
/// credentials that expire soon
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Output format: text, or the runs of /v1/runs as one JSON array or one JSON object per line
    #[arg(long, short, value_enum, default_value = "text")]
    output: OutputFormat,
    #[command(flatten)]
    api: ApiArguments,
}

pub(super) async fn run_command(Arguments { output, api }: Arguments) -> anyhow::Result<ExitCode> {
    let query = RunsQuery {
        waits_for: Some(RunsQuery::PERSON.to_owned()),
        limit: Some(RunsQuery::MOST),
        ..RunsQuery::default()
    };
    let client = access::build_client(&api)?;
    let mut runs = client.list_runs(&query).await?;
    // The API returns the newest run first, and here the longest wait comes first.
    runs.reverse();
    if output != OutputFormat::Text {
        print_list(&runs, output == OutputFormat::Json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let credentials = client.credentials().await?;
    let mut told: Vec<String> = runs.iter().flat_map(render_waiting_run).collect();
    told.extend(
        credentials
            .iter()
            .filter(|end| end.is_due)
            .flat_map(render_credential_lines),
    );
    match told.is_empty() {
        true => print_result("nothing waits for a person"),
        false => told.iter().for_each(|line| print_result(line)),
    }
    Ok(ExitCode::SUCCESS)
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
    let since = known.map_or(run.started_at.as_str(), |known| &known.updated_at);
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
        None => lines.push(format!("  answer its question in a comment on {}", run.ticket)),
    }
    lines
}

#[cfg(test)]
mod tests {
    use api::types::OverviewView;
    use domain::{Job, RunStatus, RunSummary, Timestamp, WaitCondition};

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
    }
}
