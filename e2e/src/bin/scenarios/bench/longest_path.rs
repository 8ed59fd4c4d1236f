//! Calls of a ticket's whole path, time to the first reaction, rate of effects, and conversion of Jira texts.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context as _;
use bootstrap::read_wall_clock;
use domain::{
    OutboundAction, OutboundId, OutboundRequest, RunFence, RunId, SkipReason, TicketKey, TriggerReason,
};
use e2e::{
    Options, TestWorld,
    longest_path::{self, RULES, StoryTicketSource},
};
use testkit::{RecordedRequest, fixture, github::ReactedObject};
use tokio::time::{Instant, sleep, timeout};

use crate::bench::{
    measure::{DurationSamples, print_figure},
    waiting::wait_for,
};
use crate::output::print_line;

/// Number of issues that are assigned, in sequence.
const ISSUES: usize = 100;
/// Number of tickets that get a comment at once.
const EFFECTS: usize = 200;
/// Size of the converted text in bytes.
const TEXT_BYTES: usize = 100_000;
const ROUNDS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// Prints all figures of this part.
pub(crate) async fn measure_longest_path() -> anyhow::Result<()> {
    print_path_calls(StoryTicketSource::Jira, "jira_ticket").await?;
    print_path_calls(StoryTicketSource::GitHub, "github_issue").await?;
    let world = Box::pin(TestWorld::start(build_path_options())).await?;
    measure_first_reaction(&world).await?;
    measure_effects(&world).await?;
    world.stop().await?;
    measure_documents();
    Ok(())
}

fn build_path_options() -> Options {
    Options {
        rules: RULES.to_owned(),
        ..Options::default()
    }
}

/// Prints the API calls of one ticket's whole path, in total and by endpoint. Clones and pushes are left out.
async fn print_path_calls(source: StoryTicketSource, name: &str) -> anyhow::Result<()> {
    let world = Box::pin(TestWorld::start(build_path_options())).await?;
    longest_path::play_longest_path(&world, source).await?;
    let github = by_endpoint(&world.github.requests());
    let jira = by_endpoint(&world.jira.requests());
    for (of, calls) in [("github", &github), ("jira", &jira)] {
        for (endpoint, count) in calls {
            print_line(&format!("# {name}: {of} {endpoint} {count}"));
        }
        let all: usize = calls.values().sum();
        print_figure(&format!("long_story_{name}_{of}_calls"), all as f64, "calls");
    }
    let counted = world.github.rate_limit_used();
    print_figure(
        &format!("long_story_{name}_github_counted_calls"),
        counted as f64,
        "calls",
    );
    world.stop().await
}

fn by_endpoint(requests: &[RecordedRequest]) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::new();
    for request in requests.iter().filter(|request| !request.path.contains(".git/")) {
        let endpoint = format!("{} {}", request.method, derive_endpoint_pattern(&request.path));
        *calls.entry(endpoint).or_default() += 1;
    }
    calls
}

/// Replaces the ticket-specific parts of a path by placeholders.
fn derive_endpoint_pattern(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let path = path.replace(&format!("/{}", fixture::REPOSITORY), "/{repository}");
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        // The version in `/rest/api/3` is also a number, but part of the endpoint.
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
        // The remaining parts are the name of a branch.
        if parts.ends_with(&["ref", "heads"]) || parts.ends_with(&["refs", "heads"]) {
            parts.push("{branch}");
            break;
        }
    }
    parts.join("/")
}

/// Prints the time from an issue's assignment to the reaction on it.
async fn measure_first_reaction(world: &TestWorld) -> anyhow::Result<()> {
    let (title, body) = fixture::describe_shop_ticket();
    let mut samples = DurationSamples::default();
    for _ in 0..ISSUES {
        let number = world
            .github
            .open_issue_as(fixture::REPOSITORY, "ada", title, body)?;
        let start = Instant::now();
        world
            .github
            .assign_issue(fixture::REPOSITORY, number, "journeyman-agent", "rita")?;
        wait_for("eyes on an issue", world.github.answered(), || {
            let reactions = world
                .github
                .reactions(fixture::REPOSITORY, ReactedObject::Issue(number));
            reactions.iter().any(|one| one == "eyes")
        })
        .await?;
        samples.add(start.elapsed());
    }
    samples.print_both("delivery_to_eyes");
    Ok(())
}

/// Prints the rate of comments on many tickets at once.
async fn measure_effects(world: &TestWorld) -> anyhow::Result<()> {
    let tickets: Vec<String> = (0..EFFECTS).map(|_| world.file_ticket()).collect();
    let queue = world.queue().await?;
    let (reports, triggers) = (queue.reports(), queue.triggers());
    let earlier = count_comments(world);
    let start = Instant::now();
    for ticket in &tickets {
        let ticket = TicketKey::jira(ticket)?;
        reports.append(&build_skip_report(ticket)?).await?;
    }
    // The outcomes are read only after the last comment, so that the reads do not slow the comments down.
    wait_for("a comment on each ticket", world.jira.answered(), || {
        count_comments(world) >= earlier + EFFECTS
    })
    .await?;
    for ticket in &tickets {
        let ticket = TicketKey::jira(ticket)?;
        let settled = async {
            loop {
                let known = triggers.read_after(&ticket, 0).await?;
                let is_settled = |reason: &TriggerReason| matches!(reason, TriggerReason::ReportSettled(_));
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
    print_figure("effects_on_200_tickets", EFFECTS as f64 / seconds, "per_second");
    Ok(())
}

fn count_comments(world: &TestWorld) -> usize {
    world
        .jira
        .count_requests(|request| request.method == "POST" && request.path.contains("/comment"))
}

fn build_skip_report(ticket: TicketKey) -> anyhow::Result<OutboundRequest> {
    let run = RunId::new(ticket.clone(), 1);
    let label = "no-agent".to_owned();
    Ok(OutboundRequest {
        id: OutboundId::from(run.call(1)),
        ticket,
        run: Some(run),
        fence: RunFence::default(),
        at: read_wall_clock(),
        progress: None,
        request: OutboundAction::Skipped(SkipReason::Label { label }),
    })
}

/// Prints the rate of conversions between Markdown and ADF. The floor serializes the same document.
fn measure_documents() {
    let (_, body) = fixture::describe_shop_ticket();
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
    print_figure(
        "adf_from_markdown",
        rate(&|| {
            std::hint::black_box(jira::adf::from_markdown(&markdown))
                .as_object()
                .map_or(0, |all| all.len())
        }),
        "MB_per_second",
    );
    print_figure(
        "adf_to_markdown",
        rate(&|| jira::adf::to_markdown(&document).len()),
        "MB_per_second",
    );
    print_figure(
        "floor_adf_as_json",
        rate(&|| document.to_string().len()),
        "MB_per_second",
    );
}
