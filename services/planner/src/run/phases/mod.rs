//! Phases of jobs, by subject.

pub(super) mod answer;
pub(super) mod commit;
mod conversation_loop;
pub(super) mod deliver;
mod description;
pub(super) mod discuss;
pub(super) mod gate;
pub(super) mod intake;
pub(super) mod notification;
pub(super) mod plan;
pub(super) mod preparation;
pub(super) mod prove;
pub(super) mod pull_request;
pub(super) mod rehearse;
pub(super) mod repair;
pub(super) mod resolution;
pub(super) mod review;
pub(super) mod rework;
pub(super) mod triage;
pub(super) mod work;
