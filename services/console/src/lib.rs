//! The console: pages for people about tickets, runs and decisions.
//!
//! It is a client of `/v1` and holds no token of its own. Whoever logs in brings one, every call is made with it, and so the
//! journal names who decided. A page is a pure function of what the API answered.

mod assets;
mod config;
mod guard;
mod layout;
mod pages;
mod person;
mod problem;
mod serve;
mod session;
mod timeline;
mod words;

pub use config::{Config, InvalidUrl};
pub use serve::serve;
