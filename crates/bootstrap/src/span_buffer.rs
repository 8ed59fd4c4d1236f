//! Finished spans of a process that must not reach a collector, kept until a caller takes them.

use std::{
    collections::VecDeque,
    sync::{Arc, LazyLock, OnceLock},
    time::{Duration, SystemTime},
};

use domain::text::truncate_text;
use opentelemetry::{
    Context, global,
    metrics::Counter,
    trace::{SpanId, Status, TraceId},
};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Sampler, SdkTracerProvider, Span, SpanData, SpanProcessor},
};
use parking_lot::Mutex;

/// Attributes that are kept: names and ids of Journeyman, no text from outside.
pub const KEPT_ATTRIBUTES: [&str; 3] = ["run", "gen_ai.operation.name", "gen_ai.tool.name"];
/// Maximum length of a kept span's name and of each value, in characters.
pub const KEPT_CHARACTERS: usize = 200;

// Enough for the spans of several hundred runs, whose planners take them within seconds.
const BUFFER_LIMITS: SpanLimits = SpanLimits {
    spans: 4096,
    bytes: 1 << 20,
};
// Estimated size of a span without its texts, in bytes.
const BARE_SPAN: usize = 128;

static OF_PROCESS: OnceLock<Arc<SpanBuffer>> = OnceLock::new();
static DROPPED: LazyLock<Counter<u64>> = LazyLock::new(|| {
    let meter = global::meter("journeyman");
    meter.u64_counter("journeyman.spans.dropped").build()
});

/// Finished span without events, links and free text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSpan {
    /// Id of its trace.
    pub trace: TraceId,
    /// Id of the span.
    pub id: SpanId,
    /// Id of the parent span.
    pub parent: SpanId,
    /// True when another process made the parent span.
    pub is_parent_remote: bool,
    /// Name of the span, at most [`KEPT_CHARACTERS`] long.
    pub name: String,
    /// Time of the start.
    pub start: SystemTime,
    /// Time of the end.
    pub end: SystemTime,
    /// Attributes among [`KEPT_ATTRIBUTES`], as keys and values.
    pub attributes: Vec<(String, String)>,
    /// True when the span ended with an error.
    pub is_failed: bool,
}

impl KeptSpan {
    fn new(span: SpanData) -> Self {
        let attributes = span.attributes.into_iter().filter_map(|attribute| {
            let key = KEPT_ATTRIBUTES
                .into_iter()
                .find(|key| *key == attribute.key.as_str())?;
            Some((
                key.to_owned(),
                truncate_text(&attribute.value.as_str(), KEPT_CHARACTERS),
            ))
        });
        Self {
            trace: span.span_context.trace_id(),
            id: span.span_context.span_id(),
            parent: span.parent_span_id,
            is_parent_remote: span.parent_span_is_remote,
            name: truncate_text(&span.name, KEPT_CHARACTERS),
            start: span.start_time,
            end: span.end_time,
            attributes: attributes.collect(),
            is_failed: matches!(span.status, Status::Error { .. }),
        }
    }

    /// Estimated size in bytes.
    fn size(&self) -> usize {
        let texts = self.attributes.iter().map(|(key, value)| key.len() + value.len());
        BARE_SPAN + self.name.len() + texts.sum::<usize>()
    }
}

/// Limits of a set of spans.
#[derive(Clone, Copy, Debug)]
pub struct SpanLimits {
    /// Maximum number of spans.
    pub spans: usize,
    /// Maximum size of all spans together, in bytes.
    pub bytes: usize,
}

/// Spans that one caller took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenSpans {
    /// Spans of the trace, oldest first.
    pub spans: Vec<KeptSpan>,
    /// True when more spans of the trace are kept.
    pub has_more: bool,
}

/// Finished spans, oldest first. Beyond the limits, the oldest are dropped and counted.
#[derive(Debug)]
pub struct SpanBuffer {
    limits: SpanLimits,
    kept: Mutex<KeptSpans>,
}

#[derive(Debug, Default)]
struct KeptSpans {
    spans: VecDeque<KeptSpan>,
    bytes: usize,
}

impl SpanBuffer {
    /// Creates an empty buffer.
    pub fn new(limits: SpanLimits) -> Self {
        Self {
            limits,
            kept: Mutex::default(),
        }
    }

    /// Buffer of this process; `None` if spans are exported or not recorded.
    pub fn of_process() -> Option<Arc<Self>> {
        OF_PROCESS.get().cloned()
    }

    /// Installs the buffer of this process, or returns the existing one.
    pub fn install() -> Arc<Self> {
        let buffer = OF_PROCESS.get_or_init(|| Arc::new(Self::new(BUFFER_LIMITS)));
        Arc::clone(buffer)
    }

    /// Adds a span and drops the oldest ones beyond the limits.
    pub fn keep(&self, span: KeptSpan) {
        let mut kept = self.kept.lock();
        kept.bytes += span.size();
        kept.spans.push_back(span);
        let mut dropped = 0;
        while kept.spans.len() > self.limits.spans || kept.bytes > self.limits.bytes {
            let Some(oldest) = kept.spans.pop_front() else {
                break;
            };
            kept.bytes -= oldest.size();
            dropped += 1;
        }
        drop(kept);
        if dropped > 0 {
            DROPPED.add(dropped, &[]);
        }
    }

    /// Removes and returns the spans of a trace, within the given limits.
    pub fn take(&self, trace: TraceId, limits: SpanLimits) -> TakenSpans {
        let mut kept = self.kept.lock();
        let (mut taken, mut rest, mut bytes) = (Vec::new(), VecDeque::new(), 0);
        let mut has_more = false;
        for span in std::mem::take(&mut kept.spans) {
            let size = span.size();
            // After the first span that does not fit none is taken, so that the order of the trace is kept.
            let fits = !has_more && taken.len() < limits.spans && bytes + size <= limits.bytes;
            if span.trace == trace && fits {
                bytes += size;
                taken.push(span);
            } else {
                has_more |= span.trace == trace;
                rest.push_back(span);
            }
        }
        kept.bytes -= bytes;
        kept.spans = rest;
        TakenSpans {
            spans: taken,
            has_more,
        }
    }

    /// True when the buffer has no span.
    pub fn is_empty(&self) -> bool {
        self.kept.lock().spans.is_empty()
    }
}

/// Tracer provider that records only spans of a caller's recorded trace. No caller takes other spans.
pub(crate) fn trace_into(buffer: Arc<SpanBuffer>) -> SdkTracerProvider {
    SdkTracerProvider::builder()
        .with_span_processor(SpanKeeper(buffer))
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOff)))
        // Events contain free text, which is not passed on.
        .with_max_events_per_span(0)
        .build()
}

/// Span processor that puts finished spans into a buffer.
#[derive(Debug)]
struct SpanKeeper(Arc<SpanBuffer>);

impl SpanProcessor for SpanKeeper {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.keep(KeptSpan::new(span));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::{
        KeyValue,
        trace::{
            SpanContext, SpanKind, TraceContextExt as _, TraceFlags, TraceState, Tracer as _,
            TracerProvider as _,
        },
    };

    use super::*;

    const ALL: SpanLimits = SpanLimits {
        spans: usize::MAX,
        bytes: usize::MAX,
    };

    fn build_span(trace: u128, id: u64) -> KeptSpan {
        KeptSpan {
            trace: TraceId::from(trace),
            id: SpanId::from(id),
            parent: SpanId::from(7),
            is_parent_remote: true,
            name: "run_check".to_owned(),
            start: SystemTime::UNIX_EPOCH,
            end: SystemTime::UNIX_EPOCH,
            attributes: Vec::new(),
            is_failed: false,
        }
    }

    fn list_span_ids(taken: &TakenSpans) -> Vec<SpanId> {
        taken.spans.iter().map(|span| span.id).collect()
    }

    #[test]
    fn full_buffer_drops_oldest_spans() {
        let buffer = SpanBuffer::new(SpanLimits { spans: 3, ..ALL });
        for id in 1..=5 {
            buffer.keep(build_span(1, id));
        }
        let taken = buffer.take(TraceId::from(1), ALL);
        assert_eq!(list_span_ids(&taken), [3, 4, 5].map(SpanId::from));
        assert!(buffer.is_empty() && buffer.kept.lock().bytes == 0);
    }

    #[test]
    fn buffer_stays_below_its_bytes() {
        let room = 10 * build_span(1, 1).size();
        let buffer = SpanBuffer::new(SpanLimits { bytes: room, ..ALL });
        for id in 1..=100 {
            buffer.keep(build_span(1, id));
            assert!(buffer.kept.lock().bytes <= room);
        }
        let taken = buffer.take(TraceId::from(1), ALL);
        assert_eq!(
            list_span_ids(&taken),
            Vec::from_iter((91..=100).map(SpanId::from))
        );
    }

    #[test]
    fn caller_gets_one_trace_in_parts() {
        let buffer = SpanBuffer::new(ALL);
        for id in 1..=6 {
            buffer.keep(build_span(u128::from(id % 2), id));
        }
        let two = SpanLimits { spans: 2, ..ALL };
        let first = buffer.take(TraceId::from(1), two);
        assert_eq!(
            (list_span_ids(&first), first.has_more),
            ([1, 3].map(SpanId::from).to_vec(), true)
        );
        let small = SpanLimits { bytes: 10, ..ALL };
        assert_eq!(list_span_ids(&buffer.take(TraceId::from(1), small)), []);
        let last = buffer.take(TraceId::from(1), two);
        assert_eq!(
            (list_span_ids(&last), last.has_more),
            (vec![SpanId::from(5)], false)
        );
        assert_eq!(
            list_span_ids(&buffer.take(TraceId::from(0), ALL)),
            [2, 4, 6].map(SpanId::from)
        );
    }

    #[test]
    fn tracer_keeps_recorded_traces_of_callers() {
        let buffer = Arc::new(SpanBuffer::new(ALL));
        let tracer = trace_into(Arc::clone(&buffer)).tracer("test");
        let caller = |trace: u128, flags| {
            let (trace, id) = (TraceId::from(trace), SpanId::from(9));
            let caller = SpanContext::new(trace, id, flags, true, TraceState::default());
            Context::new().with_remote_span_context(caller)
        };
        let recorded = caller(1, TraceFlags::SAMPLED);
        for parent in [&Context::new(), &caller(2, TraceFlags::default()), &recorded] {
            let builder = tracer
                .span_builder("execute_tool read_file")
                .with_kind(SpanKind::Internal)
                .with_attributes([
                    KeyValue::new("run", "jira:ENG-1@7"),
                    KeyValue::new("error", "a secret"),
                    KeyValue::new("gen_ai.tool.name", "x".repeat(10_000)),
                ]);
            drop(tracer.build_with_context(builder, parent));
        }
        assert!(buffer.take(TraceId::from(2), ALL).spans.is_empty());
        let taken = buffer.take(TraceId::from(1), ALL);
        let [kept] = taken.spans.as_slice() else {
            panic!("{taken:?}")
        };
        assert_eq!((kept.parent, kept.is_parent_remote), (SpanId::from(9), true));
        let keys: Vec<_> = kept.attributes.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["run", "gen_ai.tool.name"]);
        assert!(kept.size() < 1000, "{kept:?}");
        assert!(buffer.is_empty(), "no caller asks for other spans");
    }
}
