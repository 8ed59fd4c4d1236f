//! The console: pages for people about tickets, runs and decisions.
//!
//! It is a client of `/v1`. Whoever logs in brings a token, or a provider says who they are and the console's token speaks for
//! them; either way every call is theirs, and so the journal names who decided. A page is a pure function of what the API
//! answered.

mod assets;
mod config;
mod guard;
mod layout;
mod login_seal;
mod oidc;
mod pages;
mod person;
mod problem;
mod serve;
mod session;
mod standing;
mod timeline;
mod words;

pub use config::{Config, Oidc, Settings};
pub use serve::serve;
