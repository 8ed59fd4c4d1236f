//! Who writes our commits.

/// Name of the author and committer of every commit.
pub const AUTHOR_NAME: &str = "Journeyman";
/// Address of the author and committer of every commit.
pub const AUTHOR_ADDRESS: &str = "journeyman@users.noreply.github.com";

/// Both as a commit names them.
pub fn author_line() -> String {
    format!("{AUTHOR_NAME} <{AUTHOR_ADDRESS}>")
}
