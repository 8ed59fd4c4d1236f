//! `[planner.budget]` and `[planner.budget_ceiling]`: spending limits of runs, tickets, repositories and
//! organizations. 0 means no limit.

use std::collections::BTreeMap;

use domain::{BudgetPeriod, Dollars, ModelRole, RunLimits, SpendAmount, TicketLimits};
use serde::Deserialize;

use super::PlannerSettings;
use crate::run::BudgetAllowance;

/// `[planner.budget]`: limits where the repository's rules set none.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetSettings {
    /// Cost of models in US dollars.
    #[serde(default)]
    pub cost_usd: Dollars,
    /// Tokens that models read and write.
    #[serde(default = "default_tokens")]
    pub tokens: u64,
    /// Minutes in which models, tools and checks run.
    #[serde(default = "default_minutes")]
    pub minutes: u64,
    /// Limit of all runs of one ticket together.
    #[serde(default)]
    pub ticket: AmountSettings,
    /// Limits for each repository.
    #[serde(default)]
    pub repository: PeriodSettings,
    /// Limits for all repositories of one owner together.
    #[serde(default)]
    pub organization: PeriodSettings,
}

/// Limits in dollars and tokens.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AmountSettings {
    /// Cost of models in US dollars.
    pub cost_usd: Dollars,
    /// Tokens that models read and write.
    pub tokens: u64,
}

/// Limits for each day and each month, in UTC.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeriodSettings {
    /// Limit of a day, from midnight to midnight.
    pub day: AmountSettings,
    /// Limit of a month, from its first day to the next.
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

/// `[planner.budget_ceiling]`: limits that no rule can raise.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CeilingSettings {
    /// Cost of models in US dollars.
    pub cost_usd: Dollars,
    /// Tokens that models read and write.
    pub tokens: u64,
    /// Minutes in which models, tools and checks run.
    pub minutes: u64,
    /// Limit of all runs of one ticket together.
    pub ticket: AmountSettings,
}

fn default_tokens() -> u64 {
    10_000_000
}

fn default_minutes() -> u64 {
    240
}

impl PlannerSettings {
    /// Converts the settings to the allowance of runs.
    ///
    /// `by_role` has the conversation limits that apply where `planner.context_tokens` is absent.
    pub(crate) fn allowance(&self, by_role: BTreeMap<ModelRole, u64>) -> BudgetAllowance {
        let (usual, most) = (&self.budget, &self.budget_ceiling);
        BudgetAllowance {
            usual: RunLimits {
                // 0 means no own limit, so only a refusal of the provider shortens the conversation.
                context: self.context_tokens.filter(|tokens| *tokens > 0),
                context_by_role: match self.context_tokens {
                    Some(_) => BTreeMap::new(),
                    None => by_role,
                },
                ..run_limits_from(usual.cost_usd, usual.tokens, usual.minutes)
            },
            most: run_limits_from(most.cost_usd, most.tokens, most.minutes),
            usual_ticket: usual.ticket.limits(),
            most_ticket: most.ticket.limits(),
        }
    }
}

impl AmountSettings {
    fn limits(self) -> TicketLimits {
        let limits = run_limits_from(self.cost_usd, self.tokens, 0);
        TicketLimits {
            cost_usd: limits.cost_usd,
            tokens: limits.tokens,
            ..TicketLimits::default()
        }
    }

    /// Returns the limit of an account; 0 means no limit.
    pub(crate) const fn amount(self) -> SpendAmount {
        SpendAmount {
            cost_micros: self.cost_usd.micros(),
            tokens: self.tokens,
        }
    }
}

impl PeriodSettings {
    /// Returns the limit of a period.
    pub(crate) const fn of(self, period: BudgetPeriod) -> SpendAmount {
        match period {
            BudgetPeriod::Day => self.day.amount(),
            BudgetPeriod::Month => self.month.amount(),
        }
    }
}

fn run_limits_from(cost_usd: Dollars, tokens: u64, minutes: u64) -> RunLimits {
    let set = |amount: u64| Some(amount).filter(|amount| *amount > 0);
    RunLimits {
        cost_usd: set(cost_usd.micros()).map(Dollars::from_micros),
        tokens: set(tokens),
        minutes: set(minutes),
        ..RunLimits::default()
    }
}
