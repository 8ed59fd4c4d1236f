//! Grants: tokens of at most 15 minutes, signed by the planners' Ed25519 key, that name audience, run, repository,
//! workspace and fence. Executor and git gate hold public keys only.

mod contract;
pub use contract::*;
