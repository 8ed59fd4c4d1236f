//! Requests to the git gate other than those of git, with the grant of the run: contents of Git LFS, and the digest of
//! the references.
//!
//! The executor has no credential for a Git LFS server and cannot reach it. A content that the gate does not give
//! stays a pointer.

mod connection;
mod download;

pub(crate) use connection::{GateAddress, digest_references};
pub(crate) use download::fetch_contents;
