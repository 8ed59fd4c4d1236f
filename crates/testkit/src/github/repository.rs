//! Bare git repositories of the stand-in: commits, merges, files and diffs.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};
use data_encoding::HEXLOWER;
use git2::{
    Commit, Index, IndexEntry, IndexTime, ObjectType, Oid, Repository, RepositoryInitOptions, Signature, Tree,
};
use ring::digest::{SHA256, digest};

/// Creates a bare repository with one commit on `main` and returns the commit's id.
pub(super) fn create_bare_repository(path: &Path, files: &[(&str, &str)]) -> anyhow::Result<String> {
    let repository = Repository::init_opts(
        path,
        RepositoryInitOptions::new()
            .bare(true)
            .mkpath(true)
            .initial_head("main"),
    )?;
    let mut config = repository.config()?;
    // GitHub accepts pushes, fetches of reachable commits by id, and partial clones; git disables all three
    // by default.
    config.set_bool("http.receivepack", true)?;
    config.set_bool("uploadpack.allowReachableSHA1InWant", true)?;
    config.set_bool("uploadpack.allowFilter", true)?;
    commit_files(path, "main", None, "Initial commit", "Rita Maintainer", files)
}

/// Commits changed files to a branch and returns the commit's id. A new branch starts at `start`.
pub(super) fn commit_files(
    path: &Path,
    branch: &str,
    start: Option<&str>,
    message: &str,
    author: &str,
    files: &[(&str, &str)],
) -> anyhow::Result<String> {
    let repository = Repository::open_bare(path)?;
    // A new branch starts at `start`. The first commit of a repository has no parent.
    let parent = find_branch_head(&repository, branch)
        .or_else(|| start.and_then(|start| find_branch_head(&repository, start)));
    let mut index = Index::new()?;
    if let Some(parent) = &parent {
        index.read_tree(&parent.tree()?)?;
    }
    for (file, content) in files {
        index.add(&build_index_entry(file, repository.blob(content.as_bytes())?))?;
    }
    let tree = repository.find_tree(index.write_tree_to(&repository)?)?;
    write_commit(
        &repository,
        branch,
        message,
        author,
        &tree,
        &parent.iter().collect::<Vec<_>>(),
    )
}

/// Sets a branch to a commit of these bytes, also to one that git itself would not write. Returns the commit's id.
pub(super) fn store_commit(path: &Path, branch: &str, content: &[u8]) -> anyhow::Result<String> {
    let repository = Repository::open_bare(path)?;
    let id = repository.odb()?.write(ObjectType::Commit, content)?;
    repository.reference(&format!("refs/heads/{branch}"), id, true, "stored")?;
    Ok(id.to_string())
}

fn build_index_entry(path: &str, id: Oid) -> IndexEntry {
    // A tree contains mode, id and path; the other fields describe files on a disk.
    let zero = IndexTime::new(0, 0);
    IndexEntry {
        ctime: zero,
        mtime: zero,
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

/// Returns the e-mail address that the stand-in gives an author.
pub(super) fn address_of(author: &str) -> String {
    format!("{}@people.test", author.to_ascii_lowercase().replace(' ', "."))
}

fn write_commit(
    repository: &Repository,
    branch: &str,
    message: &str,
    author: &str,
    tree: &Tree<'_>,
    parents: &[&Commit<'_>],
) -> anyhow::Result<String> {
    let signature = Signature::now(author, &address_of(author))?;
    let id = match parents {
        // GitHub makes the merges itself, and signs them.
        [_, _, ..] => {
            let committer = Signature::now("GitHub", "noreply@github.com")?;
            let content = repository.commit_create_buffer(&signature, &committer, message, tree, parents)?;
            let text = std::str::from_utf8(&content)?;
            repository.commit_signed(text, &sign_as_github(&content), None)?
        }
        // The reference argument of `commit` would require the first parent to be the branch's current head,
        // which a new branch does not have.
        [] | [_] => repository.commit(None, &signature, &signature, message, tree, parents)?,
    };
    repository.reference(&format!("refs/heads/{branch}"), id, true, message)?;
    Ok(id.to_string())
}

/// Signs a commit's content as the stand-in. Only the stand-in's own check accepts the signature.
pub(super) fn sign_as_github(content: &[u8]) -> String {
    let hash = HEXLOWER.encode(digest(&SHA256, content).as_ref());
    format!("-----BEGIN PGP SIGNATURE-----\n\n{hash}\n-----END PGP SIGNATURE-----")
}

/// Merges a commit into a branch with a merge commit and returns its id.
pub(super) fn merge_branches(
    path: &Path,
    base: &str,
    theirs: &str,
    message: &str,
    author: &str,
) -> anyhow::Result<String> {
    let repository = Repository::open_bare(path)?;
    let ours = find_branch_head(&repository, base).with_context(|| format!("there is no branch {base}"))?;
    let theirs = repository.find_commit(Oid::from_str(theirs)?)?;
    let mut merged = repository.merge_commits(&ours, &theirs, None)?;
    ensure!(!merged.has_conflicts(), "merge conflict");
    let tree = repository.find_tree(merged.write_tree_to(&repository)?)?;
    write_commit(&repository, base, message, author, &tree, &[&ours, &theirs])
}

/// True if a commit can be merged into another one without a conflict.
pub(super) fn can_merge(path: &Path, base: &str, theirs: &str) -> anyhow::Result<bool> {
    let repository = Repository::open_bare(path)?;
    let ours = repository.find_commit(Oid::from_str(base)?)?;
    let theirs = repository.find_commit(Oid::from_str(theirs)?)?;
    Ok(!repository.merge_commits(&ours, &theirs, None)?.has_conflicts())
}

/// Moves the commits of a branch onto another commit, with a new committer. Returns the new head.
pub(super) fn rebase_branch(path: &Path, branch: &str, onto: &str, by: &str) -> anyhow::Result<String> {
    let repository = Repository::open_bare(path)?;
    let head =
        find_branch_head(&repository, branch).with_context(|| format!("there is no branch {branch}"))?;
    let mut new = repository.find_commit(Oid::from_str(onto)?)?;
    let mut walk = repository.revwalk()?;
    walk.push(head.id())?;
    walk.hide(new.id())?;
    walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::REVERSE)?;
    for id in walk {
        let commit = repository.find_commit(id?)?;
        let mut picked = repository.cherrypick_commit(&commit, &new, 0, None)?;
        ensure!(!picked.has_conflicts(), "merge conflict");
        let tree = repository.find_tree(picked.write_tree_to(&repository)?)?;
        let committer = Signature::now(by, &address_of(by))?;
        let message = commit.message().unwrap_or_default();
        let id = repository.commit(None, &commit.author(), &committer, message, &tree, &[&new])?;
        new = repository.find_commit(id)?;
    }
    repository.reference(&format!("refs/heads/{branch}"), new.id(), true, "rebase")?;
    Ok(new.id().to_string())
}

/// Sets a branch to a commit.
pub(super) fn set_branch(path: &Path, branch: &str, commit: &str) -> anyhow::Result<()> {
    let repository = Repository::open_bare(path)?;
    repository.reference(
        &format!("refs/heads/{branch}"),
        Oid::from_str(commit)?,
        true,
        "merge queue",
    )?;
    Ok(())
}

/// Removes a branch. Its commits stay.
pub(super) fn remove_branch(path: &Path, branch: &str) -> anyhow::Result<()> {
    let repository = Repository::open_bare(path)?;
    repository
        .find_reference(&format!("refs/heads/{branch}"))?
        .delete()?;
    Ok(())
}

/// Returns the commit id of each branch. A repository that cannot be read has no branches.
pub(super) fn list_branches(path: &Path) -> BTreeMap<String, String> {
    let read = || -> anyhow::Result<BTreeMap<String, String>> {
        let repository = Repository::open_bare(path)?;
        let mut found = BTreeMap::new();
        for reference in repository.references_glob("refs/heads/*")? {
            let reference = reference?;
            if let (Ok(name), Some(id)) = (reference.shorthand(), reference.target()) {
                found.insert(name.to_owned(), id.to_string());
            }
        }
        Ok(found)
    };
    read().unwrap_or_default()
}

/// Counts the commits of `head` that `base` does not contain.
pub(super) fn count_commits_ahead(path: &Path, base: &str, head: &str) -> anyhow::Result<usize> {
    let repository = Repository::open_bare(path)?;
    let (ahead, _) = repository.graph_ahead_behind(Oid::from_str(head)?, Oid::from_str(base)?)?;
    Ok(ahead)
}

/// Returns the content of every file of a branch or commit, by path (lossy UTF-8).
pub(super) fn read_files(path: &Path, revision: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let repository = Repository::open_bare(path)?;
    let tree = resolve_revision(&repository, revision)?.tree()?;
    let mut found = BTreeMap::new();
    tree.walk(git2::TreeWalkMode::PreOrder, |directory, entry| {
        if let (Some(ObjectType::Blob), Ok(name)) = (entry.kind(), entry.name())
            && let Ok(blob) = repository.find_blob(entry.id())
        {
            found.insert(
                format!("{directory}{name}"),
                String::from_utf8_lossy(blob.content()).into_owned(),
            );
        }
        git2::TreeWalkResult::Ok
    })?;
    Ok(found)
}

/// Returns the unified diff from the merge base of two branches or commits to the second.
pub(super) fn render_unified_diff(path: &Path, base: &str, head: &str) -> anyhow::Result<String> {
    let repository = Repository::open_bare(path)?;
    let (base, head) = (
        resolve_revision(&repository, base)?,
        resolve_revision(&repository, head)?,
    );
    let from = repository.find_commit(repository.merge_base(base.id(), head.id())?)?;
    let diff = repository.diff_tree_to_tree(Some(&from.tree()?), Some(&head.tree()?), None)?;
    let mut text = String::new();
    diff.print(git2::DiffFormat::Patch, |_, _, line| {
        if matches!(line.origin(), '+' | '-' | ' ') {
            text.push(line.origin());
        }
        text.push_str(&String::from_utf8_lossy(line.content()));
        true
    })?;
    Ok(text)
}

fn find_branch_head<'repository>(
    repository: &'repository Repository,
    branch: &str,
) -> Option<Commit<'repository>> {
    repository
        .find_reference(&format!("refs/heads/{branch}"))
        .ok()?
        .peel_to_commit()
        .ok()
}

fn resolve_revision<'repository>(
    repository: &'repository Repository,
    revision: &str,
) -> anyhow::Result<Commit<'repository>> {
    match find_branch_head(repository, revision) {
        Some(commit) => Ok(commit),
        None => Ok(repository.find_commit(Oid::from_str(revision)?)?),
    }
}
