/// Parts of ingest that run in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IngestMode {
    /// Everything: webhooks, polls and the API.
    #[default]
    Whole,
    /// The API and the wake-up of planners; no webhooks and no polls.
    OnRequest,
    /// The API alone. It reads and starts no work.
    Answers,
}
