//! Scenarios of runs: facts in, action out.

mod attachments;
mod base_checks;
mod best;
mod budget;
mod context;
mod conventions;
mod evidence;
mod gate;
mod implement;
mod intake;
mod mcp;
mod news;
mod notices;
mod plan;
mod play;
mod properties;
mod prove;
mod reads;
mod rehearse;
mod repetition;
mod resolution;
mod restart;
mod retry;
mod review;
mod rounds;
mod scope;
mod shared_budget;
mod triage;
mod workspace;

pub(crate) use play::{
    Play, build_commit_id, build_entry, build_job_request, build_ticket_key, build_tool_reply, build_trigger,
    build_work_replies, build_workspace, run_id,
};
pub(crate) use rounds::build_review_subject;
