//! Who is connected, and what one request or tunnel of theirs carries.

use std::{
    io,
    sync::Arc,
    sync::atomic::{AtomicU64, Ordering},
};

use grant::Grant;
use tokio::sync::Semaphore;
use tracing::{Span, field};

use crate::{
    problem::{Reason, Refusal},
    runs::Seat,
    telemetry,
};

/// The run at the other end of a session, and its place.
pub(crate) struct Caller {
    pub(crate) grant: Grant,
    pub(crate) seat: Seat,
}

impl Caller {
    /// Notes a refusal where the run and the operator find it.
    pub(crate) fn refuse(&self, refusal: &Refusal) {
        let Grant { run, repository, .. } = &self.grant;
        let reason = refusal.reason.label();
        tracing::info!(%run, %repository, host = refusal.what, reason, "egress refused");
        telemetry::refused(reason);
        self.seat.run.note(refusal);
    }
}

/// One request or tunnel: counted while it lasts, logged when it is dropped.
pub(crate) struct Exchange {
    caller: Arc<Caller>,
    what: String,
    kind: &'static str,
    sent: AtomicU64,
    received: AtomicU64,
    /// Below that of the session.
    span: Span,
}

impl Exchange {
    /// The run's memory for texts, in MiB.
    pub(crate) fn texts(&self) -> &Arc<Semaphore> {
        &self.caller.seat.run.texts
    }

    /// Nothing carried yet; `kind` is `tunnel`, `plain` or `mirror`.
    pub(crate) fn new(caller: &Arc<Caller>, what: String, kind: &'static str) -> Self {
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

    /// Counts bytes that are about to leave.
    ///
    /// # Errors
    /// When the run may send no more.
    pub(crate) fn send(&self, bytes: usize) -> Result<(), Reason> {
        self.caller.seat.run.send(bytes as u64)?;
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Counts bytes that are about to come in.
    ///
    /// # Errors
    /// When the run may receive no more.
    pub(crate) fn receive(&self, bytes: usize) -> Result<(), Reason> {
        self.caller.seat.run.receive(bytes as u64)?;
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    /// [`Exchange::send`] where an error can only break the connection off.
    ///
    /// # Errors
    /// When the run may send no more; the refusal is noted.
    pub(crate) fn send_chunk(&self, bytes: usize) -> io::Result<()> {
        self.send(bytes).map_err(|reason| self.refuse(reason))
    }

    /// [`Exchange::receive`] where an error can only break the connection off.
    ///
    /// # Errors
    /// When the run may receive no more; the refusal is noted.
    pub(crate) fn receive_chunk(&self, bytes: usize) -> io::Result<()> {
        self.receive(bytes).map_err(|reason| self.refuse(reason))
    }

    /// Notes why it is broken off, before anybody can see that it is.
    pub(crate) fn refuse(&self, reason: Reason) -> io::Error {
        let label = reason.label();
        self.caller.refuse(&Refusal::new(&self.what, reason));
        io::Error::other(label)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Grant { run, repository, .. } = &self.caller.grant;
        let [sent, received] = [&self.sent, &self.received].map(|count| count.load(Ordering::Relaxed));
        let (host, kind) = (&self.what, self.kind);
        self.span.record("sent", sent).record("received", received);
        tracing::info!(parent: &self.span, %run, %repository, host, kind, sent, received, "egress ended");
        telemetry::carried(kind, sent, received);
    }
}
