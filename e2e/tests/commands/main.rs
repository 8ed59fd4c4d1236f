//! The commands as users run them: real binaries, output, exit codes and leftovers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that fails fails its test"
)]

mod action;
mod checkout;
mod compose;
mod demo;
mod dispatch;
mod doctor;
mod eval;
mod example;
mod folder;
mod forms;
mod pages;
mod people;
mod pr;
mod process_ticket;
mod program;
mod proxy;
mod recordings;
mod replay;
mod services;
mod setup;
mod setup_criteria;
mod setup_data_center;
mod setup_kubernetes;
mod setup_repo;
mod stage;
mod telemetry;
mod terminal;
mod tickets;
mod up;
mod watch;

use std::path::{Path, PathBuf};

use serde_json::Value;

fn find_repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Reads a YAML file by its path below the root of the repository.
fn read_yaml(path: &str) -> Value {
    let text = std::fs::read_to_string(find_repository_root().join(path)).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}
