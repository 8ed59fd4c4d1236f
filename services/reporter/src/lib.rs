//! The reporter: the only service that writes to GitHub, Jira and local folders.
//!
//! It performs each effect once, however often the effect is requested. It serves repositories to executors through
//! the git gate.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod app;
mod board;
mod bot_orders;
mod cleared_text;
mod comment_place;
mod config;
mod effect_cycle;
mod effect_error;
mod effect_row;
mod effects;
mod folders;
mod gate;
mod inspect;
#[cfg(test)]
mod interleave_tests;
mod large_files;
mod ledger;
mod message;
mod mirror;
mod notification;
mod owners;
mod performer;
mod policy;
mod pull_request_command;
mod push_rules;
mod receipt;
mod refused_notice;
mod reports;
mod retry;
mod rounds;
mod sanitize;
mod scan;
mod signing;
#[cfg(test)]
mod stored_tests;
mod stream_maintenance;
mod telemetry;
mod worker;

pub use app::ReporterApp;
pub use config::{Config, FolderSettings, RetentionSettings, Settings};
pub use inspect::run_inspector;
pub use large_files::LfsSettings;
pub use pull_request_command::{PullRequestOpener, PullRequestResult, PullRequestSettings, complete_answer};
pub use signing::SigningSettings;
