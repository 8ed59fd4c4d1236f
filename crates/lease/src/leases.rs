//! Leases of all tickets.

use std::{sync::Arc, time::Duration};

use domain::{RunFence, TicketKey};
use tokio::time::Instant;

use crate::{
    Settings, TicketLease,
    connection::RedisConnection,
    error::{Error, RedisOutage},
    lease::LeaseHold,
    server::{LeaseClaim, LeaseScripts, LeaseServer},
};

const OUTAGE: &str = "tickets are worked on without leases, and each planner counts budgets for itself";
/// Prefix of all keys.
pub(crate) const PREFIX: &str = "journeyman:lease:";
const SHORTEST_TTL: Duration = Duration::from_millis(300);

/// Leases of all tickets. Cheap to clone.
#[derive(Clone)]
pub struct TicketLeases {
    pub(crate) server: LeaseServer,
    ttl: Duration,
}

impl TicketLeases {
    /// Creates the leases without connecting. The first use connects, and each later use that finds no
    /// connection.
    ///
    /// # Errors
    /// [`Error::Address`], [`Error::Authorities`].
    pub fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(Self {
            server: LeaseServer {
                connection: RedisConnection::open(settings)?,
                scripts: Arc::new(LeaseScripts::new()),
                outage: Arc::new(RedisOutage::new(OUTAGE)),
            },
            ttl: Duration::from_millis(settings.ttl_ms).max(SHORTEST_TTL),
        })
    }

    /// Creates the leases and checks that Redis answers.
    ///
    /// # Errors
    /// [`Error::Address`] for an invalid address, [`Error::Authorities`], and [`Error::Unavailable`] without
    /// an answer.
    pub async fn connect(settings: &Settings) -> Result<Self, Error> {
        let leases = Self::open(settings)?;
        leases.ping().await?;
        Ok(leases)
    }

    /// Makes one round trip within 1 s, for readiness.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn ping(&self) -> Result<(), Error> {
        let mut connection = self.server.connection.manager();
        let ping = redis::cmd("PING");
        self.server
            .bounded(ping.query_async::<String>(&mut connection))
            .await
            .map(drop)
    }

    /// Takes the ticket's lease. A higher fence takes it over from a lower one at once; `None` if a worker
    /// with an equal or higher fence holds it.
    ///
    /// When Redis does not answer within a second, the lease is granted without it. Fences then exclude other
    /// workers, and the renewals continue until Redis answers.
    pub async fn take(&self, ticket: &TicketKey, fence: RunFence) -> Option<TicketLease> {
        let claim = LeaseClaim {
            server: self.server.clone(),
            ttl: self.ttl,
            key: format_lease_key(ticket),
            fence: format_fence(fence),
        };
        // Read before the request: the server's time to live starts later than this deadline.
        let deadline = Instant::now() + self.ttl;
        match failpoint::around("lease.take", claim.take()).await {
            Ok(true) => Some(TicketLease::hold(claim, LeaseHold::Until(deadline))),
            Ok(false) => None,
            // The outage is logged already. Work without a lease is correct, because fences exclude other
            // workers.
            Err(_) => Some(TicketLease::hold(claim, LeaseHold::FencedOnly)),
        }
    }
}

/// Key of a ticket's lease. The braces put all keys of a ticket into one hash slot of a cluster.
fn format_lease_key(ticket: &TicketKey) -> String {
    format!("{PREFIX}{{{ticket}}}")
}

/// Text of a fence with fixed widths, so that texts compare as the fences do.
fn format_fence(fence: RunFence) -> String {
    let stamp = fence.stamp();
    format!(
        "{:020}.{:020}.{:020}",
        stamp.epoch, stamp.sequence, stamp.delivered
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_texts_compare_like_fences() {
        let rising = [
            RunFence::new(1, 1, 1),
            RunFence::new(1, 1, 2),
            RunFence::new(1, 2, 1),
            RunFence::new(1, 10, 1),
            RunFence::new(2, 1, 1),
            RunFence::new(10, 1, u64::MAX),
        ];
        for pair in rising.windows(2) {
            assert!(
                pair[0] < pair[1] && format_fence(pair[0]) < format_fence(pair[1]),
                "{} {}",
                pair[0],
                pair[1]
            );
        }
    }

    #[tokio::test]
    async fn invalid_address_error_hides_address() {
        let settings = Settings {
            url: "http://me:secret@here".into(),
            ..Settings::default()
        };
        let error = TicketLeases::connect(&settings)
            .await
            .err()
            .map(|error| error.to_string())
            .unwrap();
        assert!(
            error.starts_with("redis.url is not a redis address") && !error.contains("secret"),
            "{error}"
        );
    }
}
