//! Head and tail of a command's output; the middle is dropped.

use std::collections::VecDeque;

/// Limit in bytes for each end of an output that the model reads.
pub(crate) const END_BYTES: usize = 16 * 1024;

/// Head and tail of a stream, with the number of dropped bytes.
pub(crate) struct BoundedOutput {
    /// Limit in bytes of each end.
    end_bytes: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
    /// Limit in bytes of `whole`, the beginning of the stream.
    whole_bytes: usize,
    whole: Vec<u8>,
}

impl BoundedOutput {
    /// Creates an output that stores `end_bytes` of each end.
    pub(crate) const fn new(end_bytes: usize) -> Self {
        Self {
            end_bytes,
            head: Vec::new(),
            tail: VecDeque::new(),
            dropped: 0,
            whole_bytes: 0,
            whole: Vec::new(),
        }
    }

    /// Creates an output that also stores the first `whole_bytes`, for `read_result`.
    pub(crate) fn with_whole(end_bytes: usize, whole_bytes: usize) -> Self {
        Self {
            whole_bytes,
            ..Self::new(end_bytes)
        }
    }

    /// Returns the stored beginning if bytes were dropped, and otherwise nothing.
    pub(crate) fn take_whole(&mut self) -> Vec<u8> {
        if self.is_truncated() {
            std::mem::take(&mut self.whole)
        } else {
            // `into_text` has the whole output then, and a second copy is needless.
            Vec::new()
        }
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let rest = self.whole_bytes.saturating_sub(self.whole.len()).min(bytes.len());
        self.whole.extend_from_slice(&bytes[..rest]);
        let room = self.end_bytes.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend(&bytes[room..]);
        let excess = self.tail.len().saturating_sub(self.end_bytes);
        self.tail.drain(..excess);
        self.dropped += excess as u64;
    }

    /// Returns true when bytes were dropped.
    pub(crate) const fn is_truncated(&self) -> bool {
        self.dropped > 0
    }

    /// Returns the stored parts as text, with a note about dropped bytes.
    pub(crate) fn into_text(self) -> String {
        let tail: Vec<u8> = self.tail.into();
        if self.dropped == 0 {
            // Joined before the conversion, because a character may lie across the border of the two
            // parts.
            let all = [self.head, tail].concat();
            return String::from_utf8_lossy(&all).into_owned();
        }
        let (head, tail) = (
            String::from_utf8_lossy(&self.head),
            String::from_utf8_lossy(&tail),
        );
        format!("{head}\n[... {} bytes left out ...]\n{tail}", self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_whole() {
        let mut output = BoundedOutput::new(END_BYTES);
        output.push(b"a");
        output.push("bé".as_bytes());
        assert_eq!(output.into_text(), "abé");
    }

    #[test]
    fn long_output_keeps_whole_beginning() {
        let mut output = BoundedOutput::with_whole(2, 7);
        output.push(b"abcd");
        assert_eq!(output.take_whole(), b"", "nothing is left out yet");
        output.push(b"efgh");
        assert_eq!(output.take_whole(), b"abcdefg");
        assert_eq!(output.into_text(), "ab\n[... 4 bytes left out ...]\ngh");
    }

    #[test]
    fn long_output_keeps_ends_counts_rest() {
        let mut output = BoundedOutput::new(END_BYTES);
        for _ in 0..100 {
            output.push(&[b'x'; 1024]);
        }
        output.push(b"the end");
        let text = output.into_text();
        assert!(text.contains(&format!(
            "[... {} bytes left out ...]",
            100 * 1024 + 7 - 2 * END_BYTES
        )));
        assert!(text.starts_with("xxx") && text.ends_with("the end"));
    }
}
