//! JSON of a repository's description.

use domain::RepositoryName;
use serde::Deserialize;

use crate::GitHubRepository;

#[derive(Deserialize)]
pub(crate) struct WireRepository {
    default_branch: String,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    html_url: String,
    full_name: RepositoryName,
}

impl From<WireRepository> for GitHubRepository {
    fn from(wire: WireRepository) -> Self {
        Self {
            name: wire.full_name,
            default_branch: wire.default_branch,
            private: wire.private,
            archived: wire.archived,
            url: wire.html_url,
        }
    }
}
