//! Number of GitHub calls that ingest makes to poll many open pull requests.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, ensure};
use domain::{CommitId, PullRequestRecord, PullRequestRef, PullRequestStatus, TicketKey};
use e2e::{Options, TestWorld};
use testkit::{fixture, github};
use tokio::time::{Instant, sleep};

use crate::bench::measure::print_figure;
use crate::output::print_line;

const PULL_REQUESTS: u64 = 500;
const ROUNDS: usize = 10;
// Poll interval of the bench, far below the default.
const INTERVAL_S: u64 = 1;
const HOUR_S: u64 = 3_600;
const PATIENCE: Duration = Duration::from_secs(120);

/// Prints the calls per hour, and how many of them count against GitHub's rate limit.
///
/// The figure is the cost of a round without checks times the hourly rounds, plus the cost of a check poll
/// times the polls permitted in an hour.
pub(crate) async fn measure_poll_calls() -> anyhow::Result<()> {
    let options = Options {
        no_webhooks: true,
        settings: vec![("INGEST__POLL_INTERVAL_S", INTERVAL_S.to_string())],
        ..Options::default()
    };
    let world = Box::pin(TestWorld::start(options)).await?;
    open_many(&world).await?;
    // After three more rounds every pull request is known and the initial check polls are spent.
    let settled = count_listings(&world) + 3;
    wait_until(|| count_listings(&world) >= settled && !check_commits(&world).is_empty()).await?;
    let looked = check_commits(&world);
    let a_look = looked.len() as f64 / looked.iter().collect::<BTreeSet<_>>().len() as f64;
    let (before, counted) = (count_other_calls(&world), world.github.rate_limit_used());
    let (first, checks) = (count_listings(&world), check_commits(&world).len());
    wait_until(|| count_listings(&world) >= first + ROUNDS).await?;
    let rounds = (count_listings(&world) - first) as f64;
    let a_round = (count_other_calls(&world) - before) as f64 / rounds;
    let spent = check_commits(&world).len() - checks;
    // A check poll of an unchanged commit may be a free 304; the subtraction assumes the worst case, so the
    // result errs low.
    let counted = (world.github.rate_limit_used() - counted).saturating_sub(u64::try_from(spent)?);
    let rounds_an_hour = HOUR_S as f64 / ingest::Settings::default().poll_interval_s as f64;
    let of_checks = ingest::CHECKS_AN_HOUR * a_look;
    print_line(&format!(
        "# {a_round:.2} calls a round without checks, {a_look:.2} a look at checks"
    ));
    print_figure(
        "github_calls_per_hour_500_prs",
        a_round * rounds_an_hour + of_checks,
        "calls",
    );
    print_figure(
        "github_counted_calls_per_hour_500_prs",
        counted as f64 / rounds * rounds_an_hour + of_checks,
        "calls",
    );
    world.stop().await
}

/// Opens pull requests in GitHub and records them in the index. They stay unchanged.
async fn open_many(world: &TestWorld) -> anyhow::Result<()> {
    // Only the reporter's user may write the index.
    let index = world.queue_as("reporter").await?.pull_requests();
    for number in 1..=PULL_REQUESTS {
        let branch = format!("feat/many-{number}");
        let file = format!("many/{number}.txt");
        let files = [(file.as_str(), "x\n")];
        let head = world
            .github
            .commit(fixture::REPOSITORY, &branch, "many", &files)?;
        let number = world.github.open_pull_request_as(
            fixture::REPOSITORY,
            github::WRITER_LOGIN,
            &branch,
            "many",
            "",
        )?;
        let head: CommitId = head.parse().context("a commit")?;
        let record = PullRequestRecord {
            pull_request: PullRequestRef {
                repository: fixture::REPOSITORY.parse()?,
                number,
                url: String::new(),
                branch,
            },
            ticket: TicketKey::jira(&format!("{}-{number}", fixture::PROJECT))?,
            head: Some(head),
            status: PullRequestStatus::Open,
        };
        index.keep(&record).await?;
    }
    Ok(())
}

/// Paths of all GitHub requests. Only ingest makes requests here.
fn list_request_paths(world: &TestWorld) -> Vec<String> {
    let requests = world.github.requests().into_iter();
    requests.map(|request| request.path).collect()
}

fn count_listings(world: &TestWorld) -> usize {
    let is_first = |path: &String| path.contains("/pulls?state=all") && path.ends_with("&page=1");
    list_request_paths(world)
        .iter()
        .filter(|path| is_first(path))
        .count()
}

/// Commit of each request for checks.
fn check_commits(world: &TestWorld) -> Vec<String> {
    let commit = |path: String| {
        let (_, rest) = path.split_once("/commits/")?;
        Some(rest.split('/').next()?.to_owned())
    };
    list_request_paths(world).into_iter().filter_map(commit).collect()
}

fn count_other_calls(world: &TestWorld) -> usize {
    list_request_paths(world).len() - check_commits(world).len()
}

async fn wait_until(mut reached: impl FnMut() -> bool) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !reached() {
        ensure!(Instant::now() < end, "the polls did not come");
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
