//! Places for live event streams. Each is a consumer at the queue, so there are few, and one token cannot have them all.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::Problem;

/// Streams at once, of everybody.
const ALL: usize = 64;
/// Streams at once of one token.
const OF_ONE: usize = 16;

/// How many streams each token has open.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<BTreeMap<String, usize>>);

/// A stream's place, for as long as it lives.
#[derive(Debug)]
pub(super) struct Place {
    streams: Arc<Streams>,
    token: String,
}

impl Streams {
    /// Refuses a stream when there are too many.
    pub(super) fn open(self: &Arc<Self>, token: &str) -> Result<Place, Problem> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(token).is_some_and(|own| *own >= OF_ONE) {
            return Err(Problem::TooMany(format!(
                "this token has {OF_ONE} event streams open; close one first"
            )));
        }
        if open.values().sum::<usize>() >= ALL {
            return Err(Problem::TooMany(
                "too many event streams are open; close one, or try later".to_owned(),
            ));
        }
        *open.entry(token.to_owned()).or_default() += 1;
        Ok(Place {
            streams: Arc::clone(self),
            token: token.to_owned(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.token) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_leaves_places_for_others_and_everybody_together_has_so_many() {
        let streams = Arc::new(Streams::default());
        let mut places: Vec<_> = (0..OF_ONE)
            .map(|_| streams.open("greedy").expect("place"))
            .collect();
        assert!(matches!(streams.open("greedy"), Err(Problem::TooMany(_))));
        for other in 1..ALL / OF_ONE {
            places.extend((0..OF_ONE).map(|_| streams.open(&other.to_string()).expect("place")));
        }
        assert!(matches!(streams.open("late"), Err(Problem::TooMany(_))));
        drop(places.pop());
        assert!(streams.open("late").is_ok());
    }

    #[test]
    fn a_stream_that_ends_gives_its_place_back() {
        let streams = Arc::new(Streams::default());
        for _ in 0..2 * OF_ONE {
            drop(streams.open("one").expect("place"));
        }
        assert!(streams.0.lock().expect("lock").is_empty());
    }
}
