//! Ingest: the only service that receives and reads outside events, and the server of the API. It writes nothing
//! outside, calls no model and runs no code.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod api;
mod config;
mod events;
mod facts;
mod health;
mod hex;
mod loops;
mod maintenance;
mod policy;
mod poll;
mod router;
mod service;
mod text;
mod webhook;

pub use api::ApiToken;
pub use config::{Config, SecretList, Settings};
pub use facts::attachments::AttachmentSettings;
pub use loops::IngestMode;
pub use poll::{
    check_schedule::{ReadAllowance, TrackedPullRequest},
    command_rounds::CommandRounds,
    context::OVERLAP_MS,
    dry_round::{DryRound, run_dry_round},
    head_listing::HEAD_LISTINGS_AN_HOUR,
    health::STEADY_ASSESSMENTS_AN_HOUR,
};
pub use service::IngestApp;
