//! Records of an installation in five states: empty, one of each, many, failing, and with hostile text.

use api::types::{
    ActivityDay, ActivityTotal, ActivityView, CredentialView, DeadView, OverviewView, PoolView, PoolsView,
    PullRequestLine, QuestionView, RepositoryView, RulesProblemView, RulesView, RunState, RunView, SpendLine,
    StopAllView, TicketStanding, TicketSummary, TicketTextView,
};
use domain::{Dollars, Job, PoolFreshness, PullRequestStatus, StopReason, Timestamp, WaitCondition};
use serde_json::Value;

/// Finished run that every state except the empty one has.
pub(crate) const FINISHED_RUN: &str = "jira:ENG-12@57";
/// Run that waits for a decision about its change.
pub(crate) const WAITING_RUN: &str = "jira:ENG-13@58";
/// Run that works.
pub(crate) const LIVE_RUN: &str = "jira:ENG-14@59";
/// Finished run whose entries need several pages, in the states that have every object.
pub(crate) const LONG_RUN: &str = "jira:ENG-16@61";
/// Ticket of the finished run.
pub(crate) const TICKET: &str = "jira:ENG-12";

// One journal entry of every kind.
const ENTRIES: &str = include_str!("../../../../../crates/domain/tests/stored/v1/entry.jsonl");
const MINUTE_MS: i64 = 60_000;
pub(crate) const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
// Number of runs in the state with many. A page of a list has a hundred.
const MANY: u64 = 130;
// Number of journal entries in the state with one of each.
const FEW: usize = 12;
// Number of journal entries of the long run. A page has 500.
const LONG: usize = 620;
// Time between two entries of the long run, so that it lasts less than the ten minutes since its start.
const LONG_STEP_MS: i64 = 900;

/// State of the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstallationState {
    Empty,
    One,
    Many,
    Failing,
    Hostile,
}

impl InstallationState {
    pub(crate) const ALL: [Self; 5] = [Self::Empty, Self::One, Self::Many, Self::Failing, Self::Hostile];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::One => "one",
            Self::Many => "many",
            Self::Failing => "failing",
            Self::Hostile => "hostile",
        }
    }

    /// True if every checked page has its object.
    pub(crate) const fn has_every_object(self) -> bool {
        match self {
            Self::Many | Self::Hostile => true,
            Self::Empty | Self::One | Self::Failing => false,
        }
    }
}

/// Records that the API of a state serves.
pub(crate) struct StateRecords {
    /// The newest run is first.
    pub(crate) runs: Vec<RunView>,
    pub(crate) tickets: Vec<TicketSummary>,
    pub(crate) journal: Vec<Value>,
    pub(crate) activity: ActivityView,
    pub(crate) letters: Vec<DeadView>,
    pub(crate) rules: RulesView,
    pub(crate) credentials: Vec<CredentialView>,
    pub(crate) pools: PoolsView,
    pub(crate) spend: Vec<SpendLine>,
    pub(crate) stop_all: StopAllView,
    /// Absent: the tracker does not answer.
    pub(crate) text: Option<TicketTextView>,
}

impl StateRecords {
    /// Builds the records of a state, with times before `now`. Hostile text replaces texts in the answers later.
    pub(crate) fn of(state: InstallationState, now: Timestamp) -> Self {
        let builder = RecordBuilder { now };
        match state {
            InstallationState::Empty => Self::empty(),
            InstallationState::One => builder.one(),
            InstallationState::Many => builder.many(),
            InstallationState::Failing => builder.failing(),
            InstallationState::Hostile => builder.hostile(),
        }
    }

    fn empty() -> Self {
        Self {
            runs: Vec::new(),
            tickets: Vec::new(),
            journal: Vec::new(),
            activity: ActivityView::default(),
            letters: Vec::new(),
            rules: RulesView {
                repositories: Vec::new(),
                problems: Vec::new(),
            },
            credentials: Vec::new(),
            pools: PoolsView::default(),
            spend: Vec::new(),
            stop_all: StopAllView::default(),
            text: None,
        }
    }
}

struct RecordBuilder {
    now: Timestamp,
}

impl RecordBuilder {
    fn one(&self) -> StateRecords {
        let finished = self.run(FINISHED_RUN, RunState::Finished, None);
        StateRecords {
            tickets: vec![self.ticket(&finished, TicketStanding::Merged)],
            runs: vec![self.waiting_run(), finished],
            journal: self.journal(FEW),
            activity: self.activity(1),
            letters: vec![self.letter(1, "delivery")],
            rules: build_rules(1, 0),
            pools: self.pools(PoolFreshness::Current),
            spend: self.spend(1),
            text: Some(self.text()),
            ..StateRecords::empty()
        }
    }

    fn many(&self) -> StateRecords {
        let mut runs = vec![
            self.run(LIVE_RUN, RunState::Active, None),
            self.waiting_run(),
            self.run(FINISHED_RUN, RunState::Finished, None),
        ];
        for number in 100..100 + MANY {
            let id = format!("jira:ENG-{number}@{}", 1_000 - number);
            let state = match number % 5 {
                0 => RunState::Active,
                1 => RunState::Queued,
                _ => RunState::Finished,
            };
            runs.push(self.run(&id, state, None));
        }
        let mut asking = self.run("jira:ENG-15@60", RunState::Parked, None);
        asking.waits_for = Some(WaitCondition::Answer.as_str().to_owned());
        runs.push(asking);
        runs.push(self.run(LONG_RUN, RunState::Finished, None));
        let standings = TicketStanding::ALL.into_iter().cycle();
        let tickets = runs.iter().zip(standings);
        StateRecords {
            tickets: tickets
                .map(|(run, standing)| self.ticket(run, standing))
                .collect(),
            runs,
            journal: self.journal(usize::MAX),
            activity: self.activity(30),
            letters: (1..30)
                .map(|sequence| self.letter(sequence, "delivery"))
                .collect(),
            rules: build_rules(40, 0),
            pools: self.pools(PoolFreshness::Current),
            spend: self.spend(20),
            text: Some(self.text()),
            ..StateRecords::empty()
        }
    }

    fn failing(&self) -> StateRecords {
        let reasons = [
            StopReason::NoPlan,
            StopReason::TurnLimit { turns: 40 },
            StopReason::ModelFailed {
                detail: "429 of api.anthropic.com: too many requests".to_owned(),
            },
            StopReason::SetupFailed {
                log_tail: "npm error code ENOTFOUND\nnpm error network".to_owned(),
            },
        ];
        let failed = |(number, reason): (u64, StopReason)| {
            let id = match number {
                0 => FINISHED_RUN.to_owned(),
                number => format!("jira:OPS-{number}@{}", 40 - number),
            };
            self.run(&id, RunState::Finished, Some(reason))
        };
        let runs: Vec<_> = (0..).zip(reasons).map(failed).collect();
        let tickets = runs.iter().map(|run| self.ticket(run, TicketStanding::Failed));
        let credential = CredentialView {
            kind: "jira_writer".to_owned(),
            instance: None,
            ends: self.at(-3 * DAY_MS),
            days: 3,
            is_due: true,
        };
        StateRecords {
            tickets: tickets.collect(),
            runs,
            journal: self.journal(FEW),
            activity: self.activity(3),
            letters: vec![self.letter(1, "ticket"), self.letter(2, "report")],
            rules: build_rules(1, 3),
            credentials: vec![credential],
            pools: self.pools(PoolFreshness::Old),
            spend: self.spend(2),
            stop_all: StopAllView {
                on: true,
                by: Some("grace".to_owned()),
                at: Some(self.at(7 * MINUTE_MS)),
            },
            text: None,
        }
    }

    fn hostile(&self) -> StateRecords {
        let mut records = self.failing();
        records.runs.insert(0, self.waiting_run());
        records.runs.insert(0, self.run(LIVE_RUN, RunState::Active, None));
        records.runs.push(self.run(LONG_RUN, RunState::Finished, None));
        records.text = Some(self.text());
        records.journal = self.journal(usize::MAX);
        records
    }

    /// Time before now, in RFC 3339.
    fn at(&self, before_ms: i64) -> String {
        self.now.plus_ms(-before_ms).to_string()
    }

    fn waiting_run(&self) -> RunView {
        let mut run = self.run(WAITING_RUN, RunState::Parked, None);
        run.waits_for = Some(WaitCondition::Decision.as_str().to_owned());
        if let Some(overview) = &mut run.overview {
            overview.decides_about = Some("1a2b3c4d".repeat(5));
            overview.questions.clear();
        }
        run
    }

    fn run(&self, id: &str, status: RunState, stop: Option<StopReason>) -> RunView {
        let (ticket, sequence) = id.rsplit_once('@').unwrap_or((id, "1"));
        let age = sequence.parse::<i64>().unwrap_or(1) * 7 * MINUTE_MS;
        let is_over = status == RunState::Finished;
        let questions = match status {
            RunState::Parked => vec![QuestionView {
                text: "Does the price include the tax of the country of the buyer?".to_owned(),
                options: vec!["gross".to_owned(), "net".to_owned()],
            }],
            RunState::Queued | RunState::Active | RunState::Finished => Vec::new(),
        };
        let overview = OverviewView {
            repository: Some("acme/shop".to_owned()),
            title: "Totals of the cart are rounded before the discount".to_owned(),
            actor: Some("Ada Lovelace".to_owned()),
            phase: Some("work".to_owned()),
            questions,
            updated_at: self.at(age / 2),
            tool_calls: 12,
            cost_usd: Dollars::from_micros(420_000),
            tokens: 61_400,
            input_tokens: 58_000,
            cached_tokens: 41_000,
            output_tokens: 3_400,
            model_ms: 48_000,
            tools_ms: 31_000,
            waiting_ms: 9_000,
            evidence: is_over.then(|| "E3".to_owned()),
            branch: Some("fix/ENG-12-totals".to_owned()),
            pull_request_lines: build_lines(is_over.then_some(PullRequestStatus::Merged)),
            last: "run_finished".to_owned(),
            entries: 134,
            ..OverviewView::default()
        };
        RunView {
            id: id.to_owned(),
            ticket: ticket.to_owned(),
            job: Job::Implement,
            status,
            waits_for: None,
            stop: is_over.then(|| stop.unwrap_or(StopReason::Completed)),
            started_at: self.at(age),
            finished_at: is_over.then(|| self.at(age - 4 * MINUTE_MS)),
            turns: 9,
            repair: None,
            overview: (status != RunState::Queued).then_some(overview),
        }
    }

    fn ticket(&self, run: &RunView, standing: TicketStanding) -> TicketSummary {
        let status = match standing {
            TicketStanding::Open => Some(PullRequestStatus::Open),
            TicketStanding::Merged => Some(PullRequestStatus::Merged),
            TicketStanding::Closed => Some(PullRequestStatus::Closed),
            TicketStanding::NeedsPerson
            | TicketStanding::Working
            | TicketStanding::Failed
            | TicketStanding::Done => None,
        };
        TicketSummary {
            ticket: run.ticket.clone(),
            title: "Totals of the cart are rounded before the discount".to_owned(),
            repository: Some("acme/shop".to_owned()),
            standing,
            last_run: run.clone(),
            runs: 3,
            pull_requests: build_lines(status),
            cost_usd: Dollars::from_micros(1_130_000),
            unpriced: 0,
            evidence: Some("E3".to_owned()),
            actor: Some("Ada Lovelace".to_owned()),
            started_at: run.started_at.clone(),
            finished_at: run.finished_at.clone(),
            quarantined: None,
        }
    }

    /// Journal with the start of a run first, then entries of every kind.
    fn journal(&self, most: usize) -> Vec<Value> {
        let stored = ENTRIES
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap_or_default());
        let mut entries: Vec<Value> = stored.collect();
        // The only start of the file is its first entry, and an end belongs to the end.
        entries.sort_by_key(|entry| entry["fact"]["type"] == "run_finished");
        entries.truncate(most);
        for (position, entry) in entries.iter_mut().enumerate() {
            let position = i64::try_from(position).unwrap_or(i64::MAX);
            entry["position"] = position.into();
            entry["at"] = self
                .now
                .plus_ms(position * 1_500 - 10 * MINUTE_MS)
                .unix_ms()
                .into();
        }
        entries
    }

    fn activity(&self, days: u64) -> ActivityView {
        let day = |number: u64| {
            let before = i64::try_from(days - 1 - number).unwrap_or_default();
            ActivityDay {
                day: self.at(before * DAY_MS).chars().take(10).collect(),
                total: ActivityTotal {
                    merged: number % 4,
                    closed: number % 7 / 5,
                    failed: number % 5 / 4,
                    runs: 3 + number % 6,
                    cost_usd: Dollars::from_micros(900_000 + number * 130_000),
                    unpriced: 0,
                    lead_ms: (!number.is_multiple_of(4)).then_some(3_600_000 * (2 + number % 9)),
                },
            }
        };
        let days: Vec<_> = (0..days).map(day).collect();
        let sum = |of: fn(&ActivityTotal) -> u64| days.iter().map(|day| of(&day.total)).sum::<u64>();
        let total = ActivityTotal {
            merged: sum(|total| total.merged),
            closed: sum(|total| total.closed),
            failed: sum(|total| total.failed),
            runs: sum(|total| total.runs),
            cost_usd: Dollars::from_micros(sum(|total| total.cost_usd.micros())),
            unpriced: 0,
            lead_ms: Some(15_000_000),
        };
        ActivityView { days, total }
    }

    fn letter(&self, sequence: u64, what: &str) -> DeadView {
        DeadView {
            sequence,
            what: what.to_owned(),
            id: format!("changelog:{}", 10_000 + sequence),
            ticket: Some(TICKET.to_owned()),
            reason: "the issue has no field customfield_10020".to_owned(),
            at: self.at(i64::try_from(sequence).unwrap_or(1) * 11 * MINUTE_MS),
        }
    }

    fn pools(&self, news: PoolFreshness) -> PoolsView {
        let is_current = news == PoolFreshness::Current;
        PoolsView {
            pools: vec![PoolView {
                name: "default".to_owned(),
                news,
                seen_at: Some(self.at(if is_current { 2_000 } else { 2 * DAY_MS })),
                planners: 1,
                executors: 2,
                ready: if is_current { 2 } else { 0 },
                free: if is_current { 3 } else { 0 },
                total: 8,
                held: 5,
                waiting: u32::from(!is_current),
                waiting_since: (!is_current).then(|| self.at(40 * MINUTE_MS)),
                makes: Vec::new(),
                problems: Vec::new(),
                members: Vec::new(),
            }],
        }
    }

    fn spend(&self, days: i64) -> Vec<SpendLine> {
        let line = |number: i64| SpendLine {
            day: self.at(number * DAY_MS).chars().take(10).collect(),
            organization: "acme".to_owned(),
            repository: if number % 3 == 0 {
                "acme/shop"
            } else {
                "acme/billing"
            }
            .to_owned(),
            ticket: format!("jira:ENG-{}", 12 + number % 5),
            job: "implement".to_owned(),
            provider: "main".to_owned(),
            model: "large".to_owned(),
            calls: 14,
            cost_usd: Dollars::from_micros(740_000),
            tokens: 81_000,
            unpriced: 0,
        };
        (0..days).map(line).collect()
    }

    fn text(&self) -> TicketTextView {
        TicketTextView {
            ticket: TICKET.to_owned(),
            url: "https://acme.atlassian.net/browse/ENG-12".to_owned(),
            status: "In Progress".to_owned(),
            kind: "Bug".to_owned(),
            priority: "High".to_owned(),
            labels: vec!["cart".to_owned()],
            assignees: vec!["Journeyman".to_owned()],
            summary: "Totals of the cart are rounded before the discount".to_owned(),
            description: "# Steps\n\n1. Add *three* items\n2. Apply `HALF`\n\n| item | price |\n|---|---|\n| pen | 1.05 |".to_owned(),
            comments: vec![api::types::CommentView {
                author: "Grace Hopper".to_owned(),
                at: self.at(DAY_MS),
                text: "See [the rules](https://acme.example/rounding).".to_owned(),
            }],
        }
    }
}

/// Repeats the entries of a journal after its first one until they need several pages.
pub(crate) fn lengthen_journal(journal: &[Value]) -> Vec<Value> {
    let repeated = journal.iter().skip(1).cycle();
    let all = journal.iter().take(1).chain(repeated).take(LONG);
    let mut entries: Vec<Value> = all.cloned().collect();
    let start = entries
        .first()
        .and_then(|first| first["at"].as_i64())
        .unwrap_or_default();
    for (position, entry) in (0_i64..).zip(&mut entries) {
        entry["position"] = position.into();
        entry["at"] = (start + position * LONG_STEP_MS).into();
    }
    entries
}

fn build_lines(status: Option<PullRequestStatus>) -> Vec<PullRequestLine> {
    Vec::from_iter(status.map(|status| PullRequestLine {
        repository: "acme/shop".to_owned(),
        number: 7,
        url: "https://github.com/acme/shop/pull/7".to_owned(),
        status: Some(status),
    }))
}

fn build_rules(repositories: usize, problems: u64) -> RulesView {
    let repository = |number: usize| RepositoryView {
        repository: format!("acme/service-{number}"),
        project: "ENG".to_owned(),
        status: "Ready for Agent".to_owned(),
        problem: (number % 9 == 8).then(|| "Jira has no status Ready for Agent".to_owned()),
    };
    let problem = |line: u64| RulesProblemView {
        file: "configs/acme-shop.yaml".to_owned(),
        line,
        key: "agent.status".to_owned(),
        problem: "unknown field: did you mean status?".to_owned(),
    };
    RulesView {
        repositories: (0..repositories).map(repository).collect(),
        problems: (1..=problems).map(problem).collect(),
    }
}
