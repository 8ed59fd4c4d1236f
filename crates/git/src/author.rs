//! Who writes our commits.

pub use domain::{AUTHOR_ADDRESS, AUTHOR_NAME};

/// Both as a commit names them.
pub fn author_line() -> String {
    format!("{AUTHOR_NAME} <{AUTHOR_ADDRESS}>")
}
