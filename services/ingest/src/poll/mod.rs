//! Polls of Jira and GitHub: the fallback that finds events whose webhook was missed.

pub(crate) mod check_schedule;
pub(crate) mod command_rounds;
pub(crate) mod context;
pub(crate) mod delivery_log;
pub(crate) mod departures;
pub(crate) mod discussions;
pub(crate) mod dry_round;
pub(crate) mod head_listing;
pub(crate) mod health;
pub(crate) mod issues;
pub(crate) mod memory;
pub(crate) mod poller;
pub(crate) mod pull_request_events;
pub(crate) mod pull_requests;
pub(crate) mod reminders;
pub(crate) mod round;
pub(crate) mod service_pauses;
pub(crate) mod tickets;
