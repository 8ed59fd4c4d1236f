//! Last authors of the lines of a commit (`git blame`). GitHub offers blame over GraphQL alone.

use std::collections::BTreeMap;

use domain::{CommitId, RepositoryName};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    Error, GitHubWriter, RepositoryPermission, client::percent_encode, permissions::AccessKind,
    wire::WireCollaboratorPermission,
};

/// Inclusive range of lines, counted from 1, of a file at a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlameLines {
    /// Path of the file in the repository.
    pub path: String,
    /// First line, counted from 1.
    pub first: u32,
    /// Last line, included in the range.
    pub last: u32,
}

#[derive(Deserialize)]
struct WireBlame {
    ranges: Vec<WireRange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRange {
    starting_line: u32,
    ending_line: u32,
    commit: WireBlamed,
}

#[derive(Deserialize)]
struct WireBlamed {
    author: Option<WireGitActor>,
}

/// Author as git knows it. `user` is absent when no GitHub account has the author's email address.
#[derive(Deserialize)]
struct WireGitActor {
    user: Option<WireLogin>,
}

#[derive(Deserialize)]
struct WireLogin {
    login: String,
}

/// Builds a query with one `blame` field per file, each under an alias (`f0`, `f1` …).
fn build_blame_query(files: usize) -> String {
    let variables: String = (0..files).map(|file| format!(", $p{file}: String!")).collect();
    let blames: Vec<String> = (0..files)
        .map(|file| {
            format!(
                "f{file}: blame(path: $p{file}) {{ ranges {{ startingLine endingLine commit {{ author {{ user {{ login }} }} }} }} }}"
            )
        })
        .collect();
    format!(
        "query($owner: String!, $name: String!, $commit: GitObjectID!{variables}) {{ repository(owner: $owner, name: $name) \
         {{ object(oid: $commit) {{ __typename ... on Commit {{ {} }} }} }} }}",
        blames.join(" ")
    )
}

impl GitHubWriter {
    /// Counts, for each login, how many of these lines its account wrote last. Lines whose author has no
    /// known GitHub account are not counted.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the commit has no such file: GitHub fails the whole query for one unknown
    /// path.
    pub async fn authors_of(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        lines: &[BlameLines],
    ) -> Result<BTreeMap<String, u32>, Error> {
        let mut paths: Vec<&str> = lines.iter().map(|lines| lines.path.as_str()).collect();
        paths.sort_unstable();
        // `dedup` removes neighbors only: callers group the lines by file.
        paths.dedup();
        if paths.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut variables = Map::from_iter([("commit".to_owned(), commit.as_str().into())]);
        let named = paths.iter().enumerate();
        variables.extend(named.map(|(file, path)| (format!("p{file}"), Value::from(*path))));
        // Paths go as variables, so that no character of a path can change the query.
        let (client, query) = (self.clients.of(repository)?, build_blame_query(paths.len()));
        let data = client
            .query(repository, AccessKind::Write, &query, Value::Object(variables))
            .await?;
        let mut authors = BTreeMap::new();
        for (file, path) in paths.iter().enumerate() {
            let blame = data["repository"]["object"][format!("f{file}")].clone();
            let blame: WireBlame = serde_json::from_value(blame).map_err(|error| Error::Malformed {
                // The serde message would quote the answer, so that only the class of the error is kept.
                detail: format!("the authors of lines, {:?} error", error.classify()),
            })?;
            let wanted = lines.iter().filter(|lines| lines.path == *path);
            for (login, count) in wanted.flat_map(|wanted| count_authored_lines(&blame, wanted)) {
                *authors.entry(login).or_default() += count;
            }
        }
        Ok(authors)
    }

    /// Reads the permission of an account in the repository, by its current login.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn permission(
        &self,
        repository: &RepositoryName,
        login: &str,
    ) -> Result<RepositoryPermission, Error> {
        let path = format!("/collaborators/{}/permission", percent_encode(login));
        let client = self.clients.of(repository)?;
        let found = client
            .get::<WireCollaboratorPermission>(repository, AccessKind::Write, &path)
            .await;
        Ok(Error::none_if_missing(found)?.map_or(RepositoryPermission::None, |found| found.level()))
    }
}

/// Counts the wanted lines by the login of their last author.
fn count_authored_lines(blame: &WireBlame, wanted: &BlameLines) -> Vec<(String, u32)> {
    let found = blame.ranges.iter().filter_map(|range| {
        let first = range.starting_line.max(wanted.first);
        let last = range.ending_line.min(wanted.last);
        let user = range.commit.author.as_ref()?.user.as_ref()?;
        (first <= last).then(|| (user.login.clone(), last - first + 1))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blame_query_has_variable_per_file() {
        let query = build_blame_query(2);
        assert!(query.contains("$p0: String!, $p1: String!") && query.contains("f1: blame(path: $p1)"));
        assert_eq!(query.matches('{').count(), query.matches('}').count());
    }

    #[test]
    fn authored_lines_count_within_wanted_range() {
        let range = |starting_line, ending_line, login: Option<&str>| WireRange {
            starting_line,
            ending_line,
            commit: WireBlamed {
                author: Some(WireGitActor {
                    user: login.map(|login| WireLogin {
                        login: login.to_owned(),
                    }),
                }),
            },
        };
        let ranges = vec![
            range(1, 4, Some("ann")),
            range(5, 6, None),
            range(7, 9, Some("bob")),
        ];
        let wanted = BlameLines {
            path: "a.rs".to_owned(),
            first: 3,
            last: 7,
        };
        let found = count_authored_lines(&WireBlame { ranges }, &wanted);
        assert_eq!(found, [("ann".to_owned(), 2), ("bob".to_owned(), 1)]);
    }
}
