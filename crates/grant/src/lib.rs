//! Grants: tokens that name audience, run, repository, workspace and fence. The planners' Ed25519 key signs
//! them for at most 15 minutes.
//!
//! Executor, git gate and egress proxy hold public keys only.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod claims;
mod signature_cache;
mod signer;
mod verifier;

pub use claims::{Grant, GrantAudience, GrantRefusal};
pub use signer::{GrantSigner, KeyPair, generate_key_pair};
pub use verifier::GrantVerifier;
