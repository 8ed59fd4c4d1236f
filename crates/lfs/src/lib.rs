//! Reader of Git LFS servers: the batch API with basic transfers, downloads alone.
//!
//! The server names the address of each content, and the address may redirect. The credentials of the account go to the
//! origin of the repository alone, and other addresses must be public.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod address_guard;
mod batch;
mod client;
mod error;

pub use address_guard::AddressProblem;
pub use batch::{LfsAddress, LfsAddresses, LfsRefusal, MAX_BATCH};
pub use client::{LfsClient, LfsContent, LfsRemote};
pub use error::LfsError;
