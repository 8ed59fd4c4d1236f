//! Ports that stay ours over a crash: below those that the system hands out for connections.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::Context;

const FIRST: u32 = 12_000;
const COUNT: u32 = 18_000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Five addresses on which nobody listens.
///
/// # Errors
/// When a thousand ports in a row are taken.
pub(crate) fn five() -> anyhow::Result<[SocketAddr; 5]> {
    let mut found = Vec::new();
    for _ in 0..1_000 {
        // Matrices that run side by side begin at different places.
        let step = std::process::id()
            .wrapping_mul(641)
            .wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + step % COUNT).context("port")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            found.push(address);
        }
        if found.len() == 5 {
            break;
        }
    }
    found.try_into().ok().context("no five free ports")
}
