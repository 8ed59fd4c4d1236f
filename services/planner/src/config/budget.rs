//! `[planner.budget]` and `[planner.budget_ceiling]`: what one run may spend. 0 is no limit.

use domain::{Dollars, RunLimits};
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
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self {
            cost_usd: Dollars::default(),
            tokens: default_tokens(),
            minutes: default_minutes(),
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
}

fn default_tokens() -> u64 {
    10_000_000
}

fn default_minutes() -> u64 {
    240
}

impl PlannerSettings {
    /// The same for runs.
    pub(crate) fn allowance(&self) -> Allowance {
        let (usual, most) = (&self.budget, &self.budget_ceiling);
        Allowance {
            usual: RunLimits {
                context: Some(self.context_tokens).filter(|tokens| *tokens > 0),
                ..limits(usual.cost_usd, usual.tokens, usual.minutes)
            },
            most: limits(most.cost_usd, most.tokens, most.minutes),
        }
    }
}

fn limits(cost_usd: Dollars, tokens: u64, minutes: u64) -> RunLimits {
    let set = |amount: u64| Some(amount).filter(|amount| *amount > 0);
    RunLimits {
        cost_usd: set(cost_usd.micros()).map(Dollars::from_micros),
        tokens: set(tokens),
        minutes: set(minutes),
        context: None,
    }
}
