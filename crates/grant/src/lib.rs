//! Grants: tokens that name audience, run, repository, workspace and fence. The planners' Ed25519 key signs
//! them for at most 15 minutes.
//!
//! Executor, git gate and egress proxy hold public keys only.

mod claims;
mod grant;
mod key;
mod signer;
mod verifier;

pub use grant::{Grant, GrantAudience, GrantRefusal};
pub use key::{KeyPair, generate_key_pair};
pub use signer::GrantSigner;
pub use verifier::GrantVerifier;
