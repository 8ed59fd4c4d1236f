//! The peer of a session, and the traffic of one of its requests or tunnels.

use std::{
    io,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use grant::Grant;
use opentelemetry::{KeyValue, global, metrics::Counter};
use tokio::sync::Semaphore;
use tracing::{Span, field};

use crate::{
    connection::ConnectionActivity,
    problem::{EgressRefusal, RefusalReason},
    runs::SessionSlot,
};

/// The run at the other end of a session, with its slot.
pub(crate) struct SessionCaller {
    pub(crate) grant: Grant,
    pub(crate) slot: SessionSlot,
    /// Clock of the last byte to or from the client, or of a host for it.
    pub(crate) activity: ConnectionActivity,
}

impl SessionCaller {
    /// Starts the clock of the session.
    pub(crate) fn new(grant: Grant, slot: SessionSlot) -> Self {
        Self {
            grant,
            slot,
            activity: ConnectionActivity::new(),
        }
    }

    /// Records a refusal for the run (`GET /refusals`) and for the operator (log and metric).
    pub(crate) fn refuse(&self, refusal: &EgressRefusal) {
        let Grant { run, repository, .. } = &self.grant;
        let reason = refusal.reason.label();
        tracing::info!(%run, %repository, host = refusal.what, reason, "egress refused");
        count_refusal(reason);
        self.slot.run.note(refusal);
    }
}

/// One request or tunnel. Counts bytes while it lives, and logs them when it is dropped.
pub(crate) struct MeteredExchange {
    caller: Arc<SessionCaller>,
    what: String,
    kind: &'static str,
    sent: AtomicU64,
    received: AtomicU64,
    /// Child span of the session's span.
    span: Span,
}

impl MeteredExchange {
    /// Returns the run's memory for rewritten texts; one permit is one MiB.
    pub(crate) fn texts(&self) -> &Arc<Semaphore> {
        &self.caller.slot.run.texts
    }

    /// Starts counting at zero. `kind` is `tunnel`, `plain` or `mirror`.
    pub(crate) fn new(caller: &Arc<SessionCaller>, what: String, kind: &'static str) -> Self {
        let span = tracing::info_span!(
            "egress",
            host = what,
            kind,
            sent = field::Empty,
            received = field::Empty
        );
        Self {
            span,
            caller: Arc::clone(caller),
            what,
            kind,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        }
    }

    /// Counts bytes before the proxy sends them.
    ///
    /// # Errors
    /// [`RefusalReason::SentAll`] when the run's quota is exhausted.
    pub(crate) fn send(&self, bytes: usize) -> Result<(), RefusalReason> {
        self.caller.slot.run.send(bytes as u64)?;
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Counts bytes before the client receives them.
    ///
    /// # Errors
    /// [`RefusalReason::ReceivedAll`] when the run's quota is exhausted.
    pub(crate) fn receive(&self, bytes: usize) -> Result<(), RefusalReason> {
        self.caller.slot.run.receive(bytes as u64)?;
        // A text is collected before the client gets its first byte, which may take longer than a session may be idle.
        self.caller.activity.note();
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    /// [`MeteredExchange::send`] for streams, where an error can only end the connection.
    ///
    /// # Errors
    /// An I/O error when the quota is exhausted. The refusal is recorded.
    pub(crate) fn send_chunk(&self, bytes: usize) -> io::Result<()> {
        self.send(bytes).map_err(|reason| self.refuse(reason))
    }

    /// [`MeteredExchange::receive`] for streams, where an error can only end the connection.
    ///
    /// # Errors
    /// An I/O error when the quota is exhausted. The refusal is recorded.
    pub(crate) fn receive_chunk(&self, bytes: usize) -> io::Result<()> {
        self.receive(bytes).map_err(|reason| self.refuse(reason))
    }

    /// Records the refusal that ends the connection, and returns the error that ends it.
    pub(crate) fn refuse(&self, reason: RefusalReason) -> io::Error {
        // Recorded before the error closes the connection: the executor reads `/refusals` as soon as the connection
        // ends.
        let label = reason.label();
        self.caller.refuse(&EgressRefusal::new(&self.what, reason));
        io::Error::other(label)
    }
}

impl Drop for MeteredExchange {
    fn drop(&mut self) {
        let Grant { run, repository, .. } = &self.caller.grant;
        let [sent, received] = [&self.sent, &self.received].map(|count| count.load(Ordering::Relaxed));
        let (host, kind) = (&self.what, self.kind);
        self.span.record("sent", sent).record("received", received);
        tracing::info!(parent: &self.span, %run, %repository, host, kind, sent, received, "egress ended");
        count_traffic(kind, sent, received);
    }
}

const METER: &str = "journeyman.egress";

static BYTES: LazyLock<Counter<u64>> = LazyLock::new(|| {
    let meter = global::meter(METER);
    meter
        .u64_counter("journeyman.egress.traffic")
        .with_unit("By")
        .build()
});
static REFUSALS: LazyLock<Counter<u64>> = LazyLock::new(|| {
    global::meter(METER)
        .u64_counter("journeyman.egress.refusals")
        .build()
});

/// Counts the bytes of one request or tunnel, by kind: `tunnel`, `plain` or `mirror`.
fn count_traffic(kind: &'static str, sent: u64, received: u64) {
    for (direction, count) in [("sent", sent), ("received", received)] {
        let labels = [
            KeyValue::new("journeyman.kind", kind),
            KeyValue::new("journeyman.direction", direction),
        ];
        BYTES.add(count, &labels);
    }
}

/// Counts one refusal by its reason.
fn count_refusal(reason: &'static str) {
    REFUSALS.add(1, &[KeyValue::new("journeyman.reason", reason)]);
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use domain::{RunFence, RunId, TicketKey};
    use grant::GrantAudience;
    use tokio::time::Instant;

    use super::*;
    use crate::runs::RunTable;

    pub(crate) fn build_caller() -> SessionCaller {
        let run = RunId::new(TicketKey::jira("ENG-1").unwrap(), 1);
        let slot = Arc::new(RunTable::new(1, 100)).enter(&run).unwrap();
        let grant = Grant {
            audience: GrantAudience::Egress,
            run,
            repository: "acme/shop".parse().unwrap(),
            workspace: None,
            fence: RunFence::new(1, 1, 1),
            network: Vec::new(),
        };
        SessionCaller::new(grant, slot)
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_of_host_keep_session_active() {
        let caller = Arc::new(build_caller());
        let exchange = MeteredExchange::new(&caller, "/mirror/npm/".to_owned(), "mirror");
        let start = Instant::now();
        let arrive = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(50)).await;
                exchange.receive(1).unwrap();
            }
            std::future::pending::<()>().await;
        };
        let limit = Duration::from_secs(60);
        tokio::select! { () = arrive => {}, () = caller.activity.quiet(limit) => {} }
        assert_eq!(start.elapsed().as_secs(), 210);
    }
}
