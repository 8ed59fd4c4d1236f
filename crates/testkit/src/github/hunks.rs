//! Files and hunks of unified diffs, with the lines that review comments can refer to.

use serde_json::{Value, json};

use super::repository;
use super::state::{PullRecord, RepositoryRecord};

/// File of a diff with its path, state and hunks.
pub(super) struct PatchFile {
    pub(super) path: String,
    pub(super) status: &'static str,
    pub(super) patch: String,
}

/// Parses the files of a unified diff.
pub(super) fn files_of(diff: &str) -> Vec<PatchFile> {
    let of_file = |part: &str| {
        let header = part
            .lines()
            .take_while(|line| !line.starts_with("@@"))
            .collect::<Vec<_>>();
        let path = header.first()?.rsplit_once(" b/")?.1.to_owned();
        let is = |start: &str| header.iter().any(|line| line.starts_with(start));
        let status = match (is("new file"), is("deleted file")) {
            (true, _) => "added",
            (false, true) => "removed",
            (false, false) => "modified",
        };
        let patch = part
            .find("\n@@")
            .map_or("", |at| part[at + 1..].trim_end_matches('\n'));
        let patch = patch.to_owned();
        Some(PatchFile { path, status, patch })
    };
    diff.split("diff --git ")
        .filter(|part| !part.is_empty())
        .filter_map(of_file)
        .collect()
}

/// Lists the files that a pull request changes.
pub(super) fn list_changed_files(repo: &RepositoryRecord, pull: &PullRecord) -> Vec<PatchFile> {
    let diff = repository::render_unified_diff(&repo.path, &pull.base_sha, &pull.head_sha);
    files_of(&diff.unwrap_or_default())
}

impl PatchFile {
    /// Renders the entry of GitHub's file lists.
    pub(super) fn json(&self, repo: &RepositoryRecord, sha: &str, url: &str) -> Value {
        let count = |sign: char| self.patch.lines().filter(|line| line.starts_with(sign)).count();
        let (added, removed, path) = (count('+'), count('-'), &self.path);
        let page = format!("{url}/{}", repo.name);
        json!({
            "sha": sha, "filename": path, "status": self.status, "additions": added, "deletions": removed,
            "changes": added + removed, "blob_url": format!("{page}/blob/{sha}/{path}"),
            "raw_url": format!("{page}/raw/{sha}/{path}"),
            "contents_url": format!("{}/contents/{path}?ref={sha}", repo.api_url(url)), "patch": self.patch,
        })
    }
}

/// Returns each hunk's lines and the number of its first line in the new file.
fn split_hunks(patch: &str) -> Vec<(Vec<&str>, u64)> {
    let mut hunks: Vec<(Vec<&str>, u64)> = Vec::new();
    for line in patch.lines() {
        if let Some(header) = line.strip_prefix("@@ ") {
            // The header is `@@ -OLD,COUNT +NEW,COUNT @@`; a count of one may be missing.
            let new = header.split_once('+').map_or("", |(_, new)| new);
            let first = new.split([',', ' ']).next().unwrap_or_default();
            hunks.push((vec![line], first.parse().unwrap_or_default()));
        } else if let Some((lines, _)) = hunks.last_mut() {
            lines.push(line);
        }
    }
    hunks
}

/// True if one hunk shows these lines of the new file. GitHub accepts comments on such lines alone.
pub(super) fn has_visible_lines(patch: &str, first: u64, last: u64) -> bool {
    split_hunks(patch).into_iter().any(|(lines, from)| {
        // Removed lines, and the mark for a missing final newline, are not lines of the new file.
        let count = lines[1..]
            .iter()
            .filter(|line| !line.starts_with(['-', '\\']))
            .count();
        from <= first && last < from + u64::try_from(count).unwrap_or_default()
    })
}

/// Returns the hunk that shows a line of the new file, up to that line. GitHub sends it with a comment as
/// `diff_hunk`.
pub(super) fn up_to(patch: &str, wanted: u64) -> Option<String> {
    let (lines, mut next) = split_hunks(patch)
        .into_iter()
        .find(|(lines, _)| has_visible_lines(&lines.join("\n"), wanted, wanted))?;
    let mut shown = vec![lines[0]];
    for line in &lines[1..] {
        shown.push(line);
        if !line.starts_with(['-', '\\']) {
            if next == wanted {
                break;
            }
            next += 1;
        }
    }
    Some(shown.join("\n"))
}

/// Returns the hunk of a comment on a commit's line. A line outside the change gets a bare hunk header.
pub(super) fn of_comment(
    repo: &RepositoryRecord,
    pull: &PullRecord,
    sha: &str,
    path: &str,
    line: u64,
) -> String {
    let diff = repository::render_unified_diff(&repo.path, &pull.base_sha, sha).unwrap_or_default();
    let files = files_of(&diff);
    let file = files.iter().find(|file| file.path == path);
    file.and_then(|file| up_to(&file.patch, line))
        .unwrap_or_else(|| format!("@@ -{line} +{line} @@"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+C\n d\n@@ -20 +21,2 @@ fn x()\n-x\n+y\n+z";

    #[test]
    fn comment_lines_stay_within_one_hunk() {
        for (first, last, is_shown) in [
            (1, 1, true),
            (2, 4, true),
            (4, 5, false),
            (3, 21, false),
            (21, 22, true),
        ] {
            assert_eq!(
                has_visible_lines(PATCH, first, last),
                is_shown,
                "{first} to {last}"
            );
        }
        assert_eq!(up_to(PATCH, 2).as_deref(), Some("@@ -1,3 +1,4 @@\n a\n-b\n+B"));
        assert_eq!(
            up_to(PATCH, 22).as_deref(),
            Some("@@ -20 +21,2 @@ fn x()\n-x\n+y\n+z")
        );
        assert_eq!(up_to(PATCH, 9), None);
    }
}
