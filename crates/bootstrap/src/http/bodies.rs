//! Request bodies read into a shared, bounded amount of memory.

use std::{collections::BTreeMap, io, pin::pin, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, StatusCode, header},
};
use bytes::Bytes;
use futures::StreamExt as _;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

// First allocation of a body; it doubles when it is full.
const FIRST: usize = 8 * 1024;
// Time for which a body keeps its memory although another one needs it. An honest body is usually complete
// sooner.
const SETTLED: Duration = Duration::from_secs(1);

/// Reason why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body is larger than allowed. No byte beyond the limit was kept.
    #[error("the body is too large")]
    TooLarge,
    /// The body arrived below the minimum rate.
    #[error("the body came too slowly")]
    TooSlow,
    /// Other bodies needed the memory, and this one had been arriving for the longest time.
    #[error("too many request bodies at once; try again")]
    NoRoom,
    /// The connection ended, or the framing of the body was invalid.
    #[error("the body is not complete")]
    Broken,
}

impl BodyError {
    /// Status of the response: 413, 408, 503 or 400.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reader of request bodies with a common memory limit. Cheap to clone.
///
/// When the memory is used up, the body that has been arriving for the longest time is dropped. So bodies
/// that never end cannot keep new ones out.
#[derive(Clone, Debug)]
pub struct RequestBodies {
    shared: Arc<BodyMemory>,
}

#[derive(Debug)]
struct BodyMemory {
    memory: usize,
    largest: usize,
    readers: Mutex<ActiveReaders>,
    released: Notify,
}

#[derive(Debug, Default)]
struct ActiveReaders {
    next: u64,
    used: usize,
    /// Bodies by number of arrival, so that the first one is the oldest.
    reading: BTreeMap<u64, ActiveBody>,
}

#[derive(Debug)]
struct ActiveBody {
    since: Instant,
    held: usize,
    displaced: CancellationToken,
}

impl RequestBodies {
    /// Creates a reader with at most `memory` bytes for all bodies together and `largest` for each. `memory`
    /// is raised to `largest`.
    pub fn new(memory: usize, largest: usize) -> Self {
        Self {
            shared: Arc::new(BodyMemory {
                // A single body of the allowed size must fit, or its reader would displace itself.
                memory: memory.max(largest),
                largest,
                readers: Mutex::default(),
                released: Notify::new(),
            }),
        }
    }

    /// Reads a whole body. A body whose `Content-Length` exceeds the limit is refused before any read.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, BodyError> {
        let announced = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        let largest = self.shared.largest;
        if announced.is_some_and(|length| length > largest) {
            return Err(BodyError::TooLarge);
        }
        let reader = self.enter();
        let reading = read_whole_body(&reader, announced.unwrap_or(largest), body);
        reader
            .displaced
            .run_until_cancelled(reading)
            .await
            .unwrap_or(Err(BodyError::NoRoom))
    }

    fn enter(&self) -> BodyReader {
        let displaced = CancellationToken::new();
        let mut readers = self.shared.readers.lock();
        let id = readers.next;
        readers.next += 1;
        let reading = ActiveBody {
            since: Instant::now(),
            held: 0,
            displaced: displaced.clone(),
        };
        readers.reading.insert(id, reading);
        BodyReader {
            shared: Arc::clone(&self.shared),
            id,
            displaced,
        }
    }
}

async fn read_whole_body(reader: &BodyReader, expected: usize, body: Body) -> Result<Bytes, BodyError> {
    let largest = reader.shared.largest;
    let mut chunks = pin!(body.into_data_stream());
    let mut whole = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| classify_body_error(&error))?;
        let needed = whole.len() + chunk.len();
        if needed > largest {
            return Err(BodyError::TooLarge);
        }
        if needed > whole.capacity() {
            // Not more than the announced length, so that small bodies leave the memory to others.
            let wanted = (whole.capacity() * 2).max(FIRST).min(expected).max(needed);
            reader.hold(wanted).await?;
            // Exactly the reserved amount: `Vec` would round up beyond what is accounted for.
            whole.reserve_exact(wanted - whole.len());
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.into())
}

fn classify_body_error(error: &axum::Error) -> BodyError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    // axum and hyper wrap the error of `MinRateBody`, so the whole chain is searched.
    while let Some(error) = cause {
        if error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
        {
            return BodyError::TooSlow;
        }
        cause = error.source();
    }
    BodyError::Broken
}

/// Body that is being read. Its memory is released on drop.
struct BodyReader {
    shared: Arc<BodyMemory>,
    id: u64,
    displaced: CancellationToken,
}

impl BodyReader {
    /// Reserves memory up to this many bytes. Waits for other bodies or displaces the oldest one if there is
    /// not enough.
    async fn hold(&self, bytes: usize) -> Result<(), BodyError> {
        loop {
            // Before `take`, so that a release between the two wakes this reader.
            let released = self.shared.released.notified();
            let again = match self.shared.take(self.id, bytes) {
                MemoryReservation::Held => return Ok(()),
                MemoryReservation::Lost => return Err(BodyError::NoRoom),
                MemoryReservation::Wait(until) => until,
            };
            tokio::select! {
                () = released => {}
                () = tokio::time::sleep_until(again) => {}
            }
        }
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        self.shared.readers.lock().leave(self.id);
        // All of them: each waits for a different amount, and the released memory may be enough for
        // several.
        self.shared.released.notify_waiters();
    }
}

enum MemoryReservation {
    Held,
    /// This reader was displaced.
    Lost,
    /// The oldest body may still complete until this time.
    Wait(Instant),
}

impl BodyMemory {
    fn take(&self, id: u64, bytes: usize) -> MemoryReservation {
        let mut readers = self.readers.lock();
        loop {
            let Some(held) = readers.reading.get(&id).map(|reading| reading.held) else {
                return MemoryReservation::Lost;
            };
            if readers.used - held + bytes <= self.memory {
                readers.used += bytes - held;
                if let Some(reading) = readers.reading.get_mut(&id) {
                    reading.held = bytes;
                }
                return MemoryReservation::Held;
            }
            // The reader itself is in the list, so an oldest one exists. A body without memory has none to
            // give.
            let oldest = readers
                .reading
                .iter()
                .find(|(other, reading)| reading.held > 0 || **other == id);
            let Some((&oldest, reading)) = oldest else {
                return MemoryReservation::Lost;
            };
            let settled = reading.since + SETTLED;
            if Instant::now() < settled {
                return MemoryReservation::Wait(settled);
            }
            reading.displaced.cancel();
            readers.leave(oldest);
        }
    }
}

impl ActiveReaders {
    fn leave(&mut self, id: u64) {
        if let Some(reading) = self.reading.remove(&id) {
            self.used -= reading.held;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn build_body(bytes: usize) -> Body {
        Body::from(vec![7; bytes])
    }

    /// Body that sends this many bytes and then never ends.
    fn build_stuck_body(bytes: usize) -> Body {
        let first = stream::iter([Ok::<_, io::Error>(Bytes::from(vec![7; bytes]))]);
        Body::from_stream(first.chain(stream::pending()))
    }

    #[tokio::test]
    async fn body_above_limit_is_refused() {
        let bodies = RequestBodies::new(1_000, 100);
        let announced = HeaderMap::from_iter([(header::CONTENT_LENGTH, "101".parse().unwrap())]);
        assert_eq!(
            bodies.read(&announced, build_stuck_body(1)).await,
            Err(BodyError::TooLarge)
        );
        let nothing = HeaderMap::new();
        assert_eq!(
            bodies.read(&nothing, build_body(101)).await,
            Err(BodyError::TooLarge)
        );
        assert_eq!(bodies.read(&nothing, build_body(100)).await.unwrap().len(), 100);
        assert_eq!(bodies.shared.readers.lock().used, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn endless_bodies_give_way_to_new_ones() {
        let bodies = RequestBodies::new(100_000, 50_000);
        let stuck: Vec<_> = (0..4)
            .map(|_| {
                let bodies = bodies.clone();
                tokio::spawn(async move { bodies.read(&HeaderMap::new(), build_stuck_body(25_000)).await })
            })
            .collect();
        tokio::time::sleep(SETTLED).await;
        assert!(bodies.shared.readers.lock().used <= 100_000);
        let start = Instant::now();
        let read = bodies.read(&HeaderMap::new(), build_body(50_000)).await;
        assert_eq!((read.unwrap().len(), start.elapsed()), (50_000, Duration::ZERO));
        let (first, ..) = futures::future::select_all(stuck).await;
        assert_eq!(first.unwrap(), Err(BodyError::NoRoom));
    }

    #[tokio::test(start_paused = true)]
    async fn body_waits_for_memory_freed_in_time() {
        let bodies = RequestBodies::new(100, 100);
        let pause = tokio::time::sleep(Duration::from_millis(300));
        let slow =
            stream::once(async { Ok::<_, io::Error>(Bytes::from(vec![7; 50])) }).chain(stream::once(async {
                pause.await;
                Ok(Bytes::from(vec![7; 50]))
            }));
        let nothing = HeaderMap::new();
        let (first, second) = tokio::join!(
            bodies.read(&nothing, Body::from_stream(slow.boxed())),
            bodies.read(&nothing, build_body(100))
        );
        assert_eq!((first.unwrap().len(), second.unwrap().len()), (100, 100));
    }
}
