//! The `journeyman` command: all services on one machine, and a client of the API.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod access;
#[cfg(feature = "local")]
pub mod account_settings;
pub mod args;
#[cfg(feature = "local")]
mod backing_servers;
mod commands;
#[cfg(feature = "local")]
pub mod credentials;
#[cfg(feature = "demo")]
pub mod demo;
#[cfg(feature = "local")]
mod derived_settings;
mod exit_codes;
#[cfg(feature = "local")]
pub mod local;
mod pager;
pub mod secrets;
#[cfg(feature = "local")]
mod terminal_line;
pub mod timeline;
mod user_files;

pub use commands::{Arguments, parse_command_line, run_command_line};
