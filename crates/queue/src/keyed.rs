//! What keyed logs hold.

use domain::{FenceStamp, Report, ReportFence, RunFence, Stored, TicketKey, Trigger};

/// What a keyed log holds.
pub trait Keyed: Stored + Send + Sync + 'static {
    /// The fence that this log's tokens give.
    type Fence: From<FenceStamp> + Copy + Ord + Send;
    /// The ticket it belongs to.
    fn ticket(&self) -> &TicketKey;
    /// Its semantic key, unique in its ticket.
    fn key(&self) -> &str;
}

impl Keyed for Trigger {
    type Fence = RunFence;
    fn ticket(&self) -> &TicketKey {
        &self.ticket
    }
    fn key(&self) -> &str {
        self.key.as_str()
    }
}

impl Keyed for Report {
    type Fence = ReportFence;
    fn ticket(&self) -> &TicketKey {
        &self.ticket
    }
    fn key(&self) -> &str {
        self.id.as_str()
    }
}
