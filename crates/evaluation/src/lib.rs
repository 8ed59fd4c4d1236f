//! Judges changes of a model by tasks with known solutions.
//!
//! A data set ([`read_dataset`]) lists tasks: a repository at a commit, a text, and the tests that decide. The caller
//! plays a task and hands over the change; [`grade_change`] runs the deciding tests on it in a fresh workspace, and
//! [`find_leak`] searches the journal for the reference solution. [`EvalResultStore`] keeps one record per run, from
//! which [`EvalSummary`] computes shares with intervals and compares two evaluations.
//!
//! The crate plays nothing and prints nothing: `journeyman eval` does both.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod dataset;
mod grade;
mod leak_check;
mod record;
mod statistics;
mod summary;
mod table;

pub use dataset::{EvalInstance, InstanceSource, hash_to_hex, read_dataset};
pub use grade::{
    GradedChange, InstanceGrade, create_repository, find_instance_problem, grade_change, run_blocking,
};
pub use leak_check::{LineWindow, find_leak, list_windows};
pub use record::{EvalResultStore, EvalRunKey, EvalRunRecord, EvalTokens, read_records};
pub use summary::{EvalComparison, EvalCost, EvalFrame, EvalSummary, InvalidInstance, ResolvedShare};
pub use table::{render_evaluation, render_run_line};
