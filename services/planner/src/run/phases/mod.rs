//! Phases of jobs, one file each.

pub(super) mod acknowledge;
pub(super) mod announce;
pub(super) mod answer;
mod approval_request;
pub(super) mod approve_plan;
pub(super) mod auto_fix;
pub(super) mod commit;
mod conversation_loop;
pub(super) mod deliver;
mod description;
pub(super) mod discuss;
pub(super) mod forecast;
mod foreign_push;
pub(super) mod gate;
pub(super) mod intake;
pub(super) mod mark_done;
pub(super) mod notify;
pub(super) mod open_workspace;
pub(super) mod plan;
pub(super) mod prove;
pub(super) mod pull_request;
pub(super) mod refine_code;
pub(super) mod rehearse;
pub(super) mod repair;
pub(super) mod report_back;
pub(super) mod restore_best;
mod return_to_work;
pub(super) mod review;
pub(super) mod seed_code;
pub(super) mod triage;
pub(super) mod work;

pub(super) use foreign_push::end_after_moves;
