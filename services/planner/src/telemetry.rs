//! Spans and metrics of model and tool calls, named by the OpenTelemetry conventions for generative AI.

use std::{
    sync::{LazyLock, OnceLock},
    time::Duration,
};

use domain::{Fact, ModelReply, ReplyStop, TokenUsage, ToolResult, ToolStatus};
use opentelemetry::{
    KeyValue, global,
    metrics::{Counter, Histogram},
    propagation::Injector,
};
use parking_lot::Mutex;
use tokio::time::Instant;
use tonic::metadata::{MetadataKey, MetadataMap};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

const METER: &str = "journeyman.planner";
const OPERATION: &str = "gen_ai.operation.name";
const PROVIDER: &str = "gen_ai.provider.name";
const REQUEST_MODEL: &str = "gen_ai.request.model";
const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
const RESPONSE_MODEL: &str = "gen_ai.response.model";
const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
const CONVERSATION: &str = "gen_ai.conversation.id";
const TOOL_NAME: &str = "gen_ai.tool.name";
const TOOL_CALL: &str = "gen_ai.tool.call.id";
const TOKEN_TYPE: &str = "gen_ai.token.type";
const ERROR_TYPE: &str = "error.type";
const CHAT_DURATION: &str = "gen_ai.client.operation.duration";
const TOKEN_USAGE: &str = "gen_ai.client.token.usage";
const TOOL_DURATION: &str = "gen_ai.execute_tool.duration";
const MODEL_ROLE: &str = "journeyman.model.role";
const MODEL_PROVIDER: &str = "journeyman.model.provider";
const MODEL_COST: &str = "journeyman.model.cost";
const TURNS_UNCACHED: &str = "journeyman.model.turns_without_cache_read";
const RUNS_FINISHED: &str = "journeyman.runs.finished";
const EXECUTOR_SLOTS: &str = "journeyman.executors.slots";
const RUNS_WAITING: &str = "journeyman.runs.waiting_for_slot";
const CONTEXT_STEPS: &str = "journeyman.context.steps";
const WITHOUT_LEASE: &str = "journeyman.tickets.without_lease";

static CHATS: LazyLock<Histogram<f64>> = LazyLock::new(|| build_histogram(CHAT_DURATION));
static TOOLS: LazyLock<Histogram<f64>> = LazyLock::new(|| build_histogram(TOOL_DURATION));
static TOKENS: LazyLock<Histogram<u64>> = LazyLock::new(|| {
    let meter = global::meter(METER);
    meter.u64_histogram(TOKEN_USAGE).with_unit("{token}").build()
});
static COST: LazyLock<Counter<u64>> = LazyLock::new(|| {
    let meter = global::meter(METER);
    meter.u64_counter(MODEL_COST).with_unit("{microdollar}").build()
});
static UNCACHED: LazyLock<Counter<u64>> = LazyLock::new(|| build_counter(TURNS_UNCACHED));
static FINISHED: LazyLock<Counter<u64>> = LazyLock::new(|| build_counter(RUNS_FINISHED));
static MADE_SHORTER: LazyLock<Counter<u64>> = LazyLock::new(|| build_counter(CONTEXT_STEPS));
static TAKEN_WITHOUT_LEASE: LazyLock<Counter<u64>> = LazyLock::new(|| build_counter(WITHOUT_LEASE));
static EXECUTOR_SPANS: LazyLock<Counter<u64>> = LazyLock::new(|| build_counter("journeyman.executors.spans"));
static EMBEDDINGS: LazyLock<Counter<u64>> = LazyLock::new(|| build_counter("journeyman.embeddings.rankings"));
static NOT_SHARED: LazyLock<Counter<u64>> = LazyLock::new(|| build_counter("journeyman.budgets.not_shared"));
static BUDGETS_NEAR: LazyLock<Counter<u64>> =
    LazyLock::new(|| build_counter("journeyman.budgets.near_limit"));
static BUDGETS_REFUSED: LazyLock<Counter<u64>> =
    LazyLock::new(|| build_counter("journeyman.budgets.refused"));

static LEAD_TIME: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    let meter = global::meter(METER);
    let histogram = meter.f64_histogram("journeyman.ticket.lead_time").with_unit("s");
    // From a quarter of an hour to two weeks.
    let hours = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 24.0, 48.0, 96.0, 168.0, 336.0];
    histogram
        .with_boundaries(hours.map(|hours| hours * 3_600.0).to_vec())
        .build()
});

fn build_counter(name: &'static str) -> Counter<u64> {
    global::meter(METER).u64_counter(name).build()
}

fn build_histogram(name: &'static str) -> Histogram<f64> {
    let meter = global::meter(METER);
    let histogram = meter.f64_histogram(name).with_unit("s");
    histogram.with_boundaries(SECONDS.to_vec()).build()
}

// From a tool that reads a file to a model that thinks for minutes; the default boundaries suit
// milliseconds.
const SECONDS: [f64; 12] = [
    0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 600.0,
];

// Smallest prompt that every provider caches: a shorter one has no cache read.
const LEAST_CACHED: u64 = 4096;

/// Labels of a model call.
pub(crate) struct ChatLabels<'a> {
    pub(crate) role: &'static str,
    /// Name in the settings.
    pub(crate) provider: &'a str,
    pub(crate) dialect: &'static str,
    pub(crate) model: &'a str,
    pub(crate) max_output_tokens: u32,
    pub(crate) run: &'a str,
    /// True from the second turn of a conversation on.
    pub(crate) goes_on: bool,
}

/// Model call at one provider with all its attempts.
pub(crate) struct ChatCall {
    span: Span,
    labels: Vec<KeyValue>,
    start: Instant,
    goes_on: bool,
}

impl ChatCall {
    /// Starts the span of the call.
    pub(crate) fn start(asked: &ChatLabels<'_>) -> Self {
        let span =
            tracing::info_span!("chat", otel.name = %format!("chat {}", asked.model), otel.kind = "client");
        let labels = vec![
            KeyValue::new(OPERATION, "chat"),
            KeyValue::new(PROVIDER, asked.dialect),
            KeyValue::new(REQUEST_MODEL, asked.model.to_owned()),
            KeyValue::new(MODEL_PROVIDER, asked.provider.to_owned()),
            KeyValue::new(MODEL_ROLE, asked.role),
        ];
        for label in &labels {
            span.set_attribute(label.key.clone(), label.value.clone());
        }
        span.set_attribute(REQUEST_MAX_TOKENS, i64::from(asked.max_output_tokens));
        span.set_attribute(CONVERSATION, asked.run.to_owned());
        Self {
            span,
            labels,
            start: Instant::now(),
            goes_on: asked.goes_on,
        }
    }

    /// Ends the span and records the metrics; an error appears by its kind.
    pub(crate) fn end(mut self, outcome: Result<&ModelReply, &'static str>) {
        match outcome {
            Ok(reply) => self.replied(reply),
            Err(kind) => {
                self.span.set_attribute(ERROR_TYPE, kind);
                self.labels.push(KeyValue::new(ERROR_TYPE, kind));
            }
        }
        // Failed calls count as well, with their kind as a label.
        CHATS.record(self.start.elapsed().as_secs_f64(), &self.labels);
    }

    fn replied(&self, reply: &ModelReply) {
        let usage = reply.usage;
        self.span.set_attribute(RESPONSE_MODEL, reply.model.clone());
        self.span.set_attribute(FINISH_REASONS, stop_name(reply.stop));
        let counts = [
            (INPUT_TOKENS, usage.input_tokens),
            (OUTPUT_TOKENS, usage.output_tokens),
            (CACHE_READ_TOKENS, usage.cache_read_tokens),
            (CACHE_WRITE_TOKENS, usage.cache_write_tokens),
            (MODEL_COST, reply.cost_micros.unwrap_or_default()),
        ];
        for (name, count) in counts {
            self.span
                .set_attribute(name, i64::try_from(count).unwrap_or(i64::MAX));
        }
        let kinds = [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cache_read", usage.cache_read_tokens),
            ("cache_write", usage.cache_write_tokens),
        ];
        for (kind, count) in kinds {
            let mut labels = self.labels.clone();
            labels.push(KeyValue::new(TOKEN_TYPE, kind));
            TOKENS.record(count, &labels);
        }
        COST.add(reply.cost_micros.unwrap_or_default(), &self.labels);
        if misses_cache(self.goes_on, &usage) {
            UNCACHED.add(1, &self.labels);
        }
    }
}

/// Returns true for a later turn without a cache read although its prompt is long enough.
const fn misses_cache(goes_on: bool, usage: &TokenUsage) -> bool {
    goes_on && usage.cache_read_tokens == 0 && usage.input_tokens >= LEAST_CACHED
}

const fn stop_name(stop: ReplyStop) -> &'static str {
    match stop {
        ReplyStop::EndTurn => "end_turn",
        ReplyStop::ToolUse => "tool_use",
        ReplyStop::MaxTokens => "max_tokens",
        ReplyStop::Refusal => "refusal",
    }
}

/// Creates the span of one tool call at an executor.
pub(crate) fn tool_span(run: &str, tool: &str, call: &str) -> Span {
    let span = tracing::info_span!("execute_tool", otel.name = %format!("execute_tool {tool}"), otel.kind = "client");
    span.set_attribute(OPERATION, "execute_tool");
    span.set_attribute(CONVERSATION, run.to_owned());
    span.set_attribute(TOOL_NAME, tool.to_owned());
    span.set_attribute(TOOL_CALL, call.to_owned());
    span
}

/// Counts one finished tool call. Executors offer a fixed set of tools, so the label has few values.
pub(crate) fn count_tool_call(tool: &str, start: Instant, result: &ToolResult) {
    let mut labels = vec![KeyValue::new(TOOL_NAME, tool.to_owned())];
    match result.status {
        ToolStatus::Ok => {}
        ToolStatus::Error => labels.push(KeyValue::new(ERROR_TYPE, "tool_error")),
        ToolStatus::Interrupted => labels.push(KeyValue::new(ERROR_TYPE, "interrupted")),
    }
    TOOLS.record(start.elapsed().as_secs_f64(), &labels);
}

/// Counts one finished run.
pub(crate) fn count_finished_run(job: &'static str, reason: &'static str) {
    let labels = [
        KeyValue::new("journeyman.job", job),
        KeyValue::new("journeyman.stop_reason", reason),
    ];
    FINISHED.add(1, &labels);
}

/// Records the time of a ticket from the first request to the end of its pull request.
pub(crate) fn record_lead_time(lead_time: Duration) {
    LEAD_TIME.record(lead_time.as_secs_f64(), &[]);
}

/// Counts a call whose budget check used only this planner's knowledge.
pub(crate) fn count_unshared_budgets() {
    NOT_SHARED.add(1, &[]);
}

/// Counts a budget of which four fifths are used.
pub(crate) fn count_near_budget(of: &'static str, period: &'static str) {
    BUDGETS_NEAR.add(1, &budget_labels(of, period));
}

/// Counts a call for which a budget had no room.
pub(crate) fn count_refused_budget(of: &'static str, period: &'static str) {
    BUDGETS_REFUSED.add(1, &budget_labels(of, period));
}

fn budget_labels(of: &'static str, period: &'static str) -> [KeyValue; 2] {
    [
        KeyValue::new("journeyman.budget.of", of),
        KeyValue::new("journeyman.budget.period", period),
    ]
}

/// Counts facts that shorten a conversation.
pub(crate) fn count_context_step(fact: &Fact) {
    let is_step = matches!(
        fact,
        Fact::ContextCleared { .. }
            | Fact::SummaryRequested { .. }
            | Fact::Summarized { .. }
            | Fact::SummaryFailed { .. }
    );
    if is_step {
        MADE_SHORTER.add(1, &[KeyValue::new("journeyman.context.step", fact.name())]);
    }
}

/// Counts a ranking by meaning, successful or not.
pub(crate) fn count_ranking(is_ranked: bool) {
    let outcome = if is_ranked { "ok" } else { "failed" };
    EMBEDDINGS.add(1, &[KeyValue::new("journeyman.outcome", outcome)]);
}

/// Counts a ticket that is taken although Redis gives no lease.
pub(crate) fn count_missing_lease() {
    TAKEN_WITHOUT_LEASE.add(1, &[]);
}

/// Counts spans of executors: `sent` to the collector, `refused`, or `lost` before the collector.
pub(crate) fn count_executor_spans(outcome: &'static str, count: usize) {
    if count > 0 {
        let outcome = KeyValue::new("journeyman.outcome", outcome);
        EXECUTOR_SPANS.add(count as u64, &[outcome]);
    }
}

/// Slots of one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolSlots {
    pub(crate) free: u32,
    pub(crate) total: u32,
    /// Open workspaces, those of draining executors included.
    pub(crate) held: u32,
}

/// Figures of one pool for autoscalers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolFigures {
    pub(crate) pool: String,
    pub(crate) slots: PoolSlots,
    /// Runs that wait for a slot.
    pub(crate) waiting: u64,
}

// A gauge is read by callback at export time, so the last values are kept here.
static SLOTS: OnceLock<Mutex<Vec<PoolFigures>>> = OnceLock::new();

/// Records the figures of each pool for autoscalers: its slots, and the runs that wait for one.
pub(crate) fn record_slots(seen: Vec<PoolFigures>) {
    let known = SLOTS.get_or_init(|| {
        observe_slots();
        Mutex::default()
    });
    *known.lock() = seen;
}

/// Returns the last recorded figures; empty before the first.
pub(crate) fn last_slots() -> Vec<PoolFigures> {
    let known = SLOTS.get();
    known.map(|known| known.lock().clone()).unwrap_or_default()
}

fn observe_slots() {
    let labels = |pool: &str, state: &'static str| {
        let pool = KeyValue::new("journeyman.pool", pool.to_owned());
        [pool, KeyValue::new("journeyman.state", state)]
    };
    let meter = global::meter(METER);
    meter
        .u64_observable_gauge(EXECUTOR_SLOTS)
        .with_callback(move |gauge| {
            for PoolFigures { pool, slots, .. } in last_slots() {
                let used = slots.total.saturating_sub(slots.free);
                gauge.observe(slots.free.into(), &labels(&pool, "free"));
                gauge.observe(used.into(), &labels(&pool, "used"));
            }
        })
        .build();
    meter
        .u64_observable_gauge(RUNS_WAITING)
        .with_callback(|gauge| {
            for PoolFigures { pool, waiting, .. } in last_slots() {
                gauge.observe(waiting, &[KeyValue::new("journeyman.pool", pool)]);
            }
        })
        .build();
}

struct MetadataInjector<'a>(&'a mut MetadataMap);

impl Injector for MetadataInjector<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(key), Ok(value)) = (MetadataKey::from_bytes(key.as_bytes()), value.parse()) {
            self.0.insert(key, value);
        }
    }
}

/// Makes the current span the parent of the executor's spans.
pub(crate) fn inject_trace(metadata: &mut MetadataMap) {
    let context = Span::current().context();
    global::get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut MetadataInjector(metadata))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_later_turns_count_uncached() {
        let usage = |input_tokens, cache_read_tokens| TokenUsage {
            input_tokens,
            cache_read_tokens,
            ..TokenUsage::default()
        };
        assert!(misses_cache(true, &usage(5000, 0)));
        assert!(!misses_cache(false, &usage(5000, 0)));
        assert!(!misses_cache(true, &usage(5000, 1)));
        assert!(!misses_cache(true, &usage(4000, 0)));
    }
}
