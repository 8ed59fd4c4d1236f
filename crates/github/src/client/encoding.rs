//! Percent-encoding of parts of a URL.

pub(crate) use domain::address::percent_encode;

/// Percent-encodes the segments of a path and keeps the slashes between them.
pub(crate) fn encode_path(path: &str) -> String {
    path.split('/').map(percent_encode).collect::<Vec<_>>().join("/")
}
