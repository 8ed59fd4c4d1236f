//! Policy: who may request work and decide, which accounts are ours, and which rules forbid or limit work.

pub(crate) mod deciders;
pub(crate) mod instructors;
pub(crate) mod job_request;
pub(crate) mod own_accounts;
pub(crate) mod repair;
pub(crate) mod resolution;
pub(crate) mod skip;
pub(crate) mod status_cache;
pub(crate) mod status_check;
