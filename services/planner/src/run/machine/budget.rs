//! What a run has spent, what it may spend, and what the model is told of it.

use domain::{Budget, Dollars, Entry, Fact, Hint, JobRequest, Phase, Reply, RunLimits, StopReason};

use super::{Call, DialogSpec, RunState, Turn};

/// Percent of the run's limits that the work leaves for what comes after it.
const RESERVED: u64 = 10;
/// Percent of a limit at which the model is told what is left.
const TOLD_AT: [u8; 3] = [95, 80, 50];
/// Percent after which only the tools that end the work are accepted.
const EXITS_ONLY_AT: u8 = 95;
const MINUTE_MS: u64 = 60_000;

/// What a run has spent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spending {
    pub(crate) tokens: u64,
    pub(crate) cost: u64,
    /// A model that answered and whose price is not known.
    pub(crate) unpriced: Option<String>,
    /// Time that the run was at work, in milliseconds.
    pub(crate) busy_ms: u64,
}

impl Spending {
    pub(super) fn replied(&mut self, reply: &Reply) {
        self.tokens += reply.usage.input_tokens + reply.usage.output_tokens;
        match reply.cost_micros {
            Some(cost) => self.cost += cost,
            None => self.unpriced = Some(reply.model.clone()),
        }
    }
}

impl RunState {
    /// The time up to an entry, unless the run waited for people, a slot or a planner.
    pub(super) fn count_time(&mut self, entry: &Entry) {
        let waited = matches!(
            entry.fact,
            Fact::TakenOver { .. }
                | Fact::WorkspaceOpened { .. }
                | Fact::WorkspaceRestored { .. }
                | Fact::WorkspaceFailed { .. }
        );
        if self.parked.is_none() && !waited {
            let passed = entry.at.unix_ms().saturating_sub(self.last_at.unix_ms());
            self.spending.busy_ms += u64::try_from(passed).unwrap_or(0);
        }
    }
}

/// The settings of the planner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowance {
    /// What a run may spend where its rules say nothing.
    pub(crate) usual: RunLimits,
    /// What it may spend whatever its rules say.
    pub(crate) most: RunLimits,
}

impl Allowance {
    /// The limits of a run.
    pub(crate) fn limits(&self, request: &JobRequest) -> RunLimits {
        let wanted = &request.rules.agent.budget;
        let (usual, most) = (&self.usual, &self.most);
        RunLimits {
            cost_usd: least(wanted.cost_usd.or(usual.cost_usd), most.cost_usd),
            tokens: least(wanted.tokens.or(usual.tokens), most.tokens),
            minutes: least(wanted.minutes.or(usual.minutes), most.minutes),
            context: usual.context,
        }
    }
}

fn least<T: Ord>(wanted: Option<T>, most: Option<T>) -> Option<T> {
    match (wanted, most) {
        (Some(wanted), Some(most)) => Some(wanted.min(most)),
        (wanted, most) => wanted.or(most),
    }
}

/// How many turns the work may have.
pub(crate) fn turn_limit(state: &RunState, request: &JobRequest) -> u32 {
    request.rules.agent.turns(state.class())
}

/// Each limit with what is spent of it and what a conversation may spend, in millionths of a dollar, tokens and
/// milliseconds.
fn measures(state: &RunState, phase: Phase) -> impl Iterator<Item = (Budget, u64, u64)> {
    let limits = state.limits.clone().unwrap_or_default();
    let spending = &state.spending;
    let share = match phase {
        Phase::Intake | Phase::Plan | Phase::Work => 100 - RESERVED,
        Phase::Review | Phase::Triage => 100,
    };
    let minutes = limits.minutes.map(|minutes| minutes.saturating_mul(MINUTE_MS));
    let all = [
        (Budget::Cost, spending.cost, limits.cost_usd.map(Dollars::micros)),
        (Budget::Tokens, spending.tokens, limits.tokens),
        (Budget::Minutes, spending.busy_ms, minutes),
    ];
    all.into_iter().filter_map(move |(budget, spent, limit)| {
        let own = u128::from(limit?) * u128::from(share) / 100;
        Some((budget, spent, u64::try_from(own).unwrap_or(u64::MAX)))
    })
}

/// Why a conversation may not go on: what it may spend is spent, or nobody can tell.
pub(crate) fn spent(state: &RunState, phase: Phase) -> Option<StopReason> {
    let limits = state.limits.as_ref()?;
    if let (Some(_), Some(model)) = (limits.cost_usd, &state.spending.unpriced) {
        let model = model.clone();
        return Some(StopReason::PriceUnknown { model });
    }
    let mut measures = measures(state, phase);
    let (budget, spent, _) = measures.find(|(_, spent, limit)| spent >= limit)?;
    let (spent, limit) = match budget {
        Budget::Cost => (spent, limits.cost_usd.map(Dollars::micros)),
        Budget::Tokens => (spent, limits.tokens),
        Budget::Minutes => (spent / MINUTE_MS, limits.minutes),
    };
    let limit = limit.unwrap_or_default();
    Some(StopReason::BudgetSpent { budget, spent, limit })
}

/// What the model is to be told of its limits, each part once.
pub(super) fn hint(state: &RunState, dialog: &DialogSpec) -> Option<Hint> {
    let turns = match dialog.phase {
        Phase::Work => state.turns_of(dialog),
        Phase::Intake | Phase::Plan | Phase::Review | Phase::Triage => return None,
    };
    let limit = turn_limit(state, state.request()?);
    let done = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    let parts = measures(state, dialog.phase).map(|(_, spent, limit)| percent(spent, limit));
    let most = parts.chain([percent(done.into(), limit.into())]).max()?;
    let used = TOLD_AT.into_iter().find(|part| u64::from(*part) <= most)?;
    (told(turns) < used).then(|| Hint::Budget {
        used,
        turns: limit.saturating_sub(done),
        left: left(state, dialog.phase),
    })
}

fn percent(spent: u64, limit: u64) -> u64 {
    let part = u128::from(spent) * 100 / u128::from(limit.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// The largest part of the limits that the model was told of with these turns; 0: none.
fn told(turns: &[Turn]) -> u8 {
    let hints = turns.iter().flat_map(|turn| &turn.hints);
    let parts = hints.filter_map(|hint| match hint {
        Hint::Budget { used, .. } => Some(*used),
        Hint::Repeating(_) => None,
    });
    parts.max().unwrap_or(0)
}

fn left(state: &RunState, phase: Phase) -> RunLimits {
    let mut left = RunLimits::default();
    for (budget, spent, limit) in measures(state, phase) {
        let rest = limit.saturating_sub(spent);
        match budget {
            Budget::Cost => left.cost_usd = Some(Dollars::from_micros(rest)),
            Budget::Tokens => left.tokens = Some(rest),
            Budget::Minutes => left.minutes = Some(rest / MINUTE_MS),
        }
    }
    left
}

/// Whether a call of the last turn comes too late: the model knew that only ending the work is left to it.
pub(crate) fn is_late(state: &RunState, dialog: &DialogSpec, call: &Call) -> bool {
    let is_exit = dialog
        .tools
        .iter()
        .any(|tool| tool.ends_work && tool.name == call.call.name);
    !is_exit && has_exits_only(state, dialog.phase)
}

/// Whether the model was told, before its last turn, that only ending the work is left to it.
pub(crate) fn has_exits_only(state: &RunState, phase: Phase) -> bool {
    let last = state.dialogs.iter().rev().find(|dialog| dialog.phase == phase);
    let turns = last.map_or(&[][..], |dialog| &dialog.turns);
    told(&turns[..turns.len().saturating_sub(1)]) >= EXITS_ONLY_AT
}
