//! What a decision knows. A decision is a pure function that is asked again after each thing that was read for it; what it
//! misses is the error that it returns. So it reads no more than it needs, and says itself what that is.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bootstrap::rules::{Place, RulesBook};
use domain::{
    Account, BranchRecord, ChangedFile, CommitId, Instance, PullRequestRecord, RepositoryName, Row, Rules,
    RunId, Source, TicketCost, TicketKey, TicketMarks, Timestamp, Trigger, TriggerKey,
};
use github::{Check, CommitRun, PullRequest, Review, ReviewRequest};

use crate::{gates::Gate, mention, outside::Issue};

/// Somebody, as the tracker knows them where they acted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    /// An account of a Jira site; without an id when Jira does not say who it was.
    Jira {
        instance: Option<Instance>,
        /// Where they acted.
        project: String,
        account: Account,
    },
    /// An account of GitHub that acts on a repository.
    GitHub {
        repository: RepositoryName,
        login: String,
        /// What counts: a login can become somebody else's. Absent when the account was deleted.
        id: Option<u64>,
        /// Whether it belongs to a program.
        is_bot: bool,
    },
    /// A caller of the API, whose token was checked there.
    Api { name: String },
}

impl Person {
    /// An account of the tracker of a ticket.
    pub(crate) fn on(ticket: &TicketKey, account: &Account) -> Self {
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

    /// The name that people see.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Jira { account, .. } => &account.display_name,
            Self::GitHub { login, .. } => login,
            Self::Api { name } => name,
        }
    }
}

/// What was read, by what was asked for.
#[derive(Clone, Debug)]
struct Read<K, V>(Vec<(K, V)>);

impl<K, V> Default for Read<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq, V> Read<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        self.0
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value)
    }

    fn put(&mut self, key: K, value: V) {
        self.0.push((key, value));
    }
}

/// Why nothing follows from what a program did.
pub(crate) const PROGRAM: &str = "a program did it that the rules do not name";

/// A ticket as its tracker has it, or why that cannot be read.
pub(crate) type ReadIssue = Result<Issue, String>;

/// Whether a condition holds, or why Jira does not understand it.
pub(crate) type Matching = Result<bool, String>;

/// How long the checks of a commit are waited for after one has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Patience {
    /// More may begin.
    pub(crate) settle: Duration,
    /// One that GitHub requires has not reported.
    pub(crate) required: Duration,
}

/// What the runs of a ticket do. Both come from one read: two reads could see the state before and after a planner took
/// something in, and call work under way that never began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunProgress {
    /// A run takes news in.
    pub(crate) is_live: bool,
    /// Something that was asked for is not taken in yet: what its runs do is not known then.
    pub(crate) is_behind: bool,
}

/// Everything that a decision knows so far.
#[derive(Clone)]
pub(crate) struct Facts {
    /// The door that the event came through.
    pub(crate) source: Source,
    pub(crate) now: Timestamp,
    pub(crate) book: Arc<RulesBook>,
    /// Ids and names of our accounts.
    pub(crate) own_accounts: Arc<BTreeSet<String>>,
    /// The Jira group that one has to be in to instruct us; empty when none is set.
    pub(crate) group: String,
    /// The role of a Jira project that does as well; empty when none is set.
    pub(crate) role: String,
    pub(crate) patience: Patience,
    read: Everything,
}

/// Each kind of fact is a row: how it is looked up and put in, and the need that stands for it until it is read.
macro_rules! facts {
    ($($(#[$doc:meta])* $get:ident, $put:ident: $need:ident($($key:ident: $type:ty),+) -> $value:ty;)+) => {
        /// One thing that can be read.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum Need {
            $($(#[$doc])* $need($($type),+),)+
        }

        #[derive(Clone, Default)]
        #[allow(unused_parens, reason = "one key is written as several are")]
        struct Everything {
            $($get: Read<($($type),+), $value>,)+
        }

        impl Facts {
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
    /// Where the ticket's log holds a key already.
    known, put_known: Known(ticket: TicketKey, key: TriggerKey) -> Option<u64>;
    /// The ticket as its tracker has it.
    issue, put_issue: Issue(ticket: TicketKey) -> ReadIssue;
    /// A ticket that a pull request names; absent: there is none that can be read.
    named, put_named: Named(ticket: TicketKey) -> Option<Issue>;
    /// The values that fields of a ticket of Jira have, each with the field's name.
    fields, put_fields: Fields(ticket: TicketKey, names: Vec<String>) -> Vec<(String, String)>;
    /// Open pull requests of anybody that name the ticket.
    open, put_open: OpenPullRequests(repository: RepositoryName, ticket: TicketKey) -> Vec<PullRequest>;
    /// The ticket's row; an empty one when there is none yet.
    row, put_row: Row(ticket: TicketKey) -> Row;
    /// What the runs of the ticket do, from one look at its row and its log.
    progress, put_progress: Progress(ticket: TicketKey) -> RunProgress;
    /// What we pushed to a branch.
    branch, put_branch: Branch(repository: RepositoryName, branch: String) -> Option<BranchRecord>;
    /// Our record of a pull request.
    record, put_record: Record(repository: RepositoryName, number: u64) -> Option<PullRequestRecord>;
    /// A pull request as it is now.
    pull_request, put_pull_request: PullRequest(repository: RepositoryName, number: u64) -> PullRequest;
    /// The checks of a commit.
    checks, put_checks: Checks(repository: RepositoryName, head: CommitId) -> Vec<Check>;
    /// The checks that GitHub requires before a merge into a branch, as far as our account may know.
    required, put_required: Required(repository: RepositoryName, branch: String) -> Vec<String>;
    /// The runs of GitHub Actions for a commit, those that wait for a person too.
    workflow_runs, put_workflow_runs: WorkflowRuns(repository: RepositoryName, head: CommitId) -> Vec<CommitRun>;
    /// The end of the log of a check that failed; absent when there is none.
    log, put_log: Log(repository: RepositoryName, check: Box<Check>) -> Option<String>;
    /// The checks of the tip of a branch.
    branch_checks, put_branch_checks: BranchChecks(repository: RepositoryName, branch: String) -> Vec<Check>;
    /// What was asked for on the ticket so far, oldest first.
    history, put_history: History(ticket: TicketKey) -> Vec<Trigger>;
    /// What the ticket's runs have taken.
    cost, put_cost: Cost(ticket: TicketKey) -> TicketCost;
    /// The decisions that runs of the ticket wait for.
    gates, put_gates: Gates(ticket: TicketKey) -> Vec<(RunId, Gate)>;
    /// The decision that a run waits for.
    gate, put_gate: Gate(run: RunId) -> Option<Gate>;
    /// The submitted reviews of a pull request, oldest first.
    reviews, put_reviews: Reviews(repository: RepositoryName, number: u64) -> Vec<Review>;
    /// What a pull request changes.
    files, put_files: ChangedFiles(repository: RepositoryName, number: u64) -> Vec<ChangedFile>;
    /// What a commit changes since another; nothing where that is gone.
    changed_since, put_changed_since: ChangedSince(repository: RepositoryName, base: CommitId, head: CommitId) -> Vec<ChangedFile>;
    /// The commits of a pull request, oldest first.
    commits, put_commits: Commits(repository: RepositoryName, number: u64) -> Vec<CommitId>;
    /// The requests for reviews of a pull request, oldest first.
    review_requests, put_review_requests: ReviewRequests(repository: RepositoryName, number: u64) -> Vec<ReviewRequest>;
    /// Whether a condition in Jira's query language holds for a ticket.
    matches, put_matches: Matches(ticket: TicketKey, condition: String) -> Matching;
    /// Whether somebody may instruct us where they acted, at this moment.
    authority, put_authority: Authority(person: Person) -> bool;
}

impl Facts {
    /// Nothing is read yet.
    pub(crate) fn new(
        source: Source,
        book: Arc<RulesBook>,
        own_accounts: Arc<BTreeSet<String>>,
        group: String,
    ) -> Self {
        Self {
            source,
            now: bootstrap::now(),
            book,
            own_accounts,
            group,
            role: String::new(),
            patience: Patience::default(),
            read: Everything::default(),
        }
    }

    /// Whether the account is one of ours.
    pub(crate) fn is_ours(&self, person: &Person) -> bool {
        match person {
            Person::Jira { account, .. } => {
                self.own_accounts.contains(&account.id) || self.own_accounts.contains(&account.display_name)
            }
            Person::GitHub { login, id, .. } => {
                self.own_accounts.contains(login)
                    || id.is_some_and(|id| self.own_accounts.contains(&id.to_string()))
            }
            Person::Api { .. } => false,
        }
    }

    /// Whether it is a program that no rules there name: what it does starts nothing.
    pub(crate) fn is_program(&self, person: &Person) -> bool {
        match person {
            Person::Jira {
                instance, account, ..
            } => {
                let of_site = |rules: &&Rules| rules.jira.instance == *instance;
                let names = |rules: &Rules| {
                    rules.review.is_agent(&account.id) || rules.review.is_agent(&account.display_name)
                };
                account.is_bot && !self.book.repositories().filter(of_site).any(names)
            }
            Person::GitHub {
                repository,
                login,
                is_bot,
                ..
            } => {
                let rules = self.book.for_repository(repository);
                *is_bot && !rules.is_some_and(|rules| rules.review.is_agent(login))
            }
            Person::Api { .. } => false,
        }
    }

    /// Whether a text, or the list of the accounts that its document mentions, names an account of ours.
    pub(crate) fn names_us(&self, text: &str, mentioned: &[String]) -> bool {
        mentioned.iter().any(|id| self.own_accounts.contains(id))
            || mention::names_account(text, &self.own_accounts)
    }

    /// The rules of the repository that the ticket belongs to, when there are some and it is clear which.
    pub(crate) fn rules(&self, ticket: &TicketKey) -> Result<Option<&Rules>, Need> {
        Ok(self.place(ticket)?.rules())
    }

    /// The repositories that the ticket may belong to. The ticket is read only where its project is shared; one that
    /// cannot be read has no components and no labels.
    pub(crate) fn place(&self, ticket: &TicketKey) -> Result<Place<'_>, Need> {
        if !self.book.is_shared(ticket) {
            return Ok(self.book.place(ticket, TicketMarks::default()));
        }
        let names = self.book.fields_of(ticket);
        Ok(match self.issue(ticket)? {
            Ok(issue) => {
                let fields: &[(String, String)] = match names.is_empty() {
                    true => &[],
                    false => self.fields(ticket, &names)?,
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
