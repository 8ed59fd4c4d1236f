//! Relay of executors' spans to the collector.
//!
//! Executors must not reach the collector, because commands of the model run next to them. So the planner
//! requests their spans after each call and forwards them.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bootstrap::{
    span_buffer::KeptSpan,
    span_forwarder::{SpanForwarder, SpanOrigin},
};
use domain::cause::format_error_chain;
use opentelemetry::trace::SpanContext;
use proto::executor as wire;
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

use super::{
    channels::ExecutorChannels,
    connection::{CallError, RunCaller},
    directory::ExecutorDirectory,
    span_check::{SpanTerms, check_span},
    span_questions::{CallNote, DueQuestions, LONGEST_WAIT, SpanQuestions, WantedSpans},
};
use crate::telemetry;

const TAKE_LIMIT: Duration = Duration::from_secs(5);
// Limit for sending the last spans at shutdown.
const FINISH_LIMIT: Duration = Duration::from_secs(3);
// Limits of one response in bytes and spans: a little more than an honest executor sends.
const ANSWER_BYTES: usize = 256 * 1024;
const ANSWER_SPANS: usize = 256;
// Responses to one request.
const MOST_ANSWERS: usize = 16;
// Executors that serve a request at the same time.
const MOST_AT_ONCE: usize = 16;

/// Relay of the spans of executors to the collector. It exists where the planner exports its own spans.
pub(super) struct SpanRelay {
    channels: Arc<ExecutorChannels>,
    directory: Arc<ExecutorDirectory>,
    questions: SpanQuestions,
}

impl SpanRelay {
    /// Starts the relay, which works until [`SpanRelay::finish`].
    pub(super) fn start(
        channels: Arc<ExecutorChannels>,
        directory: Arc<ExecutorDirectory>,
        forwarder: SpanForwarder,
    ) -> Arc<Self> {
        let (questions, wanted) = SpanQuestions::new();
        let relay = Arc::new(Self {
            channels,
            directory,
            questions,
        });
        tokio::spawn(Arc::clone(&relay).run(forwarder, wanted));
        relay
    }

    /// Requests the executor's spans beneath a span when the note is dropped. Absent if the span is not
    /// sampled, or if the executor exports its spans itself.
    pub(super) fn note(
        &self,
        executor: &str,
        caller: &RunCaller,
        span: &SpanContext,
    ) -> Option<CallNote<'_>> {
        if !span.is_sampled() {
            return None;
        }
        let version = self.directory.span_keeper(executor)?;
        let mut calls = self.questions.calls.lock();
        calls.add(span.span_id());
        drop(calls);
        let wanted = WantedSpans {
            executor: executor.to_owned(),
            version,
            trace: span.trace_id(),
            caller: caller.clone(),
        };
        Some(CallNote {
            questions: &self.questions,
            wanted: Some(wanted),
        })
    }

    /// Requests spans from executors and forwards them, until [`SpanRelay::finish`].
    async fn run(self: Arc<Self>, mut forwarder: SpanForwarder, mut wanted: mpsc::Receiver<WantedSpans>) {
        let (mut due, mut asked) = (DueQuestions::default(), JoinSet::new());
        loop {
            let is_last = self.questions.stop.is_cancelled();
            while is_last && let Ok(wanted) = wanted.try_recv() {
                due.add(wanted);
            }
            // At shutdown the remaining requests are due now; they do not wait for their time.
            let until = Instant::now() + if is_last { LONGEST_WAIT } else { Duration::ZERO };
            while asked.len() < MOST_AT_ONCE
                && let Some(wanted) = due.take(until)
            {
                let relay = Arc::clone(&self);
                asked.spawn(async move {
                    let spans = relay.take_spans(&wanted).await;
                    (wanted.origin(), spans)
                });
            }
            if is_last && asked.is_empty() {
                break;
            }
            let next = due.next_at().unwrap_or_else(|| Instant::now() + LONGEST_WAIT);
            tokio::select! {
                Some(wanted) = wanted.recv() => due.add(wanted),
                Some(Ok((origin, spans))) = asked.join_next() => forward_spans(&mut forwarder, origin, spans).await,
                () = self.questions.stop.cancelled(), if !is_last => {}
                // Without a free place, a request that is due would make this timer spin. `join_next`
                // frees a place.
                () = tokio::time::sleep_until(next), if asked.len() < MOST_AT_ONCE => {}
            }
        }
        self.questions.ended.cancel();
    }

    /// Requests the last spans and waits a short time until they are sent.
    pub(super) async fn finish(&self) {
        self.questions.stop.cancel();
        let ended = self.questions.ended.cancelled();
        if tokio::time::timeout(FINISH_LIMIT, ended).await.is_err() {
            tracing::debug!("spans of executors were not sent in time");
        }
    }

    /// Returns the spans of an executor that pass the check.
    async fn take_spans(&self, wanted: &WantedSpans) -> Vec<KeptSpan> {
        let (mut passed, mut refused) = (Vec::new(), 0);
        for _ in 0..MOST_ANSWERS {
            let answer = match tokio::time::timeout(TAKE_LIMIT, self.ask_for_spans(wanted)).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) => {
                    tracing::debug!(executor = wanted.executor, error = %format_error_chain(&error), "spans were not handed over");
                    break;
                }
                Err(_) => {
                    tracing::debug!(executor = wanted.executor, "spans were not handed over in time");
                    break;
                }
            };
            let handed = answer.spans.len();
            let good = self.check_spans(wanted, answer.spans);
            refused += handed - good.len();
            passed.extend(good);
            if !answer.more {
                break;
            }
        }
        if refused > 0 {
            let executor = &wanted.executor;
            tracing::warn!(%executor, refused, "an executor handed over spans that it may not make");
            telemetry::count_executor_spans("refused", refused);
        }
        passed
    }

    fn check_spans(&self, wanted: &WantedSpans, spans: Vec<wire::FinishedSpan>) -> Vec<KeptSpan> {
        let terms = SpanTerms {
            trace: wanted.trace,
            ticket: wanted.caller.run.ticket(),
            now: SystemTime::now(),
            is_ours: &|id| self.questions.is_call(id),
        };
        let spans = spans.into_iter().take(ANSWER_SPANS);
        spans.filter_map(|span| check_span(span, &terms).ok()).collect()
    }

    async fn ask_for_spans(&self, wanted: &WantedSpans) -> Result<wire::TakeSpansResponse, CallError> {
        let message = wire::TakeSpansRequest {
            fence: Some(wanted.caller.fence.into()),
            trace_id: wanted.trace.to_bytes().to_vec(),
        };
        let request = self.channels.request(&wanted.caller, None, TAKE_LIMIT, message)?;
        let client = self.channels.client(&wanted.executor)?;
        let mut client = client.max_decoding_message_size(ANSWER_BYTES);
        Ok(client.take_spans(request).await?.into_inner())
    }
}

async fn forward_spans(forwarder: &mut SpanForwarder, origin: SpanOrigin, spans: Vec<KeptSpan>) {
    if spans.is_empty() {
        return;
    }
    let count = spans.len();
    match forwarder.send(origin, spans).await {
        Ok(()) => telemetry::count_executor_spans("sent", count),
        Err(error) => {
            tracing::debug!(error = %format_error_chain(&error), "the collector does not take spans of executors");
            telemetry::count_executor_spans("lost", count);
        }
    }
}
