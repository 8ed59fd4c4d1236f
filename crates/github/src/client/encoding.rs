//! Percent-encoding of parts of a URL.

pub(crate) use domain::address::encode;

/// Percent-encodes the segments of a path and keeps the slashes between them.
pub(crate) fn encode_path(path: &str) -> String {
    path.split('/').map(encode).collect::<Vec<_>>().join("/")
}
