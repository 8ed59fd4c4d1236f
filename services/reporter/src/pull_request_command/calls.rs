//! Pull requests that callers of the API request: taken from the queue, performed, and answered in the queue.

use std::{sync::Arc, time::Duration};

use bootstrap::rules::RulesStore;
use domain::{PullRequestAnswer, PullRequestCall, TicketKey, cause::format_error_chain};
use pullrequest::{
    BranchLocation, CallProblem, ProblemKind, ProtocolAnswer, ValidatedRequest, parse_github_request,
};
use queue::{CallClaim, PullRequestCalls, TableRevision};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{PullRequestOpener, PullRequestResult, complete_answer};

// Interval of the poll for new calls.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
// Calls that one reporter performs concurrently.
const MAX_CONCURRENT_CALLS: usize = 4;

/// Request, completed by the rules of its repository.
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
    /// Answers calls until shutdown. Another reporter continues the calls in progress, or this one after its restart.
    pub(crate) async fn run(self: Arc<Self>, shutdown: CancellationToken) -> Result<(), queue::Error> {
        let mut ticks = interval(POLL_INTERVAL);
        // After a slow poll, missed ticks must not cause a burst of polls.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let slots = Arc::new(Semaphore::new(MAX_CONCURRENT_CALLS));
        let (mut seen, mut waiting, mut active) = (TableRevision::default(), Vec::new(), JoinSet::new());
        while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            // The first poll reads from the start, so it also finds the calls that a stopped reporter
            // left.
            let (new, newest) = self.calls.changes_after(seen).await?;
            waiting.extend(new);
            seen = newest;
            waiting = self.start_calls(waiting, &slots, &mut active).await?;
            while active.try_join_next().is_some() {}
        }
        Ok(())
    }

    /// Starts calls that no reporter has taken. Returns the calls of other reporters and those without a free slot.
    async fn start_calls(
        self: &Arc<Self>,
        waiting: Vec<PullRequestCall>,
        slots: &Arc<Semaphore>,
        active: &mut JoinSet<()>,
    ) -> Result<Vec<PullRequestCall>, queue::Error> {
        let mut remaining = Vec::new();
        for call in waiting {
            // The slot comes before the claim: a claimed call that waits for a slot here would be
            // missing at other reporters.
            let Ok(slot) = Arc::clone(slots).try_acquire_owned() else {
                remaining.push(call);
                continue;
            };
            match self.calls.take(&call.id, bootstrap::read_wall_clock()).await? {
                CallClaim::Answered => {}
                // The other reporter may stop before it answers, so this call is tried again at the next poll.
                CallClaim::Theirs => remaining.push(call),
                CallClaim::Ours(revision) => {
                    let calls = Arc::clone(self);
                    let span = tracing::info_span!("pull request call", id = call.id, by = call.by);
                    let answering = async move {
                        calls.answer_call(&call, revision).await;
                        drop(slot);
                    };
                    active.spawn(answering.instrument(span));
                }
            }
        }
        Ok(remaining)
    }

    async fn answer_call(&self, call: &PullRequestCall, revision: TableRevision) {
        let started = Instant::now();
        let result = match parse_github_request(&call.request) {
            Ok(request) => self.perform(request).await,
            Err(problems) => PullRequestResult::Answered(ProtocolAnswer::failed(problems)),
        };
        let answer = match result {
            PullRequestResult::Answered(answer) => {
                let answer = complete_answer(answer, started);
                let errors: Vec<ProblemKind> = answer.errors.iter().map(|problem| problem.kind).collect();
                tracing::info!(
                    pull_request = answer.pr_url,
                    ?errors,
                    "pull request call answered"
                );
                serde_json::to_value(&answer)
            }
            PullRequestResult::Planned(answer) => serde_json::to_value(&answer),
        };
        let stored = PullRequestAnswer {
            taken_at: bootstrap::read_wall_clock(),
            answer: Some(answer.unwrap_or_default()),
        };
        if let Err(error) = self.calls.keep_answer(&call.id, &stored, revision).await {
            tracing::warn!(error = %format_error_chain(&error), "answer not stored; the next try of the call repeats no write");
        }
    }

    async fn perform(&self, request: ValidatedRequest) -> PullRequestResult {
        match self.apply_rules(request) {
            // No user is present who could choose a transition.
            Ok(RuledRequest { request, issue }) => {
                Box::pin(self.opener.perform(&request, issue, |_| None)).await
            }
            Err(problem) => PullRequestResult::failed(problem),
        }
    }

    /// Refuses repositories without rules. Adds the rules' Jira and their fields for screens of transitions.
    fn apply_rules(&self, mut request: ValidatedRequest) -> Result<RuledRequest, CallProblem> {
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
        let writer = jira::JiraWriter::with_instances(Some(&build_jira_settings(&here)), &sites, None);
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
        let result = worker.perform(parse_github_request(&request).unwrap()).await;
        let PullRequestResult::Answered(answer) = result else {
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
