//! `[planner.budget]` and `[planner.budget_ceiling]`: what a run, a ticket, a repository and an organization may spend. 0 is
//! no limit.

use std::collections::BTreeMap;

use domain::{Amount, Dollars, ModelRole, Period, RunLimits, TicketLimits};
use serde::Deserialize;

use super::PlannerSettings;
use crate::run::Allowance;

/// `[planner.budget]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetSettings {
    /// Dollars for models.
    #[serde(default)]
    pub cost_usd: Dollars,
    /// Tokens that models read and write.
    #[serde(default = "default_tokens")]
    pub tokens: u64,
    /// Minutes in which models, tools and checks run.
    #[serde(default = "default_minutes")]
    pub minutes: u64,
    /// What all runs of one ticket may spend together.
    #[serde(default)]
    pub ticket: AmountSettings,
    /// What may be spent for each repository.
    #[serde(default)]
    pub repository: PeriodSettings,
    /// What may be spent for all repositories of one owner.
    #[serde(default)]
    pub organization: PeriodSettings,
}

/// Dollars and tokens.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AmountSettings {
    /// Dollars for models.
    pub cost_usd: Dollars,
    /// Tokens that models read and write.
    pub tokens: u64,
}

/// The same for each day and each month, UTC.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeriodSettings {
    /// From midnight to midnight.
    pub day: AmountSettings,
    /// From the first of a month to the next.
    pub month: AmountSettings,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self {
            cost_usd: Dollars::default(),
            tokens: default_tokens(),
            minutes: default_minutes(),
            ticket: AmountSettings::default(),
            repository: PeriodSettings::default(),
            organization: PeriodSettings::default(),
        }
    }
}

/// `[planner.budget_ceiling]`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CeilingSettings {
    /// Dollars for models.
    pub cost_usd: Dollars,
    /// Tokens that models read and write.
    pub tokens: u64,
    /// Minutes in which models, tools and checks run.
    pub minutes: u64,
    /// What all runs of one ticket may spend together.
    pub ticket: AmountSettings,
}

fn default_tokens() -> u64 {
    10_000_000
}

fn default_minutes() -> u64 {
    240
}

impl PlannerSettings {
    /// The same for runs.
    ///
    /// `by_role` has the limits of conversations where the settings name none.
    pub(crate) fn allowance(&self, by_role: BTreeMap<ModelRole, u64>) -> Allowance {
        let (usual, most) = (&self.budget, &self.budget_ceiling);
        Allowance {
            usual: RunLimits {
                context: self.context_tokens.filter(|tokens| *tokens > 0),
                context_by_role: match self.context_tokens {
                    Some(_) => BTreeMap::new(),
                    None => by_role,
                },
                ..limits(usual.cost_usd, usual.tokens, usual.minutes)
            },
            most: limits(most.cost_usd, most.tokens, most.minutes),
            usual_ticket: usual.ticket.limits(),
            most_ticket: most.ticket.limits(),
        }
    }
}

impl AmountSettings {
    fn limits(self) -> TicketLimits {
        let limits = limits(self.cost_usd, self.tokens, 0);
        TicketLimits {
            cost_usd: limits.cost_usd,
            tokens: limits.tokens,
            ..TicketLimits::default()
        }
    }

    /// As an account has it: 0 is no limit.
    pub(crate) const fn amount(self) -> Amount {
        Amount {
            cost_micros: self.cost_usd.micros(),
            tokens: self.tokens,
        }
    }
}

impl PeriodSettings {
    /// The limit of a period.
    pub(crate) const fn of(self, period: Period) -> Amount {
        match period {
            Period::Day => self.day.amount(),
            Period::Month => self.month.amount(),
        }
    }
}

fn limits(cost_usd: Dollars, tokens: u64, minutes: u64) -> RunLimits {
    let set = |amount: u64| Some(amount).filter(|amount| *amount > 0);
    RunLimits {
        cost_usd: set(cost_usd.micros()).map(Dollars::from_micros),
        tokens: set(tokens),
        minutes: set(minutes),
        ..RunLimits::default()
    }
}
