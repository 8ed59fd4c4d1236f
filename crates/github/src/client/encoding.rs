//! Percent-encoding of what goes into an address.

pub(crate) use domain::address::encode;

/// Percent-encodes a path and keeps its slashes.
pub(crate) fn encode_path(path: &str) -> String {
    path.split('/').map(encode).collect::<Vec<_>>().join("/")
}
