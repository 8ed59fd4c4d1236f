//! Way of this process, which all its clients share.

use std::sync::LazyLock;

use parking_lot::RwLock;

use crate::route::{OutboundProxy, read_variable};

// Before the first call of `install_proxy`, the variables of the environment count, as with other programs.
static INSTALLED: LazyLock<RwLock<OutboundProxy>> =
    LazyLock::new(|| RwLock::new(OutboundProxy::of_environment(read_variable)));

/// Makes a way the one of this process. Clients that exist already keep theirs.
pub fn install_proxy(proxy: OutboundProxy) {
    *INSTALLED.write() = proxy;
}

/// Returns the way of this process.
pub fn find_installed_proxy() -> OutboundProxy {
    INSTALLED.read().clone()
}
