//! The `journeyman` command: all services on one machine, and a client of the API.

mod access;
#[cfg(feature = "local")]
pub mod account_settings;
pub mod args;
#[cfg(feature = "local")]
mod backing;
mod commands;
#[cfg(feature = "local")]
pub mod credentials;
#[cfg(feature = "local")]
mod derived;
mod files;
#[cfg(feature = "local")]
mod hidden;
mod home;
#[cfg(feature = "local")]
pub mod local;
mod output;
mod pager;
pub mod secrets;
pub mod timeline;

pub use commands::{Arguments, run};
