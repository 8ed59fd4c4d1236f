//! What a decision knows. A decision is a pure function that is asked again after each thing that was read for it; what it
//! misses is the error that it returns. So it reads no more than it needs, and says itself what that is.

use std::{collections::BTreeSet, sync::Arc};

use bootstrap::rules::RulesBook;
use domain::{
    Account, BranchRecord, ChangedFile, CommitId, Instance, PullRequestRecord, RepositoryName, Row, Rules,
    RunId, Source, TicketKey, Timestamp, Trigger, TriggerKey,
};
use github::{Check, PullRequest, Review, ReviewRequest};

use crate::{gates::Gate, outside::Issue};

/// Somebody, as the tracker knows them where they acted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    /// An account of a Jira site; without an id when Jira does not say who it was.
    Jira {
        instance: Option<Instance>,
        account: Account,
    },
    /// An account of GitHub that acts on a repository.
    GitHub {
        repository: RepositoryName,
        login: String,
        /// What counts: a login can become somebody else's. Absent when the account was deleted.
        id: Option<u64>,
    },
    /// A caller of the API, whose token was checked there.
    Api { name: String },
}

impl Person {
    /// An account of the tracker of a ticket.
    pub(crate) fn on(ticket: &TicketKey, account: &Account) -> Self {
        match ticket {
            TicketKey::GitHub { repository, .. } => Self::GitHub {
                repository: repository.clone(),
                login: account.display_name.clone(),
                id: account.id.parse().ok(),
            },
            TicketKey::Jira { .. } | TicketKey::Folder { .. } => Self::Jira {
                instance: ticket.instance().cloned(),
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

/// One thing that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Where the ticket's log holds a key.
    Known(TicketKey, TriggerKey),
    /// The ticket as its tracker has it.
    Issue(TicketKey),
    /// Open pull requests that name the ticket.
    OpenPullRequests(RepositoryName, TicketKey),
    /// The ticket's row.
    Row(TicketKey),
    /// Whether a run of the ticket takes news in.
    Listeners(TicketKey),
    /// What we pushed to a branch.
    Branch(RepositoryName, String),
    /// Our record of a pull request.
    Record(RepositoryName, u64),
    /// A pull request.
    PullRequest(RepositoryName, u64),
    /// The checks of a commit.
    Checks(RepositoryName, CommitId),
    /// The log of a check that failed.
    Log(RepositoryName, Box<Check>),
    /// The checks of the tip of a branch.
    BranchChecks(RepositoryName, String),
    /// What was asked for on the ticket so far.
    History(TicketKey),
    /// The decisions that runs of the ticket wait for.
    Gates(TicketKey),
    /// The reviews of a pull request.
    Reviews(RepositoryName, u64),
    /// What a pull request changes.
    ChangedFiles(RepositoryName, u64),
    /// The requests for reviews of a pull request.
    ReviewRequests(RepositoryName, u64),
    /// Whether somebody may instruct us where they acted.
    Authority(Person),
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

/// A ticket as its tracker has it, or why that cannot be read.
pub(crate) type ReadIssue = Result<Issue, String>;

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
    known: Read<(TicketKey, TriggerKey), Option<u64>>,
    issues: Read<TicketKey, ReadIssue>,
    open: Read<(RepositoryName, TicketKey), Vec<PullRequest>>,
    rows: Read<TicketKey, Row>,
    listeners: Read<TicketKey, bool>,
    branches: Read<(RepositoryName, String), Option<BranchRecord>>,
    records: Read<(RepositoryName, u64), Option<PullRequestRecord>>,
    pull_requests: Read<(RepositoryName, u64), PullRequest>,
    checks: Read<(RepositoryName, CommitId), Vec<Check>>,
    logs: Read<(RepositoryName, Box<Check>), Option<String>>,
    branch_checks: Read<(RepositoryName, String), Vec<Check>>,
    histories: Read<TicketKey, Vec<Trigger>>,
    gates: Read<TicketKey, Vec<(RunId, Gate)>>,
    reviews: Read<(RepositoryName, u64), Vec<Review>>,
    files: Read<(RepositoryName, u64), Vec<ChangedFile>>,
    review_requests: Read<(RepositoryName, u64), Vec<ReviewRequest>>,
    authority: Read<Person, bool>,
}

/// An accessor and the way to put in what it gives, for one kind of fact.
macro_rules! facts {
    ($($(#[$doc:meta])* $get:ident, $put:ident, $field:ident: ($($key:ident: $type:ty),+) -> $value:ty, $need:ident;)+) => {
        impl Facts {
            $(
                $(#[$doc])*
                pub(crate) fn $get(&self, $($key: &$type),+) -> Result<&$value, Need> {
                    let key = ($($key.to_owned()),+);
                    self.$field
                        .get(&key)
                        .ok_or_else(|| Need::$need($($key.to_owned()),+))
                }

                pub(crate) fn $put(&mut self, $($key: $type),+, value: $value) {
                    self.$field.put(($($key),+), value);
                }
            )+
        }
    };
}

facts! {
    /// Where the ticket's log holds a key already.
    known, put_known, known: (ticket: TicketKey, key: TriggerKey) -> Option<u64>, Known;
    /// The ticket as its tracker has it.
    issue, put_issue, issues: (ticket: TicketKey) -> ReadIssue, Issue;
    /// Open pull requests of anybody that name the ticket.
    open, put_open, open: (repository: RepositoryName, ticket: TicketKey) -> Vec<PullRequest>, OpenPullRequests;
    /// The ticket's row; an empty one when there is none yet.
    row, put_row, rows: (ticket: TicketKey) -> Row, Row;
    /// True while a run of the ticket takes news in, or may be about to.
    listeners, put_listeners, listeners: (ticket: TicketKey) -> bool, Listeners;
    /// What we pushed to a branch.
    branch, put_branch, branches: (repository: RepositoryName, branch: String) -> Option<BranchRecord>, Branch;
    /// Our record of a pull request.
    record, put_record, records: (repository: RepositoryName, number: u64) -> Option<PullRequestRecord>, Record;
    /// A pull request as it is now.
    pull_request, put_pull_request, pull_requests: (repository: RepositoryName, number: u64) -> PullRequest, PullRequest;
    /// The checks of a commit.
    checks, put_checks, checks: (repository: RepositoryName, head: CommitId) -> Vec<Check>, Checks;
    /// The end of the log of a check that failed; absent when there is none.
    log, put_log, logs: (repository: RepositoryName, check: Box<Check>) -> Option<String>, Log;
    /// The checks of the tip of a branch.
    branch_checks, put_branch_checks, branch_checks: (repository: RepositoryName, branch: String) -> Vec<Check>, BranchChecks;
    /// What was asked for on the ticket so far, oldest first.
    history, put_history, histories: (ticket: TicketKey) -> Vec<Trigger>, History;
    /// The decisions that runs of the ticket wait for.
    gates, put_gates, gates: (ticket: TicketKey) -> Vec<(RunId, Gate)>, Gates;
    /// The submitted reviews of a pull request, oldest first.
    reviews, put_reviews, reviews: (repository: RepositoryName, number: u64) -> Vec<Review>, Reviews;
    /// What a pull request changes.
    files, put_files, files: (repository: RepositoryName, number: u64) -> Vec<ChangedFile>, ChangedFiles;
    /// The requests for reviews of a pull request, oldest first.
    review_requests, put_review_requests, review_requests: (repository: RepositoryName, number: u64) -> Vec<ReviewRequest>, ReviewRequests;
    /// Whether somebody may instruct us where they acted, at this moment.
    authority, put_authority, authority: (person: Person) -> bool, Authority;
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
            known: Read::default(),
            issues: Read::default(),
            open: Read::default(),
            rows: Read::default(),
            listeners: Read::default(),
            branches: Read::default(),
            records: Read::default(),
            pull_requests: Read::default(),
            checks: Read::default(),
            logs: Read::default(),
            branch_checks: Read::default(),
            histories: Read::default(),
            gates: Read::default(),
            reviews: Read::default(),
            files: Read::default(),
            review_requests: Read::default(),
            authority: Read::default(),
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

    /// Whether a text mentions an account of ours: `@journeyman`, whatever the case.
    pub(crate) fn names_us(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.own_accounts.iter().any(|account| {
            let name = format!("@{}", account.to_lowercase().trim_end_matches("[bot]"));
            text.match_indices(&name).any(|(at, found)| {
                let after = text[at + found.len()..].chars().next();
                found.len() > 1 && after.is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_')
            })
        })
    }

    /// The rules of the ticket's project.
    pub(crate) fn rules(&self, ticket: &TicketKey) -> Option<&Rules> {
        self.book.for_ticket(ticket)
    }
}
