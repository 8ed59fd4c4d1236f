//! Followed runs: one consumer at the queue per run, shared by all its followers, and the newest events in memory.
//!
//! A follower that is further behind reads the journal page by page until it has caught up.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Weak},
};

use axum::response::sse::Event;
use domain::{Fact, JournalEntry, RunId, cause::format_error_chain};
use futures::{Stream, StreamExt as _, stream, stream::BoxStream};
use parking_lot::{Mutex, RwLock};
use queue::{Queue, RunJournals};
use tokio::sync::{OnceCell, watch};
use tokio_util::task::AbortOnDropHandle;

use super::ApiProblem;

// Limit of concurrently followed runs. It bounds the memory to this times `MAX_KEPT_BYTES`.
const MAX_RUNS: usize = 64;
// Bytes of a run's newest events that are kept. The last event is always kept.
const MAX_KEPT_BYTES: usize = 512 * 1024;

/// Runs with at least one follower.
#[derive(Default)]
pub(crate) struct FollowedRuns(Mutex<BTreeMap<RunId, Weak<OnceCell<LiveRun>>>>);

/// Newest part of one run's journal as events, shared by its followers.
struct LiveRun {
    recent: Arc<RwLock<RecentEvents>>,
    growth: watch::Receiver<RunGrowth>,
    _following: AbortOnDropHandle<()>,
}

/// Newest events, in order of their positions.
#[derive(Default)]
struct RecentEvents {
    events: VecDeque<RecentEvent>,
    bytes: usize,
}

struct RecentEvent {
    position: u64,
    bytes: usize,
    event: Event,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default)]
struct RunGrowth {
    /// Position after the newest event; 0: no event yet.
    next: u64,
    /// True when the run has ended, or its journal is unreadable at the moment.
    is_over: bool,
}

/// Next event for a follower.
enum NextEvent {
    Here(Event, u64),
    /// The event is no longer in memory.
    InJournal,
    NotYet,
}

/// Follower of a run.
struct RunFollower {
    cell: Arc<OnceCell<LiveRun>>,
    journal: RunJournals,
    run: RunId,
    /// Position that it needs next.
    next: u64,
    /// Journal entries to read until it has caught up.
    history: Option<BoxStream<'static, Result<JournalEntry, queue::Error>>>,
    /// Position at which it last read the journal. An entry that the read did not find is gone.
    searched: Option<u64>,
    is_over: bool,
}

impl FollowedRuns {
    /// Streams a run's entries from a position on, as they are written. Ends after the run's last fact, or at an error: the
    /// client then reconnects with `Last-Event-ID`.
    pub(super) async fn follow(
        &self,
        queue: &Queue,
        run: &RunId,
        from: u64,
    ) -> Result<impl Stream<Item = Event> + Send + use<>, ApiProblem> {
        let journal = queue.journal();
        let cell = self.shared(run)?;
        // The lock of the map is not held here, so a slow answer of the queue delays only this run.
        let begin = || async { journal.follow_newest(run).await.map(LiveRun::begin) };
        // The subscription starts before the journal is read, so that an entry in between is in one of
        // both.
        cell.get_or_try_init(begin).await?;
        let follower = RunFollower {
            history: Some(read_journal(&journal, run)),
            searched: Some(from),
            cell,
            journal,
            run: run.clone(),
            next: from,
            is_over: false,
        };
        Ok(stream::unfold(follower, async |mut follower| {
            let event = follower.next_event().await?;
            Some((event, follower))
        }))
    }

    /// Shared state of a run that others follow already, or a new one.
    fn shared(&self, run: &RunId) -> Result<Arc<OnceCell<LiveRun>>, ApiProblem> {
        let mut open = self.0.lock();
        open.retain(|_, cell| cell.strong_count() > 0);
        // A run whose consumer failed is followed again with a new one.
        let is_over =
            |cell: &Arc<OnceCell<LiveRun>>| cell.get().is_some_and(|run| run.growth.borrow().is_over);
        let known = open.get(run).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| !is_over(known)) {
            return Ok(known);
        }
        if open.len() >= MAX_RUNS && !open.contains_key(run) {
            let problem = format!("{MAX_RUNS} runs are followed already; try later");
            return Err(ApiProblem::TooMany(problem));
        }
        let cell = Arc::new(OnceCell::new());
        // The reference is weak, so that the consumer at the queue ends with the last follower.
        open.insert(run.clone(), Arc::downgrade(&cell));
        Ok(cell)
    }
}

impl RunFollower {
    async fn next_event(&mut self) -> Option<Event> {
        while !self.is_over {
            if let Some(history) = &mut self.history {
                let entry = match history.next().await {
                    Some(Ok(entry)) => entry,
                    Some(Err(error)) => {
                        tracing::warn!(run = %self.run, error = %format_error_chain(&error), "event stream ended");
                        return None;
                    }
                    None => {
                        self.history = None;
                        continue;
                    }
                };
                self.is_over = is_last(&entry);
                if entry.position < self.next {
                    continue;
                }
                self.next = entry.position + 1;
                if let Some((event, _)) = to_event(entry) {
                    return Some(event);
                }
                continue;
            }
            let run = self.cell.get()?;
            match run.event_from(self.next, self.searched == Some(self.next)) {
                NextEvent::Here(event, position) => {
                    self.next = position + 1;
                    return Some(event);
                }
                NextEvent::InJournal => {
                    self.history = Some(read_journal(&self.journal, &self.run));
                    self.searched = Some(self.next);
                }
                NextEvent::NotYet => run.wait_beyond(self.next).await?,
            }
        }
        None
    }
}

impl LiveRun {
    fn begin(entries: BoxStream<'static, Result<JournalEntry, queue::Error>>) -> Self {
        let recent = Arc::default();
        let (grows, growth) = watch::channel(RunGrowth::default());
        let following = tokio::spawn(gather_events(entries, Arc::clone(&recent), grows));
        Self {
            recent,
            growth,
            _following: AbortOnDropHandle::new(following),
        }
    }

    /// First event from a position on. An event that is only in the journal is skipped after a search of the journal failed.
    fn event_from(&self, wanted: u64, is_searched: bool) -> NextEvent {
        let recent = self.recent.read();
        match recent.events.front() {
            None => NextEvent::NotYet,
            Some(first) if first.position > wanted && !is_searched => NextEvent::InJournal,
            Some(_) => match recent.events.iter().find(|event| event.position >= wanted) {
                Some(found) => NextEvent::Here(found.event.clone(), found.position),
                None => NextEvent::NotYet,
            },
        }
    }

    /// Waits for an event at or after a position; `None` at the end.
    async fn wait_beyond(&self, wanted: u64) -> Option<()> {
        let mut growth = self.growth.clone();
        let now = *growth
            .wait_for(|growth| growth.next > wanted || growth.is_over)
            .await
            .ok()?;
        (now.next > wanted).then_some(())
    }
}

impl RecentEvents {
    fn push(&mut self, event: RecentEvent) {
        self.bytes += event.bytes;
        self.events.push_back(event);
        while self.bytes > MAX_KEPT_BYTES && self.events.len() > 1 {
            self.bytes -= self.events.pop_front().map_or(0, |oldest| oldest.bytes);
        }
    }
}

async fn gather_events(
    mut entries: BoxStream<'static, Result<JournalEntry, queue::Error>>,
    recent: Arc<RwLock<RecentEvents>>,
    grows: watch::Sender<RunGrowth>,
) {
    while let Some(entry) = entries.next().await {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                tracing::warn!(error = %format_error_chain(&error), "event stream ended");
                break;
            }
        };
        let (position, is_last) = (entry.position, is_last(&entry));
        if let Some((event, bytes)) = to_event(entry) {
            let mut recent = recent.write();
            recent.push(RecentEvent {
                position,
                bytes,
                event,
            });
        }
        // The event is stored before the followers are woken, because they look for it at once.
        grows.send_modify(|growth| growth.next = position + 1);
        if is_last {
            break;
        }
    }
    grows.send_modify(|growth| growth.is_over = true);
}

/// Stream of the run's journal so far.
fn read_journal(
    journal: &RunJournals,
    run: &RunId,
) -> BoxStream<'static, Result<JournalEntry, queue::Error>> {
    let entries = journal.entries(run);
    entries.map(|entry| entry.map(|(_, entry)| entry)).boxed()
}

const fn is_last(entry: &JournalEntry) -> bool {
    matches!(entry.fact, Fact::RunFinished { .. })
}

/// SSE event of an entry, and its approximate size in bytes.
fn to_event(entry: JournalEntry) -> Option<(Event, usize)> {
    let event = Event::default()
        .id(entry.position.to_string())
        .event(entry.fact.name());
    let text = serde_json::to_string(&entry).ok()?;
    let bytes = text.len();
    Some((event.data(text), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE: &str = r#"{"epoch":1,"sequence":57,"delivered":2}"#;

    fn build_journal_entry(position: u64, nonce: &str) -> Result<JournalEntry, queue::Error> {
        let line = format!(
            r#"{{"position":{position},"at":1000,"nonce":"{nonce}","fence":{FENCE},"fact":{{"type":"taken_over","fence":{FENCE}}}}}"#
        );
        Ok(serde_json::from_str(&line).expect("an entry"))
    }

    /// Position of the event that a follower gets, `None` for a follower that waits, `-1` for one that must read the journal.
    fn find_event_position(run: &LiveRun, wanted: u64, is_searched: bool) -> Option<i64> {
        match run.event_from(wanted, is_searched) {
            NextEvent::Here(_, position) => i64::try_from(position).ok(),
            NextEvent::InJournal => Some(-1),
            NextEvent::NotYet => None,
        }
    }

    #[tokio::test]
    async fn newest_events_come_from_memory() {
        let (more, entries) = futures::channel::mpsc::unbounded();
        let run = LiveRun::begin(entries.boxed());
        assert_eq!(find_event_position(&run, 0, true), None);
        for position in 5..8 {
            more.unbounded_send(build_journal_entry(position, "n"))
                .expect("sent");
        }
        run.wait_beyond(7).await.expect("they come");
        assert_eq!(
            find_event_position(&run, 4, false),
            Some(-1),
            "the journal has it"
        );
        assert_eq!(find_event_position(&run, 4, true), Some(5), "nobody has it");
        assert_eq!(
            [5, 7, 8].map(|wanted| find_event_position(&run, wanted, false)),
            [Some(5), Some(7), None]
        );
        drop(more);
        assert_eq!(run.wait_beyond(8).await, None, "it ends with the journal");
    }

    #[tokio::test]
    async fn long_run_keeps_bounded_memory() {
        let (more, entries) = futures::channel::mpsc::unbounded();
        let run = LiveRun::begin(entries.boxed());
        let long = "x".repeat(100_000);
        for position in 0..100 {
            more.unbounded_send(build_journal_entry(position, &long))
                .expect("sent");
        }
        run.wait_beyond(99).await.expect("they come");
        let (bytes, kept) = {
            let recent = run.recent.read();
            (recent.bytes, recent.events.len())
        };
        assert!(bytes <= MAX_KEPT_BYTES && kept == 5, "{kept}");
        more.unbounded_send(build_journal_entry(100, &"x".repeat(2 * MAX_KEPT_BYTES)))
            .expect("sent");
        run.wait_beyond(100).await.expect("it comes");
        assert_eq!(
            find_event_position(&run, 100, false),
            Some(100),
            "one always fits"
        );
        assert_eq!(find_event_position(&run, 99, false), Some(-1));
    }
}
