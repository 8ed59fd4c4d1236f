//! Connection table with per-listener and per-address limits and eviction.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{ListenerLimits, watch::ConnectionWatch};

// Interval at which a full table is checked again: a connection becomes evictable without a notification.
const AGAIN: Duration = Duration::from_millis(50);

/// Limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReachedLimit {
    Address,
    Listener,
}

impl ReachedLimit {
    /// Name of the limit for the log.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Address => "of its address",
            Self::Listener => "of the listener",
        }
    }
}

/// Open connections of a listener. Cheap to clone.
#[derive(Clone)]
pub(super) struct ConnectionTable {
    places: Arc<Mutex<OpenConnections>>,
    freed: Arc<Notify>,
    connections: usize,
    per_address: usize,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    taken: HashMap<u64, ConnectionEntry>,
}

struct ConnectionEntry {
    network: IpAddr,
    watch: Arc<ConnectionWatch>,
    evicted: CancellationToken,
}

/// Place of one connection, released on drop.
pub(super) struct ConnectionPermit {
    table: ConnectionTable,
    id: u64,
    pub(super) watch: Arc<ConnectionWatch>,
    /// Cancelled when another connection needs the place.
    pub(super) evicted: CancellationToken,
    /// Limit for which a waiting connection was closed to make room.
    pub(super) displaced: Option<ReachedLimit>,
}

impl ConnectionTable {
    pub(super) fn new(connections: usize, per_address: usize) -> Self {
        Self {
            places: Arc::default(),
            freed: Arc::default(),
            connections,
            per_address,
        }
    }

    /// Finds a place for a new connection. At a limit, it evicts a connection that waits for its peer, see
    /// [`ConnectionWatch::waits`].
    ///
    /// # Errors
    /// The limit, if no connection waits for its peer.
    pub(super) fn admit(&self, peer: IpAddr) -> Result<ConnectionPermit, ReachedLimit> {
        let network = find_peer_network(peer);
        let mut places = self.places.lock();
        let of_network = |place: &ConnectionEntry| place.network == network;
        let mut displaced = None;
        // First the limit of the address: an address that reached it must not evict connections of
        // others.
        if places.taken.values().filter(|place| of_network(place)).count() >= self.per_address {
            places.evict(of_network).ok_or(ReachedLimit::Address)?;
            displaced = Some(ReachedLimit::Address);
        }
        if places.taken.len() >= self.connections {
            places.evict(|_| true).ok_or(ReachedLimit::Listener)?;
            displaced = Some(ReachedLimit::Listener);
        }
        let (watch, evicted) = (Arc::new(ConnectionWatch::new()), CancellationToken::new());
        let id = places.next;
        places.next += 1;
        let place = ConnectionEntry {
            network,
            watch: Arc::clone(&watch),
            evicted: evicted.clone(),
        };
        places.taken.insert(id, place);
        drop(places);
        Ok(ConnectionPermit {
            table: self.clone(),
            id,
            watch,
            evicted,
            displaced,
        })
    }

    /// Waits until a place may be free, at most 50 ms.
    pub(super) async fn change(&self) {
        // A connection may begin to wait for its peer, which causes no notification.
        let _ = tokio::time::timeout(AGAIN, self.freed.notified()).await;
    }
}

impl OpenConnections {
    fn evict(&mut self, may_go: impl Fn(&ConnectionEntry) -> bool) -> Option<()> {
        let waiting = self.taken.iter().filter(|(_, place)| may_go(place));
        let waiting = waiting.filter_map(|(id, place)| Some((place.watch.waits()?, *id)));
        let (_, id) = waiting.min()?;
        // The place is free at once, so the new connection does not wait for the end of the evicted one.
        self.taken.remove(&id)?.evicted.cancel();
        Some(())
    }
}

impl ConnectionPermit {
    /// Waits until the peer exceeds a time limit or another connection needs the place, and returns the reason.
    pub(super) async fn interrupted(&self, limits: &ListenerLimits) -> &'static str {
        tokio::select! {
            why = self.watch.overdue(limits) => why,
            () = self.evicted.cancelled() => "its place was needed",
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        // An evicted connection is no longer in the table, and its id is never used again.
        self.table.places.lock().taken.remove(&self.id);
        self.table.freed.notify_one();
    }
}

/// Unit of the per-address limit: an IPv4 address, or the /64 network that one customer of IPv6 usually
/// holds.
fn find_peer_network(peer: IpAddr) -> IpAddr {
    // A listener on `[::]` reports IPv4 peers as mapped IPv6 addresses, which would share one /64 network.
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_peer(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn longest_waiting_peer_of_address_is_evicted() {
        let table = ConnectionTable::new(3, 2);
        let (loud, other) = (parse_peer("192.0.2.1"), parse_peer("192.0.2.2"));
        let first = table.admit(other).unwrap();
        let second = table.admit(loud).unwrap();
        let third = table.admit(loud).unwrap();
        let fourth = table.admit(loud).unwrap();
        assert_eq!(fourth.displaced, Some(ReachedLimit::Address));
        let evicted = [&first, &second, &third].map(|permit| permit.evicted.is_cancelled());
        assert_eq!(evicted, [false, true, false]);
        let fifth = table.admit(parse_peer("192.0.2.3")).unwrap();
        assert_eq!(fifth.displaced, Some(ReachedLimit::Listener));
        assert!(first.evicted.is_cancelled() && !third.evicted.is_cancelled());
    }

    #[tokio::test]
    async fn unfinished_request_is_evicted_before_idle_connection() {
        let table = ConnectionTable::new(2, 2);
        let [kept, owing] = [(); 2].map(|()| table.admit(parse_peer("192.0.2.1")).unwrap());
        kept.watch.answered();
        owing.watch.request(true);
        let third = table.admit(parse_peer("192.0.2.1")).unwrap();
        assert!(owing.evicted.is_cancelled() && !kept.evicted.is_cancelled());
        third.watch.request(false);
        let _fourth = table.admit(parse_peer("192.0.2.1")).unwrap();
        assert!(kept.evicted.is_cancelled());
    }

    #[tokio::test]
    async fn connection_with_running_request_is_kept() {
        let table = ConnectionTable::new(1, 1);
        let busy = table.admit(parse_peer("192.0.2.1")).unwrap();
        busy.watch.request(false);
        assert_eq!(
            table.admit(parse_peer("192.0.2.2")).err(),
            Some(ReachedLimit::Listener)
        );
        assert_eq!(
            table.admit(parse_peer("192.0.2.1")).err(),
            Some(ReachedLimit::Address)
        );
        drop(busy);
        assert_eq!(table.admit(parse_peer("192.0.2.2")).unwrap().displaced, None);
    }

    #[test]
    fn ipv6_network_counts_as_one_peer() {
        assert_eq!(
            find_peer_network(parse_peer("2001:db8::1")),
            find_peer_network(parse_peer("2001:db8::ffff:2"))
        );
        assert_ne!(
            find_peer_network(parse_peer("2001:db8:0:1::1")),
            find_peer_network(parse_peer("2001:db8::1"))
        );
        assert_eq!(
            find_peer_network(parse_peer("::ffff:192.0.2.1")),
            parse_peer("192.0.2.1")
        );
    }
}
