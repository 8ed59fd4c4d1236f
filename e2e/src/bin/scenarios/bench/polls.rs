//! Number of GitHub calls that ingest makes to poll many open pull requests, and to assess one.

use anyhow::Context as _;
use domain::{CommitId, PullRequestRecord, PullRequestRef, PullRequestStatus, TicketKey};
use e2e::{Options, TestWorld};
use github::{GitHubReader, SnapshotScope};
use testkit::{
    FakeGitHub, GitHubOptions, RecordedRequest, fixture,
    github::{self as stand_in, BranchRuleset, RulesetCondition, RunConclusion},
};

use crate::bench::{measure::print_figure, waiting::wait_for};
use crate::output::print_line;

const PULL_REQUESTS: u64 = 500;
const ROUNDS: usize = 10;
// Pages of a listing of all their heads.
const HEAD_PAGES: usize = 5;
// Poll interval of the bench, far below the default.
const INTERVAL_S: u64 = 1;
const HOUR_S: u64 = 3_600;

/// Prints the calls per hour, and how many of them count against GitHub's rate limit.
///
/// The figure is the cost of a round times the hourly rounds, plus the listings of heads and the assessments of
/// unchanged pull requests that an hour permits.
pub(crate) async fn measure_poll_calls() -> anyhow::Result<()> {
    let options = Options {
        no_webhooks: true,
        settings: vec![("INGEST__POLL_INTERVAL_S", INTERVAL_S.to_string())],
        ..Options::default()
    };
    let world = Box::pin(TestWorld::start(options)).await?;
    open_many(&world).await?;
    // After three more rounds every pull request is known, and the listing of pull requests is certain.
    let settled = count_listings(&world) + 3;
    wait_for("the first polls", world.github.answered(), || {
        count_listings(&world) >= settled
    })
    .await?;
    let (first, calls, counted) = (
        count_listings(&world),
        count_round_calls(&world, |_| true),
        count_round_calls(&world, is_counted),
    );
    wait_for("the polls", world.github.answered(), || {
        count_listings(&world) >= first + ROUNDS && count_pages(&world) >= HEAD_PAGES
    })
    .await?;
    let rounds = (count_listings(&world) - first) as f64;
    let a_round = (count_round_calls(&world, |_| true) - calls) as f64 / rounds;
    let counted_a_round = (count_round_calls(&world, is_counted) - counted) as f64 / rounds;
    let pages = count_pages(&world) as f64;
    let (hub, reader, number) = start_assessed_pull_request(&[]).await?;
    let repository = fixture::REPOSITORY.parse()?;
    reader
        .health()
        .snapshot(&repository, number, SnapshotScope::default())
        .await?;
    let an_assessment = hub.count_requests(|_| true) as f64;
    let rounds_an_hour = HOUR_S as f64 / ingest::Settings::default().poll_interval_s as f64;
    // Each of these reads counts as if its answer had changed, so the result errs high.
    let of_heads = f64::from(ingest::HEAD_LISTINGS_AN_HOUR) * pages;
    let of_assessments = ingest::STEADY_ASSESSMENTS_AN_HOUR * an_assessment;
    print_line(&format!(
        "# {a_round:.2} calls a round, {pages} a listing of heads, {an_assessment} an assessment"
    ));
    print_figure(
        "github_calls_per_hour_500_prs",
        a_round * rounds_an_hour + of_heads + of_assessments,
        "calls",
    );
    print_figure(
        "github_counted_calls_per_hour_500_prs",
        counted_a_round * rounds_an_hour + of_heads + of_assessments,
        "calls",
    );
    world.stop().await
}

/// Prints the calls of one assessment of a pull request whose base has every requirement: of the first one, and
/// how many of a later one without a change count against GitHub's rate limit.
pub(crate) async fn measure_assessment_calls() -> anyhow::Result<()> {
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
    let (hub, reader, number) = start_assessed_pull_request(&[ruleset]).await?;
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

/// Starts a GitHub with a green pull request into a branch with these rulesets. Returns it with a reader and the number.
async fn start_assessed_pull_request(
    rulesets: &[BranchRuleset],
) -> anyhow::Result<(FakeGitHub, GitHubReader, u64)> {
    let hub = FakeGitHub::start(GitHubOptions::default()).await?;
    hub.create_repository(fixture::REPOSITORY, &fixture::list_shop_files())?;
    let head = hub.commit(fixture::REPOSITORY, "feat/x", "x", &[("x.txt", "x\n")])?;
    let number = hub.open_pull_request_as(fixture::REPOSITORY, stand_in::WRITER_LOGIN, "feat/x", "x", "")?;
    hub.run_checks(
        fixture::REPOSITORY,
        &head,
        &[("test", RunConclusion::Success, "")],
    )?;
    hub.set_rulesets(fixture::REPOSITORY, rulesets)?;
    let reader = GitHubReader::new(&github::Settings {
        api_url: hub.api_url(),
        git_url: hub.git_url(),
        token: Some(stand_in::READER_TOKEN.into()),
        ..github::Settings::default()
    })?;
    Ok((hub, reader, number))
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

/// Number of requests of the rounds themselves, without reads of single pull requests and listings of heads.
fn count_round_calls(world: &TestWorld, is_wanted: impl Fn(&RecordedRequest) -> bool) -> usize {
    let parts_of_one = ["/commits/", "/actions/runs", "/branches/", "/pulls/", "/graphql"];
    world.github.count_requests(|request| {
        let is_of_one = parts_of_one.iter().any(|part| request.path.contains(part));
        !is_of_one && is_wanted(request)
    })
}

/// True unless GitHub answered with 304, which costs nothing of the rate limit.
fn is_counted(request: &RecordedRequest) -> bool {
    request.status != 304
}

/// Number of pages of the longest listing of heads.
fn count_pages(world: &TestWorld) -> usize {
    let (mut pages, mut most) = (0, 0);
    world.github.visit_requests(|request| {
        let body = request
            .body
            .as_ref()
            .filter(|_| request.path.ends_with("/graphql"));
        if let Some(body) = body {
            // Only the first page of a listing begins at no cursor.
            let is_first = body["variables"]["after"].is_null();
            pages = if is_first { 1 } else { pages + 1 };
            most = most.max(pages);
        }
    });
    most
}
