//! Selection of the crash points, and the table of results.

use std::{collections::BTreeSet, num::NonZeroUsize, process::ExitCode, thread::available_parallelism};

use clap::ValueEnum as _;
use failpoint::{EFFECTS, FailpointPass, FailpointPhase, SITES};
use futures::{StreamExt, stream};
use tokio::time::Instant;

use crate::crash_matrix::{
    arguments::Arguments,
    case::{self, PlayedStory},
    ending::StoryEnding,
    stage::{MatrixStory, NatsServers},
};
use crate::output::print_line;

// Sites that crash at every passing, because each passing is another step of the story.
const EACH_TIME: [&str; 1] = ["queue.journal.append"];

// Sites that only read. A crash before the answer leaves the same state as one after it.
const READS: &[&str] = &[
    "ingest.github.attachment",
    "ingest.github.branch_checks",
    "ingest.github.changed",
    "ingest.github.checks",
    "ingest.github.closed",
    "ingest.github.comments",
    "ingest.github.commits",
    "ingest.github.compare",
    "ingest.github.discussion",
    "ingest.github.discussions",
    "ingest.github.files",
    "ingest.github.heads",
    "ingest.github.hook_deliveries",
    "ingest.github.hook_payload",
    "ingest.github.issue",
    "ingest.github.issues",
    "ingest.github.job_log",
    "ingest.github.list",
    "ingest.github.mentioning",
    "ingest.github.permission",
    "ingest.github.presence",
    "ingest.github.pull_request",
    "ingest.github.remarks",
    "ingest.github.rendered",
    "ingest.github.required_checks",
    "ingest.github.review_requests",
    "ingest.github.reviews",
    "ingest.jira.attachment",
    "ingest.jira.attachments",
    "ingest.jira.changed",
    "ingest.jira.comments",
    "ingest.jira.edits",
    "ingest.jira.fields",
    "ingest.jira.groups",
    "ingest.jira.issue",
    "ingest.jira.key",
    "ingest.jira.last_move",
    "ingest.jira.list",
    "ingest.jira.match",
    "ingest.jira.matching",
    "ingest.jira.outlines",
    "ingest.jira.role",
    "ingest.jira.search",
    "ingest.jira.similar",
    "queue.connect",
    "queue.journal.read",
    "queue.log.last",
    "queue.log.read_each",
    "queue.log.watch",
    "queue.object.get",
    "queue.table.get",
    "queue.table.list",
    "reporter.comment.list",
    "reporter.effect.look",
    "reporter.github.size",
    "reporter.github.token",
];

// Sites that the stories need not pass, because separate tests cover them.
//
// They read for lost commands, moved tickets, GitHub issues, attachments of GitHub and of comments, lists of tickets,
// reviews of others' pull requests, many open pull requests and the approval gate. Others read Git LFS, call MCP
// servers and fetch a large repository in steps. The rest summarizes a long conversation, and corrects a comment that
// exists twice because of lagging lists.
const UNPLAYED: &[&str] = &[
    "executor.lfs.fetch",
    "executor.server.run",
    "ingest.github.attachment",
    "ingest.github.comments",
    "ingest.github.commits",
    "ingest.github.discussion",
    "ingest.github.discussions",
    "ingest.github.heads",
    "ingest.github.issue",
    "ingest.github.issues",
    "ingest.github.list",
    "ingest.github.presence",
    "ingest.github.rendered",
    "ingest.github.review_requests",
    "ingest.jira.attachments",
    "ingest.jira.edits",
    "ingest.jira.fields",
    "ingest.jira.key",
    "ingest.jira.list",
    "ingest.jira.match",
    "ingest.jira.matching",
    "ingest.jira.role",
    "ingest.jira.statuses",
    "planner.mcp.call",
    "planner.mcp.list",
    "planner.model.sum_up",
    "reporter.comment.delete",
    "reporter.ledger.correct",
    "reporter.lfs.batch",
    "reporter.lfs.download",
    "reporter.mirror.step",
];

/// Attempts for a point that depends on timing and may be missed.
const TRIES: u32 = 3;

/// Crash point and the story that it interrupts.
struct CrashCase {
    story: MatrixStory,
    point: FailpointPass,
}

/// Story without a crash, for comparison.
struct UsualStory {
    story: MatrixStory,
    ending: StoryEnding,
    points: Vec<FailpointPass>,
}

/// Result of one crash.
struct TriedCase {
    case: CrashCase,
    problems: Vec<String>,
    ms: u128,
}

/// Plays the stories once to find the points, then once for each point.
///
/// # Errors
/// When a story without a crash fails, a site is not passed, or the build has no failpoints.
pub(crate) async fn run_matrix(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        failpoint::IS_ACTIVE,
        "this build has no failpoints: it has no debug assertions"
    );
    let begun = Instant::now();
    let stories = match arguments.story.as_slice() {
        [] => MatrixStory::value_variants(),
        chosen => chosen,
    };
    let mut usual = Vec::with_capacity(stories.len());
    for story in stories {
        usual.push(play_usual(*story, arguments.servers).await?);
    }
    let unplayed = list_unplayed_sites(&usual);
    if arguments.story.is_empty() {
        ensure_played(&unplayed, &usual)?;
    }
    let cases = sample_cases(choose_cases(&usual, arguments.only.as_deref()), arguments)?;
    if arguments.list {
        cases.iter().for_each(|case| print_line(&case.point.to_string()));
        return Ok(ExitCode::SUCCESS);
    }
    let tried = try_all(cases, arguments, &usual).await;
    let survived = tried.iter().filter(|tried| tried.problems.is_empty()).count();
    print_line(&format!(
        "{} sites, of which no story passes {}",
        SITES.len(),
        unplayed.join(", ")
    ));
    print_line(&format!(
        "crash-matrix: {} points, {survived} survived, {} s",
        tried.len(),
        begun.elapsed().as_secs()
    ));
    // An empty selection is a failure, so that a typo in a filter does not pass.
    Ok(ExitCode::from(u8::from(
        tried.is_empty() || survived < tried.len(),
    )))
}

/// Refuses stories that do not pass a site or an effect of the known ones.
fn ensure_played(unplayed: &[&str], usual: &[UsualStory]) -> anyhow::Result<()> {
    let is_known = unplayed.iter().all(|site| UNPLAYED.contains(site));
    anyhow::ensure!(is_known, "the stories do not pass {unplayed:?}");
    let effects = unplayed_effects(usual);
    anyhow::ensure!(
        effects.is_empty(),
        "the stories do not have the effects {effects:?}"
    );
    Ok(())
}

/// Plays a story twice and keeps the points of both times. A point that only one of them passes depends on
/// timing.
async fn play_usual(story: MatrixStory, servers: NatsServers) -> anyhow::Result<UsualStory> {
    let PlayedStory { ending, points, .. } = Box::pin(case::play_story(story, servers, None)).await?;
    let faults = ending.faults(story);
    anyhow::ensure!(
        faults.is_empty(),
        "{story:?} without a crash: {faults:#?}\n{ending:#?}"
    );
    let again: BTreeSet<FailpointPass> = Box::pin(case::play_story(story, servers, None))
        .await?
        .points
        .into_iter()
        .collect();
    let points = points.into_iter().filter(|point| again.contains(point)).collect();
    Ok(UsualStory {
        story,
        ending,
        points,
    })
}

/// Selects the points to crash at: the first passing of each place, before and after, in the first story that
/// passes it. [`EACH_TIME`] sites crash at every passing.
fn choose_cases(usual: &[UsualStory], only: Option<&str>) -> Vec<CrashCase> {
    let mut places = BTreeSet::new();
    let mut cases = Vec::new();
    for UsualStory { story, points, .. } in usual {
        let is_new = |point: &&FailpointPass| !places.contains(&point.place());
        let new = points.iter().filter(is_new).filter(|point| is_chosen(point));
        let wanted = new.filter(|point| only.is_none_or(|text| point.to_string().contains(text)));
        cases.extend(wanted.map(|point| CrashCase {
            story: *story,
            point: point.clone(),
        }));
        places.extend(points.iter().map(FailpointPass::place));
    }
    cases
}

/// Samples the points: the picked ones of the stories that have such points, and every Nth one of the other stories.
///
/// # Errors
/// When a text picks no point.
fn sample_cases(cases: Vec<CrashCase>, arguments: &Arguments) -> anyhow::Result<Vec<CrashCase>> {
    let is_named = |case: &CrashCase, text: &String| case.point.to_string().contains(text.as_str());
    for text in &arguments.pick {
        anyhow::ensure!(
            cases.iter().any(|case| is_named(case, text)),
            "no point is named {text}"
        );
    }
    let is_picked = |case: &CrashCase| arguments.pick.iter().any(|text| is_named(case, text));
    let stories: Vec<MatrixStory> = cases
        .iter()
        .filter(|case| is_picked(case))
        .map(|case| case.story)
        .collect();
    let (of_picked, others): (Vec<_>, Vec<_>) =
        cases.into_iter().partition(|case| stories.contains(&case.story));
    let step = arguments.every.map_or(1, NonZeroUsize::get);
    let sampled = others.into_iter().skip(arguments.skip).step_by(step);
    Ok(sampled.chain(of_picked.into_iter().filter(is_picked)).collect())
}

fn is_chosen(point: &FailpointPass) -> bool {
    let site = point.site.as_str();
    match point.phase {
        FailpointPhase::Before => point.nth == 1 && !READS.contains(&site),
        FailpointPhase::After => point.nth == 1 || EACH_TIME.contains(&site),
    }
}

fn list_unplayed_sites(usual: &[UsualStory]) -> Vec<&'static str> {
    let points = usual.iter().flat_map(|usual| &usual.points);
    let passed: BTreeSet<&str> = points.map(|point| point.site.as_str()).collect();
    SITES
        .iter()
        .copied()
        .filter(|site| !passed.contains(site))
        .collect()
}

fn unplayed_effects(usual: &[UsualStory]) -> Vec<&'static str> {
    let points = usual.iter().flat_map(|usual| &usual.points);
    let made =
        points.filter(|point| point.site == "reporter.effect.create" && point.phase == FailpointPhase::After);
    let kinds: BTreeSet<&str> = made.map(|point| point.kind.as_str()).collect();
    EFFECTS
        .iter()
        .copied()
        .filter(|effect| !kinds.contains(effect))
        .collect()
}

async fn try_all(cases: Vec<CrashCase>, arguments: &Arguments, usual: &[UsualStory]) -> Vec<TriedCase> {
    let cores = available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.unwrap_or(cores + 1);
    let played = stream::iter(cases).map(|case| Box::pin(try_one(case, arguments.servers, usual)));
    let tried = played.buffer_unordered(jobs.max(1)).inspect(print_tried);
    tried.collect().await
}

async fn try_one(case: CrashCase, servers: NatsServers, usual: &[UsualStory]) -> TriedCase {
    let begun = Instant::now();
    let mut problems = vec!["the story never came to the point".to_owned()];
    for _ in 0..TRIES {
        match Box::pin(case::play_story(case.story, servers, Some(&case.point))).await {
            Ok(played) if !played.has_crashed => continue,
            Ok(played) => problems = compare_endings(&played, case.story, usual),
            Err(error) => problems = vec![format!("{error:#}")],
        }
        break;
    }
    TriedCase {
        case,
        problems,
        ms: begun.elapsed().as_millis(),
    }
}

fn compare_endings(played: &PlayedStory, story: MatrixStory, usual: &[UsualStory]) -> Vec<String> {
    let usual = usual.iter().find(|usual| usual.story == story);
    let differences = usual.map(|usual| played.ending.differences(&usual.ending, story));
    let mut problems = differences.unwrap_or_default();
    if !problems.is_empty() {
        problems.push(format!("the end of the log:\n{}", played.log));
    }
    problems
}

fn print_tried(tried: &TriedCase) {
    let outcome = if tried.problems.is_empty() {
        "survived"
    } else {
        "FAILED"
    };
    print_line(&format!(
        "{:<60} {outcome:<8} {:>6} ms",
        tried.case.point.to_string(),
        tried.ms
    ));
    tried
        .problems
        .iter()
        .for_each(|problem| print_line(&format!("  {problem}")));
}
