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
/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";
// Maximum number of reservations of a process. The oldest is released for a new one.
const MOST_RESERVED: usize = 256;

// Reservations: UDP sockets with the same port numbers. Another process or call cannot bind them, and no
// program here uses these UDP ports.
static RESERVED: Mutex<VecDeque<UdpSocket>> = Mutex::new(VecDeque::new());

/// Returns a free loopback port, to start a server there. No other call in any process gets it until this process
/// ends or reserves 256 more.
///
/// # Errors
/// When 1,000 random ports are all in use, or `/proc/net/tcp` cannot be read.
pub fn free_port() -> io::Result<u16> {
    // No TCP socket tries the port: a process that is forked at this moment would hold a copy of it until its `exec`.
    reserve_port(|port| match has_listener(port) {
        Ok(true) => None,
        checked => Some(checked.map(|_| port)),
    })?
}

/// Binds a free loopback port that stays reserved as [`free_port`] describes, also after the listener is closed.
///
/// # Errors
/// When 1,000 random ports are all in use.
pub fn bind_free_port() -> io::Result<TcpListener> {
    reserve_port(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
}

/// Returns true while a TCP socket of this host listens on the port, also in a process that only inherited it; false on
/// systems without `/proc/net/tcp`.
///
/// # Errors
/// When `/proc/net/tcp` cannot be read.
pub fn has_listener(port: u16) -> io::Result<bool> {
    let sockets = match std::fs::read_to_string("/proc/net/tcp") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        read => read?,
    };
    // The columns of the kernel's `proc_net_tcp`: number, local address such as `0100007F:2EE0`, remote address, state.
    let port = format!(":{port:04X}");
    let is_listener = |line: &str| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let is_here = columns.next().is_some_and(|address| address.ends_with(&port));
        is_here && columns.nth(1) == Some(LISTENING)
    };
    Ok(sockets.lines().any(is_listener))
}

/// Reserves a random port that `take` accepts.
fn reserve_port<T>(take: impl Fn(u16) -> Option<T>) -> io::Result<T> {
    let mut tries = std::iter::repeat_with(|| fastrand::u16(PORTS)).take(TRIES);
    let (taken, reservation) = tries
        .find_map(|port| {
            let reservation = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
            Some((take(port)?, reservation))
        })
        .ok_or_else(|| io::Error::new(io::ErrorKind::AddrInUse, "no free port"))?;
    let mut reserved = RESERVED.lock();
    if reserved.len() == MOST_RESERVED {
        reserved.pop_front();
    }
    reserved.push_back(reservation);
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, time::Duration};

    use super::*;

    #[test]
    fn port_is_reserved_for_one_caller() {
        let listener = bind_free_port().unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(PORTS.contains(&port) && has_listener(port).unwrap());
        drop(listener);
        let reserved = UdpSocket::bind((Ipv4Addr::LOCALHOST, port));
        assert!(reserved.is_err(), "reserved without a listener");
        let ports: HashSet<u16> = (0..100).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 100);
        for _ in 0..MOST_RESERVED {
            free_port().unwrap();
        }
        assert_eq!(RESERVED.lock().len(), MOST_RESERVED);
    }

    #[tokio::test]
    async fn port_stays_used_by_inherited_socket() {
        let listener = bind_free_port().unwrap();
        let port = listener.local_addr().unwrap().port();
        let inherited = listener.try_clone().unwrap();
        drop(listener);
        assert!(has_listener(port).unwrap());
        drop(inherited);
        // A process that another test forks meanwhile may hold a copy for a moment.
        let is_free = async {
            while has_listener(port).unwrap() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), is_free)
            .await
            .unwrap();
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }
}
