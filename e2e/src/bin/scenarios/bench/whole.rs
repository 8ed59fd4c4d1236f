//! What a ticket's whole way costs in calls, how soon it is seen to be taken up, and what effects and texts take.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context as _;
use bootstrap::now;
use domain::{Reason, Report, ReportId, ReportRequest, RunFence, RunId, SkipReason, TicketKey};
use e2e::{
    Options, World,
    whole::{self, RULES, Source},
};
use testkit::{RecordedRequest, fixture, github::Reacted};
use tokio::time::{Instant, sleep, timeout};

use crate::bench::measure::{Samples, figure, say};

/// How many issues are assigned, one after another.
const ISSUES: usize = 100;
/// How many tickets get a comment at once.
const EFFECTS: usize = 200;
/// The size of the text that is converted.
const TEXT_BYTES: usize = 100_000;
const ROUNDS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// Prints all of it.
pub(crate) async fn all() -> anyhow::Result<()> {
    calls(Source::Jira, "jira_ticket").await?;
    calls(Source::GitHub, "github_issue").await?;
    let world = Box::pin(World::start(options())).await?;
    seen(&world).await?;
    effects(&world).await?;
    world.stop().await?;
    documents();
    Ok(())
}

fn options() -> Options {
    Options {
        rules: RULES.to_owned(),
        ..Options::default()
    }
}

/// The calls of the whole way of one ticket, in all and by endpoint. Clones and pushes are not calls.
async fn calls(source: Source, name: &str) -> anyhow::Result<()> {
    let world = Box::pin(World::start(options())).await?;
    whole::play(&world, source).await?;
    let github = by_endpoint(&world.github.requests());
    let jira = by_endpoint(&world.jira.requests());
    for (of, calls) in [("github", &github), ("jira", &jira)] {
        for (endpoint, count) in calls {
            say(&format!("# {name}: {of} {endpoint} {count}"));
        }
        let all: usize = calls.values().sum();
        figure(&format!("long_story_{name}_{of}_calls"), all as f64, "calls");
    }
    let counted = world.github.rate_limit_used();
    figure(
        &format!("long_story_{name}_github_counted_calls"),
        counted as f64,
        "calls",
    );
    world.stop().await
}

fn by_endpoint(requests: &[RecordedRequest]) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::new();
    for request in requests.iter().filter(|request| !request.path.contains(".git/")) {
        let endpoint = format!("{} {}", request.method, endpoint(&request.path));
        *calls.entry(endpoint).or_default() += 1;
    }
    calls
}

/// A path with names in place of what differs from ticket to ticket.
fn endpoint(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let path = path.replace(&format!("/{}", fixture::REPOSITORY), "/{repository}");
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        // The version of Jira's API is a number too.
        let is_number = !part.is_empty()
            && parts.last() != Some(&"api")
            && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_commit = part.len() == 40 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_key = part.starts_with("ENG-");
        parts.push(match part {
            _ if is_number => "{number}",
            _ if is_commit => "{commit}",
            _ if is_key => "{key}",
            _ => part,
        });
        // The rest is the name of a branch.
        if parts.ends_with(&["ref", "heads"]) || parts.ends_with(&["refs", "heads"]) {
            parts.push("{branch}");
            break;
        }
    }
    parts.join("/")
}

/// From the webhook of an issue that is assigned to the eyes on it.
async fn seen(world: &World) -> anyhow::Result<()> {
    let (title, body) = fixture::ticket();
    let mut samples = Samples::default();
    for _ in 0..ISSUES {
        let number = world
            .github
            .open_issue_as(fixture::REPOSITORY, "ada", title, body)?;
        let start = Instant::now();
        world
            .github
            .assign_issue(fixture::REPOSITORY, number, "journeyman-agent", "rita")?;
        let eyes = async {
            loop {
                let reactions = world
                    .github
                    .reactions(fixture::REPOSITORY, Reacted::Issue(number));
                if reactions.iter().any(|one| one == "eyes") {
                    return;
                }
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, eyes).await.context("no eyes on an issue")?;
        samples.add(start.elapsed());
    }
    samples.print_both("delivery_to_eyes");
    Ok(())
}

/// Comments on many tickets at once, beside the same requests without the reporter.
async fn effects(world: &World) -> anyhow::Result<()> {
    let tickets: Vec<String> = (0..EFFECTS).map(|_| world.file_ticket()).collect();
    let queue = world.queue().await?;
    let (reports, triggers) = (queue.reports(), queue.triggers());
    let start = Instant::now();
    for ticket in &tickets {
        let ticket = TicketKey::jira(ticket)?;
        reports.append(&skipped(ticket)?).await?;
    }
    for ticket in &tickets {
        let ticket = TicketKey::jira(ticket)?;
        let settled = async {
            loop {
                let known = triggers.read_after(&ticket, 0).await?;
                let is_settled = |reason: &Reason| matches!(reason, Reason::ReportSettled(_));
                if known.iter().any(|(_, trigger)| is_settled(&trigger.reason)) {
                    return anyhow::Ok(());
                }
                sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(PATIENCE, settled)
            .await
            .context("a report is not settled")??;
    }
    let seconds = start.elapsed().as_secs_f64();
    figure("effects_on_200_tickets", EFFECTS as f64 / seconds, "per_second");
    Ok(())
}

fn skipped(ticket: TicketKey) -> anyhow::Result<Report> {
    let run = RunId::new(ticket.clone(), 1);
    let label = "no-agent".to_owned();
    Ok(Report {
        id: ReportId::from(run.call(1)),
        ticket,
        run: Some(run),
        fence: RunFence::default(),
        at: now(),
        progress: None,
        request: ReportRequest::Skipped(SkipReason::Label { label }),
    })
}

/// Text of Jira to Markdown and back, beside a copy of the same bytes.
fn documents() {
    let (_, body) = fixture::ticket();
    let paragraph = format!(
        "## A heading\n\n{body}\n\n- one **bold** item\n- a [link](https://example.com/)\n\n```python\ntotal = 1\n```\n\n"
    );
    let markdown = paragraph.repeat(TEXT_BYTES / paragraph.len());
    let document = jira::adf::from_markdown(&markdown);
    let megabytes = (markdown.len() * ROUNDS) as f64 / 1e6;
    let rate = |work: &dyn Fn() -> usize| {
        let start = Instant::now();
        let made: usize = (0..ROUNDS).map(|_| work()).sum();
        std::hint::black_box(made);
        megabytes / start.elapsed().as_secs_f64()
    };
    figure(
        "adf_from_markdown",
        rate(&|| {
            std::hint::black_box(jira::adf::from_markdown(&markdown))
                .as_object()
                .map_or(0, |all| all.len())
        }),
        "MB_per_second",
    );
    figure(
        "adf_to_markdown",
        rate(&|| jira::adf::to_markdown(&document).len()),
        "MB_per_second",
    );
    figure(
        "floor_adf_as_json",
        rate(&|| document.to_string().len()),
        "MB_per_second",
    );
}
