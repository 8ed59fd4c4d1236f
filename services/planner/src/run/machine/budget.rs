//! Limits of a run, and the hints about them for the model.

use domain::{
    BudgetScope, BudgetUnit, Dollars, JobRequest, JobSubject, ModelHint, RunLimits, RunPhase, SharedBudget,
    SpendAmount, StopReason, TicketLimits,
};

use super::{DialogSpec, DialogTurn, PlannerRunState, TurnCall};

// Percent of the run's limits that the work leaves for the phases after it.
const RESERVED: u64 = 10;
// Percent of a limit at which the model gets a hint about the rest.
const HINTED_AT: [u8; 3] = [95, 80, 50];
// Percent after which only the tools that end the work are accepted.
const EXITS_ONLY_AT: u8 = 95;
const MINUTE_MS: u64 = 60_000;
// More turns do not repair failed checks or a conflict: the problem is known from the start.
const REPAIR_TURNS: u32 = 30;

/// Limits from the planner's settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct BudgetAllowance {
    /// Limits of a run where its rules set none.
    pub(crate) usual: RunLimits,
    /// Ceiling of a run's limits, which no rule can raise.
    pub(crate) most: RunLimits,
    /// Both for all runs of a ticket together.
    pub(crate) usual_ticket: TicketLimits,
    pub(crate) most_ticket: TicketLimits,
}

impl BudgetAllowance {
    /// Returns the limits of a run.
    pub(crate) fn limits(&self, request: &JobRequest) -> RunLimits {
        let wanted = &request.rules.agent.budget;
        let (usual, most) = (&self.usual, &self.most);
        RunLimits {
            cost_usd: smaller_limit(wanted.cost_usd.or(usual.cost_usd), most.cost_usd),
            tokens: smaller_limit(wanted.tokens.or(usual.tokens), most.tokens),
            minutes: smaller_limit(wanted.minutes.or(usual.minutes), most.minutes),
            context: usual.context,
            context_by_role: usual.context_by_role.clone(),
        }
    }

    /// Returns the limits of a run's ticket without its spending; `None` if it has none.
    pub(crate) fn ticket_limits(&self, request: &JobRequest) -> Option<TicketLimits> {
        let wanted = &request.rules.agent.budget.ticket;
        let (usual, most) = (&self.usual_ticket, &self.most_ticket);
        let limits = TicketLimits {
            cost_usd: smaller_limit(wanted.cost_usd.or(usual.cost_usd), most.cost_usd),
            tokens: smaller_limit(wanted.tokens.or(usual.tokens), most.tokens),
            ..TicketLimits::default()
        };
        (limits != TicketLimits::default()).then_some(limits)
    }
}

fn smaller_limit<T: Ord>(wanted: Option<T>, most: Option<T>) -> Option<T> {
    match (wanted, most) {
        (Some(wanted), Some(most)) => Some(wanted.min(most)),
        (wanted, most) => wanted.or(most),
    }
}

/// Returns the maximum of turns of the work.
pub(crate) fn turn_limit(state: &PlannerRunState, request: &JobRequest) -> u32 {
    let turns = request.rules.agent.turns(state.outputs().class());
    match request.about {
        JobSubject::Checks(_) | JobSubject::Conflict(_) => turns.min(REPAIR_TURNS),
        JobSubject::Ticket
        | JobSubject::Review(_)
        | JobSubject::Question(_)
        | JobSubject::Change(_)
        | JobSubject::Discussion(_)
        | JobSubject::Rehearsal(_) => turns,
    }
}

/// One limit, in millionths of a dollar, tokens or milliseconds.
struct LimitMeasure {
    of: LimitScope,
    budget: BudgetUnit,
    spent: u64,
    /// Share of the limit that a conversation may spend.
    own: u64,
    limit: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LimitScope {
    Run,
    Ticket,
}

fn limit_measures(state: &PlannerRunState, phase: RunPhase) -> impl Iterator<Item = LimitMeasure> {
    let budget = state.budget();
    let limits = budget.limits();
    let ticket = budget.ticket_limits().unwrap_or_default();
    let spending = budget.spending();
    let SpendAmount { cost_micros, tokens } = spending.models.amount();
    // Phases up to the work share nine tenths; the phases after it must find a rest.
    let share = match phase {
        RunPhase::Intake | RunPhase::Plan | RunPhase::Work | RunPhase::Answer | RunPhase::Discuss => {
            100 - RESERVED
        }
        RunPhase::Review | RunPhase::Triage | RunPhase::PullRequest => 100,
    };
    let minutes = limits.and_then(|limits| limits.minutes);
    let minutes = minutes.map(|minutes| minutes.saturating_mul(MINUTE_MS));
    let of_ticket = SpendAmount {
        cost_micros: ticket.spent_usd.micros().saturating_add(cost_micros),
        tokens: ticket.spent_tokens.saturating_add(tokens),
    };
    let all = [
        (
            LimitScope::Run,
            BudgetUnit::Cost,
            cost_micros,
            limits.and_then(|limits| limits.cost_usd).map(Dollars::micros),
        ),
        (
            LimitScope::Run,
            BudgetUnit::Tokens,
            tokens,
            limits.and_then(|limits| limits.tokens),
        ),
        (LimitScope::Run, BudgetUnit::Minutes, spending.busy_ms, minutes),
        (
            LimitScope::Ticket,
            BudgetUnit::Cost,
            of_ticket.cost_micros,
            ticket.cost_usd.map(Dollars::micros),
        ),
        (
            LimitScope::Ticket,
            BudgetUnit::Tokens,
            of_ticket.tokens,
            ticket.tokens,
        ),
    ];
    all.into_iter().filter_map(move |(of, budget, spent, limit)| {
        let limit = limit?;
        // In 128 bits, because the limit may be near the maximum of u64.
        let own = u128::from(limit) * u128::from(share) / 100;
        let own = u64::try_from(own).unwrap_or(u64::MAX);
        Some(LimitMeasure {
            of,
            budget,
            spent,
            own,
            limit,
        })
    })
}

/// Returns the model without a known price that replied, if money is limited for the run or its ticket.
fn unpriced_model(state: &PlannerRunState) -> Option<&String> {
    let budget = state.budget();
    let limits = budget.limits()?;
    let ticket = budget.ticket_limits().and_then(|ticket| ticket.cost_usd);
    let unpriced = budget.spending().unpriced_model.as_ref();
    limits.cost_usd.or(ticket).and(unpriced)
}

/// Returns the reason that a conversation must end: its share is spent, the price is unknown, or a shared
/// budget has no room.
pub(crate) fn spent_reason(state: &PlannerRunState, phase: RunPhase) -> Option<StopReason> {
    if let Some(model) = unpriced_model(state) {
        let model = model.clone();
        return Some(StopReason::PriceUnknown { model });
    }
    let spent = limit_measures(state, phase).find(|measure| measure.spent >= measure.own);
    spent
        .map(|measure| measure.reason(state, 0))
        .or_else(|| state.budget().refused(state.journal.last_at).cloned())
}

/// Returns the reason that the ticket's budget has no room for a call with this upper bound.
pub(crate) fn ticket_budget_refusal(
    state: &PlannerRunState,
    phase: RunPhase,
    most: SpendAmount,
) -> Option<StopReason> {
    let needs = |budget| match budget {
        BudgetUnit::Cost => most.cost_micros,
        BudgetUnit::Tokens => most.tokens,
        BudgetUnit::Minutes => 0,
    };
    // Only the ticket's measures: limits of the run itself end the work by `spent`, after the call.
    let mut of_ticket = limit_measures(state, phase).filter(|measure| measure.of == LimitScope::Ticket);
    let full = of_ticket.find(|measure| measure.spent.saturating_add(needs(measure.budget)) > measure.own)?;
    Some(full.reason(state, needs(full.budget)))
}

impl LimitMeasure {
    fn reason(&self, state: &PlannerRunState, needs: u64) -> StopReason {
        let Self {
            budget, spent, limit, ..
        } = *self;
        let unit = if budget == BudgetUnit::Minutes {
            MINUTE_MS
        } else {
            1
        };
        let (spent, limit) = (spent / unit, limit / unit);
        match self.of {
            LimitScope::Run => StopReason::BudgetSpent { budget, spent, limit },
            LimitScope::Ticket => StopReason::SharedBudgetSpent(SharedBudget {
                of: BudgetScope::Ticket,
                name: state.run.ticket().to_string(),
                period: None,
                budget,
                spent,
                limit,
                needs,
                resets: None,
            }),
        }
    }
}

/// Returns the hint about limits that the model lacks; each part appears once.
pub(super) fn budget_hint(state: &PlannerRunState, dialog: &DialogSpec) -> Option<ModelHint> {
    let turns = match dialog.phase {
        RunPhase::Work => dialog.turns(state),
        RunPhase::Intake
        | RunPhase::Plan
        | RunPhase::Review
        | RunPhase::Triage
        | RunPhase::Answer
        | RunPhase::Discuss
        | RunPhase::PullRequest => return None,
    };
    // A hint follows the results of a turn.
    turns.last()?;
    let limit = turn_limit(state, state.request()?);
    let done = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    let parts = limit_measures(state, dialog.phase).map(|measure| spent_percent(measure.spent, measure.own));
    let most = parts.chain([spent_percent(done.into(), limit.into())]).max()?;
    let used = HINTED_AT.into_iter().find(|part| u64::from(*part) <= most)?;
    (reported_percent(turns) < used).then(|| ModelHint::Budget {
        used,
        turns: limit.saturating_sub(done),
        left: remaining_limits(state, dialog.phase),
    })
}

fn spent_percent(spent: u64, limit: u64) -> u64 {
    let part = u128::from(spent) * 100 / u128::from(limit.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// Returns the largest percentage that these turns reported to the model; 0: none.
fn reported_percent(turns: &[DialogTurn]) -> u8 {
    let hints = turns.iter().flat_map(|turn| &turn.hints);
    let parts = hints.filter_map(|hint| match hint {
        ModelHint::Budget { used, .. } => Some(*used),
        ModelHint::Repeating(_) => None,
    });
    parts.max().unwrap_or(0)
}

fn remaining_limits(state: &PlannerRunState, phase: RunPhase) -> RunLimits {
    let mut left = RunLimits::default();
    for LimitMeasure {
        budget, spent, own, ..
    } in limit_measures(state, phase)
    {
        let rest = own.saturating_sub(spent);
        match budget {
            BudgetUnit::Cost => {
                left.cost_usd = smaller_limit(left.cost_usd, Some(Dollars::from_micros(rest)))
            }
            BudgetUnit::Tokens => left.tokens = smaller_limit(left.tokens, Some(rest)),
            BudgetUnit::Minutes => left.minutes = smaller_limit(left.minutes, Some(rest / MINUTE_MS)),
        }
    }
    left
}

/// Returns true if a call of the last turn is too late: the model knew that only the tools that end the
/// work are accepted.
pub(crate) fn is_late_call(state: &PlannerRunState, dialog: &DialogSpec, call: &TurnCall) -> bool {
    let is_exit = dialog
        .tools
        .iter()
        .any(|tool| tool.ends_work && tool.name == call.call.name);
    !is_exit && has_exits_only(state, dialog.phase)
}

/// Returns true if the model knew before its last turn that only the tools that end the work are accepted.
pub(crate) fn has_exits_only(state: &PlannerRunState, phase: RunPhase) -> bool {
    let last = state
        .conversation()
        .dialogs()
        .iter()
        .rev()
        .find(|dialog| dialog.phase == phase);
    let turns = last.map_or(&[][..], |dialog| &dialog.turns);
    reported_percent(&turns[..turns.len().saturating_sub(1)]) >= EXITS_ONLY_AT
}
