//! Phases of jobs, one file each.

pub(super) mod announce;
pub(super) mod answer;
mod approval;
pub(super) mod approve_plan;
mod back;
pub(super) mod commit;
mod converse;
pub(super) mod deliver;
mod describe;
pub(super) mod discuss;
pub(super) mod done;
pub(super) mod forecast;
pub(super) mod gate;
pub(super) mod intake;
pub(super) mod keep;
pub(super) mod locate;
pub(super) mod look;
mod moved;
pub(super) mod open;
pub(super) mod plan;
pub(super) mod prove;
pub(super) mod pull_request;
pub(super) mod rehearse;
pub(super) mod repair;
pub(super) mod report_back;
pub(super) mod review;
pub(super) mod seen;
pub(super) mod tell;
pub(super) mod tidy;
pub(super) mod triage;
pub(super) mod work;

pub(super) use moved::moved;
