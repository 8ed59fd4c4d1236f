//! The `journeyman` command: everything on one machine, and a client of the API.

mod access;
pub mod args;
mod backing;
mod commands;
pub mod credentials;
mod derived;
mod files;
mod hidden;
mod home;
pub mod local;
mod output;
mod pager;
pub mod timeline;

pub use commands::{Arguments, run};
