//! Bounded reads of journals: few at a time, page by page, and with a time limit. A slow or greedy reader cannot exhaust the
//! memory that webhooks need.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, ready},
    time::Duration,
};

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use domain::cause::format_error_chain;
use futures::{Stream, TryStreamExt as _, stream};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::{Instant, timeout, timeout_at},
};

use super::ApiProblem;

// Concurrent reads of all callers.
const MAX_READS: usize = 4;
// Concurrent reads of one token, or of one person for whom a token acts.
const MAX_TOKEN_READS: usize = 2;
// Time limit of a request's wait for a permit.
const PERMIT_TIME: Duration = Duration::from_secs(2);
// Time limit for a client to receive its answer.
const READ_TIME: Duration = Duration::from_secs(120);
// Size in bytes from which a piece of an answer is sent.
const CHUNK_BYTES: usize = 64 * 1024;

/// Semaphores for reads of journals.
#[derive(Debug)]
pub(crate) struct JournalReads {
    all: Arc<Semaphore>,
    tokens: Mutex<BTreeMap<String, Weak<Semaphore>>>,
}

/// Permit to read journals, released on drop.
#[derive(Debug)]
pub(super) struct ReadPermit {
    _of_token: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Default for JournalReads {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_READS)),
            tokens: Mutex::default(),
        }
    }
}

impl JournalReads {
    /// Waits for a permit of a token, and refuses the request when none is free in time.
    pub(super) async fn begin(&self, token: &str) -> Result<ReadPermit, ApiProblem> {
        // The permit of the token comes first: a greedy token then waits at its own limit and holds no shared permit.
        let end = Instant::now() + PERMIT_TIME;
        let of_token = timeout_at(end, self.token_semaphore(token).acquire_owned()).await;
        let of_token = of_token.ok().and_then(Result::ok).ok_or_else(|| {
            ApiProblem::TooMany(format!(
                "this token has {MAX_TOKEN_READS} reads of journals or tickets already; try again when one ends"
            ))
        })?;
        let of_all = timeout_at(end, Arc::clone(&self.all).acquire_owned()).await;
        let of_all = of_all.ok().and_then(Result::ok).ok_or_else(|| {
            ApiProblem::TooMany(
                "too many journals and tickets are being read at the moment; try again".to_owned(),
            )
        })?;
        Ok(ReadPermit {
            _of_token: of_token,
            _of_all: of_all,
        })
    }

    /// Semaphore of a token, created at its first read.
    fn token_semaphore(&self, token: &str) -> Arc<Semaphore> {
        let mut tokens = self.tokens.lock();
        // Unused semaphores are dropped: a token that acts for people has one per person, and the map
        // would grow forever.
        tokens.retain(|_, semaphore| semaphore.strong_count() > 0);
        if let Some(known) = tokens.get(token).and_then(Weak::upgrade) {
            return known;
        }
        let semaphore = Arc::new(Semaphore::new(MAX_TOKEN_READS));
        tokens.insert(token.to_owned(), Arc::downgrade(&semaphore));
        semaphore
    }
}

/// Failure in the middle of an array.
#[derive(Debug, thiserror::Error)]
enum ArrayError {
    #[error("a journal cannot be read")]
    Read(#[from] queue::Error),
    #[error("an entry cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

impl From<ArrayError> for ApiProblem {
    fn from(error: ArrayError) -> Self {
        match error {
            ArrayError::Read(error) => error.into(),
            ArrayError::Json(_) => Self::Internal(format_error_chain(&error)),
        }
    }
}

/// JSON array that is written while its items are read.
struct ArrayText<S> {
    items: S,
    text: Vec<u8>,
    has_items: bool,
    /// Text after the items; absent once it is written.
    tail: Option<&'static str>,
}

impl<T: Serialize, S: Stream<Item = Result<T, queue::Error>> + Unpin> ArrayText<S> {
    /// Next piece; `None` after the last one.
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, ArrayError> {
        while let Some(tail) = self.tail {
            if let Some(item) = self.items.try_next().await? {
                if std::mem::replace(&mut self.has_items, true) {
                    self.text.push(b',');
                }
                serde_json::to_writer(&mut self.text, &item)?;
            } else {
                self.text.extend_from_slice(tail.as_bytes());
                self.tail = None;
            }
            if self.tail.is_none() || self.text.len() >= CHUNK_BYTES {
                return Ok(Some(std::mem::take(&mut self.text).into()));
            }
        }
        Ok(None)
    }
}

/// Response of items between two texts, written while the items are read. The permit is released after the last piece, or when
/// the client is too slow, which interrupts the response.
pub(super) async fn answer_array<T, S>(
    permit: ReadPermit,
    (head, tail): (String, &'static str),
    items: S,
) -> Result<Response, ApiProblem>
where
    T: Serialize + Send + 'static,
    S: Stream<Item = Result<T, queue::Error>> + Send + Unpin + 'static,
{
    let mut array = ArrayText {
        items,
        text: head.into_bytes(),
        has_items: false,
        tail: Some(tail),
    };
    // The first piece is read before the response starts, so that an error there still becomes a status code.
    let first = array.next_chunk().await?.unwrap_or_default();
    let kind = [(header::CONTENT_TYPE, "application/json")];
    if array.tail.is_none() {
        return Ok((kind, first).into_response());
    }
    // A capacity of one piece: the task reads the journal only as fast as the client receives it.
    let (pieces, mut received) = mpsc::channel(1);
    let is_complete = Arc::new(AtomicBool::new(false));
    let completion = Arc::clone(&is_complete);
    // A separate task releases the permit in time, even when the client stops receiving.
    tokio::spawn(async move {
        let _permit = permit;
        match timeout(READ_TIME, send_chunks(&mut array, &pieces)).await {
            Ok(Ok(())) => completion.store(true, Ordering::Release),
            Ok(Err(error)) => {
                tracing::warn!(error = %format_error_chain(&error), "an answer about a journal was interrupted")
            }
            Err(_) => {
                tracing::warn!("an answer about a journal was interrupted: the client received it too slowly")
            }
        }
    });
    let mut is_broken = false;
    let rest = stream::poll_fn(move |cx| {
        Poll::Ready(match ready!(received.poll_recv(cx)) {
            Some(piece) => Some(Ok(piece)),
            None if is_broken || is_complete.load(Ordering::Acquire) => None,
            // Without an error the client would take a truncated response for complete.
            None => {
                is_broken = true;
                Some(Err(io::Error::from(io::ErrorKind::BrokenPipe)))
            }
        })
    });
    let first = stream::once(async move { Ok(first) });
    Ok((kind, Body::from_stream(futures::StreamExt::chain(first, rest))).into_response())
}

/// Sends pieces as the client receives them. A disconnected client ends the loop without an error.
async fn send_chunks<T, S>(array: &mut ArrayText<S>, pieces: &mpsc::Sender<Bytes>) -> Result<(), ArrayError>
where
    T: Serialize + Send,
    S: Stream<Item = Result<T, queue::Error>> + Send + Unpin,
{
    while let Some(piece) = array.next_chunk().await? {
        if pieces.send(piece).await.is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn greedy_token_leaves_permits_for_others() {
        let reads = JournalReads::default();
        let mut held = Vec::new();
        for _ in 0..MAX_TOKEN_READS {
            held.push(reads.begin("greedy").await.expect("permit"));
        }
        assert!(matches!(reads.begin("greedy").await, Err(ApiProblem::TooMany(_))));
        held.push(reads.begin("other").await.expect("permit"));
        held.push(reads.begin("other").await.expect("permit"));
        assert!(matches!(reads.begin("third").await, Err(ApiProblem::TooMany(_))));
        drop(held);
        assert!(reads.begin("third").await.is_ok());
        assert_eq!(reads.tokens.lock().len(), 1);
    }

    async fn read_body(answer: Response) -> Result<Vec<u8>, axum::Error> {
        axum::body::to_bytes(answer.into_body(), usize::MAX)
            .await
            .map(Into::into)
    }

    #[tokio::test]
    async fn arrays_of_any_length_are_complete() {
        let reads = JournalReads::default();
        for count in [0_usize, 1, 3, 5_000] {
            let items =
                stream::iter((0..count).map(|number| Ok::<_, queue::Error>("x".repeat(100 + number % 7))));
            let permit = reads.begin("one").await.expect("permit");
            let answer = answer_array(permit, ("{\"entries\":[".to_owned(), "]}"), items.boxed()).await;
            let text = read_body(answer.expect("answer")).await.expect("body");
            let value: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            assert_eq!(value["entries"].as_array().expect("array").len(), count);
        }
    }

    #[tokio::test]
    async fn failure_after_first_chunk_interrupts_body() {
        let reads = JournalReads::default();
        let fine = stream::iter((0..5_000).map(|_| Ok("x".repeat(100))));
        let items = fine.chain(stream::iter([Err(queue::Error::Conflict)]));
        let permit = reads.begin("one").await.expect("permit");
        let answer = answer_array(permit, ("[".to_owned(), "]"), items.boxed()).await;
        assert!(read_body(answer.expect("answer")).await.is_err());
        let failed_first = stream::iter([Err::<String, _>(queue::Error::Conflict)]);
        let permit = reads.begin("one").await.expect("permit");
        let answer = answer_array(permit, ("[".to_owned(), "]"), failed_first.boxed()).await;
        assert!(matches!(answer, Err(ApiProblem::Conflict(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_client_loses_its_permit_in_time() {
        let reads = JournalReads::default();
        let mut unread = Vec::new();
        for token in ["one", "one", "two", "two"] {
            let items = stream::repeat_with(|| Ok::<_, queue::Error>("x".repeat(1_000)));
            let permit = reads.begin(token).await.expect("permit");
            unread.push(answer_array(permit, ("[".to_owned(), "]"), items.boxed()).await);
        }
        assert!(reads.begin("three").await.is_err());
        tokio::time::sleep(READ_TIME).await;
        assert!(reads.begin("three").await.is_ok());
    }
}
