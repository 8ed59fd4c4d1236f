//! The commands as users run them: real binaries, output, exit codes and leftovers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that fails fails its test"
)]

mod action;
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
mod recordings;
mod replay;
mod services;
mod setup;
mod setup_data_center;
mod setup_kubernetes;
mod setup_repo;
mod stage;
mod telemetry;
mod terminal;
mod tickets;
mod up;
mod watch;
