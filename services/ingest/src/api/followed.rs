//! Runs that are followed: one consumer at the queue for each, however many look at it.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, Weak},
};

use axum::response::sse::Event;
use domain::{Entry, Fact, RunId, cause::chain};
use futures::{Stream, StreamExt as _, stream, stream::BoxStream};
use queue::Queue;
use tokio::sync::{Mutex, watch};
use tokio_util::task::AbortOnDropHandle;

use super::Problem;

/// Runs that are followed at once.
const RUNS: usize = 64;

/// The runs that somebody follows now.
#[derive(Default)]
pub(crate) struct Followed(Mutex<BTreeMap<RunId, Weak<Run>>>);

/// The journal of one run as events, for as long as somebody follows it.
struct Run {
    told: Arc<RwLock<Vec<Told>>>,
    grown: watch::Receiver<Grown>,
    _following: AbortOnDropHandle<()>,
}

struct Told {
    position: u64,
    event: Event,
}

#[derive(Clone, Copy, Debug, Default)]
struct Grown {
    count: usize,
    /// The run has ended, or its journal cannot be read now.
    is_over: bool,
}

impl Followed {
    /// A run's entries from a position on, as they are written; ends after the run's last fact, or at an error: the client comes
    /// back with `Last-Event-ID`.
    pub(super) async fn follow(
        &self,
        queue: &Queue,
        run: &RunId,
        from: u64,
    ) -> Result<impl Stream<Item = Event> + Send + use<>, Problem> {
        let run = self.shared(queue, run).await?;
        Ok(stream::unfold((run, 0), move |(run, mut next)| async move {
            loop {
                match run.told(next, from) {
                    Ok((event, seen)) => return Some((event, (run, seen))),
                    Err(looked) => next = run.grown_beyond(looked).await?,
                }
            }
        }))
    }

    /// The run that others follow already, or a new one.
    async fn shared(&self, queue: &Queue, run: &RunId) -> Result<Arc<Run>, Problem> {
        let mut open = self.0.lock().await;
        open.retain(|_, run| run.strong_count() > 0);
        // One that broke off is begun anew.
        let known = open.get(run).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| !known.grown.borrow().is_over) {
            return Ok(known);
        }
        if open.len() >= RUNS && !open.contains_key(run) {
            let problem = format!("{RUNS} runs are followed already; try later");
            return Err(Problem::TooMany(problem));
        }
        let shared = Arc::new(Run::begin(queue.journal().follow(run, 0).await?));
        open.insert(run.clone(), Arc::downgrade(&shared));
        Ok(shared)
    }
}

impl Run {
    fn begin(entries: BoxStream<'static, Result<Entry, queue::Error>>) -> Self {
        let told = Arc::default();
        let (grows, grown) = watch::channel(Grown::default());
        let following = tokio::spawn(tell(entries, Arc::clone(&told), grows));
        Self {
            told,
            grown,
            _following: AbortOnDropHandle::new(following),
        }
    }

    /// The first event at or after an index whose position is wanted, and the index behind it; else how many there are.
    fn told(&self, index: usize, from: u64) -> Result<(Event, usize), usize> {
        let told = self.told.read().unwrap_or_else(PoisonError::into_inner);
        let mut rest = told.iter().enumerate().skip(index);
        match rest.find(|(_, told)| told.position >= from) {
            Some((at, found)) => Ok((found.event.clone(), at + 1)),
            None => Err(told.len()),
        }
    }

    /// Waits until there are more than were looked through, and gives where those begin; `None` at the end.
    async fn grown_beyond(&self, looked: usize) -> Option<usize> {
        let mut grown = self.grown.clone();
        let now = *grown
            .wait_for(|grown| grown.count > looked || grown.is_over)
            .await
            .ok()?;
        (now.count > looked).then_some(looked)
    }
}

async fn tell(
    entries: BoxStream<'static, Result<Entry, queue::Error>>,
    told: Arc<RwLock<Vec<Told>>>,
    grows: watch::Sender<Grown>,
) {
    let mut entries = Box::pin(until_finished(entries));
    while let Some(entry) = entries.next().await {
        let position = entry.position;
        let Some(event) = of_entry(entry) else { continue };
        let mut told = told.write().unwrap_or_else(PoisonError::into_inner);
        told.push(Told { position, event });
        let count = told.len();
        drop(told);
        grows.send_modify(|grown| grown.count = count);
    }
    grows.send_modify(|grown| grown.is_over = true);
}

/// Ends after the run's last fact, or at an error.
fn until_finished(
    entries: BoxStream<'static, Result<Entry, queue::Error>>,
) -> impl Stream<Item = Entry> + Send {
    stream::unfold(Some(entries), async |entries| {
        let mut entries = entries?;
        match entries.next().await? {
            Ok(entry) => {
                let over = matches!(entry.fact, Fact::RunFinished { .. });
                Some((entry, (!over).then_some(entries)))
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "event stream ended");
                None
            }
        }
    })
}

fn of_entry(entry: Entry) -> Option<Event> {
    let event = Event::default()
        .id(entry.position.to_string())
        .event(entry.fact.name());
    event.json_data(entry).ok()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const FENCE: &str = r#"{"epoch":1,"sequence":57,"delivered":2}"#;

    fn entry(position: u64) -> Result<Entry, queue::Error> {
        let line = format!(
            r#"{{"position":{position},"at":1000,"nonce":"n","fence":{FENCE},"fact":{{"type":"taken_over","fence":{FENCE}}}}}"#
        );
        Ok(serde_json::from_str(&line).expect("an entry"))
    }

    async fn positions(run: &Run, from: u64) -> (Vec<usize>, Option<usize>) {
        let (mut seen, mut next) = (Vec::new(), 0);
        loop {
            match run.told(next, from) {
                Ok((_, behind)) => {
                    seen.push(behind - 1);
                    next = behind;
                }
                Err(looked) => return (seen, run.grown_beyond(looked).now_or_never().flatten()),
            }
        }
    }

    #[tokio::test]
    async fn whoever_comes_later_sees_everything_from_where_it_left_off() {
        let (more, entries) = futures::channel::mpsc::unbounded();
        let run = Run::begin(entries.boxed());
        for position in 0..3 {
            more.unbounded_send(entry(position)).expect("sent");
        }
        let mut grown = run.grown.clone();
        grown.wait_for(|grown| grown.count == 3).await.expect("told");
        assert_eq!(positions(&run, 0).await, (vec![0, 1, 2], None));
        assert_eq!(positions(&run, 2).await, (vec![2], None));
        // Nothing that is wanted is there yet; it is waited for, not looked for again and again.
        assert_eq!(positions(&run, 9).await, (vec![], None));
        more.unbounded_send(entry(9)).expect("sent");
        grown.wait_for(|grown| grown.count == 4).await.expect("told");
        assert_eq!(positions(&run, 9).await.0, [3]);
        drop(more);
        grown.wait_for(|grown| grown.is_over).await.expect("over");
        assert_eq!(run.grown_beyond(4).await, None, "it ends with the journal");
    }
}
