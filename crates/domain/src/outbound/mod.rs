//! Outbound requests: what the reporter is asked to write outside, the receipts, the refusals, and the rate
//! limits of external services.

pub mod limits;
pub(crate) mod metadata_pattern;
pub(crate) mod order;
pub(crate) mod refusal;
pub mod report;
