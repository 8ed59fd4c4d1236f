//! Limits of live event streams, per token and in total.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use super::ApiProblem;

// Concurrent streams of one kind for one token. One token cannot occupy all of them.
const OF_ONE: usize = 16;

/// Kind of an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StreamKind {
    /// Events of one run. All followers of a run share one consumer at the queue, so these streams
    /// are cheap.
    Run,
    /// Events of all runs. Each stream is a separate consumer, so the limit is low.
    Everything,
}

impl StreamKind {
    /// Maximum of concurrent streams of all tokens.
    const fn most(self) -> usize {
        match self {
            Self::Run => 1024,
            Self::Everything => 64,
        }
    }
}

/// Number of open streams by kind and token.
#[derive(Debug, Default)]
pub(crate) struct StreamSlots(Mutex<BTreeMap<(StreamKind, String), usize>>);

/// Slot of an open stream, released on drop.
#[derive(Debug)]
pub(super) struct StreamSlot {
    streams: Arc<StreamSlots>,
    of: (StreamKind, String),
}

impl StreamSlots {
    /// Reserves a slot.
    ///
    /// # Errors
    /// [`ApiProblem::TooMany`] when the token or the kind is at its limit.
    pub(super) fn open(self: &Arc<Self>, of: StreamKind, token: &str) -> Result<StreamSlot, ApiProblem> {
        let mut open = self.0.lock();
        let own = (of, token.to_owned());
        if open.get(&own).is_some_and(|own| *own >= OF_ONE) {
            return Err(ApiProblem::TooMany(format!(
                "this token has {OF_ONE} event streams open; close one first"
            )));
        }
        let like = open.iter().filter(|((other, _), _)| *other == of);
        if like.map(|(_, count)| count).sum::<usize>() >= of.most() {
            return Err(ApiProblem::TooMany(
                "too many event streams are open; close one, or try later".to_owned(),
            ));
        }
        *open.entry(own.clone()).or_default() += 1;
        Ok(StreamSlot {
            streams: Arc::clone(self),
            of: own,
        })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock();
        if let Some(own) = open.get_mut(&self.of) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_limits_hold_per_token_and_total() {
        for of in [StreamKind::Run, StreamKind::Everything] {
            let streams = Arc::new(StreamSlots::default());
            let open = |token: &str| streams.open(of, token);
            let mut places: Vec<_> = (0..OF_ONE).map(|_| open("greedy").expect("place")).collect();
            assert!(matches!(open("greedy"), Err(ApiProblem::TooMany(_))));
            for other in 1..of.most() / OF_ONE {
                places.extend((0..OF_ONE).map(|_| open(&other.to_string()).expect("place")));
            }
            assert!(matches!(open("late"), Err(ApiProblem::TooMany(_))));
            drop(places.pop());
            assert!(open("late").is_ok());
        }
    }

    #[test]
    fn ended_stream_releases_its_slot() {
        let streams = Arc::new(StreamSlots::default());
        for _ in 0..2 * OF_ONE {
            drop(streams.open(StreamKind::Run, "one").expect("place"));
        }
        assert!(streams.0.lock().is_empty());
    }
}
