//! The console: web pages about tickets, runs and decisions.
//!
//! The console is a client of `/v1`. A person logs in with a token of the API, or at a provider; then the console's
//! token speaks for them. Either way the API knows the person of each call, so the journal names who decided. A page
//! is a pure function of the API's responses.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod app;
mod assets;
mod charts;
mod chips;
mod config;
mod difference;
mod guard;
mod highlight;
mod id_token;
mod layout;
mod login_seal;
mod markdown;
mod moments;
mod oidc;
mod pages;
mod person;
mod person_role;
mod problem;
#[cfg(test)]
mod sample_journal;
mod session;
mod stages;
mod timeline;
mod words;

pub use app::ConsoleApp;
pub use config::{Config, OidcSettings, Settings};
