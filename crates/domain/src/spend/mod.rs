//! Spend of models: amounts, the fold that sums them, and the limits beyond one run.

mod amounts;
mod fold;
mod limits;

pub use amounts::{ModelCharge, ModelSpend, RunCost, SpendAmount, SpendSum, TicketCost};
pub use fold::{RunSource, Spend, SpendKey, SpendWindow};
pub use limits::{BudgetPeriod, BudgetScope, SharedBudget, TicketLimits};

#[cfg(test)]
mod tests;
