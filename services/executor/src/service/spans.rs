//! Spans of this executor for planners. Planners fetch them, because commands share the network and the
//! executor must not reach a collector.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bootstrap::span_buffer::{KeptSpan, SpanBuffer, SpanLimits};
use domain::TicketKey;
use opentelemetry::trace::TraceId;
use parking_lot::Mutex;
use proto::executor as wire;
use tokio::time::Instant;
use tonic::Status;

// Limits of one response, far below the message limit of gRPC (4 MiB).
const ANSWER_LIMITS: SpanLimits = SpanLimits {
    spans: 256,
    bytes: 128 * 1024,
};
/// Limit of remembered pairs of ticket and trace. An active run names its trace in every call, so old pairs
/// are obsolete.
const MOST_OWNERS: usize = 1024;
/// Pause between two checks of the buffer.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Hands spans to the planners of the tickets that they belong to.
pub(crate) struct SpanDesk {
    buffer: Option<Arc<SpanBuffer>>,
    /// Pairs of a ticket and a trace that its calls named, the latest last.
    owners: Mutex<VecDeque<(TicketKey, TraceId)>>,
}

impl SpanDesk {
    /// Creates the desk of this process. It hands out nothing if the process exports its spans itself.
    pub(crate) fn of_process() -> Self {
        Self::new(SpanBuffer::of_process())
    }

    const fn new(buffer: Option<Arc<SpanBuffer>>) -> Self {
        Self {
            buffer,
            owners: Mutex::new(VecDeque::new()),
        }
    }

    /// Returns true when planners should fetch spans.
    pub(crate) const fn keeps_spans(&self) -> bool {
        self.buffer.is_some()
    }

    /// Records that a call for the ticket named the trace.
    pub(crate) fn note(&self, ticket: &TicketKey, trace: TraceId) {
        if self.buffer.is_none() {
            return;
        }
        let mut owners = self.owners.lock();
        // A pair that is named again moves to the end, so that those of active runs stay.
        owners.retain(|(owner, named)| (owner, *named) != (ticket, trace));
        owners.push_back((ticket.clone(), trace));
        if owners.len() > MOST_OWNERS {
            owners.pop_front();
        }
    }

    /// Takes the spans of a trace, if a call for the ticket named that trace.
    pub(crate) fn take(&self, ticket: &TicketKey, trace: &[u8]) -> Result<wire::TakeSpansResponse, Status> {
        let trace = <[u8; 16]>::try_from(trace)
            .map(TraceId::from_bytes)
            .map_err(|_| Status::invalid_argument("trace_id must have 16 bytes"))?;
        // The answer for a trace of another ticket is that for a trace without spans, so it reveals
        // nothing.
        let Some(buffer) = self.buffer.as_ref().filter(|_| self.owns(ticket, trace)) else {
            return Ok(wire::TakeSpansResponse::default());
        };
        let taken = buffer.take(trace, ANSWER_LIMITS);
        Ok(wire::TakeSpansResponse {
            spans: taken.spans.into_iter().map(finished_span).collect(),
            more: taken.has_more,
        })
    }

    fn owns(&self, ticket: &TicketKey, trace: TraceId) -> bool {
        let owners = self.owners.lock();
        owners
            .iter()
            .any(|(owner, named)| (owner, *named) == (ticket, trace))
    }

    /// Waits until planners have taken all spans, at most for `limit`.
    pub(crate) async fn wait_until_taken(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let is_empty = || self.buffer.as_ref().is_none_or(|buffer| buffer.is_empty());
        while !is_empty() && Instant::now() < end {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

fn finished_span(span: KeptSpan) -> wire::FinishedSpan {
    let attributes = span.attributes.into_iter();
    wire::FinishedSpan {
        span_id: span.id.to_bytes().to_vec(),
        parent_span_id: span.parent.to_bytes().to_vec(),
        name: span.name,
        start_unix_nano: unix_nanoseconds(span.start),
        end_unix_nano: unix_nanoseconds(span.end),
        attributes: attributes
            .map(|(key, value)| wire::SpanAttribute { key, value })
            .collect(),
        failed: span.is_failed,
    }
}

fn unix_nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::SpanId;

    use super::*;

    fn build_ticket_key(number: u32) -> TicketKey {
        TicketKey::jira(&format!("ENG-{number}")).unwrap()
    }

    fn keep_span(buffer: &SpanBuffer, trace: TraceId, id: u64) {
        buffer.keep(KeptSpan {
            trace,
            id: SpanId::from(id),
            parent: SpanId::from(7),
            is_parent_remote: true,
            name: "run_check".to_owned(),
            start: SystemTime::UNIX_EPOCH,
            end: SystemTime::UNIX_EPOCH + Duration::from_secs(1),
            attributes: vec![("run".to_owned(), "jira:ENG-1@1".to_owned())],
            is_failed: false,
        });
    }

    #[tokio::test(start_paused = true)]
    async fn stopping_executor_waits_for_planners_briefly() {
        let buffer = Arc::new(SpanBuffer::new(ANSWER_LIMITS));
        let desk = SpanDesk::new(Some(Arc::clone(&buffer)));
        let start = Instant::now();
        desk.wait_until_taken(Duration::from_secs(3)).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        let trace = TraceId::from(1);
        keep_span(&buffer, trace, 1);
        desk.wait_until_taken(Duration::from_secs(3)).await;
        assert_eq!(start.elapsed(), Duration::from_secs(3));
        desk.note(&build_ticket_key(1), trace);
        assert_eq!(
            desk.take(&build_ticket_key(1), &trace.to_bytes())
                .unwrap()
                .spans
                .len(),
            1
        );
        desk.wait_until_taken(Duration::from_secs(3)).await;
        assert_eq!(start.elapsed(), Duration::from_secs(3));
    }

    #[test]
    fn owners_stay_within_their_limit() {
        let desk = SpanDesk::new(Some(Arc::new(SpanBuffer::new(ANSWER_LIMITS))));
        for number in 1..=3000 {
            desk.note(&build_ticket_key(number), TraceId::from(5));
            desk.note(&build_ticket_key(number), TraceId::from(5));
        }
        assert_eq!(desk.owners.lock().len(), MOST_OWNERS);
        assert!(
            !desk.owns(&build_ticket_key(1), TraceId::from(5))
                && desk.owns(&build_ticket_key(3000), TraceId::from(5))
        );
    }
}
