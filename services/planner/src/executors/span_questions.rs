//! Questions for the spans of executors: each is asked once the spans of its call have ended.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use bootstrap::span_forwarder::SpanOrigin;
use opentelemetry::trace::{SpanId, TraceId};
use parking_lot::Mutex;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use super::connection::RunCaller;

// The span of a call ends a little after its answer, and one question covers calls in quick succession.
const SETTLE_TIME: Duration = Duration::from_secs(1);
/// Longest delay of a question by calls in quick succession.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Limit of waiting questions; more are dropped.
const MOST_WAITING: usize = 4096;
/// Ids of spans that this planner remembers as parents of executor spans.
const MOST_CALLS: usize = 16_384;

/// Questions for spans, and the calls of this planner beneath which those spans may be.
pub(super) struct SpanQuestions {
    pub(super) wanted: mpsc::Sender<WantedSpans>,
    pub(super) calls: Mutex<CallSpans>,
    pub(super) stop: CancellationToken,
    pub(super) ended: CancellationToken,
}

/// Question for the spans of one trace at one executor.
pub(super) struct WantedSpans {
    pub(super) executor: String,
    pub(super) version: String,
    pub(super) trace: TraceId,
    pub(super) caller: RunCaller,
}

impl WantedSpans {
    pub(super) fn origin(&self) -> SpanOrigin {
        let address = self.executor.split_once("://");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
        let version = Some(self.version.clone());
        SpanOrigin {
            service: "executor",
            // The address that this planner uses: a name by the executor could be that of another one.
            instance: address
                .map_or(self.executor.as_str(), |(_, rest)| rest)
                .to_owned(),
            version: version
                .filter(|version| version.len() <= 32 && version.bytes().all(is_plain))
                .unwrap_or_default(),
        }
    }
}

/// The most recent spans of this planner under which executors worked.
#[derive(Default)]
pub(super) struct CallSpans {
    known: HashSet<SpanId>,
    order: VecDeque<SpanId>,
}

impl CallSpans {
    pub(super) fn add(&mut self, id: SpanId) {
        if self.known.insert(id) {
            self.order.push_back(id);
        }
        if self.order.len() > MOST_CALLS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// Has the spans of one call asked for once the call is over, however it ends.
pub(crate) struct CallNote<'a> {
    pub(super) questions: &'a SpanQuestions,
    pub(super) wanted: Option<WantedSpans>,
}

impl Drop for CallNote<'_> {
    fn drop(&mut self) {
        if let Some(wanted) = self.wanted.take()
            && self.questions.wanted.try_send(wanted).is_err()
        {
            tracing::debug!("an executor is not asked for its spans: too many are");
        }
    }
}

/// Question for the spans of a trace at an executor, with its time.
struct DueQuestion {
    wanted: WantedSpans,
    first: Instant,
    at: Instant,
}

/// Questions that wait until the spans of the last call have ended.
#[derive(Default)]
pub(super) struct DueQuestions(HashMap<(String, TraceId), DueQuestion>);

impl DueQuestions {
    pub(super) fn add(&mut self, wanted: WantedSpans) {
        let now = Instant::now();
        let key = (wanted.executor.clone(), wanted.trace);
        if self.0.len() >= MOST_WAITING && !self.0.contains_key(&key) {
            return;
        }
        let first = self.0.get(&key).map_or(now, |due| due.first);
        let at = (now + SETTLE_TIME).min(first + LONGEST_WAIT);
        self.0.insert(key, DueQuestion { wanted, first, at });
    }

    /// Time of the next question.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.0.values().map(|due| due.at).min()
    }

    /// The question that is due longest at this time.
    pub(super) fn take(&mut self, until: Instant) -> Option<WantedSpans> {
        let due = self.0.iter().filter(|(_, due)| due.at <= until);
        let key = due.min_by_key(|(_, due)| due.at)?.0.clone();
        self.0.remove(&key).map(|due| due.wanted)
    }
}

impl SpanQuestions {
    /// Returns the questions of a relay, and their receiver.
    pub(super) fn new() -> (Self, mpsc::Receiver<WantedSpans>) {
        let (wanted, received) = mpsc::channel(MOST_WAITING);
        let questions = Self {
            wanted,
            calls: Mutex::default(),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
        };
        (questions, received)
    }

    pub(super) fn is_call(&self, id: SpanId) -> bool {
        let calls = self.calls.lock();
        calls.known.contains(&id)
    }
}
