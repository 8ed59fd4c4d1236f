//! Contents of Git LFS from the git gate, with the grant of the run.
//!
//! The executor has no credential for a Git LFS server and cannot reach it. A content that the gate does not give
//! stays a pointer.

mod connection;
mod download;

pub(crate) use connection::GateAddress;
pub(crate) use download::fetch_contents;
