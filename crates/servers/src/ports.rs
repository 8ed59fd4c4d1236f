//! Port reservations that outlast their owner's restarts.

use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    ops::Range,
};

use parking_lot::Mutex;

// Range below the system's ephemeral ports: no outgoing connection and no listener on port 0 takes one of these
// while its owner restarts.
const PORTS: Range<u16> = 12_000..30_000;
const TRIES: usize = 1_000;
// Maximum number of reservations of a process. The oldest is released for a new one.
const MOST_RESERVED: usize = 256;

// Reservations: UDP sockets with the same port numbers. Another process or call cannot bind them, and no
// program here uses these UDP ports.
static RESERVED: Mutex<VecDeque<UdpSocket>> = Mutex::new(VecDeque::new());

/// Returns a free loopback port, to start a server there. No other call in any process gets it until this process
/// ends or reserves 256 more.
///
/// # Errors
/// When 1,000 random ports are all in use.
pub fn free_port() -> io::Result<u16> {
    Ok(bind_free_port()?.local_addr()?.port())
}

/// Binds a free loopback port that stays reserved as [`free_port`] describes, also after the listener is closed.
///
/// # Errors
/// When 1,000 random ports are all in use.
pub fn bind_free_port() -> io::Result<TcpListener> {
    let mut tries = std::iter::repeat_with(|| fastrand::u16(PORTS)).take(TRIES);
    let (listener, reservation) = tries
        .find_map(reserve_port)
        .ok_or_else(|| io::Error::new(io::ErrorKind::AddrInUse, "no free port"))?;
    let mut reserved = RESERVED.lock();
    if reserved.len() == MOST_RESERVED {
        reserved.pop_front();
    }
    reserved.push_back(reservation);
    Ok(listener)
}

fn reserve_port(port: u16) -> Option<(TcpListener, UdpSocket)> {
    let reservation = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    Some((listener, reservation))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn port_is_reserved_for_one_caller() {
        let listener = bind_free_port().unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(PORTS.contains(&port));
        assert!(reserve_port(port).is_none());
        drop(listener);
        assert!(reserve_port(port).is_none(), "reserved without a listener");
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let ports: HashSet<u16> = (0..100).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 100);
        for _ in 0..MOST_RESERVED {
            free_port().unwrap();
        }
        assert_eq!(RESERVED.lock().len(), MOST_RESERVED);
    }
}
