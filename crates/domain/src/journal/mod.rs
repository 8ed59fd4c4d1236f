//! Journal: the facts of a run with their stored form, fences, and the folds that answer what a run did and
//! why it ended.

pub(crate) mod approval_gate;
pub(crate) mod fact;
pub(crate) mod fence;
pub(crate) mod issue_identity;
pub(crate) mod kind;
pub(crate) mod overview;
pub mod record_format;
pub(crate) mod repair;
pub(crate) mod row;
pub(crate) mod stop;
pub(crate) mod wait_condition;
