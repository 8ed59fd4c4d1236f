//! Commits of a repository: author, date and changed paths.

use std::path::Path;

use git2::{Delta, Diff, Oid, Repository, Sort};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

// Maximum number of commits in a `push` webhook. GitHub's own limit is 2,048.
const MAX_COMMITS: usize = 20;

pub(super) struct CommitPerson {
    pub(super) name: String,
    pub(super) email: String,
}

pub(super) struct CommitDetails {
    pub(super) id: String,
    pub(super) tree: String,
    pub(super) parents: Vec<String>,
    pub(super) message: String,
    pub(super) at: String,
    pub(super) author: CommitPerson,
    pub(super) committer: CommitPerson,
    pub(super) added: Vec<String>,
    pub(super) removed: Vec<String>,
    pub(super) modified: Vec<String>,
}

/// Size of a branch's change.
#[derive(Default)]
pub(super) struct ChangeCounts {
    pub(super) commits: usize,
    pub(super) additions: usize,
    pub(super) deletions: usize,
    pub(super) files: usize,
}

pub(super) fn read_commit(path: &Path, id: &str) -> anyhow::Result<CommitDetails> {
    let repository = Repository::open_bare(path)?;
    describe_commit(&repository, Oid::from_str(id)?)
}

/// Returns the commits that a push adds, oldest first. `known` is the former head, whose history is left out.
pub(super) fn list_pushed_commits(
    path: &Path,
    known: Option<&String>,
    head: &str,
) -> anyhow::Result<Vec<CommitDetails>> {
    list_commits_beyond(path, known, head, MAX_COMMITS)
}

/// Returns the commits of `head` that `known` does not contain, oldest first, at most `most` of them.
pub(super) fn list_commits_beyond(
    path: &Path,
    known: Option<&String>,
    head: &str,
    most: usize,
) -> anyhow::Result<Vec<CommitDetails>> {
    let repository = Repository::open_bare(path)?;
    let mut walk = repository.revwalk()?;
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE)?;
    walk.push(Oid::from_str(head)?)?;
    if let Some(known) = known {
        walk.hide(Oid::from_str(known)?)?;
    }
    walk.take(most)
        .map(|id| describe_commit(&repository, id?))
        .collect()
}

/// Returns the merge base of two commits.
pub(super) fn merge_base(path: &Path, base: &str, head: &str) -> anyhow::Result<String> {
    let repository = Repository::open_bare(path)?;
    let left = repository.merge_base(Oid::from_str(base)?, Oid::from_str(head)?)?;
    Ok(left.to_string())
}

/// Returns the size of a branch's change since its merge base.
pub(super) fn count_changes(path: &Path, base: &str, head: &str) -> anyhow::Result<ChangeCounts> {
    let repository = Repository::open_bare(path)?;
    let (base, head) = (Oid::from_str(base)?, Oid::from_str(head)?);
    let left = repository
        .find_commit(repository.merge_base(base, head)?)?
        .tree()?;
    let now = repository.find_commit(head)?.tree()?;
    let stats = repository
        .diff_tree_to_tree(Some(&left), Some(&now), None)?
        .stats()?;
    Ok(ChangeCounts {
        commits: repository.graph_ahead_behind(head, base)?.0,
        additions: stats.insertions(),
        deletions: stats.deletions(),
        files: stats.files_changed(),
    })
}

fn describe_commit(repository: &Repository, id: Oid) -> anyhow::Result<CommitDetails> {
    let commit = repository.find_commit(id)?;
    let tree = commit.tree()?;
    // As on GitHub, a merge commit is compared with its first parent.
    let before = commit.parent(0).ok().map(|parent| parent.tree()).transpose()?;
    let diff = repository.diff_tree_to_tree(before.as_ref(), Some(&tree), None)?;
    let person = |signature: git2::Signature<'_>| CommitPerson {
        name: String::from_utf8_lossy(signature.name_bytes()).into_owned(),
        email: String::from_utf8_lossy(signature.email_bytes()).into_owned(),
    };
    Ok(CommitDetails {
        id: id.to_string(),
        tree: tree.id().to_string(),
        parents: commit.parent_ids().map(|parent| parent.to_string()).collect(),
        message: String::from_utf8_lossy(commit.message_bytes()).into_owned(),
        at: OffsetDateTime::from_unix_timestamp(commit.time().seconds())?.format(&Rfc3339)?,
        author: person(commit.author()),
        committer: person(commit.committer()),
        added: list_delta_paths(&diff, Delta::Added),
        removed: list_delta_paths(&diff, Delta::Deleted),
        modified: list_delta_paths(&diff, Delta::Modified),
    })
}

fn list_delta_paths(diff: &Diff<'_>, kind: Delta) -> Vec<String> {
    let changed = diff.deltas().filter(|delta| delta.status() == kind);
    let paths = changed.filter_map(|delta| Some(delta.new_file().path()?.to_string_lossy().into_owned()));
    paths.collect()
}
