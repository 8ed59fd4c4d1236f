//! Runs for lists.

use api::types::{RunState, RunView, RunsQuery};
use domain::{
    Job, RepositoryName, RunId, RunOverview, RunStatus, RunSummary, StopReason, TicketKey, TicketRow,
    WaitCondition,
};
use queue::{KeyValueBucket, Queue, RecordKey, TableMirror};
use tokio::sync::Mutex;

use super::{ApiProblem, scope::TokenScope, ticket_key::parse_ticket_key};

const LISTED: usize = 100;
// Value of the filter `stop` for every reason other than completion.
const FAILED: &str = "failed";

/// Cached copies of the stored runs. A list then costs only the changes since the last list, instead of a read of
/// everything.
pub(crate) struct KnownRuns(Mutex<RunMirrors>);

struct RunMirrors {
    /// Rows of tickets. Runs that have not started exist only here.
    rows: TableMirror<TicketRow>,
    /// Overviews, derived from journals.
    overviews: TableMirror<RunOverview>,
}

impl KnownRuns {
    pub(super) fn new(queue: &Queue) -> Self {
        Self(Mutex::new(RunMirrors {
            rows: TableMirror::new(queue.table(KeyValueBucket::Tickets)),
            overviews: TableMirror::new(queue.runs().table()),
        }))
    }

    /// Lists the runs that match a filter, newest first.
    pub(super) async fn list(&self, wanted: &RunListFilter) -> Result<Vec<RunView>, queue::Error> {
        // One list at a time updates the copies.
        let mut copies = self.0.lock().await;
        let RunMirrors { rows, overviews } = &mut *copies;
        rows.catch_up().await?;
        overviews.catch_up().await?;
        let rows: Vec<&TicketRow> = match &wanted.ticket {
            Some(ticket) => rows.get(ticket).into_iter().collect(),
            None => rows.values().collect(),
        };
        let overview = |run: &RunSummary| overviews.get(RecordKey::run(&run.id));
        let is_wanted = |run: &&RunSummary| wanted.holds(run, || overview(run)?.repository.as_ref());
        let runs = rows.into_iter().flat_map(|row| &row.runs);
        let mut runs: Vec<_> = runs.filter(is_wanted).collect();
        runs.sort_unstable_by(|a, b| build_sort_key(&b.id).cmp(&build_sort_key(&a.id)));
        let views = runs.into_iter().take(wanted.limit).map(|run| RunView {
            overview: overview(run).map(Into::into),
            ..run.into()
        });
        Ok(views.collect())
    }
}

/// Sort key of a run: the sequence of its trigger.
fn build_sort_key(run: &RunId) -> (u64, &TicketKey) {
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
                Some(FAILED) => stop.is_some_and(|stop| stop != StopReason::Completed.as_str()),
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
