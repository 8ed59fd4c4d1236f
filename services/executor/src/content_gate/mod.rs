//! Contents of Git LFS from the git gate, with the grant of the run.
//!
//! The executor has no credential for a Git LFS server and no way to it. What it does not get stays a pointer.

mod connection;
mod download;

pub(crate) use connection::GateAddress;
pub(crate) use download::fetch_contents;
