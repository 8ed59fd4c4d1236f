//! The per-ticket lease, the shared budgets and the shared limits of services outside, in Redis. The only crate that names
//! redis.
//!
//! The lease saves double work; fences and compare-and-set elsewhere make it correct. So work goes on without Redis, and
//! what was begun without a lease gets one when Redis answers again.

mod acl;
mod budgets;
mod connection;
mod error;
mod lease;
mod leases;
mod limits;
mod outage;
mod server;
mod settings;

pub use acl::{User, acl};
pub use budgets::{Account, Budgets, Call, Rebuild, Refusal, Reserved};
pub use error::Error;
pub use lease::{Lease, Lost, RENEWALS};
pub use leases::Leases;
pub use limits::Limits;
pub use settings::Settings;
