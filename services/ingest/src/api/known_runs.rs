//! Runs for lists.

use std::{borrow::Cow, sync::Arc};

use api::types::{OverviewView, PullRequestLine, RunState, RunView, RunsQuery};
use domain::{
    Job, PullRequestRecord, PullRequestRef, RepositoryName, RunId, RunOverview, RunStatus, RunSummary,
    StopReason, TicketKey, TicketRow, WaitCondition,
};
use queue::{KeyValueBucket, Queue, RecordKey, TableMirror};
use tokio::sync::{Mutex, MutexGuard};

use super::{
    ApiProblem,
    scope::TokenScope,
    search_words::{SearchWords, build_search_text},
    ticket_history::build_pull_request_lines,
    ticket_key::parse_ticket_key,
    ticket_records::TicketRecords,
};

const LISTED: usize = 100;

/// Cached copies of the stored runs. A list then costs only the changes since the last list, instead of a read of
/// everything.
pub(crate) struct KnownRuns(Mutex<RunMirrors>);

/// Copies of the stored runs and of the index of pull requests at one moment.
struct RunMirrors {
    /// Rows of tickets. Runs that have not started exist only here.
    rows: TableMirror<TicketRow>,
    /// Overviews, derived from journals. Runs that left the row of their ticket exist only here.
    overviews: TableMirror<RunOverview>,
    pull_requests: TableMirror<PullRequestRecord>,
    /// Records of the last request that needed all of them, with the versions of the copies.
    records: Option<([u64; 3], Arc<TicketRecords>)>,
}

impl KnownRuns {
    pub(super) fn new(queue: &Queue) -> Self {
        Self(Mutex::new(RunMirrors {
            rows: TableMirror::new(queue.table(KeyValueBucket::Tickets)),
            overviews: TableMirror::new(queue.runs().table()),
            pull_requests: TableMirror::new(queue.table(KeyValueBucket::PullRequests)),
            records: None,
        }))
    }

    /// Updates the copies. One request at a time does.
    async fn catch_up(&self) -> Result<MutexGuard<'_, RunMirrors>, queue::Error> {
        let mut copies = self.0.lock().await;
        copies.rows.catch_up().await?;
        copies.overviews.catch_up().await?;
        copies.pull_requests.catch_up().await?;
        Ok(copies)
    }

    /// Returns the records of all tickets. They are the same ones until a record changes.
    pub(super) async fn share_records(&self) -> Result<Arc<TicketRecords>, queue::Error> {
        Ok(self.catch_up().await?.share_records())
    }

    /// Lists the runs that match a filter, newest first.
    pub(super) async fn list(&self, wanted: &RunListFilter) -> Result<Vec<RunView>, queue::Error> {
        Ok(self.catch_up().await?.list(wanted))
    }
}

impl RunMirrors {
    fn list(&self, wanted: &RunListFilter) -> Vec<RunView> {
        let mut runs = self.list_known(wanted.ticket.as_ref());
        runs.retain(|run| {
            wanted.holds(run, || self.overview(&run.id)?.repository.as_ref())
                && wanted
                    .search
                    .are_in(|| build_search_text(&run.id, self.overview(&run.id)))
        });
        runs.sort_unstable_by(|a, b| build_sort_key(&b.id).cmp(&build_sort_key(&a.id)));
        runs.truncate(wanted.limit);
        runs.iter().map(|run| self.build_view(run)).collect()
    }

    /// Runs of all rows, or every known run of one ticket. A row keeps the last runs only.
    fn list_known(&self, ticket: Option<&TicketKey>) -> Vec<Cow<'_, RunSummary>> {
        let Some(ticket) = ticket else {
            let of_rows = self.rows.values().flat_map(|row| &row.runs);
            return of_rows.map(Cow::Borrowed).collect();
        };
        let row = self.rows.get(ticket);
        let of_row = row.into_iter().flat_map(|row| &row.runs).map(Cow::Borrowed);
        let of_ticket = self.overviews.values_below(ticket);
        let older = of_ticket.filter(|overview| row.is_none_or(|row| row.run(&overview.run).is_none()));
        let older = older.map(|overview| Cow::Owned(overview.summary()));
        of_row.chain(older).collect()
    }

    fn overview(&self, run: &RunId) -> Option<&RunOverview> {
        self.overviews.get(RecordKey::run(run))
    }

    fn build_view(&self, run: &RunSummary) -> RunView {
        let overview = self.overview(&run.id).map(|overview| OverviewView {
            pull_request_lines: self.build_run_lines(overview),
            ..overview.into()
        });
        RunView {
            overview,
            ..run.into()
        }
    }

    /// Pull requests that the run opened, else those of its ticket.
    fn build_run_lines(&self, overview: &RunOverview) -> Vec<PullRequestLine> {
        let ticket = overview.run.ticket();
        let of_ticket = self.rows.get(ticket).map(|row| row.pull_requests.as_slice());
        match overview.pull_requests.as_slice() {
            [] => self.build_ticket_lines(ticket, of_ticket.unwrap_or_default()),
            opened => self.build_ticket_lines(ticket, opened),
        }
    }

    fn build_ticket_lines(
        &self,
        ticket: &TicketKey,
        pull_requests: &[PullRequestRef],
    ) -> Vec<PullRequestLine> {
        build_pull_request_lines(pull_requests, |one| {
            let key = RecordKey::pull_request(&one.repository, one.number, ticket);
            Some(self.pull_requests.get(key)?.status)
        })
    }

    /// Returns the records of the last call while no copy has changed.
    fn share_records(&mut self) -> Arc<TicketRecords> {
        let versions = [
            self.rows.version(),
            self.overviews.version(),
            self.pull_requests.version(),
        ];
        if let Some((known, records)) = &self.records
            && *known == versions
        {
            return Arc::clone(records);
        }
        let of_tickets = self.rows.shared_values();
        let overviews = self.overviews.shared_values();
        let pull_requests = self.pull_requests.shared_values();
        let records = Arc::new(TicketRecords::new(
            of_tickets
                .map(|(key, row)| (key.clone(), Arc::clone(row)))
                .collect(),
            overviews.map(|(_, overview)| Arc::clone(overview)).collect(),
            pull_requests.map(|(_, record)| Arc::clone(record)).collect(),
        ));
        self.records = Some((versions, Arc::clone(&records)));
        records
    }
}

/// Sort key of a run: the sequence of its trigger.
pub(super) fn build_sort_key(run: &RunId) -> (u64, &TicketKey) {
    (run.sequence(), run.ticket())
}

/// Filter of a list of runs.
pub(super) struct RunListFilter {
    /// Scope of the caller.
    scope: TokenScope,
    ticket: Option<TicketKey>,
    repository: Option<String>,
    job: Option<Job>,
    status: Option<RunState>,
    waits_for: Option<String>,
    stop: Option<String>,
    search: SearchWords,
    before: Option<RunId>,
    limit: usize,
}

impl RunListFilter {
    /// Parses a query.
    ///
    /// # Errors
    /// When a ticket key or a run id is invalid.
    pub(super) fn new(query: RunsQuery, scope: TokenScope) -> Result<Self, ApiProblem> {
        Ok(Self {
            scope,
            ticket: query.ticket.as_deref().map(parse_ticket_key).transpose()?,
            repository: query.repository,
            job: query.job,
            status: query.status,
            waits_for: query.waits_for,
            stop: query.stop,
            search: SearchWords::parse(query.search.as_deref()),
            before: query.before.map(|run| run.parse()).transpose()?,
            limit: query.limit.unwrap_or(LISTED).min(RunsQuery::MOST),
        })
    }

    /// True when the run matches. The repository is fetched only when the filter names one.
    fn holds<'a>(&self, run: &RunSummary, repository: impl FnOnce() -> Option<&'a RepositoryName>) -> bool {
        let (waits_for, stop) = match &run.status {
            RunStatus::Parked { waits_for } => (Some(*waits_for), None),
            RunStatus::Finished { reason } => (None, Some(reason.as_str())),
            RunStatus::Queued | RunStatus::Active => (None, None),
        };
        let is_in = |wanted: &str| repository().is_some_and(|known| known.to_string() == wanted);
        self.scope.has_ticket(run.id.ticket())
            && self
                .before
                .as_ref()
                .is_none_or(|before| build_sort_key(&run.id) < build_sort_key(before))
            && is_unset_or_equal(self.job, Some(run.job))
            && is_unset_or_equal(self.status, Some(RunState::from(&run.status)))
            && match self.waits_for.as_deref() {
                Some(RunsQuery::PERSON) => waits_for.is_some_and(WaitCondition::is_for_person),
                wanted => is_unset_or_equal(wanted, waits_for.map(WaitCondition::as_str)),
            }
            && match self.stop.as_deref() {
                Some(RunsQuery::FAILED) => stop.is_some_and(|stop| stop != StopReason::Completed.as_str()),
                wanted => is_unset_or_equal(wanted, stop),
            }
            && self.repository.as_deref().is_none_or(is_in)
    }
}

/// True when the filter is unset or matches.
fn is_unset_or_equal<T: PartialEq>(wanted: Option<T>, found: Option<T>) -> bool {
    wanted.is_none() || wanted == found
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    fn build_run_summary(status: RunStatus) -> RunSummary {
        RunSummary {
            id: "jira:ENG-12@57".parse().expect("id"),
            job: Job::Implement,
            status,
            started_at: Timestamp::default(),
            finished_at: None,
            turns: 0,
        }
    }

    fn is_listed(query: RunsQuery, run: &RunSummary) -> bool {
        let repository = RepositoryName::new("acme", "shop").expect("name");
        let wanted = RunListFilter::new(query, TokenScope::default()).expect("query");
        wanted.holds(run, || Some(&repository))
    }

    #[test]
    fn each_run_filter_excludes_alone() {
        let reason = StopReason::TurnLimit { turns: 40 };
        let ended = build_run_summary(RunStatus::Finished {
            reason: reason.clone(),
        });
        let text = |text: &str| Some(text.to_owned());
        let all = RunsQuery::default();
        for (same, other) in [
            (
                RunsQuery {
                    repository: text("acme/shop"),
                    ..all.clone()
                },
                RunsQuery {
                    repository: text("acme/other"),
                    ..all.clone()
                },
            ),
            (
                RunsQuery {
                    job: Some(Job::Implement),
                    ..all.clone()
                },
                RunsQuery {
                    job: Some(Job::Review),
                    ..all.clone()
                },
            ),
            (
                RunsQuery {
                    status: Some(RunState::Finished),
                    ..all.clone()
                },
                RunsQuery {
                    status: Some(RunState::Active),
                    ..all.clone()
                },
            ),
            (
                RunsQuery {
                    stop: text("failed"),
                    ..all.clone()
                },
                RunsQuery {
                    stop: text("completed"),
                    ..all.clone()
                },
            ),
            (
                RunsQuery {
                    stop: text(reason.as_str()),
                    ..all.clone()
                },
                RunsQuery {
                    waits_for: text("decision"),
                    ..all.clone()
                },
            ),
        ] {
            assert!(is_listed(same.clone(), &ended), "{same:?}");
            assert!(!is_listed(other.clone(), &ended), "{other:?}");
        }
        assert!(is_listed(all, &ended));
    }

    #[test]
    fn person_filter_covers_decision_and_answer() {
        let query = RunsQuery {
            waits_for: Some("person".to_owned()),
            ..RunsQuery::default()
        };
        let parked =
            |waits_for| is_listed(query.clone(), &build_run_summary(RunStatus::Parked { waits_for }));
        assert!(parked(WaitCondition::Decision) && parked(WaitCondition::Answer));
        assert!(
            !parked(WaitCondition::Report)
                && !parked(WaitCondition::Slot)
                && !is_listed(query.clone(), &build_run_summary(RunStatus::Active))
        );
    }

    #[test]
    fn failed_filter_excludes_completed_runs() {
        let query = RunsQuery {
            stop: Some("failed".to_owned()),
            ..RunsQuery::default()
        };
        assert!(!is_listed(
            query.clone(),
            &build_run_summary(RunStatus::Finished {
                reason: StopReason::Completed
            })
        ));
        assert!(!is_listed(query, &build_run_summary(RunStatus::Active)));
    }

    #[test]
    fn invalid_run_cursor_is_refused() {
        let query = RunsQuery {
            before: Some("57".to_owned()),
            ..RunsQuery::default()
        };
        assert!(matches!(
            RunListFilter::new(query, TokenScope::default()).err(),
            Some(ApiProblem::BadRequest(_))
        ));
    }
}
