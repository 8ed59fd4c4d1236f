//! Grants: tokens of at most 15 minutes, signed by the planners' Ed25519 key, that name audience, run, repository,
//! workspace and fence. Executor and git gate hold public keys only.

mod claims;
mod grant;
mod key;
mod signer;
mod verifier;

pub use grant::{Audience, Grant, Refused};
pub use key::{KeyPair, generate};
pub use signer::Signer;
pub use verifier::Verifier;
