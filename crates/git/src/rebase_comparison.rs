//! Comparison of rebased commits with the commits that they replace.

use domain::CommitId;
use git2::{Commit, Oid};

use crate::{BareRepository, CommitInfo, Error, repository::convert_commit_id};

// Longest rebase that is compared. GitHub lists at most so many commits of a pull request.
const MAX_COMMITS: usize = 250;

impl BareRepository {
    /// Returns the commits that a rebase of `old` on a commit of `base` made, oldest first, if `new` is their last one.
    /// Each of them has the author and message of the commit that it replaces, and the files that git gives it on its
    /// parent. `None` for any other head, for a rebase with conflicts or dropped commits, and above 250 commits.
    ///
    /// The comparison writes objects; [`Self::write_to_memory`] keeps them off the disk.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit, [`Error::HistoryIncomplete`] when older commits could
    /// change the answer.
    pub fn find_rebased_commits(
        &self,
        old: &CommitId,
        new: &CommitId,
        base: &CommitId,
    ) -> Result<Option<Vec<CommitInfo>>, Error> {
        if new == old {
            return Ok(None);
        }
        let Some(copies) = self.list_chain(base, new)? else {
            return Ok(None);
        };
        let Some(onto) = copies.first().and_then(|first| first.parent_id(0).ok()) else {
            return Ok(None);
        };
        let onto = convert_commit_id(onto)?;
        let Some(originals) = self.list_chain(&onto, old)? else {
            return Ok(None);
        };
        if copies.len() != originals.len() {
            return Ok(None);
        }
        let pairs = || originals.iter().zip(&copies);
        // The cheap comparison comes first: a replay merges files.
        if !pairs().all(|(original, copy)| is_same_text(original, copy)) {
            return Ok(None);
        }
        for (original, copy) in pairs() {
            if !self.is_replay(original, copy)? {
                return Ok(None);
            }
        }
        copies
            .iter()
            .map(|copy| self.commit_info(copy.id()))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Lists the commits of `head` beyond `base`, oldest first; `None` if they are no chain of single parents, or too many.
    fn list_chain(&self, base: &CommitId, head: &CommitId) -> Result<Option<Vec<Commit<'_>>>, Error> {
        let walk = self.walk_beyond(std::slice::from_ref(base), head)?;
        let ids = walk.take(MAX_COMMITS + 1).collect::<Result<Vec<Oid>, _>>()?;
        if ids.len() > MAX_COMMITS {
            return Ok(None);
        }
        let commits = ids.into_iter().map(|id| self.objects().find_commit(id));
        let commits = commits.collect::<Result<Vec<_>, _>>()?;
        let is_linear = commits.iter().all(|commit| commit.parent_count() == 1)
            && commits.windows(2).all(|pair| match pair {
                [parent, child] => child.parent_id(0).is_ok_and(|id| id == parent.id()),
                _ => false,
            });
        Ok(is_linear.then_some(commits))
    }

    /// Returns true if the copy has the files of the original commit, replayed on the parent of the copy.
    fn is_replay(&self, original: &Commit<'_>, copy: &Commit<'_>) -> Result<bool, Error> {
        let git = self.objects();
        let mut picked = git.cherrypick_commit(original, &copy.parent(0)?, 0, None)?;
        if picked.has_conflicts() {
            return Ok(false);
        }
        Ok(picked.write_tree_to(git)? == copy.tree_id())
    }
}

fn is_same_text(original: &Commit<'_>, copy: &Commit<'_>) -> bool {
    let (one, other) = (original.author(), copy.author());
    original.message_bytes() == copy.message_bytes()
        && one.name_bytes() == other.name_bytes()
        && one.email_bytes() == other.email_bytes()
        && one.when() == other.when()
}

#[cfg(test)]
mod tests {
    use git2::{Repository, Signature, Time};

    use super::*;

    /// Repository with a base branch that moved on after two commits of ours.
    struct RebaseWorld {
        _folder: tempfile::TempDir,
        repository: BareRepository,
        base: CommitId,
        old: CommitId,
    }

    impl RebaseWorld {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let repository = BareRepository::init_bare(&folder.path().join("a.git")).unwrap();
            let git = repository.objects();
            let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n9\n{last}\n");
            let (before, theirs, ours) = (lines("1", "10"), lines("one", "10"), lines("1", "ten"));
            let fork = commit(git, &[("a.txt", before.as_str())], ("fork", "ann"), None);
            let base = commit(git, &[("a.txt", theirs.as_str())], ("base", "ann"), Some(&fork));
            let first = commit(git, &[("a.txt", ours.as_str())], ("ours", "us"), Some(&fork));
            let files = [("a.txt", ours.as_str()), ("b.txt", "b\n")];
            let old = commit(git, &files, ("more", "us"), Some(&first));
            Self {
                _folder: folder,
                repository,
                base,
                old,
            }
        }

        /// Replays our commits on the base. `change` edits the last one: its files, message and author.
        fn rebase(&self, change: impl FnOnce(&mut Vec<(&str, &str)>, &mut (&str, &str))) -> CommitId {
            let git = self.repository.objects();
            let merged = "one\n2\n3\n4\n5\n6\n7\n8\n9\nten\n";
            let first = commit(git, &[("a.txt", merged)], ("ours", "us"), Some(&self.base));
            let (mut files, mut text) = (vec![("a.txt", merged), ("b.txt", "b\n")], ("more", "us"));
            change(&mut files, &mut text);
            commit(git, &files, text, Some(&first))
        }

        fn find(&self, new: &CommitId) -> Option<Vec<CommitInfo>> {
            let found = self.repository.find_rebased_commits(&self.old, new, &self.base);
            found.unwrap()
        }
    }

    fn commit(
        git: &Repository,
        files: &[(&str, &str)],
        (message, author): (&str, &str),
        parent: Option<&CommitId>,
    ) -> CommitId {
        let mut tree = git.treebuilder(None).unwrap();
        for (path, text) in files {
            let blob = git.blob(text.as_bytes()).unwrap();
            tree.insert(path, blob, 0o100_644).unwrap();
        }
        let tree = git.find_tree(tree.write().unwrap()).unwrap();
        let who = |name: &str| Signature::new(name, "a@acme.example", &Time::new(1, 0)).unwrap();
        let parent = parent.map(|id| git.find_commit(Oid::from_str(id.as_str()).unwrap()).unwrap());
        let parents: Vec<&Commit<'_>> = parent.iter().collect();
        let id = git.commit(None, &who(author), &who("server"), message, &tree, &parents);
        convert_commit_id(id.unwrap()).unwrap()
    }

    #[test]
    fn replayed_commits_are_found_in_order() {
        let world = RebaseWorld::new();
        let new = world.rebase(|_, _| {});
        let found = world.find(&new).unwrap();
        let messages: Vec<&str> = found.iter().map(|commit| commit.message.as_str()).collect();
        assert_eq!(messages, ["ours", "more"]);
        assert_eq!(found[1].id, new);
        assert_eq!(found[0].parents, std::slice::from_ref(&world.base));
        assert_eq!(found[0].committer, "server <a@acme.example>");
    }

    #[test]
    fn changed_commits_are_no_rebase() {
        let world = RebaseWorld::new();
        for new in [
            world.rebase(|files, _| files[1].1 = "b \n"),
            world.rebase(|files, _| files.push(("c.txt", "c\n"))),
            world.rebase(|_, text| text.0 = "other"),
            world.rebase(|_, text| text.1 = "rita"),
        ] {
            assert_eq!(world.find(&new), None);
        }
        let git = world.repository.objects();
        let new = world.rebase(|_, _| {});
        let more = commit(git, &[("d.txt", "d\n")], ("d", "rita"), Some(&new));
        let squashed = commit(git, &[("b.txt", "b\n")], ("more", "us"), Some(&world.base));
        for other in [&more, &squashed, &world.old, &world.base] {
            assert_eq!(world.find(other), None, "{other}");
        }
    }
}
