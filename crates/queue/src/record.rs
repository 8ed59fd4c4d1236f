//! Records of keyed logs: triggers and reports.

use domain::{FenceStamp, OutboundRequest, ReporterFence, RunFence, StoredRecord, TicketKey, Trigger};

/// Record of a keyed log.
pub trait KeyedRecord: StoredRecord + Send + Sync + 'static {
    /// Fence that the tokens of this log carry.
    type Fence: From<FenceStamp> + Copy + Ord + Send;
    /// Ticket of the record.
    fn ticket(&self) -> &TicketKey;
    /// Semantic key, unique within the ticket.
    fn key(&self) -> &str;
}

impl KeyedRecord for Trigger {
    type Fence = RunFence;
    fn ticket(&self) -> &TicketKey {
        &self.ticket
    }
    fn key(&self) -> &str {
        self.key.as_str()
    }
}

impl KeyedRecord for OutboundRequest {
    type Fence = ReporterFence;
    fn ticket(&self) -> &TicketKey {
        &self.ticket
    }
    fn key(&self) -> &str {
        self.id.as_str()
    }
}
