//! Facts of a decision, and their readers. A decision is a pure function that the router repeats after each read.

pub(crate) mod attachment_content;
pub(crate) mod attachment_sources;
pub(crate) mod attachments;
pub(crate) mod background;
pub(crate) mod failed_checks;
pub(crate) mod gates;
pub(crate) mod issue_keys;
pub(crate) mod log_essence;
pub(crate) mod patches;
pub(crate) mod read_error;
pub(crate) mod reader;
pub(crate) mod tracker_reader;

use std::{borrow::Cow, collections::BTreeSet, sync::Arc, time::Duration};

use bootstrap::rules::{RepositoryMatch, RulesBook};
use domain::{
    BranchRecord, CommitId, HealthLimits, InstanceName, IssueIdentity, PullRequestFile, PullRequestRecord,
    RepositoryName, RepositoryRules, RunId, TicketCost, TicketKey, TicketMarks, TicketRow, Timestamp,
    TrackerAccount, Trigger, TriggerChannel, TriggerKey,
};
use github::{CommitCheck, CommitRun, PullRequest, PullRequestReview, ReviewRequest};

use crate::{
    facts::{gates::DecisionGate, tracker_reader::TrackerIssue},
    text::mention,
};

/// Actor of an event, as the tracker identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventActor {
    /// Account of a Jira site; without an id when Jira does not report the actor.
    Jira {
        instance: Option<InstanceName>,
        /// Key of the project in which the account acted.
        project: String,
        account: TrackerAccount,
    },
    /// Account of GitHub that acts on a repository.
    GitHub {
        repository: RepositoryName,
        login: String,
        /// Stable identity: a login can pass to another user. Absent for a deleted account.
        id: Option<u64>,
        /// True for an account of a program.
        is_bot: bool,
    },
    /// Caller of the API, whose token the API has checked.
    Api { name: String },
}

impl EventActor {
    /// Actor from an account of the tracker of a ticket.
    pub(crate) fn of_account(ticket: &TicketKey, account: &TrackerAccount) -> Self {
        match ticket {
            TicketKey::GitHub { repository, .. } | TicketKey::Discussion { repository, .. } => Self::GitHub {
                repository: repository.clone(),
                login: account.display_name.clone(),
                id: account.id.parse().ok(),
                is_bot: account.is_bot,
            },
            TicketKey::Jira { project, .. } => Self::Jira {
                instance: ticket.instance().cloned(),
                project: project.clone(),
                account: account.clone(),
            },
            TicketKey::Folder { .. } => Self::Jira {
                instance: None,
                project: String::new(),
                account: account.clone(),
            },
        }
    }

    /// Display name of the actor.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Jira { account, .. } => &account.display_name,
            Self::GitHub { login, .. } => login,
            Self::Api { name } => name,
        }
    }
}

/// Values read so far, by key.
#[derive(Clone, Debug)]
struct FactValues<K, V>(Vec<(K, V)>);

impl<K, V> Default for FactValues<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq, V> FactValues<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        // A decision reads few values of one kind, and a linear search requires only equality of a key.
        self.0
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value)
    }

    /// Keeps a value. It replaces an earlier one of the same key.
    fn put(&mut self, key: K, value: V) {
        self.0.retain(|(known, _)| *known != key);
        self.0.push((key, value));
    }
}

/// Reason for ignoring the event of a program.
pub(crate) const PROGRAM: &str = "the actor is a program that the rules do not name";

/// Ticket as its tracker has it, or the reason why it is unreadable.
pub(crate) type ReadIssue = Result<TrackerIssue, String>;

/// Result of a JQL condition, or the parse error of Jira.
pub(crate) type ConditionMatch = Result<bool, String>;

/// Waiting times for the checks of a commit after one has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChecksPatience {
    /// Time for further checks to start.
    pub(crate) settle: Duration,
    /// Time for a check that GitHub requires to report.
    pub(crate) required: Duration,
    /// Time that checks may run before people receive a notice.
    pub(crate) pending: Duration,
}

impl ChecksPatience {
    /// Limits of an assessment.
    pub(crate) const fn limits(self) -> HealthLimits {
        HealthLimits {
            settle: self.settle,
            required: self.required,
            absent: self.required,
            pending: self.pending,
            mergeability: HealthLimits::MERGEABILITY,
            step: HealthLimits::STEP,
        }
    }
}

/// Progress of the runs of a ticket. Both flags come from one read: two reads could straddle a planner's update and report
/// work as live that never started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunProgress {
    /// True while a run accepts news.
    pub(crate) is_live: bool,
    /// True while a trigger in the log is not handled yet. The state of the runs is then unknown.
    pub(crate) is_behind: bool,
}

/// All facts that a decision has so far.
#[derive(Clone)]
pub(crate) struct DecisionFacts {
    /// Channel of the event.
    pub(crate) source: TriggerChannel,
    pub(crate) now: Timestamp,
    pub(crate) book: Arc<RulesBook>,
    /// Ids and names of our accounts.
    pub(crate) own_accounts: Arc<BTreeSet<String>>,
    /// Jira group whose members may instruct; empty: none.
    pub(crate) group: String,
    /// Role of a Jira project whose members may instruct; empty: none.
    pub(crate) role: String,
    pub(crate) patience: ChecksPatience,
    read: ReadFacts,
}

/// Generates, for each kind of fact, its lookup, its setter and the need that the lookup returns while the fact is
/// missing.
macro_rules! facts {
    ($($(#[$doc:meta])* $get:ident, $put:ident: $need:ident($($key:ident: $type:ty),+) -> $value:ty;)+) => {
        /// Fact that a decision needs and the router can read.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum Need {
            $($(#[$doc])* $need($($type),+),)+
        }

        #[derive(Clone, Default)]
        #[allow(unused_parens, reason = "one key is written as several are")]
        struct ReadFacts {
            $($get: FactValues<($($type),+), $value>,)+
        }

        impl DecisionFacts {
            $(
                $(#[$doc])*
                pub(crate) fn $get(&self, $($key: &$type),+) -> Result<&$value, Need> {
                    let key = ($($key.to_owned()),+);
                    self.read
                        .$get
                        .get(&key)
                        .ok_or_else(|| Need::$need($($key.to_owned()),+))
                }

                pub(crate) fn $put(&mut self, $($key: $type),+, value: $value) {
                    self.read.$get.put(($($key),+), value);
                }
            )+
        }
    };
}

facts! {
    /// Sequence of a key in the ticket's log.
    known, put_known: Known(ticket: TicketKey, key: TriggerKey) -> Option<u64>;
    /// Keys of the issue, where it has records; absent for tickets of other trackers.
    identity, put_identity: Identity(ticket: TicketKey) -> Option<IssueIdentity>;
    /// Ticket as its tracker has it.
    issue, put_issue: Issue(ticket: TicketKey) -> ReadIssue;
    /// Ticket that a pull request names; absent when it does not exist or is unreadable.
    named, put_named: Named(ticket: TicketKey) -> Option<TrackerIssue>;
    /// Values of fields of a Jira ticket, each with the field's name.
    fields, put_fields: Fields(ticket: TicketKey, names: Vec<String>) -> Vec<(String, String)>;
    /// Open pull requests of any author that name the ticket.
    open, put_open: OpenPullRequests(repository: RepositoryName, ticket: TicketKey) -> Vec<PullRequest>;
    /// Row of the ticket; an empty one for a new ticket.
    row, put_row: Row(ticket: TicketKey) -> TicketRow;
    /// Progress of the ticket's runs, from one read of its row and its log.
    progress, put_progress: Progress(ticket: TicketKey) -> RunProgress;
    /// Record of our last push to a branch.
    branch, put_branch: Branch(repository: RepositoryName, branch: String) -> Option<BranchRecord>;
    /// Our record of a pull request.
    record, put_record: Record(repository: RepositoryName, number: u64) -> Option<PullRequestRecord>;
    /// Current state of a pull request.
    pull_request, put_pull_request: PullRequest(repository: RepositoryName, number: u64) -> PullRequest;
    /// Checks of a commit.
    checks, put_checks: Checks(repository: RepositoryName, head: CommitId) -> Vec<CommitCheck>;
    /// Checks that GitHub requires before a merge into a branch, as far as the reader account may see them.
    required, put_required: Required(repository: RepositoryName, branch: String) -> Vec<String>;
    /// Runs of GitHub Actions for a commit, including those that wait for a person.
    workflow_runs, put_workflow_runs: WorkflowRuns(repository: RepositoryName, head: CommitId) -> Vec<CommitRun>;
    /// End of the log of a failed check; absent without a log.
    log, put_log: Log(repository: RepositoryName, check: Box<CommitCheck>) -> Option<String>;
    /// Checks at the tip of a branch.
    branch_checks, put_branch_checks: BranchChecks(repository: RepositoryName, branch: String) -> Vec<CommitCheck>;
    /// Triggers of the ticket so far, oldest first.
    history, put_history: History(ticket: TicketKey) -> Vec<Trigger>;
    /// Cost of the ticket's runs.
    cost, put_cost: Cost(ticket: TicketKey) -> TicketCost;
    /// Decisions that runs of the ticket wait for.
    gates, put_gates: Gates(ticket: TicketKey) -> Vec<(RunId, DecisionGate)>;
    /// Decision that a run waits for.
    gate, put_gate: Gate(run: RunId) -> Option<DecisionGate>;
    /// Submitted reviews of a pull request, oldest first.
    reviews, put_reviews: Reviews(repository: RepositoryName, number: u64) -> Vec<PullRequestReview>;
    /// Changed files of a pull request.
    files, put_files: ChangedFiles(repository: RepositoryName, number: u64) -> Vec<PullRequestFile>;
    /// Changed files between two commits; empty when the base is gone.
    changed_since, put_changed_since: ChangedSince(repository: RepositoryName, base: CommitId, head: CommitId) -> Vec<PullRequestFile>;
    /// Commits of a pull request, oldest first.
    commits, put_commits: Commits(repository: RepositoryName, number: u64) -> Vec<CommitId>;
    /// Review requests of a pull request, oldest first.
    review_requests, put_review_requests: ReviewRequests(repository: RepositoryName, number: u64) -> Vec<ReviewRequest>;
    /// Result of a JQL condition for a ticket.
    matches, put_matches: Matches(ticket: TicketKey, condition: String) -> ConditionMatch;
    /// Authority of an actor to instruct at this moment.
    authority, put_authority: Authority(person: EventActor) -> bool;
}

impl DecisionFacts {
    /// Creates facts without any read.
    pub(crate) fn new(
        source: TriggerChannel,
        book: Arc<RulesBook>,
        own_accounts: Arc<BTreeSet<String>>,
        group: String,
    ) -> Self {
        Self {
            source,
            now: bootstrap::read_wall_clock(),
            book,
            own_accounts,
            group,
            role: String::new(),
            patience: ChecksPatience::default(),
            read: ReadFacts::default(),
        }
    }

    /// Checks of a commit that count by the rules of its repository.
    pub(crate) fn counted_checks(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
    ) -> Result<Cow<'_, [CommitCheck]>, Need> {
        let checks = self.checks(repository, head)?;
        Ok(self.keep_counted(repository, checks, |check| check.name.as_str()))
    }

    /// Runs of GitHub Actions for a commit that count by the rules of its repository.
    pub(crate) fn counted_runs(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
    ) -> Result<Cow<'_, [CommitRun]>, Need> {
        let runs = self.workflow_runs(repository, head)?;
        Ok(self.keep_counted(repository, runs, |run| run.name.as_str()))
    }

    /// Checks that GitHub requires before a merge into a branch and that count by the rules of the repository.
    pub(crate) fn counted_required(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Cow<'_, [String]>, Need> {
        let required = self.required(repository, &branch.to_owned())?;
        Ok(self.keep_counted(repository, required, String::as_str))
    }

    /// Names of the checks of a commit that the rules of its repository ignore.
    pub(crate) fn ignored_checks(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
    ) -> Result<BTreeSet<&str>, Need> {
        let names = self
            .checks(repository, head)?
            .iter()
            .map(|check| check.name.as_str());
        Ok(names.filter(|name| self.is_ignored(repository, name)).collect())
    }

    fn keep_counted<'a, T: Clone>(
        &self,
        repository: &RepositoryName,
        all: &'a [T],
        name: impl Fn(&T) -> &str,
    ) -> Cow<'a, [T]> {
        if all.iter().any(|one| self.is_ignored(repository, name(one))) {
            let kept = all.iter().filter(|&one| !self.is_ignored(repository, name(one)));
            Cow::Owned(kept.cloned().collect())
        } else {
            Cow::Borrowed(all)
        }
    }

    fn is_ignored(&self, repository: &RepositoryName, check: &str) -> bool {
        let rules = self.book.for_repository(repository);
        rules.is_some_and(|rules| rules.ci.is_check_ignored(check))
    }

    /// True for an account of ours.
    pub(crate) fn is_ours(&self, person: &EventActor) -> bool {
        match person {
            EventActor::Jira { account, .. } => {
                // The setting accepts ids and names.
                self.own_accounts.contains(&account.id) || self.own_accounts.contains(&account.display_name)
            }
            EventActor::GitHub { login, id, .. } => self.is_our_user(login, *id),
            EventActor::Api { .. } => false,
        }
    }

    /// True for an account of ours on GitHub, by its login or its id.
    pub(crate) fn is_our_user(&self, login: &str, id: Option<u64>) -> bool {
        self.own_accounts.contains(login) || id.is_some_and(|id| self.own_accounts.contains(&id.to_string()))
    }

    /// True for a program that no rules name. Its events start nothing.
    pub(crate) fn is_program(&self, person: &EventActor) -> bool {
        match person {
            EventActor::Jira {
                instance, account, ..
            } => {
                let of_site = |rules: &&RepositoryRules| rules.jira.instance == *instance;
                let names = |rules: &RepositoryRules| {
                    rules.review.is_agent(&account.id) || rules.review.is_agent(&account.display_name)
                };
                account.is_bot && !self.book.repositories().filter(of_site).any(names)
            }
            EventActor::GitHub {
                repository,
                login,
                is_bot,
                ..
            } => {
                let rules = self.book.for_repository(repository);
                *is_bot && !rules.is_some_and(|rules| rules.review.is_agent(login))
            }
            EventActor::Api { .. } => false,
        }
    }

    /// True when a text, or the mention list of its document, names an account of ours.
    pub(crate) fn names_us(&self, text: &str, mentioned: &[String]) -> bool {
        mentioned.iter().any(|id| self.own_accounts.contains(id))
            || mention::names_account(text, &self.own_accounts)
    }

    /// True when the rules cover the ticket, by the key of its records or by the present one.
    pub(crate) fn covers(&self, rules: &RepositoryRules, ticket: &TicketKey) -> Result<bool, Need> {
        if rules.cover(ticket) || !matches!(ticket, TicketKey::Jira { .. }) {
            return Ok(rules.cover(ticket));
        }
        let identity = self.identity(ticket)?.as_ref();
        Ok(identity.is_some_and(|identity| rules.cover(&identity.key)))
    }

    /// Ticket that has the records, as far as its identity was read; else the ticket itself.
    pub(crate) fn records<'a>(&'a self, ticket: &'a TicketKey) -> &'a TicketKey {
        match self.read.identity.get(ticket) {
            Some(Some(identity)) => &identity.ticket,
            Some(None) | None => ticket,
        }
    }

    /// True once the ticket's identity was read, so that [`Self::records`] is final.
    pub(crate) fn is_identity_known(&self, ticket: &TicketKey) -> bool {
        !matches!(ticket, TicketKey::Jira { .. }) || self.read.identity.get(ticket).is_some()
    }

    /// Rules of the repository that the ticket belongs to; `None` for an unknown or ambiguous repository.
    pub(crate) fn rules(&self, ticket: &TicketKey) -> Result<Option<&RepositoryRules>, Need> {
        Ok(self.place(ticket)?.rules())
    }

    /// Repositories that the ticket may belong to. The ticket is read only when its project is shared. An unreadable
    /// ticket counts as one without components and labels.
    pub(crate) fn place(&self, ticket: &TicketKey) -> Result<RepositoryMatch<'_>, Need> {
        if !self.book.is_shared(ticket) {
            return Ok(self.book.place(ticket, TicketMarks::default()));
        }
        let names = self.book.fields_of(ticket);
        Ok(match self.issue(ticket)? {
            Ok(issue) => {
                let fields: &[(String, String)] = if names.is_empty() {
                    &[]
                } else {
                    self.fields(ticket, &names)?
                };
                let (components, labels) = (&issue.components[..], &issue.labels[..]);
                self.book.place(
                    ticket,
                    TicketMarks {
                        components,
                        labels,
                        fields,
                    },
                )
            }
            Err(_) => self.book.place(ticket, TicketMarks::default()),
        })
    }
}
