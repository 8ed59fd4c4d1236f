//! Last author of each line range, as GraphQL returns it.

use std::path::Path;

use axum::http::StatusCode;
use git2::{BlameOptions, Oid, Repository};
use serde_json::{Map, Value, json};

use super::FakeGitHub;
use super::auth::GitHubCaller;
use super::graphql::{find_readable_repository, refuse_unknown_repository, render_graphql_error};
use super::hub::GitHubState;
use super::rest::RestAnswer;
use crate::http::render_json_answer;

// Maximum number of files in a query. Our client asks for at most this many.
const MAX_FILES: usize = 20;

impl FakeGitHub {
    /// Commits files as a user whose account GitHub knows by the commit's address. The authors of all other
    /// commits have unknown addresses.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn commit_by(
        &self,
        repository: &str,
        branch: &str,
        login: &str,
        message: &str,
        files: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        let address = super::repository::address_of(login);
        self.hub.world().addresses.insert(address, login.to_owned());
        self.hub
            .commit_as(repository, branch, message, (login, login), files)
    }
}

/// Answers with the ranges of each file that the query names by `$p0`, `$p1` and so on.
pub(super) fn answer_blame_query(hub: &GitHubState, caller: &GitHubCaller, variables: &Value) -> RestAnswer {
    let full_name = find_readable_repository(caller, variables, &["contents"])?;
    let commit = variables["commit"].as_str().unwrap_or_default();
    let mut world = hub.world();
    let addresses = world.addresses.clone();
    let repo = world.repo(&full_name).map_err(|_| refuse_unknown_repository())?;
    let mut files = Map::from_iter([("__typename".to_owned(), Value::from("Commit"))]);
    // The variables are numbered without gaps.
    for file in 0..MAX_FILES {
        let Some(path) = variables[format!("p{file}")].as_str() else {
            break;
        };
        let ranges = read_blame_ranges(&repo.path, commit, path)
            .map_err(|_| render_graphql_error("NOT_FOUND", "Could not resolve file for path"))?;
        let ranges = ranges.into_iter().map(|(first, last, address)| {
            let user = addresses.get(&address).map(|login| json!({"login": login}));
            json!({"startingLine": first, "endingLine": last, "commit": {"author": {"user": user}}})
        });
        files.insert(format!("f{file}"), json!({"ranges": ranges.collect::<Vec<_>>()}));
    }
    let body = json!({"data": {"repository": {"object": files}}});
    Ok(render_json_answer(StatusCode::OK, body))
}

/// Returns the first line, last line and author's address of each range.
fn read_blame_ranges(
    repository: &Path,
    commit: &str,
    path: &str,
) -> anyhow::Result<Vec<(usize, usize, String)>> {
    let repository = Repository::open_bare(repository)?;
    let mut options = BlameOptions::new();
    options.newest_commit(Oid::from_str(commit)?);
    let blame = repository.blame_file(Path::new(path), Some(&mut options))?;
    let ranges = blame.iter().map(|hunk| {
        let (first, lines) = (hunk.final_start_line(), hunk.lines_in_hunk());
        let address = hunk
            .final_signature()
            .map(|author| String::from_utf8_lossy(author.email_bytes()).into_owned());
        (first, first + lines - 1, address.unwrap_or_default())
    });
    Ok(ranges.collect())
}
