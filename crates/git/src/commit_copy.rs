//! Copies of commits: the data that another writer needs to create an equal commit, and copies with a signature.

use std::{collections::HashSet, path::Path};

use domain::{CommitAuthor, CommitId};
use git2::{Delta, DiffOptions, ObjectType, Oid};

use crate::{BareRepository, Error, repository::convert_commit_id};

/// Data of a commit that an equal one needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitSource {
    /// Id of the commit.
    pub id: CommitId,
    /// Id of its tree.
    pub tree: String,
    /// Ids of its parents, in order.
    pub parents: Vec<CommitId>,
    /// Message as written, with its trailers.
    pub message: String,
}

/// Path that differs between a commit and its first parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEdit {
    /// Path from the root, with `/` between folders.
    pub path: String,
    /// Mode in git's octal digits; for a removed path the former one.
    pub mode: &'static str,
    /// Id of the new object; absent for a removed path.
    pub object: Option<String>,
    /// Size of the new object in bytes; 0 for a removed path and for a submodule.
    pub size_bytes: u64,
    /// True when no parent has the object at this path, and the first parent does not have it at another changed path.
    pub is_new: bool,
}

impl TreeEdit {
    /// Size of the content that a copy of the commit has to bring, in bytes.
    pub const fn new_bytes(&self) -> u64 {
        if self.is_new { self.size_bytes } else { 0 }
    }
}

impl BareRepository {
    /// Lists the commits that `head` has and none of `known`, parents before children. Commits of `known` that the
    /// repository lacks are ignored.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks `head`, [`Error::HistoryIncomplete`] when such commits can be
    /// missing.
    pub fn commit_sources_beyond(
        &self,
        head: &CommitId,
        known: &[CommitId],
    ) -> Result<Vec<CommitSource>, Error> {
        let present: Vec<CommitId> = known
            .iter()
            .filter(|commit| self.contains(commit))
            .cloned()
            .collect();
        let walk = self.walk_beyond(&present, head)?;
        walk.map(|id| self.read_commit_source(id?)).collect()
    }

    fn read_commit_source(&self, id: Oid) -> Result<CommitSource, Error> {
        let commit = self.objects().find_commit(id)?;
        let parents = commit.parent_ids().map(convert_commit_id);
        Ok(CommitSource {
            id: convert_commit_id(id)?,
            tree: commit.tree_id().to_string(),
            parents: parents.collect::<Result<_, _>>()?,
            message: String::from_utf8_lossy(commit.message_raw_bytes()).into_owned(),
        })
    }

    /// Lists the paths that differ between a commit and its first parent, with the id of the parent's tree.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks the commit or it has no parent, [`Error::PathNotUtf8`].
    pub fn edits_of(&self, commit: &CommitId) -> Result<(String, Vec<TreeEdit>), Error> {
        let found = self.commit(commit)?;
        let before = found.parent(0)?.tree()?;
        let mut options = DiffOptions::new();
        options.include_typechange(true).ignore_submodules(false);
        let after = found.tree()?;
        let diff = self
            .objects()
            .diff_tree_to_tree(Some(&before), Some(&after), Some(&mut options))?;
        let objects = self.objects().odb()?;
        // A merge takes most of its objects from the other side, and the remote has those.
        let others = found.parents().skip(1).map(|parent| parent.tree());
        let others: Vec<git2::Tree<'_>> = others.collect::<Result<_, _>>()?;
        // A moved file, or one with another mode, has an object of the first parent.
        let left = diff.deltas().filter(|delta| delta.status() != Delta::Added);
        let left: HashSet<Oid> = left.map(|delta| delta.old_file().id()).collect();
        let mut edits = Vec::new();
        for delta in diff.deltas() {
            let is_removed = delta.status() == Delta::Deleted;
            let file = if is_removed {
                delta.old_file()
            } else {
                delta.new_file()
            };
            let bytes = file.path_bytes().unwrap_or_default();
            let path = std::str::from_utf8(bytes)
                .map_err(|_| Error::PathNotUtf8(String::from_utf8_lossy(bytes).into_owned()))?;
            let mode = render_mode(file.mode());
            let is_here = !is_removed && mode != "160000";
            let is_elsewhere = others.iter().any(|tree| {
                let entry = tree.get_path(Path::new(path));
                entry.is_ok_and(|entry| entry.id() == file.id())
            });
            let is_known = is_elsewhere || left.contains(&file.id());
            let size = if is_here {
                objects.read_header(file.id())?.0
            } else {
                0
            };
            edits.push(TreeEdit {
                path: path.to_owned(),
                mode,
                object: (!is_removed).then(|| file.id().to_string()),
                size_bytes: u64::try_from(size).unwrap_or(u64::MAX),
                is_new: is_here && !is_known,
            });
        }
        Ok((before.id().to_string(), edits))
    }

    /// Reads the content of a blob by its id.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks the blob.
    pub fn blob(&self, id: &str) -> Result<Vec<u8>, Error> {
        Ok(self.objects().find_blob(Oid::from_str(id)?)?.content().to_vec())
    }

    /// Writes a copy of a commit with these parents and a signature, and returns its id.
    ///
    /// Tree, message, author and dates are those of the commit; `committer` replaces the name of its committer.
    /// `sign` returns the signature of the bytes. Header lines other than git's usual ones are not copied.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks the commit, and every error of `sign`.
    pub fn write_signed_copy(
        &self,
        commit: &CommitId,
        parents: &[CommitId],
        committer: Option<&CommitAuthor>,
        sign: &dyn Fn(&[u8]) -> Result<String, Error>,
    ) -> Result<CommitId, Error> {
        let found = self.commit(commit)?;
        let header = found.raw_header_bytes();
        let mut lines = format!("tree {}\n", found.tree_id()).into_bytes();
        for parent in parents {
            lines.extend_from_slice(format!("parent {parent}\n").as_bytes());
        }
        lines.extend_from_slice(&find_header_line(header, "author ")?);
        lines.push(b'\n');
        let own = find_header_line(header, "committer ")?;
        lines.extend_from_slice(&committer.map_or_else(|| own.clone(), |name| replace_person(&own, name)));
        lines.push(b'\n');
        let body = [b"\n".as_slice(), found.message_raw_bytes()].concat();
        let signature = sign(&[lines.as_slice(), &body].concat())?;
        // Further lines of a header's value begin with a blank.
        let signature = format!("gpgsig {}\n", signature.trim_end().replace('\n', "\n "));
        let whole = [lines.as_slice(), signature.as_bytes(), &body].concat();
        convert_commit_id(self.objects().odb()?.write(ObjectType::Commit, &whole)?)
    }
}

const fn render_mode(mode: git2::FileMode) -> &'static str {
    match mode {
        git2::FileMode::BlobExecutable => "100755",
        git2::FileMode::Link => "120000",
        git2::FileMode::Commit => "160000",
        git2::FileMode::Tree => "040000",
        git2::FileMode::Blob | git2::FileMode::BlobGroupWritable | git2::FileMode::Unreadable => "100644",
    }
}

fn find_header_line(header: &[u8], name: &str) -> Result<Vec<u8>, Error> {
    let mut lines = header.split(|byte| *byte == b'\n');
    let line = lines.find(|line| line.starts_with(name.as_bytes()));
    line.map(<[u8]>::to_vec)
        .ok_or_else(|| Error::BadPack(format!("a commit has no line `{}`", name.trim_end())))
}

/// Replaces name and address of a person's header line, and keeps its date.
fn replace_person(line: &[u8], person: &CommitAuthor) -> Vec<u8> {
    let end = line.iter().rposition(|byte| *byte == b'>');
    let date = end.and_then(|end| line.get(end + 1..)).unwrap_or_default();
    [format!("committer {person}").as_bytes(), date].concat()
}

#[cfg(test)]
mod tests {
    use git2::{IndexEntry, IndexTime, Signature, Time};

    use super::*;

    struct Sample {
        repository: BareRepository,
        _folder: tempfile::TempDir,
    }

    impl Sample {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let repository = BareRepository::init_bare(&folder.path().join("r.git")).unwrap();
            Self {
                repository,
                _folder: folder,
            }
        }

        /// Commits exactly these files with their modes.
        fn commit(&self, files: &[(&str, u32, &str)], parents: &[&CommitId]) -> CommitId {
            let git = self.repository.objects();
            let mut index = git2::Index::new().unwrap();
            for (path, mode, content) in files {
                let zero = IndexTime::new(0, 0);
                index
                    .add(&IndexEntry {
                        ctime: zero,
                        mtime: zero,
                        dev: 0,
                        ino: 0,
                        mode: *mode,
                        uid: 0,
                        gid: 0,
                        file_size: 0,
                        id: git.blob(content.as_bytes()).unwrap(),
                        flags: 0,
                        flags_extended: 0,
                        path: path.as_bytes().to_vec(),
                    })
                    .unwrap();
            }
            let tree = git.find_tree(index.write_tree_to(git).unwrap()).unwrap();
            let who = Signature::new("Ann", "ann@acme.test", &Time::new(1_700_000_000, 60)).unwrap();
            let parents: Vec<_> = parents
                .iter()
                .map(|id| self.repository.commit(id).unwrap())
                .collect();
            let parents: Vec<_> = parents.iter().collect();
            let message = "fix: totals\n\nCo-authored-by: Bo <bo@acme.test>\n";
            convert_commit_id(git.commit(None, &who, &who, message, &tree, &parents).unwrap()).unwrap()
        }
    }

    #[test]
    fn edits_name_modes_links_and_removals() {
        let sample = Sample::new();
        let base = sample.commit(
            &[
                ("a", 0o100_644, "1"),
                ("gone/x", 0o100_644, "2"),
                ("run", 0o100_644, "3"),
                ("was/dir", 0o100_644, "4"),
            ],
            &[],
        );
        let head = sample.commit(
            &[
                ("a", 0o100_644, "1"),
                ("link", 0o120_000, "a"),
                ("run", 0o100_755, "3"),
                ("was", 0o100_644, "5"),
            ],
            &[&base],
        );
        let (tree, edits) = sample.repository.edits_of(&head).unwrap();
        assert_eq!(
            tree,
            sample.repository.commit(&base).unwrap().tree_id().to_string()
        );
        let shown: Vec<(&str, &str, bool)> = edits
            .iter()
            .map(|edit| (edit.path.as_str(), edit.mode, edit.object.is_some()))
            .collect();
        assert_eq!(shown.len(), 5, "{shown:?}");
        for expected in [
            ("gone/x", "100644", false),
            ("link", "120000", true),
            ("run", "100755", true),
            ("was", "100644", true),
            ("was/dir", "100644", false),
        ] {
            assert!(shown.contains(&expected), "{shown:?}");
        }
        let link = edits.iter().find(|edit| edit.path == "link").unwrap();
        assert_eq!(
            sample.repository.blob(link.object.as_ref().unwrap()).unwrap(),
            b"a"
        );
    }

    #[test]
    fn moved_content_is_not_new() {
        let sample = Sample::new();
        let base = sample.commit(
            &[
                ("changed", 0o100_644, "1"),
                ("old/logo", 0o100_644, "2"),
                ("run", 0o100_644, "3"),
            ],
            &[],
        );
        let head = sample.commit(
            &[
                ("changed", 0o100_644, "4"),
                ("new/logo", 0o100_644, "2"),
                ("run", 0o100_755, "3"),
            ],
            &[&base],
        );
        let (_, edits) = sample.repository.edits_of(&head).unwrap();
        let shown: Vec<(&str, bool)> = edits
            .iter()
            .map(|edit| (edit.path.as_str(), edit.is_new))
            .collect();
        assert_eq!(
            shown,
            [
                ("changed", true),
                ("new/logo", false),
                ("old/logo", false),
                ("run", false)
            ]
        );
    }

    #[test]
    fn signed_copy_keeps_all_but_parents() {
        let sample = Sample::new();
        let base = sample.commit(&[("a", 0o100_644, "1")], &[]);
        let other = sample.commit(&[("b", 0o100_644, "1")], &[]);
        let head = sample.commit(&[("a", 0o100_644, "2")], &[&base]);
        let sign = |content: &[u8]| {
            assert!(content.ends_with(b"Co-authored-by: Bo <bo@acme.test>\n"));
            Ok("-----BEGIN-----\nabc\n-----END-----\n".to_owned())
        };
        let bot = CommitAuthor::journeyman();
        let parents = [base.clone(), other];
        let copy = sample
            .repository
            .write_signed_copy(&head, &parents, Some(&bot), &sign)
            .unwrap();
        let again = sample
            .repository
            .write_signed_copy(&head, &parents, Some(&bot), &sign)
            .unwrap();
        assert_eq!(copy, again, "the same commit has the same id");
        let (old, new) = (
            sample.repository.commit(&head).unwrap(),
            sample.repository.commit(&copy).unwrap(),
        );
        assert_eq!(
            (old.tree_id(), old.message_raw_bytes(), old.author().when()),
            (new.tree_id(), new.message_raw_bytes(), new.author().when())
        );
        assert_eq!(new.committer().when(), old.committer().when());
        assert_eq!(new.committer().name_bytes(), bot.name().as_bytes());
        assert_eq!(new.parent_count(), 2);
        let signature = new.header_field_bytes("gpgsig").unwrap();
        assert_eq!(&*signature, b"-----BEGIN-----\nabc\n-----END-----");
    }

    #[test]
    fn commit_sources_beyond_known_ones_come_parents_first() {
        let sample = Sample::new();
        let base = sample.commit(&[("a", 0o100_644, "1")], &[]);
        let main = sample.commit(&[("a", 0o100_644, "1"), ("m", 0o100_644, "1")], &[&base]);
        let one = sample.commit(&[("a", 0o100_644, "2")], &[&base]);
        let merge = sample.commit(&[("a", 0o100_644, "2"), ("m", 0o100_644, "1")], &[&one, &main]);
        let absent: CommitId = "d".repeat(40).parse().unwrap();
        let known = [base, main.clone(), absent];
        let beyond = sample.repository.commit_sources_beyond(&merge, &known).unwrap();
        let ids: Vec<&CommitId> = beyond.iter().map(|commit| &commit.id).collect();
        assert_eq!(ids, [&one, &merge]);
        assert_eq!(beyond[1].parents, [one, main]);
        assert!(beyond[0].message.contains("Co-authored-by"));
    }
}
