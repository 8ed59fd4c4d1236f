//! Runs for lists.

use api::types::{RunState, RunView, RunsQuery};
use domain::{
    Job, Overview, RepositoryName, Row, RunId, RunStatus, RunSummary, StopReason, TicketKey, WaitsFor,
};
use queue::{Bucket, Key, Mirror, Queue};
use tokio::sync::Mutex;

use super::{Problem, scope::Scope, ticket_key::ticket_key};

const LISTED: usize = 100;
// Value of the filter `stop` for every reason other than completion.
const FAILED: &str = "failed";

/// Cached copies of the stored runs. A list then costs only the changes since the last list, instead of a read of
/// everything.
pub(crate) struct KnownRuns(Mutex<Copies>);

struct Copies {
    /// Rows of tickets. Runs that have not started exist only here.
    rows: Mirror<Row>,
    /// Overviews, derived from journals.
    overviews: Mirror<Overview>,
}

impl KnownRuns {
    pub(super) fn new(queue: &Queue) -> Self {
        Self(Mutex::new(Copies {
            rows: Mirror::new(queue.table(Bucket::Tickets)),
            overviews: Mirror::new(queue.runs().table()),
        }))
    }

    /// Lists the runs that match a filter, newest first.
    pub(super) async fn list(&self, wanted: &Wanted) -> Result<Vec<RunView>, queue::Error> {
        // One list at a time updates the copies.
        let mut copies = self.0.lock().await;
        let Copies { rows, overviews } = &mut *copies;
        rows.catch_up().await?;
        overviews.catch_up().await?;
        let rows: Vec<&Row> = match &wanted.ticket {
            Some(ticket) => rows.get(ticket).into_iter().collect(),
            None => rows.values().collect(),
        };
        let overview = |run: &RunSummary| overviews.get(Key::run(&run.id));
        let is_wanted = |run: &&RunSummary| wanted.holds(run, || overview(run)?.repository.as_ref());
        let runs = rows.into_iter().flat_map(|row| &row.runs);
        let mut runs: Vec<_> = runs.filter(is_wanted).collect();
        runs.sort_unstable_by(|a, b| place(&b.id).cmp(&place(&a.id)));
        let views = runs.into_iter().take(wanted.limit).map(|run| RunView {
            overview: overview(run).map(Into::into),
            ..run.into()
        });
        Ok(views.collect())
    }
}

/// Sort key of a run: the sequence of its trigger.
fn place(run: &RunId) -> (u64, &TicketKey) {
    (run.sequence(), run.ticket())
}

/// Filter of a list of runs.
pub(super) struct Wanted {
    /// Scope of the caller.
    scope: Scope,
    ticket: Option<TicketKey>,
    repository: Option<String>,
    job: Option<Job>,
    status: Option<RunState>,
    waits_for: Option<String>,
    stop: Option<String>,
    before: Option<RunId>,
    limit: usize,
}

impl Wanted {
    /// Parses a query.
    ///
    /// # Errors
    /// When a ticket key or a run id is invalid.
    pub(super) fn new(query: RunsQuery, scope: Scope) -> Result<Self, Problem> {
        Ok(Self {
            scope,
            ticket: query.ticket.as_deref().map(ticket_key).transpose()?,
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
                .is_none_or(|before| place(&run.id) < place(before))
            && is(self.job, Some(run.job))
            && is(self.status, Some(RunState::from(&run.status)))
            && match self.waits_for.as_deref() {
                Some(RunsQuery::PERSON) => waits_for.is_some_and(WaitsFor::is_for_person),
                wanted => is(wanted, waits_for.map(WaitsFor::as_str)),
            }
            && match self.stop.as_deref() {
                Some(FAILED) => stop.is_some_and(|stop| stop != StopReason::Completed.as_str()),
                wanted => is(wanted, stop),
            }
            && self.repository.as_deref().is_none_or(is_in)
    }
}

/// True when the filter is unset or matches.
fn is<T: PartialEq>(wanted: Option<T>, found: Option<T>) -> bool {
    wanted.is_none() || wanted == found
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    fn run(status: RunStatus) -> RunSummary {
        RunSummary {
            id: "jira:ENG-12@57".parse().expect("id"),
            job: Job::Implement,
            status,
            started_at: Timestamp::default(),
            finished_at: None,
            turns: 0,
        }
    }

    fn holds(query: RunsQuery, run: &RunSummary) -> bool {
        let repository = RepositoryName::new("acme", "shop").expect("name");
        let wanted = Wanted::new(query, Scope::default()).expect("query");
        wanted.holds(run, || Some(&repository))
    }

    #[test]
    fn each_run_filter_excludes_alone() {
        let reason = StopReason::TurnLimit { turns: 40 };
        let ended = run(RunStatus::Finished {
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
            assert!(holds(same.clone(), &ended), "{same:?}");
            assert!(!holds(other.clone(), &ended), "{other:?}");
        }
        assert!(holds(all, &ended));
    }

    #[test]
    fn person_filter_covers_decision_and_answer() {
        let query = RunsQuery {
            waits_for: Some("person".to_owned()),
            ..RunsQuery::default()
        };
        let parked = |waits_for| holds(query.clone(), &run(RunStatus::Parked { waits_for }));
        assert!(parked(WaitsFor::Decision) && parked(WaitsFor::Answer));
        assert!(
            !parked(WaitsFor::Report)
                && !parked(WaitsFor::Slot)
                && !holds(query.clone(), &run(RunStatus::Active))
        );
    }

    #[test]
    fn failed_filter_excludes_completed_runs() {
        let query = RunsQuery {
            stop: Some("failed".to_owned()),
            ..RunsQuery::default()
        };
        assert!(!holds(
            query.clone(),
            &run(RunStatus::Finished {
                reason: StopReason::Completed
            })
        ));
        assert!(!holds(query, &run(RunStatus::Active)));
    }

    #[test]
    fn invalid_run_cursor_is_refused() {
        let query = RunsQuery {
            before: Some("57".to_owned()),
            ..RunsQuery::default()
        };
        assert!(matches!(
            Wanted::new(query, Scope::default()).err(),
            Some(Problem::BadRequest(_))
        ));
    }
}
