//! Budgets: limits of a run and beyond it, the amounts that replies of models cost, the fold that sums them,
//! and the effort of earlier runs.

pub(crate) mod amounts;
pub(crate) mod history;
pub(crate) mod run_limits;
pub(crate) mod shared_budget;
pub(crate) mod spend;

#[cfg(test)]
mod tests;
