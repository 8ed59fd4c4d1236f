//! The runs that lists are made of.

use std::collections::BTreeMap;

use api::types::{RunState, RunView, RunsQuery};
use domain::{Job, Overview, Row, RunId, RunSummary, StopReason, TicketKey, WaitsFor};
use queue::{Bucket, Key, Mirror, Queue};
use tokio::sync::Mutex;

use super::{Problem, runs::ticket_key};

const LISTED: usize = 100;
const MOST_LISTED: usize = 1_000;
/// Every way to end but the good one.
const FAILED: &str = "failed";
/// Whatever only a person can give.
const PERSON: &str = "person";
const OF_PERSON: [&str; 2] = [WaitsFor::Decision.as_str(), WaitsFor::Answer.as_str()];

/// Copies of what is stored of runs, so that a list costs what has changed since the last one instead of a read of all.
pub(crate) struct KnownRuns(Mutex<Copies>);

struct Copies {
    /// What stands where. Only here are runs that have not begun.
    rows: Mirror<Row>,
    /// What journals tell.
    overviews: Mirror<Overview>,
}

impl KnownRuns {
    pub(super) fn new(queue: &Queue) -> Self {
        Self(Mutex::new(Copies {
            rows: Mirror::new(queue.table(Bucket::Tickets)),
            overviews: Mirror::new(queue.runs().table()),
        }))
    }

    /// The runs that are wanted, newest first.
    pub(super) async fn list(&self, queue: &Queue, wanted: &Wanted) -> Result<Vec<RunView>, queue::Error> {
        let mut copies = self.0.lock().await;
        copies.overviews.catch_up().await?;
        let rows = match &wanted.ticket {
            Some(ticket) => {
                let row = queue.table::<Row>(Bucket::Tickets).get(ticket).await?;
                row.map(|(row, _)| row).into_iter().collect()
            }
            None => {
                copies.rows.catch_up().await?;
                copies.rows.values().cloned().collect::<Vec<_>>()
            }
        };
        let runs = rows.iter().flat_map(|row| &row.runs);
        let runs: BTreeMap<_, _> = runs.map(|run| (place(&run.id), run)).collect();
        let older = runs
            .into_iter()
            .rev()
            .filter(|(place, _)| wanted.before.as_ref().is_none_or(|before| place < before));
        let views = older.map(|(_, run)| copies.view(run));
        Ok(views.filter(|run| wanted.holds(run)).take(wanted.limit).collect())
    }
}

impl Copies {
    fn view(&self, run: &RunSummary) -> RunView {
        RunView {
            overview: self.overviews.get(Key::run(&run.id)).map(Into::into),
            ..run.into()
        }
    }
}

/// By the trigger that asked for it; two runs of one trigger are of different tickets.
fn place(run: &RunId) -> (u64, String) {
    (run.sequence(), run.ticket().to_string())
}

/// Which runs a list shall have.
pub(super) struct Wanted {
    ticket: Option<TicketKey>,
    repository: Option<String>,
    job: Option<Job>,
    status: Option<RunState>,
    waits_for: Option<String>,
    stop: Option<String>,
    before: Option<(u64, String)>,
    limit: usize,
}

impl Wanted {
    /// Refuses a ticket or run that is none.
    pub(super) fn new(query: RunsQuery) -> Result<Self, Problem> {
        let before = query.before.map(|run| run.parse::<RunId>()).transpose()?;
        Ok(Self {
            ticket: query.ticket.as_deref().map(ticket_key).transpose()?,
            repository: query.repository,
            job: query.job,
            status: query.status,
            waits_for: query.waits_for,
            stop: query.stop,
            before: before.as_ref().map(place),
            limit: query.limit.unwrap_or(LISTED).min(MOST_LISTED),
        })
    }

    fn holds(&self, run: &RunView) -> bool {
        let repository = run
            .overview
            .as_ref()
            .and_then(|known| known.repository.as_deref());
        let stop = run.stop.as_ref().map(StopReason::as_str);
        is(self.repository.as_deref(), repository)
            && is(self.job, Some(run.job))
            && is(self.status, Some(run.status))
            && match (self.waits_for.as_deref(), run.waits_for.as_deref()) {
                (Some(PERSON), waits_for) => waits_for.is_some_and(|for_what| OF_PERSON.contains(&for_what)),
                (wanted, waits_for) => is(wanted, waits_for),
            }
            && match self.stop.as_deref() {
                Some(FAILED) => stop.is_some_and(|stop| stop != StopReason::Completed.as_str()),
                wanted => is(wanted, stop),
            }
    }
}

/// Whether it is the wanted one, if one is wanted.
fn is<T: PartialEq>(wanted: Option<T>, found: Option<T>) -> bool {
    wanted.is_none() || wanted == found
}

#[cfg(test)]
mod tests {
    use api::types::OverviewView;
    use domain::{RunStatus, Timestamp};

    use super::*;

    fn run(status: RunStatus) -> RunView {
        (&RunSummary {
            id: "jira:ENG-12@57".parse().expect("id"),
            job: Job::Implement,
            status,
            started_at: Timestamp::default(),
            finished_at: None,
            turns: 0,
        })
            .into()
    }

    fn holds(query: RunsQuery, run: &RunView) -> bool {
        Wanted::new(query).map(|wanted| wanted.holds(run)).expect("query")
    }

    #[test]
    fn each_filter_alone_leaves_a_run_out_and_none_leaves_it_in() {
        let reason = StopReason::TurnLimit { turns: 40 };
        let mut ended = run(RunStatus::Finished {
            reason: reason.clone(),
        });
        ended.overview = Some(OverviewView {
            repository: Some("acme/shop".to_owned()),
            ..OverviewView::default()
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
    fn what_waits_for_a_person_waits_for_a_decision_or_an_answer() {
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
    fn a_run_that_ended_well_has_not_failed() {
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
    fn a_cursor_that_is_no_run_is_refused() {
        let query = RunsQuery {
            before: Some("57".to_owned()),
            ..RunsQuery::default()
        };
        assert!(matches!(Wanted::new(query).err(), Some(Problem::BadRequest(_))));
    }
}
