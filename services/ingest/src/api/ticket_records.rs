//! Records of all tickets at one moment, and the histories that are built from them.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use domain::{PullRequestRecord, RunId, RunOverview, TicketKey, TicketRow};
use queue::RecordKey;

use super::ticket_history::{KnownRun, TicketHistory, build_pull_request_lines};

/// Records of all tickets at one moment. They are shared with the copies of the tables, which change without them.
pub(super) struct TicketRecords {
    rows: Vec<(RecordKey, Arc<TicketRow>)>,
    overviews: Vec<Arc<RunOverview>>,
    pull_requests: Vec<Arc<PullRequestRecord>>,
    histories: OnceLock<Vec<TicketHistory>>,
}

impl TicketRecords {
    pub(super) const fn new(
        rows: Vec<(RecordKey, Arc<TicketRow>)>,
        overviews: Vec<Arc<RunOverview>>,
        pull_requests: Vec<Arc<PullRequestRecord>>,
    ) -> Self {
        Self {
            rows,
            overviews,
            pull_requests,
            histories: OnceLock::new(),
        }
    }

    /// Histories of all tickets that have a run. The first call builds them and needs a thread for blocking work.
    pub(super) fn histories(&self) -> &[TicketHistory] {
        self.histories.get_or_init(|| self.build_histories())
    }

    fn build_histories(&self) -> Vec<TicketHistory> {
        let rows = self.rows.iter();
        let rows: BTreeMap<TicketKey, &TicketRow> = rows
            .filter_map(|(key, row)| Some((key.ticket()?, &**row)))
            .collect();
        let statuses = self.pull_requests.iter().map(|record| {
            let one = &record.pull_request;
            ((&record.ticket, &one.repository, one.number), record.status)
        });
        let statuses: BTreeMap<_, _> = statuses.collect();
        let histories = self.group_runs(&rows).into_iter().map(|(ticket, runs)| {
            let row = rows.get(ticket);
            let mut runs: Vec<_> = runs.into_values().collect();
            runs.sort_unstable_by_key(|run| run.summary.id.sequence());
            TicketHistory {
                ticket: ticket.clone(),
                runs,
                pull_requests: row.map_or_else(Vec::new, |row| {
                    build_pull_request_lines(&row.pull_requests, |one| {
                        statuses.get(&(ticket, &one.repository, one.number)).copied()
                    })
                }),
                quarantined: row.and_then(|row| row.quarantined.clone()),
            }
        });
        histories.collect()
    }

    /// Groups the runs of rows and overviews by their ticket.
    fn group_runs<'a>(
        &'a self,
        rows: &'a BTreeMap<TicketKey, &'a TicketRow>,
    ) -> BTreeMap<&'a TicketKey, BTreeMap<&'a RunId, KnownRun>> {
        let overviews: BTreeMap<&RunId, &Arc<RunOverview>> = self
            .overviews
            .iter()
            .map(|overview| (&overview.run, overview))
            .collect();
        let mut by_ticket: BTreeMap<&TicketKey, BTreeMap<&RunId, KnownRun>> = BTreeMap::new();
        for run in rows.values().flat_map(|row| &row.runs) {
            let known = KnownRun {
                summary: run.clone(),
                overview: overviews.get(&run.id).copied().cloned(),
            };
            let runs = by_ticket.entry(run.id.ticket()).or_default();
            runs.insert(&run.id, known);
        }
        // The row is newer than the overview, which follows the journal, so it counts where both have the run.
        for overview in &self.overviews {
            let runs = by_ticket.entry(overview.run.ticket()).or_default();
            runs.entry(&overview.run).or_insert_with(|| KnownRun {
                summary: overview.summary(),
                overview: Some(Arc::clone(overview)),
            });
        }
        by_ticket
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        Fact, Job, JournalEntry, PullRequestRef, PullRequestStatus, RunFence, RunStatus, RunSummary,
        Timestamp,
    };
    use serde_json::json;

    use super::*;

    fn build_overview(run: &str) -> Arc<RunOverview> {
        let run: RunId = run.parse().unwrap();
        let trigger = json!({"ticket": run.ticket().to_string(), "key": "k", "at": 1, "source": "webhook",
            "actor": null, "reason": {"type": "job_requested", "job": "implement", "repository": "acme/shop",
                "rules": domain::RepositoryRules::default(), "text": domain::TicketText::default()}});
        let first = JournalEntry {
            position: 0,
            nonce: "n".to_owned(),
            fence: RunFence::default(),
            at: Timestamp::default(),
            fact: Fact::RunStarted {
                trigger: serde_json::from_value(trigger).unwrap(),
            },
        };
        Arc::new(RunOverview::begin(&run, &first).unwrap())
    }

    fn build_pull_request() -> PullRequestRef {
        PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            url: "https://github.com/acme/shop/pull/7".to_owned(),
            branch: "fix/ENG-1".to_owned(),
        }
    }

    fn build_records() -> TicketRecords {
        let ticket: TicketKey = "jira:ENG-1".parse().unwrap();
        let summary = |run: &str, status| RunSummary {
            id: run.parse().unwrap(),
            job: Job::Implement,
            status,
            started_at: Timestamp::default(),
            finished_at: None,
            turns: 1,
        };
        let row = TicketRow {
            runs: vec![
                summary("jira:ENG-1@3", RunStatus::Queued),
                summary("jira:ENG-1@9", RunStatus::Queued),
            ],
            pull_requests: vec![build_pull_request()],
            quarantined: Some("taken over too often".to_owned()),
            ..TicketRow::default()
        };
        let record = PullRequestRecord {
            pull_request: build_pull_request(),
            ticket: ticket.clone(),
            head: None,
            status: PullRequestStatus::Merged,
        };
        TicketRecords::new(
            vec![(RecordKey::from(&ticket), Arc::new(row))],
            ["jira:ENG-1@3", "jira:ENG-1@2", "jira:ENG-2@5"]
                .map(build_overview)
                .to_vec(),
            vec![Arc::new(record)],
        )
    }

    #[test]
    fn histories_join_rows_with_overviews() {
        let records = build_records();
        let [first, second] = records.histories() else {
            panic!("two tickets have runs");
        };
        assert_eq!(second.ticket.to_string(), "jira:ENG-2");
        let runs = first.runs.iter().map(|run| {
            let sequence = run.summary.id.sequence();
            (sequence, run.summary.status.clone(), run.overview.is_some())
        });
        assert_eq!(
            runs.collect::<Vec<_>>(),
            [
                (2, RunStatus::Active, true),
                (3, RunStatus::Queued, true),
                (9, RunStatus::Queued, false)
            ]
        );
        assert_eq!(first.pull_requests[0].status, Some(PullRequestStatus::Merged));
        assert_eq!(first.quarantined.as_deref(), Some("taken over too often"));
    }

    #[test]
    fn histories_are_built_once() {
        let records = build_records();
        let first = records.histories().as_ptr();
        assert_eq!(records.histories().as_ptr(), first);
    }
}
