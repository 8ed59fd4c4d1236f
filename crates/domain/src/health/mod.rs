//! Health of a pull request: one observation, and one pure decision about what keeps it from being merged.

pub(crate) mod assessment;
pub(crate) mod check_verdict;
pub(crate) mod memory;
pub(crate) mod rules;
pub(crate) mod snapshot;
pub(crate) mod state;

#[cfg(test)]
mod tests;
