//! The reporter: the only service that writes to GitHub, Jira and local folders.
//!
//! It performs each effect once, however often the effect is requested. It serves repositories to executors through
//! the git gate.

mod board;
mod bot_orders;
mod config;
mod direct;
mod draft;
mod effects;
mod folders;
mod gate;
mod inspect;
#[cfg(test)]
mod interleave_tests;
mod ledger;
mod made;
mod message;
mod mirror;
mod moves;
mod outgoing;
mod owners;
mod perform;
mod policy;
mod reports;
mod retry;
mod rounds;
mod sanitize;
mod scan;
mod serve;
#[cfg(test)]
mod stored_tests;
mod telemetry;
mod tell;
mod trouble;
mod upkeep;
mod worker;

pub use config::{Config, FolderSettings, RetentionSettings, Settings};
pub use direct::{Direct, DirectSettings, Ground, only_looked, without_credentials};
pub use inspect::run_inspector;
pub use serve::serve;
