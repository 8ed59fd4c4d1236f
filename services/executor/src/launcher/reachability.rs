//! Tests which addresses a command could reach, from the network in which commands run.

use std::{
    io::{self, Write},
    net::SocketAddr,
    os::fd::OwnedFd,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt::socket_error},
};

/// Duration of one wait for all attempts. After 30 waits without an answer, 3 seconds, the test ends: a
/// policy that drops packets never answers.
const WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
const MAX_WAITS: u32 = 30;
/// Largest number of simultaneous connection attempts.
const MAX_ATTEMPTS: usize = 256;

/// Connects to all addresses, and writes each one that answered as a line.
pub(crate) fn test_addresses(addresses: &[String], mut output: impl Write) -> io::Result<()> {
    let addresses = addresses.iter().filter_map(|address| address.parse().ok());
    let addresses: Vec<SocketAddr> = addresses.collect();
    for some in addresses.chunks(MAX_ATTEMPTS) {
        for address in connected_addresses(some) {
            writeln!(output, "{address}")?;
        }
    }
    Ok(())
}

fn connected_addresses(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    let mut waiting = Vec::new();
    for address in addresses {
        match start_connection(address) {
            Ok(Some(socket)) => waiting.push((*address, socket)),
            Ok(None) => found.push(*address),
            // The address refused the connection at once, or the network has no route to it.
            Err(_) => {}
        }
    }
    let mut waits = 0;
    while !waiting.is_empty() && waits < MAX_WAITS {
        let mut fds: Vec<PollFd<'_>> = waiting
            .iter()
            .map(|(_, socket)| PollFd::new(socket, PollFlags::OUT))
            .collect();
        if !poll(&mut fds, Some(&WAIT)).is_ok_and(|count| count > 0) {
            waits += 1;
            continue;
        }
        let decided: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut decided = decided.into_iter();
        waiting.retain(|(address, socket)| {
            let is_decided = decided.next().unwrap_or(true);
            // A socket becomes writable when its connection succeeds or fails; `SO_ERROR` shows which
            // (connect(2)).
            if is_decided && matches!(socket_error(socket), Ok(Ok(()))) {
                found.push(*address);
            }
            !is_decided
        });
    }
    found
}

/// Starts a connection. Returns the pending socket, or `None` when the connection succeeded at once.
fn start_connection(address: &SocketAddr) -> io::Result<Option<OwnedFd>> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, address) {
        Ok(()) => Ok(None),
        Err(Errno::INPROGRESS) => Ok(Some(socket)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn listening_address_is_reached_refusing_not() {
        let open = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = open.local_addr().unwrap();
        let mut said = Vec::new();
        // No program listens on port 1.
        let addresses = [open.to_string(), "127.0.0.1:1".to_owned(), "nonsense".to_owned()];
        test_addresses(&addresses, &mut said).unwrap();
        assert_eq!(String::from_utf8(said).unwrap(), format!("{open}\n"));
    }
}
