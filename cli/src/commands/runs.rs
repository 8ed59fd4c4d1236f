//! `journeyman runs`: list of runs.

use std::process::ExitCode;

use api::types::{RunState, RunView, RunsQuery};
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use domain::{Job, RunId, StopReason, TicketKey};
use serde::de::DeserializeOwned;

use super::{print_list, print_long};
use crate::{
    access,
    args::{ApiArguments, OutputFormat, PagerOptions, parse_ticket},
};

/// List runs, newest last
#[derive(Debug, Args)]
pub(super) struct Arguments {
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

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
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
    let mut runs = access::build_client(&asked.api)?.list_runs(&query).await?;
    // The API returns the newest run first. On a terminal the last line is next to the prompt.
    runs.reverse();
    match asked.output {
        OutputFormat::Json | OutputFormat::Jsonl => print_list(&runs, asked.output == OutputFormat::Json)?,
        OutputFormat::Text => print_long(runs.iter().map(render_run_line), asked.paging),
    }
    Ok(ExitCode::SUCCESS)
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
