//! Per-ticket leases, shared budgets and shared limits of outside services, in Redis. The only crate that
//! depends on redis.
//!
//! The lease saves double work; fences and compare-and-set elsewhere make it correct. So work continues
//! without Redis, and work without a lease gets one when Redis answers again.

mod acl;
mod budgets;
mod connection;
mod error;
#[cfg(test)]
#[path = "../tests/main.rs"]
mod integration_tests;
mod lease;
mod leases;
mod limits;
mod server;
mod settings;

pub use acl::{RedisUser, render_acl};
pub use budgets::{
    BudgetAccount, BudgetCall, BudgetRebuild, BudgetRefusal, RedisBudgets, SharedBudgetReservation,
};
pub use error::Error;
pub use lease::{LeaseLost, RENEWALS, TicketLease};
pub use leases::TicketLeases;
pub use limits::SharedLimits;
pub use settings::Settings;
