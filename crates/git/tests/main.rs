//! Git over real repositories and servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test panics on an unexpected result"
)]

#[path = "support/cutting_proxy.rs"]
mod cutting_proxy;
#[path = "support/http_backend.rs"]
mod http_backend;
#[path = "support/remote_mirror.rs"]
mod remote_mirror;

mod folder;
mod git;
mod memory;
mod remotes;
mod steps;
