//! Number of GitHub calls that ingest makes to poll many open pull requests, and to assess one.

use std::collections::BTreeSet;

use anyhow::Context as _;
use domain::{CommitId, PullRequestRecord, PullRequestRef, PullRequestStatus, TicketKey};
use e2e::{Options, TestWorld};
use github::{GitHubReader, SnapshotScope};
use testkit::{
    FakeGitHub, GitHubOptions, fixture,
    github::{self as stand_in, BranchRuleset, RulesetCondition, RunConclusion},
};

use crate::bench::{measure::print_figure, waiting::wait_for};
use crate::output::print_line;

const PULL_REQUESTS: u64 = 500;
const ROUNDS: usize = 10;
// Poll interval of the bench, far below the default.
const INTERVAL_S: u64 = 1;
const HOUR_S: u64 = 3_600;

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
    wait_for("the first polls", world.github.answered(), || {
        count_listings(&world) >= settled && !check_commits(&world).is_empty()
    })
    .await?;
    let looked = check_commits(&world);
    let a_look = looked.len() as f64 / looked.iter().collect::<BTreeSet<_>>().len() as f64;
    let (before, counted) = (count_other_calls(&world), world.github.rate_limit_used());
    let (first, checks) = (count_listings(&world), check_commits(&world).len());
    wait_for("the polls", world.github.answered(), || {
        count_listings(&world) >= first + ROUNDS
    })
    .await?;
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

/// Prints the calls of one assessment of a pull request whose base has every requirement: of the first one, and
/// how many of a later one without a change count against GitHub's rate limit.
pub(crate) async fn measure_assessment_calls() -> anyhow::Result<()> {
    let hub = FakeGitHub::start(GitHubOptions::default()).await?;
    hub.create_repository(fixture::REPOSITORY, &fixture::list_shop_files())?;
    let head = hub.commit(fixture::REPOSITORY, "feat/x", "x", &[("x.txt", "x\n")])?;
    let number = hub.open_pull_request_as(fixture::REPOSITORY, stand_in::WRITER_LOGIN, "feat/x", "x", "")?;
    hub.run_checks(
        fixture::REPOSITORY,
        &head,
        &[("test", RunConclusion::Success, "")],
    )?;
    let ruleset = BranchRuleset {
        branches: vec!["main".to_owned()],
        required_checks: vec!["test".to_owned()],
        required_approvals: 1,
        conditions: vec![
            RulesetCondition::CurrentBase,
            RulesetCondition::ResolvedThreads,
            RulesetCondition::SignedCommits,
            RulesetCondition::MergeQueue,
        ],
        ..BranchRuleset::default()
    };
    hub.set_rulesets(fixture::REPOSITORY, &[ruleset])?;
    let reader = GitHubReader::new(&github::Settings {
        api_url: hub.api_url(),
        git_url: hub.git_url(),
        token: Some(stand_in::READER_TOKEN.into()),
        ..github::Settings::default()
    })?;
    let (repository, health) = (fixture::REPOSITORY.parse()?, reader.health());
    let scope = SnapshotScope {
        queue: true,
        distance: true,
    };
    health.snapshot(&repository, number, scope).await?;
    let calls = hub.count_requests(|_| true);
    let counted = hub.rate_limit_used();
    health.snapshot(&repository, number, scope).await?;
    let counted = hub.rate_limit_used() - counted;
    print_figure("assessment_calls", calls as f64, "calls");
    print_figure("assessment_counted_calls_unchanged", counted as f64, "calls");
    Ok(())
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
            stand_in::WRITER_LOGIN,
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

fn count_listings(world: &TestWorld) -> usize {
    world.github.count_requests(|request| {
        request.path.contains("/pulls?state=all") && request.path.ends_with("&page=1")
    })
}

/// Commit of each request for checks. Only ingest makes requests here.
fn check_commits(world: &TestWorld) -> Vec<String> {
    let mut commits = Vec::new();
    world
        .github
        .visit_requests(|request| commits.extend(extract_checked_commit(&request.path).map(str::to_owned)));
    commits
}

fn extract_checked_commit(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once("/commits/")?;
    rest.split('/').next()
}

fn count_other_calls(world: &TestWorld) -> usize {
    world
        .github
        .count_requests(|request| extract_checked_commit(&request.path).is_none())
}
