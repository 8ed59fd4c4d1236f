//! Best-effort streaming of tool output to viewers; batched, size-limited, not persisted.

use std::time::Duration;

use domain::{CallId, LiveOutput, RunId, text::sanitize_output};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

// Time in which chunks are batched.
const GATHER: Duration = Duration::from_millis(100);
// A connection that accepts nothing for this long loses a batch.
const SEND_LIMIT: Duration = Duration::from_millis(500);
// Chunks from the executor that wait for a batch.
const WAITING: usize = 64;
// Limits of the output of one call: bytes per second, bytes in total.
const PER_SECOND: usize = 32 * 1024;
const PER_CALL: usize = 1024 * 1024;

/// Returns the sender for the output of one call. The stream ends when it is dropped.
pub(crate) fn start_output(live: queue::LiveChannel, run: RunId, call: CallId) -> mpsc::Sender<Vec<u8>> {
    let (sender, pieces) = mpsc::channel(WAITING);
    tokio::spawn(stream_output(live, run, call, pieces));
    sender
}

async fn stream_output(
    live: queue::LiveChannel,
    run: RunId,
    call: CallId,
    mut pieces: mpsc::Receiver<Vec<u8>>,
) {
    let mut bounded = PlannerBoundedOutput::default();
    let mut is_over = false;
    while !is_over {
        is_over = gather_chunks(&mut pieces, &mut bounded).await;
        let Some(text) = bounded.take(is_over) else {
            continue;
        };
        let output = LiveOutput {
            call: call.clone(),
            text: sanitize_output(&text).into_owned(),
        };
        // A lost batch is not retried: the journal keeps the whole result of the call.
        let sent = tokio::time::timeout(SEND_LIMIT, live.publish(&run, &output)).await;
        if !matches!(sent, Ok(Ok(()))) {
            tracing::debug!(%run, "a piece of live output was lost");
        }
    }
}

/// Takes the next chunk and those that follow shortly; returns true after the last one.
async fn gather_chunks(pieces: &mut mpsc::Receiver<Vec<u8>>, bounded: &mut PlannerBoundedOutput) -> bool {
    let Some(first) = pieces.recv().await else {
        return true;
    };
    bounded.push(&first, Instant::now());
    let end = sleep(GATHER);
    tokio::pin!(end);
    loop {
        tokio::select! {
            piece = pieces.recv() => match piece {
                Some(piece) => bounded.push(&piece, Instant::now()),
                None => return true,
            },
            () = &mut end => return false,
        }
    }
}

/// Output within its limits.
#[derive(Default)]
struct PlannerBoundedOutput {
    pending: Vec<u8>,
    /// Omitted bytes before and after the pending ones.
    missing_before: usize,
    missing_after: usize,
    shown: usize,
    /// Start of the current second, and the bytes taken in it.
    second: Option<Instant>,
    in_second: usize,
}

impl PlannerBoundedOutput {
    /// Takes as many bytes as the limits allow.
    fn push(&mut self, bytes: &[u8], now: Instant) {
        let is_past = |begun: Instant| now.duration_since(begun) >= Duration::from_secs(1);
        if self.second.is_none_or(is_past) {
            (self.second, self.in_second) = (Some(now), 0);
        }
        let room = (PER_SECOND - self.in_second).min(PER_CALL - self.shown);
        // After a gap begins, nothing is taken until the gap is reported.
        let taken = if self.missing_after > 0 {
            0
        } else {
            room.min(bytes.len())
        };
        self.pending.extend_from_slice(&bytes[..taken]);
        self.in_second += taken;
        self.shown += taken;
        self.missing_after += bytes.len() - taken;
    }

    /// Returns the text to show. An incomplete character at the end waits for its rest, unless this is the
    /// end.
    fn take(&mut self, is_end: bool) -> Option<String> {
        let whole = if is_end || self.missing_after > 0 {
            self.pending.len()
        } else {
            complete_length(&self.pending)
        };
        let rest = self.pending.split_off(whole);
        let shown = std::mem::replace(&mut self.pending, rest);
        let mut text = String::new();
        if !shown.is_empty() {
            text = render_gap(std::mem::take(&mut self.missing_before)) + &String::from_utf8_lossy(&shown);
        }
        self.missing_before += std::mem::take(&mut self.missing_after);
        if is_end {
            text.push_str(&render_gap(std::mem::take(&mut self.missing_before)));
        }
        (!text.is_empty()).then_some(text)
    }
}

fn render_gap(missing: usize) -> String {
    match missing {
        0 => String::new(),
        bytes => format!("\n[{bytes} bytes are not shown]\n"),
    }
}

/// Returns the length without an incomplete character at the end.
fn complete_length(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Invalid UTF-8 does not become valid by waiting.
        Ok(_) | Err(_) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_flood_is_limited_with_gap() {
        let (mut bounded, start) = (PlannerBoundedOutput::default(), Instant::now());
        for _ in 0..100 {
            bounded.push(&[b'x'; 1024], start);
        }
        assert_eq!(bounded.take(false).unwrap().len(), PER_SECOND);
        assert_eq!(bounded.take(false), None);
        let missing = 100 * 1024 - PER_SECOND;
        bounded.push(b"later", start + Duration::from_secs(1));
        let later = bounded.take(false).unwrap();
        assert_eq!(later, format!("\n[{missing} bytes are not shown]\nlater"));
        let mut all = PER_SECOND + 5;
        for second in 2..200 {
            bounded.push(&[b'x'; PER_SECOND], start + Duration::from_secs(second));
            all += bounded.take(false).map_or(0, |text| text.len());
        }
        assert_eq!(all, PER_CALL);
        assert!(bounded.take(true).unwrap().ends_with("bytes are not shown]\n"));
    }

    #[test]
    fn split_character_is_shown_whole() {
        let (mut bounded, now) = (PlannerBoundedOutput::default(), Instant::now());
        let text = "né".as_bytes();
        bounded.push(&text[..2], now);
        assert_eq!(bounded.take(false).unwrap(), "n");
        bounded.push(&text[2..], now);
        assert_eq!(bounded.take(false).unwrap(), "é");
        bounded.push(&[b'a', 0xff, b'b'], now);
        assert_eq!(bounded.take(false).unwrap(), "a\u{fffd}b");
        bounded.push(&text[1..2], now);
        assert_eq!(bounded.take(true).unwrap(), "\u{fffd}");
        assert_eq!(bounded.take(true), None);
    }
}
