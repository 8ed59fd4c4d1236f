//! Setup of workspaces: the commands of a repository, their kept results, and prepared checkouts.

pub(crate) mod cache;
mod commands;
mod pool;

pub(crate) use commands::{SetupPlan, run_setup};
pub(crate) use pool::CheckoutPool;
