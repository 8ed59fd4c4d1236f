//! Way of a process to the outside: the section `[proxy]`, the decision for each URL, and the additional
//! certificate authorities. The rule for addresses that others name is here, too.
//!
//! A process has one way. [`install_proxy`] sets it at the start, and every client that is built later takes it.

mod address_rule;
mod authorities;
mod bypass;
#[cfg(feature = "client")]
mod client;
mod route;
mod settings;

pub use address_rule::AddressRule;
pub use bypass::{BypassList, InvalidEntry};
#[cfg(feature = "client")]
pub use client::configure_client;
pub use route::{
    DirectReason, OutboundProxy, OutboundRoute, ProxyServer, find_installed_proxy, install_proxy,
};
pub use settings::{ProxyError, Settings};
