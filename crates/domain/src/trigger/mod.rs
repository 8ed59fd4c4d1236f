//! Triggers: reasons to act on a ticket, events of pull requests, jobs with their subjects, and reasons to
//! skip a request.

pub(crate) mod background;
pub(crate) mod conflict;
pub(crate) mod job;
pub(crate) mod job_subject;
pub(crate) mod observed_pull_request;
pub(crate) mod pull_request;
pub(crate) mod pull_request_event;
pub(crate) mod reaction;
pub(crate) mod reason;
pub(crate) mod skip;
