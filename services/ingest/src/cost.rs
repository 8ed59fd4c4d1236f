//! Cost of the runs of a ticket, summed over their journals.

use domain::{Dollars, Fact, RunCost, RunId, SpendAmount, TicketCost};

// The status comment lists at most this many runs; earlier ones count in the total only.
const MOST_RUNS: usize = 20;

/// Sum over the journals of a ticket.
#[derive(Debug, Default)]
pub(crate) struct TicketCostSum {
    runs: Vec<RunCost>,
    total: SpendAmount,
    is_unpriced: bool,
}

impl TicketCostSum {
    /// True for a fact that the sum needs: the start of a run, or an amount spent.
    pub(crate) fn reads(fact: &Fact) -> bool {
        matches!(fact, Fact::RunStarted { .. }) || fact.taken().is_some()
    }

    /// Adds a run. A run without any model tokens is omitted from the list.
    pub(crate) fn add<'a>(&mut self, run: RunId, facts: impl Iterator<Item = &'a Fact>) {
        let (mut job, mut taken) = (None, SpendAmount::default());
        for fact in facts {
            if let Fact::RunStarted { trigger, .. } = fact {
                job = trigger.reason.job();
            }
            if let Fact::ModelReplied { reply, .. } | Fact::Summarized { reply, .. } = fact {
                // One reply without a known price makes the whole sum incomplete.
                self.is_unpriced |= reply.cost_micros.is_none();
            }
            taken = fact.taken().map_or(taken, |amount| taken.plus(amount));
        }
        if let Some(job) = job.filter(|_| taken.tokens > 0) {
            self.total = self.total.plus(taken);
            self.runs.push(RunCost {
                run,
                job,
                cost_usd: Dollars::from_micros(taken.cost_micros),
                tokens: taken.tokens,
            });
        }
    }

    pub(crate) fn into_ticket_cost(mut self) -> TicketCost {
        let earlier = self.runs.len().saturating_sub(MOST_RUNS);
        self.runs.drain(..earlier);
        TicketCost {
            runs: self.runs,
            cost_usd: Dollars::from_micros(self.total.cost_micros),
            tokens: self.total.tokens,
            is_priced: !self.is_unpriced,
        }
    }
}
