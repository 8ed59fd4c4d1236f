//! Executor service: holds workspaces and runs tools in them, for planners with a grant. It holds no secret
//! and has no access to queue, leases, trackers or forges.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod app;
mod base_results;
mod checks;
mod cleanup;
mod command_line;
mod config;
mod content_gate;
mod inspection;
mod integrity;
mod lfs_contents;
mod mcp_command;
mod mirror;
mod parser;
mod pattern;
mod peer_address;
mod retrieval;
mod sandbox;
mod service;
mod setup;
mod shared_work;
mod store;
mod telemetry;
mod test_files;
mod tools;
mod workspace;

use std::path::PathBuf;

pub use app::ExecutorApp;
pub use checks::{
    FolderCheckResult, FolderCheckRunner, SETUP_FOLDERS, checks_in, is_setup_source, may_name_checks,
    propose_setup,
};
pub use command_line::run_command_line;
pub use config::{Config, ExecutorSettings};
pub use parser::run_parser;
pub use sandbox::{CommandLimits, ConfinementMechanism};
pub use tools::{EditSize, measure_edits};

fn absolute_paths(paths: &[PathBuf]) -> std::io::Result<Vec<PathBuf>> {
    paths.iter().map(std::path::absolute).collect()
}
