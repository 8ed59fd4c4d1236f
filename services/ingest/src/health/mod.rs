//! Health of our open pull requests: assessments at webhooks and polls, and their stored results.

pub(crate) mod assessor;
pub(crate) mod deliveries;
pub(crate) mod store;
pub(crate) mod webhook_scope;
