//! All executors of the configured pools: their watch, their slots, and their loss.

use std::{collections::BTreeMap, sync::Arc};

use bootstrap::span_forwarder::SpanForwarder;
use grant::GrantSigner;
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::{
    channels::ExecutorChannels,
    connection::{CONNECT_LIMIT, CallError, ExecutorConnector, RunCaller},
    directory::{ExecutorDirectory, HeldWorkspace},
    span_questions::CallNote,
    span_relay::SpanRelay,
    status_watch::StatusWatch,
};
use crate::config::PlannerSettings;
use crate::telemetry::PoolSlots;

/// Client of every executor in the configured pools.
pub(crate) struct ExecutorFleet {
    pub(super) settings: PlannerSettings,
    pub(super) directory: Arc<ExecutorDirectory>,
    pub(super) channels: Arc<ExecutorChannels>,
    /// Absent: this planner exports no traces.
    relay: Option<Arc<SpanRelay>>,
}

impl ExecutorFleet {
    /// Watches the executors of every pool until shutdown. With a forwarder it also fetches their spans,
    /// until [`Self::finish_spans`].
    pub(crate) fn start(
        settings: PlannerSettings,
        signer: GrantSigner,
        dial: ExecutorConnector,
        forwarder: Option<SpanForwarder>,
        shutdown: &CancellationToken,
    ) -> Arc<Self> {
        let directory = Arc::new(ExecutorDirectory::new());
        let channels = Arc::new(ExecutorChannels::new(signer, dial));
        let relay = forwarder
            .map(|forwarder| SpanRelay::start(Arc::clone(&channels), Arc::clone(&directory), forwarder));
        let watch = Arc::new(StatusWatch {
            pools: settings.pools.clone(),
            directory: Arc::clone(&directory),
            channels: Arc::clone(&channels),
        });
        tokio::spawn(watch.run(shutdown.clone()));
        Arc::new(Self {
            settings,
            directory,
            channels,
            relay,
        })
    }

    /// Requests the executor's spans beneath the current span when the note is dropped. Absent if nothing
    /// is traced, or if the executor exports its spans itself.
    pub(super) fn note_call(&self, executor: &str, caller: &RunCaller) -> Option<CallNote<'_>> {
        // Without a relay, reading the context would only cost time.
        self.relay.as_ref()?;
        let context = Span::current().context();
        self.note_beneath(executor, caller, context.span().span_context())
    }

    /// Requests the executor's spans beneath a given span.
    pub(crate) fn note_beneath(
        &self,
        executor: &str,
        caller: &RunCaller,
        span: &SpanContext,
    ) -> Option<CallNote<'_>> {
        self.relay.as_ref()?.note(executor, caller, span)
    }

    /// Requests the last spans and waits a short time until they are sent.
    pub(crate) async fn finish_spans(&self) {
        if let Some(relay) = &self.relay {
            relay.finish().await;
        }
    }

    /// Wakes when the status of an executor changes after this call.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.directory.changes()
    }

    /// Returns the slots of each pool.
    pub(crate) fn slots(&self) -> BTreeMap<String, PoolSlots> {
        self.directory.slots()
    }

    /// Returns every workspace that is open at an executor.
    pub(crate) fn held(&self) -> Vec<HeldWorkspace> {
        self.directory.held()
    }

    /// Leaves an executor that sends no status within the connect limit. Returns true if it did; other
    /// executors then open its workspaces until it responds again.
    pub(crate) async fn leave_if_silent(&self, address: &str) -> bool {
        let first = async {
            let mut statuses = self.channels.watch_status(address).await?;
            statuses.message().await.map_err(CallError::from)
        };
        let is_silent = match tokio::time::timeout(CONNECT_LIMIT, first).await {
            Ok(Ok(status)) => status.is_none(),
            Ok(Err(CallError::Trouble { .. } | CallError::TimedOut)) | Err(_) => true,
            Ok(Err(
                CallError::WorkspaceLost
                | CallError::Stale
                | CallError::Invalid(_)
                | CallError::Refused(_)
                | CallError::Unkeepable(_)
                | CallError::Store(_),
            )) => false,
        };
        if is_silent {
            self.leave(address);
        }
        is_silent
    }

    /// Marks an executor as lost until its status arrives over a new connection.
    pub(super) fn leave(&self, address: &str) {
        self.channels.forget(address);
        self.directory
            .lose(address, "it does not answer", bootstrap::read_wall_clock());
    }
}
