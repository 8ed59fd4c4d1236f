//! Webhooks of GitHub and Jira: which senders are accepted, what a body may be, and its storage before the answer.

pub(crate) mod automation;
pub(crate) mod body;
pub(crate) mod networks;
pub(crate) mod payload;
pub(crate) mod server;
pub(crate) mod signature;
