//! Ports that stay free while their owner is down.

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    ops::Range,
    sync::{Mutex, PoisonError},
};

use anyhow::Context;

/// Below those that the system gives to outgoing connections.
const PORTS: Range<u16> = 12_000..30_000;
const TRIES: usize = 1_000;
/// Reservations that one process keeps; the oldest is given up for a new one.
const MOST_RESERVED: usize = 256;

/// The same numbers on UDP, where nothing else listens: a second process, or a second call, cannot bind them.
static RESERVED: Mutex<VecDeque<UdpSocket>> = Mutex::new(VecDeque::new());

/// A free loopback port that no other call gets, from this process or another, until it has ended or has asked for 256 more.
///
/// # Errors
/// When none of many is free.
pub fn free_port() -> anyhow::Result<u16> {
    let mut tries = std::iter::repeat_with(|| fastrand::u16(PORTS)).take(TRIES);
    let (port, reservation) = tries.find_map(reserve).context("no free port")?;
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    if reserved.len() == MOST_RESERVED {
        reserved.pop_front();
    }
    reserved.push_back(reservation);
    Ok(port)
}

fn reserve(port: u16) -> Option<(u16, UdpSocket)> {
    let reservation = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    Some((port, reservation))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn port_is_reserved_for_one_caller() {
        let port = free_port().unwrap();
        assert!(PORTS.contains(&port));
        assert!(reserve(port).is_none());
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let ports: HashSet<u16> = (0..100).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 100);
        for _ in 0..MOST_RESERVED {
            free_port().unwrap();
        }
        assert_eq!(RESERVED.lock().unwrap().len(), MOST_RESERVED);
    }
}
