//! Places for live event streams. One token cannot have them all.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::Problem;

/// Streams of one kind at once of one token.
const OF_ONE: usize = 16;

/// What is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Of {
    /// One run: everybody who follows the same run shares one consumer at the queue.
    Run,
    /// Every run: each is a consumer of its own, so there are few.
    Everything,
}

impl Of {
    /// Streams at once, of everybody.
    const fn most(self) -> usize {
        match self {
            Self::Run => 1024,
            Self::Everything => 64,
        }
    }
}

/// How many streams each token has open.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<BTreeMap<(Of, String), usize>>);

/// A stream's place, for as long as it lives.
#[derive(Debug)]
pub(super) struct Place {
    streams: Arc<Streams>,
    of: (Of, String),
}

impl Streams {
    /// Refuses a stream when there are too many.
    pub(super) fn open(self: &Arc<Self>, of: Of, token: &str) -> Result<Place, Problem> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = (of, token.to_owned());
        if open.get(&own).is_some_and(|own| *own >= OF_ONE) {
            return Err(Problem::TooMany(format!(
                "this token has {OF_ONE} event streams open; close one first"
            )));
        }
        let like = open.iter().filter(|((other, _), _)| *other == of);
        if like.map(|(_, count)| count).sum::<usize>() >= of.most() {
            return Err(Problem::TooMany(
                "too many event streams are open; close one, or try later".to_owned(),
            ));
        }
        *open.entry(own.clone()).or_default() += 1;
        Ok(Place {
            streams: Arc::clone(self),
            of: own,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn one_token_leaves_places_for_others_and_everybody_together_has_so_many() {
        for of in [Of::Run, Of::Everything] {
            let streams = Arc::new(Streams::default());
            let open = |token: &str| streams.open(of, token);
            let mut places: Vec<_> = (0..OF_ONE).map(|_| open("greedy").expect("place")).collect();
            assert!(matches!(open("greedy"), Err(Problem::TooMany(_))));
            for other in 1..of.most() / OF_ONE {
                places.extend((0..OF_ONE).map(|_| open(&other.to_string()).expect("place")));
            }
            assert!(matches!(open("late"), Err(Problem::TooMany(_))));
            drop(places.pop());
            assert!(open("late").is_ok());
        }
    }

    #[test]
    fn a_stream_that_ends_gives_its_place_back() {
        let streams = Arc::new(Streams::default());
        for _ in 0..2 * OF_ONE {
            drop(streams.open(Of::Run, "one").expect("place"));
        }
        assert!(streams.0.lock().expect("lock").is_empty());
    }
}
