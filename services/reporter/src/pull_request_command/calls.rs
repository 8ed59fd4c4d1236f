//! Pull requests that callers of the API request: taken from the queue, performed, and answered in the queue.

use std::{sync::Arc, time::Duration};

use bootstrap::rules::RulesStore;
use domain::{PullRequestAnswer, PullRequestCall, TicketKey, cause::format_error_chain};
use pullrequest::{
    BranchLocation, CallProblem, DryRunAnswer, ProblemKind, ProtocolAnswer, ValidatedRequest,
    parse_github_request,
};
use queue::{CallClaim, PullRequestCalls, TableRevision};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{PullRequestOpener, only_looked, without_credentials};

// Interval of the poll for new calls.
const LOOK_EVERY: Duration = Duration::from_millis(500);
// Calls that one reporter performs concurrently.
const AT_ONCE: usize = 4;

/// Result of a call.
enum PullRequestResult {
    Wrote(ProtocolAnswer),
    Looked(DryRunAnswer),
}

/// Request with what the rules of its repository add.
struct RuledRequest {
    request: ValidatedRequest,
    /// Issue of the request, on the Jira of the rules; absent without a key, or if the key is of no issue.
    issue: Option<TicketKey>,
}

/// Worker for pull request calls.
pub(crate) struct CallWorker {
    pub(crate) opener: PullRequestOpener,
    pub(crate) calls: PullRequestCalls,
    pub(crate) rules: RulesStore,
}

impl CallWorker {
    /// Answers calls until shutdown. Calls in progress at that time are taken up by another reporter, or by this one
    /// after its restart.
    pub(crate) async fn run(self: Arc<Self>, shutdown: CancellationToken) -> Result<(), queue::Error> {
        let mut ticks = interval(LOOK_EVERY);
        // After a slow poll, missed ticks must not cause a burst of polls.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let (mut seen, mut waiting, mut in_hand) = (TableRevision::default(), Vec::new(), JoinSet::new());
        while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            // The first poll reads from the start, so it also finds the calls that a stopped reporter
            // left.
            let (new, newest) = self.calls.changes_after(seen).await?;
            waiting.extend(new);
            seen = newest;
            waiting = self.take_up(waiting, &places, &mut in_hand).await?;
            while in_hand.try_join_next().is_some() {}
        }
        Ok(())
    }

    /// Starts calls that no reporter has taken. Returns the calls of other reporters and those without a free slot.
    async fn take_up(
        self: &Arc<Self>,
        waiting: Vec<PullRequestCall>,
        places: &Arc<Semaphore>,
        in_hand: &mut JoinSet<()>,
    ) -> Result<Vec<PullRequestCall>, queue::Error> {
        let mut left = Vec::new();
        for call in waiting {
            // The slot comes before the claim: a claimed call that waits for a slot here would be
            // missing at other reporters.
            let Ok(place) = Arc::clone(places).try_acquire_owned() else {
                left.push(call);
                continue;
            };
            match self.calls.take(&call.id, bootstrap::read_wall_clock()).await? {
                CallClaim::Answered => {}
                // The other reporter may stop before it answers, so this call is tried again at the next poll.
                CallClaim::Theirs => left.push(call),
                CallClaim::Ours(revision) => {
                    let calls = Arc::clone(self);
                    let span = tracing::info_span!("pull request call", id = call.id, by = call.by);
                    let carried_out = async move {
                        calls.carry_out(&call, revision).await;
                        drop(place);
                    };
                    in_hand.spawn(carried_out.instrument(span));
                }
            }
        }
        Ok(left)
    }

    async fn carry_out(&self, call: &PullRequestCall, revision: TableRevision) {
        let started = Instant::now();
        let answered = match parse_github_request(&call.request) {
            Ok(request) => Box::pin(self.answered(request)).await,
            Err(problems) => PullRequestResult::Wrote(ProtocolAnswer::failed(problems)),
        };
        let answer = match answered {
            PullRequestResult::Wrote(answer) => {
                let answer = ProtocolAnswer {
                    execution_time_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                    ..without_credentials(answer)
                };
                let errors: Vec<ProblemKind> = answer.errors.iter().map(|problem| problem.kind).collect();
                tracing::info!(
                    pull_request = answer.pr_url,
                    ?errors,
                    "pull request call answered"
                );
                serde_json::to_value(&answer)
            }
            PullRequestResult::Looked(look) => serde_json::to_value(&look),
        };
        let kept = PullRequestAnswer {
            taken_at: bootstrap::read_wall_clock(),
            answer: Some(answer.unwrap_or_default()),
        };
        if let Err(error) = self.calls.keep_answer(&call.id, &kept, revision).await {
            tracing::warn!(error = %format_error_chain(&error), "answer not kept; the call is carried out again, which repeats nothing");
        }
    }

    async fn answered(&self, request: ValidatedRequest) -> PullRequestResult {
        let failed = |problem| PullRequestResult::Wrote(ProtocolAnswer::failed(vec![problem]));
        let RuledRequest { request, issue } = match self.under_the_rules(request) {
            Ok(ruled) => ruled,
            Err(problem) => return failed(problem),
        };
        let ground = match self.opener.look(&request, issue).await {
            Ok(ground) => ground,
            Err(problem) => return failed(problem),
        };
        match self.opener.plan(&request, &ground, None) {
            Ok(plan) if request.dry_run => PullRequestResult::Looked(only_looked(plan)),
            Ok(plan) => PullRequestResult::Wrote(self.opener.write(&request, &ground, &plan).await),
            Err(problem) => failed(problem),
        }
    }

    /// Refuses repositories without rules. Adds the rules' Jira and their fields for screens of transitions.
    fn under_the_rules(&self, mut request: ValidatedRequest) -> Result<RuledRequest, CallProblem> {
        let BranchLocation::GitHub(repository) = &request.place else {
            return Err(CallProblem::new(
                ProblemKind::UnknownError,
                "The branch is not at GitHub",
            ));
        };
        let book = self.rules.book();
        if let Some(rules) = book.for_repository(repository) {
            for (name, value) in &rules.jira.transition_fields {
                let given = request.transition_fields.entry(name.clone());
                given.or_insert_with(|| value.clone());
            }
            let issue = request.jira_key.as_deref();
            let issue = issue.and_then(|key| book.called_issue(repository, key).ok());
            return Ok(RuledRequest { request, issue });
        }
        let message = format!("no rules name the repository {repository}");
        Err(CallProblem::new(ProblemKind::ValidationError, message).about_field("repository"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use bootstrap::rules::{self, ConfiguredInstances};
    use domain::InstanceName;
    use pullrequest::CallStatus;
    use queue::Queue;
    use secrecy::SecretString;
    use serde_json::json;
    use testkit::{
        FakeGitHub, FakeJira, GitHubOptions, JiraOptions, NatsServer, fixture, jira::JiraTransition,
    };

    use super::*;

    const BRANCH: &str = "feature/ENG-1-login";

    /// Starts a Jira with the issue `ENG-1`.
    async fn start_jira() -> FakeJira {
        let review = JiraTransition {
            name: "Code Review".to_owned(),
            to: "In Review".to_owned(),
            asks_for: Vec::new(),
        };
        let options = JiraOptions {
            named: vec![review],
            ..JiraOptions::default()
        };
        let jira = FakeJira::start(options).await.unwrap();
        jira.create_issue(fixture::PROJECT, "Add a login", "A form.", "Story", &[]);
        jira
    }

    fn build_jira_settings(jira: &FakeJira) -> jira::Settings {
        jira::Settings {
            base_url: jira.url(),
            email: testkit::jira::WRITER_EMAIL.to_owned(),
            api_token: SecretString::from(testkit::jira::WRITER_API_TOKEN),
            ..jira::Settings::default()
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn call_writes_to_jira_of_rules_alone() {
        bootstrap::install_tls_provider();
        let nats = NatsServer::start().await.unwrap();
        let queue_settings = queue::Settings {
            url: nats.url(),
            ..queue::Settings::default()
        };
        let queue = Queue::connect(&queue_settings, "test").await.unwrap();
        queue.ensure_topology().await.unwrap();
        let github = FakeGitHub::start(GitHubOptions::default()).await.unwrap();
        let files = fixture::list_shop_files();
        github.create_repository(fixture::REPOSITORY, &files).unwrap();
        let files = [("login.py", "def login(): ...\n")];
        github
            .commit(fixture::REPOSITORY, BRANCH, "Add a login", &files)
            .unwrap();
        let (here, there) = (start_jira().await, start_jira().await);
        let dc: InstanceName = "dc".parse().unwrap();

        let folder = tempfile::tempdir().unwrap();
        let (owner, name) = fixture::REPOSITORY.split_once('/').unwrap();
        let text = format!(
            "repo: {{owner: {owner}, name: {name}}}\njira: {{project_key: {}, instance: dc}}\n",
            fixture::PROJECT
        );
        std::fs::write(folder.path().join("shop.yaml"), text).unwrap();
        let rules_settings = rules::Settings {
            dir: folder.path().to_owned(),
            ..rules::Settings::default()
        };
        let connections = ConfiguredInstances {
            jira: BTreeSet::from([dc.clone()]),
            ..ConfiguredInstances::default()
        };
        let account = github::Settings {
            api_url: github.api_url(),
            git_url: github.git_url(),
            token: Some(SecretString::from(testkit::github::WRITER_TOKEN)),
            ..github::Settings::default()
        };
        let sites = BTreeMap::from([(dc, build_jira_settings(&there))]);
        let writer = jira::JiraWriter::with_instances(Some(&build_jira_settings(&here)), &sites);
        let worker = CallWorker {
            opener: PullRequestOpener::with(
                github::GitHubWriter::new(&account).unwrap(),
                Some(writer.unwrap()),
                &[],
            ),
            calls: queue.pull_request_calls(),
            rules: RulesStore::open(&rules_settings, connections).unwrap(),
        };

        let request = json!({"repository": fixture::REPOSITORY, "branch": BRANCH, "title": "Add a login form",
            "description": "A form and its test", "jira_key": "ENG-1"});
        let answered = Box::pin(worker.answered(parse_github_request(&request).unwrap())).await;
        let PullRequestResult::Wrote(answer) = answered else {
            panic!("a dry run")
        };
        assert_eq!(answer.status, CallStatus::Success, "{answer:?}");
        assert!(answer.errors.is_empty(), "{answer:?}");
        assert_eq!(there.status("ENG-1").as_deref(), Some("In Review"));
        assert_eq!(there.remote_links("ENG-1").len(), 1);
        assert!(here.requests().is_empty(), "{:?}", here.requests());
        assert_eq!(here.status("ENG-1").as_deref(), Some("To Do"));
    }
}
