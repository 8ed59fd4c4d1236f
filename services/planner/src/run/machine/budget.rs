//! Spending of a run, its limits, and the hints about them for the model.

use domain::{
    About, Amount, Budget, BudgetOf, Dollars, Entry, Fact, Hint, JobRequest, Phase, Reply, RunLimits,
    SharedBudget, StopReason, TicketLimits, Usage,
};

use super::{Call, DialogSpec, RunState, Turn};

// Percent of the run's limits that the work leaves for the phases after it.
const RESERVED: u64 = 10;
// Percent of a limit at which the model gets a hint about the rest.
const TOLD_AT: [u8; 3] = [95, 80, 50];
// Percent after which only the tools that end the work are accepted.
const EXITS_ONLY_AT: u8 = 95;
const MINUTE_MS: u64 = 60_000;
// More turns do not repair failed checks: the failure is known from the start.
const REPAIR_TURNS: u32 = 30;

/// Spending of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spending {
    pub(crate) tokens: u64,
    pub(crate) cost: u64,
    /// Model that replied although its price is unknown.
    pub(crate) unpriced: Option<String>,
    /// Milliseconds that the run was at work.
    pub(crate) busy_ms: u64,
}

impl Spending {
    pub(super) fn replied(&mut self, reply: &Reply) {
        self.tokens += reply.usage.input_tokens + reply.usage.output_tokens;
        match reply.cost_micros {
            Some(cost) => self.cost += cost,
            None if reply.usage == Usage::default() => {
                self.unpriced = Some(format!("{} (its replies count no tokens)", reply.model));
            }
            None => self.unpriced = Some(reply.model.clone()),
        }
    }
}

impl RunState {
    /// Counts the time up to an entry, unless the run waited for users, a slot or a planner.
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

/// Limits from the planner's settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowance {
    /// Limits of a run where its rules set none.
    pub(crate) usual: RunLimits,
    /// Ceiling of a run's limits, which no rule can raise.
    pub(crate) most: RunLimits,
    /// Both for all runs of a ticket together.
    pub(crate) usual_ticket: TicketLimits,
    pub(crate) most_ticket: TicketLimits,
}

impl Allowance {
    /// Returns the limits of a run.
    pub(crate) fn limits(&self, request: &JobRequest) -> RunLimits {
        let wanted = &request.rules.agent.budget;
        let (usual, most) = (&self.usual, &self.most);
        RunLimits {
            cost_usd: least(wanted.cost_usd.or(usual.cost_usd), most.cost_usd),
            tokens: least(wanted.tokens.or(usual.tokens), most.tokens),
            minutes: least(wanted.minutes.or(usual.minutes), most.minutes),
            context: usual.context,
            context_by_role: usual.context_by_role.clone(),
        }
    }

    /// Returns the limits of a run's ticket without its spending; `None` if it has none.
    pub(crate) fn ticket_limits(&self, request: &JobRequest) -> Option<TicketLimits> {
        let wanted = &request.rules.agent.budget.ticket;
        let (usual, most) = (&self.usual_ticket, &self.most_ticket);
        let limits = TicketLimits {
            cost_usd: least(wanted.cost_usd.or(usual.cost_usd), most.cost_usd),
            tokens: least(wanted.tokens.or(usual.tokens), most.tokens),
            ..TicketLimits::default()
        };
        (limits != TicketLimits::default()).then_some(limits)
    }
}

fn least<T: Ord>(wanted: Option<T>, most: Option<T>) -> Option<T> {
    match (wanted, most) {
        (Some(wanted), Some(most)) => Some(wanted.min(most)),
        (wanted, most) => wanted.or(most),
    }
}

/// Returns the maximum of turns of the work.
pub(crate) fn turn_limit(state: &RunState, request: &JobRequest) -> u32 {
    let turns = request.rules.agent.turns(state.class());
    match request.about {
        About::Checks(_) => turns.min(REPAIR_TURNS),
        About::Ticket
        | About::Review(_)
        | About::Question(_)
        | About::Change(_)
        | About::Discussion(_)
        | About::Rehearsal(_) => turns,
    }
}

/// One limit, in millionths of a dollar, tokens or milliseconds.
struct Measure {
    of: Of,
    budget: Budget,
    spent: u64,
    /// Share of the limit that a conversation may spend.
    own: u64,
    limit: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Run,
    Ticket,
}

fn measures(state: &RunState, phase: Phase) -> impl Iterator<Item = Measure> {
    let limits = state.limits.clone().unwrap_or_default();
    let ticket = state.ticket_limits.unwrap_or_default();
    let spending = &state.spending;
    // Phases up to the work share nine tenths; the phases after it must find a rest.
    let share = match phase {
        Phase::Intake | Phase::Plan | Phase::Work | Phase::Answer | Phase::Discuss => 100 - RESERVED,
        Phase::Review | Phase::Triage | Phase::PullRequest => 100,
    };
    let minutes = limits.minutes.map(|minutes| minutes.saturating_mul(MINUTE_MS));
    let (cost, tokens) = (
        ticket.spent_usd.micros().saturating_add(spending.cost),
        ticket.spent_tokens.saturating_add(spending.tokens),
    );
    let all = [
        (
            Of::Run,
            Budget::Cost,
            spending.cost,
            limits.cost_usd.map(Dollars::micros),
        ),
        (Of::Run, Budget::Tokens, spending.tokens, limits.tokens),
        (Of::Run, Budget::Minutes, spending.busy_ms, minutes),
        (
            Of::Ticket,
            Budget::Cost,
            cost,
            ticket.cost_usd.map(Dollars::micros),
        ),
        (Of::Ticket, Budget::Tokens, tokens, ticket.tokens),
    ];
    all.into_iter().filter_map(move |(of, budget, spent, limit)| {
        let limit = limit?;
        // In 128 bits, because the limit may be near the maximum of u64.
        let own = u128::from(limit) * u128::from(share) / 100;
        let own = u64::try_from(own).unwrap_or(u64::MAX);
        Some(Measure {
            of,
            budget,
            spent,
            own,
            limit,
        })
    })
}

/// Returns the model without a known price that replied, if money is limited for the run or its ticket.
fn unpriced(state: &RunState) -> Option<&String> {
    let limits = state.limits.as_ref()?;
    let ticket = state.ticket_limits.and_then(|ticket| ticket.cost_usd);
    limits.cost_usd.or(ticket).and(state.spending.unpriced.as_ref())
}

/// Returns the reason that a conversation must end: its share is spent, the price is unknown, or a shared
/// budget has no room.
pub(crate) fn spent(state: &RunState, phase: Phase) -> Option<StopReason> {
    if let Some(model) = unpriced(state) {
        let model = model.clone();
        return Some(StopReason::PriceUnknown { model });
    }
    let spent = measures(state, phase).find(|measure| measure.spent >= measure.own);
    spent
        .map(|measure| measure.reason(state, 0))
        .or_else(|| state.refused().cloned())
}

/// Returns the reason that the ticket's budget has no room for a call with this upper bound.
pub(crate) fn no_room(state: &RunState, phase: Phase, most: Amount) -> Option<StopReason> {
    let needs = |budget| match budget {
        Budget::Cost => most.cost_micros,
        Budget::Tokens => most.tokens,
        Budget::Minutes => 0,
    };
    // Only the ticket's measures: limits of the run itself end the work by `spent`, after the call.
    let mut of_ticket = measures(state, phase).filter(|measure| measure.of == Of::Ticket);
    let full = of_ticket.find(|measure| measure.spent.saturating_add(needs(measure.budget)) > measure.own)?;
    Some(full.reason(state, needs(full.budget)))
}

impl Measure {
    fn reason(&self, state: &RunState, needs: u64) -> StopReason {
        let Self {
            budget, spent, limit, ..
        } = *self;
        let unit = if budget == Budget::Minutes { MINUTE_MS } else { 1 };
        let (spent, limit) = (spent / unit, limit / unit);
        match self.of {
            Of::Run => StopReason::BudgetSpent { budget, spent, limit },
            Of::Ticket => StopReason::SharedBudgetSpent(SharedBudget {
                of: BudgetOf::Ticket,
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

impl RunState {
    /// Returns the reason that the last call was not made, unless the budget's period has ended since.
    pub(crate) fn refused(&self) -> Option<&StopReason> {
        let is_over = |reason: &&StopReason| reason.resets().is_some_and(|resets| resets <= self.last_at);
        self.refused.as_ref().filter(|reason| !is_over(reason))
    }
}

/// Returns the hint about limits that the model lacks; each part appears once.
pub(super) fn hint(state: &RunState, dialog: &DialogSpec) -> Option<Hint> {
    let turns = match dialog.phase {
        Phase::Work => state.turns_of(dialog),
        Phase::Intake
        | Phase::Plan
        | Phase::Review
        | Phase::Triage
        | Phase::Answer
        | Phase::Discuss
        | Phase::PullRequest => return None,
    };
    // A hint follows the results of a turn.
    turns.last()?;
    let limit = turn_limit(state, state.request()?);
    let done = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    let parts = measures(state, dialog.phase).map(|measure| percent(measure.spent, measure.own));
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

/// Returns the largest percentage that these turns reported to the model; 0: none.
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
    for Measure {
        budget, spent, own, ..
    } in measures(state, phase)
    {
        let rest = own.saturating_sub(spent);
        match budget {
            Budget::Cost => left.cost_usd = least(left.cost_usd, Some(Dollars::from_micros(rest))),
            Budget::Tokens => left.tokens = least(left.tokens, Some(rest)),
            Budget::Minutes => left.minutes = least(left.minutes, Some(rest / MINUTE_MS)),
        }
    }
    left
}

/// Returns true if a call of the last turn is too late: the model knew that only the tools that end the
/// work are accepted.
pub(crate) fn is_late(state: &RunState, dialog: &DialogSpec, call: &Call) -> bool {
    let is_exit = dialog
        .tools
        .iter()
        .any(|tool| tool.ends_work && tool.name == call.call.name);
    !is_exit && has_exits_only(state, dialog.phase)
}

/// Returns true if the model knew before its last turn that only the tools that end the work are accepted.
pub(crate) fn has_exits_only(state: &RunState, phase: Phase) -> bool {
    let last = state.dialogs.iter().rev().find(|dialog| dialog.phase == phase);
    let turns = last.map_or(&[][..], |dialog| &dialog.turns);
    told(&turns[..turns.len().saturating_sub(1)]) >= EXITS_ONLY_AT
}
