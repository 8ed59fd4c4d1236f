//! How much of ingest runs.

/// How much of ingest runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// What the API is asked for reaches the planners; nothing comes in by webhooks and polls.
    OnRequest,
    /// The API alone: it reads, and wakes nobody.
    Answers,
}
