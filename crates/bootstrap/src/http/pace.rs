//! Minimum rate of request bodies, whichever code reads them.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::HttpBody;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

// Time for any body, however small.
const GRACE: Duration = Duration::from_secs(10);
// Minimum rate in bytes per second, after the grace period.
const RATE: u64 = 64 * 1024;

/// A body that fails with [`io::ErrorKind::TimedOut`] when it comes slower than the rate. Time counts from the first
/// read, so that a handler may wait for something else before.
pub(super) struct MinRateBody<B, G> {
    body: B,
    pace: Option<BodyPace>,
    /// Dropped once the body is complete.
    guard: Option<G>,
}

struct BodyPace {
    due: Instant,
    timer: Pin<Box<Sleep>>,
}

impl<B, G> MinRateBody<B, G> {
    pub(super) const fn new(body: B, guard: Option<G>) -> Self {
        Self {
            body,
            pace: None,
            guard,
        }
    }
}

impl BodyPace {
    fn start() -> Self {
        let due = Instant::now() + GRACE;
        Self {
            due,
            timer: Box::pin(sleep_until(due)),
        }
    }

    fn received(&mut self, bytes: usize) {
        self.due += Duration::from_nanos(bytes as u64 * (1_000_000_000 / RATE));
    }

    /// Ready when the time is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // The deadline moves with each chunk. The timer follows only when it fires, so that a chunk costs no
        // timer operation.
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.timer.deadline() >= self.due {
                return Poll::Ready(());
            }
            let due = self.due;
            self.timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}

impl<B, G> HttpBody for MinRateBody<B, G>
where
    B: HttpBody<Data = Bytes> + Unpin,
    G: Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let pace = this.pace.get_or_insert_with(BodyPace::start);
        // Before the timer: bytes that have arrived count even when the time is over.
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            if let Some(Ok(frame)) = &frame {
                pace.received(frame.data_ref().map_or(0, Bytes::len));
            }
            if frame.is_none() || this.body.is_end_stream() {
                this.guard = None;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        match pace.poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::TimedOut).into()))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures::{StreamExt as _, stream};

    use super::*;

    /// Reads this many chunks of this size with a pause before each. Returns the duration and whether the
    /// body was complete.
    async fn read_paced_body(chunks: usize, size: usize, pause: Duration) -> (Duration, bool) {
        let chunks = stream::iter(0..chunks).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, io::Error>(Bytes::from(vec![0; size]))
        });
        let start = Instant::now();
        let body = Body::new(MinRateBody::new(Body::from_stream(chunks), None::<()>));
        let whole = axum::body::to_bytes(body, usize::MAX).await.is_ok();
        (start.elapsed(), whole)
    }

    #[tokio::test(start_paused = true)]
    async fn trickling_body_ends_after_ten_seconds() {
        let (took, whole) = read_paced_body(1_000, 1, Duration::from_secs(1)).await;
        assert!(!whole && took.as_secs() <= 11, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn body_at_minimum_rate_completes() {
        let (took, whole) = read_paced_body(120, 64 * 1024, Duration::from_secs(1)).await;
        assert!(whole && took.as_secs() == 120, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn body_silent_after_large_part_ends() {
        let (took, whole) = read_paced_body(2, 1024 * 1024, Duration::from_secs(40)).await;
        assert!(!whole && took.as_secs() < 40, "{took:?}");
    }
}
