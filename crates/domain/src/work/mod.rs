//! Work of a run: conversations with models, tools, workspaces, and the results of phases from the intake to
//! the handover and the reviews.

pub(crate) mod handover;
pub(crate) mod intake;
pub(crate) mod mcp;
pub(crate) mod model;
pub(crate) mod pull_request_review;
pub(crate) mod resolution;
pub(crate) mod review;
pub(crate) mod tool;
pub(crate) mod workspace;
