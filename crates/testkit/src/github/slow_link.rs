//! Slow network link for the packs that the stand-in serves.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::StreamExt as _;

use super::hub::GitHubState;

/// Bytes per chunk of an answer on a slow link.
const PIECE: usize = 16 * 1024;

/// Speed of a link and its interruptions.
#[derive(Clone, Debug, Default)]
pub struct SlowLink {
    /// Bytes per second; 0 means unlimited.
    pub bytes_per_second: u64,
    /// Bytes of one answer after which the link breaks. Each entry counts for one interruption; the first is
    /// next.
    pub interruptions: Vec<u64>,
}

/// State of the link and the bytes that it carried.
#[derive(Debug, Default)]
pub(super) struct PackLine {
    link: Option<SlowLink>,
    passed: u64,
}

impl PackLine {
    pub(super) fn set(&mut self, link: SlowLink) {
        *self = Self {
            link: Some(link),
            passed: 0,
        };
    }

    /// Changes the speed, also for the answers under way. Without a link nothing changes.
    pub(super) fn set_speed(&mut self, bytes_per_second: u64) {
        if let Some(link) = &mut self.link {
            link.bytes_per_second = bytes_per_second;
        }
    }

    /// Bytes per second; `None` without a link.
    fn speed(&self) -> Option<u64> {
        self.link.as_ref().map(|link| link.bytes_per_second)
    }

    /// Bytes of packs since the link was set.
    pub(super) const fn passed(&self) -> u64 {
        self.passed
    }

    /// Number of interruptions to come.
    pub(super) fn interruptions_left(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.interruptions.len())
    }

    /// Counts a chunk and returns true if the link breaks before it. `before` is the number of bytes already
    /// sent in this answer.
    fn pass(&mut self, before: u64, length: u64) -> bool {
        if let Some(link) = &mut self.link
            && link.interruptions.first().is_some_and(|after| before >= *after)
        {
            link.interruptions.remove(0);
            return true;
        }
        self.passed += length;
        false
    }
}

/// Streams the answer over the slow link, or returns it unchanged if no link is set.
pub(super) fn throttle_response(response: Response, hub: &Arc<GitHubState>) -> Response {
    if hub.line.lock().speed().is_none() {
        return response;
    }
    let hub = Arc::clone(hub);
    let (head, body) = response.into_parts();
    let mut sent = 0_u64;
    // Chunks of any size arrive here; equal pieces keep the speed even.
    let pieces = body.into_data_stream().flat_map(|data| {
        let pieces: Vec<_> = match data {
            Ok(data) => (0..data.len().div_ceil(PIECE))
                .map(|at| Ok(data.slice(at * PIECE..data.len().min((at + 1) * PIECE))))
                .collect(),
            Err(error) => vec![Err(std::io::Error::other(error))],
        };
        futures::stream::iter(pieces)
    });
    let pieces = pieces.then(move |piece: std::io::Result<Bytes>| {
        let hub = Arc::clone(&hub);
        let before = sent;
        sent += piece.as_ref().map_or(0, Bytes::len) as u64;
        async move {
            let piece = piece?;
            let length = piece.len() as u64;
            let speed = hub.line.lock().speed().unwrap_or_default();
            // `checked_div` returns nothing for the speed 0, which means unlimited.
            if let Some(micros) = (length * 1_000_000).checked_div(speed) {
                tokio::time::sleep(Duration::from_micros(micros)).await;
            }
            if hub.line.lock().pass(before, length) {
                Err(std::io::Error::other("the line is interrupted"))
            } else {
                Ok(piece)
            }
        }
    });
    Response::from_parts(head, Body::from_stream(pieces))
}
