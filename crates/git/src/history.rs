//! History of commits: common ancestors, walks, emails of a change, and signatures.

use domain::{CommitAuthor, CommitId};
use git2::{Email, EmailCreateOptions, Oid, Revwalk, Signature, Sort, Time};

use crate::{BareRepository, CommitInfo, Error, repository::convert_commit_id};

impl BareRepository {
    /// Finds the best common ancestor of two commits; `None` when they share no history.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit, [`Error::HistoryIncomplete`] when an older commit could
    /// change the answer.
    pub fn merge_base(&self, one: &CommitId, other: &CommitId) -> Result<Option<CommitId>, Error> {
        let ends = [self.commit(one)?.id(), self.commit(other)?.id()];
        let [one, other] = ends;
        let bases = self.find_merge_bases(one, other)?;
        // A boundary commit beside the found ancestors can hide a better one.
        self.require_history(&ends, &bases)?;
        if bases.is_empty() {
            return Ok(None);
        }
        convert_commit_id(self.objects().merge_base(one, other)?).map(Some)
    }

    /// Finds the common ancestors of which none is an ancestor of another, as far as history is present.
    fn find_merge_bases(&self, one: Oid, other: Oid) -> Result<Vec<Oid>, Error> {
        match self.objects().merge_bases(one, other) {
            Ok(bases) => Ok(bases.iter().copied().collect()),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// True when `head` is `base` or descends from it.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit, [`Error::HistoryIncomplete`] when `head` could descend
    /// from `base` by commits that are not fetched yet.
    pub fn is_descendant(&self, head: &CommitId, base: &CommitId) -> Result<bool, Error> {
        let (head, base) = (self.commit(head)?.id(), self.commit(base)?.id());
        if head == base || self.objects().graph_descendant_of(head, base)? {
            return Ok(true);
        }
        // Their common ancestors cannot lead to the base, so only the commits after them count.
        self.require_history(&[head], &self.find_merge_bases(head, base)?)?;
        Ok(false)
    }

    /// True when `head` is known to be `base` or to descend from it. False when the repository lacks one of them, or history
    /// between them.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn is_known_descendant(&self, head: &CommitId, base: &CommitId) -> Result<bool, Error> {
        match self.is_descendant(head, base) {
            Err(Error::Missing { .. } | Error::HistoryIncomplete) => Ok(false),
            known => known,
        }
    }

    /// Lists the commits from `base` (exclusive) to `head`, oldest first; at most 1,000.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit.
    pub fn commits(&self, base: &CommitId, head: &CommitId) -> Result<Vec<CommitInfo>, Error> {
        self.commits_beyond(std::slice::from_ref(base), head)
    }

    /// Lists the commits of `head` that are not in the history of the `known` ones, oldest first; at most 1,000.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit, [`Error::HistoryIncomplete`] when such commits can be
    /// missing.
    pub fn commits_beyond(&self, known: &[CommitId], head: &CommitId) -> Result<Vec<CommitInfo>, Error> {
        let walk = self.walk_beyond(known, head)?;
        walk.take(1000).map(|id| self.commit_info(id?)).collect()
    }

    /// Walks the commits of `head` that are not in the history of the `known` ones, oldest first.
    pub(crate) fn walk_beyond(&self, known: &[CommitId], head: &CommitId) -> Result<Revwalk<'_>, Error> {
        let head = self.commit(head)?.id();
        let known = known.iter().map(|commit| Ok(self.commit(commit)?.id()));
        let known = known.collect::<Result<Vec<Oid>, Error>>()?;
        self.require_history(&[head], &known)?;
        let mut walk = self.objects().revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE)?;
        walk.push(head)?;
        for commit in known {
            walk.hide(commit)?;
        }
        Ok(walk)
    }

    /// Renders the commits between `base` and `head` as emails for `git am`, oldest first; at most 1,000.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit.
    pub fn mails(&self, base: &CommitId, head: &CommitId) -> Result<Vec<u8>, Error> {
        let mut mails = Vec::new();
        for commit in self.commits(base, head)? {
            let commit = self.objects().find_commit(Oid::from_str(commit.id.as_str())?)?;
            let mut options = EmailCreateOptions::new();
            options.diff_options().show_binary(true);
            mails.extend_from_slice(Email::from_commit(&commit, &mut options)?.as_slice());
        }
        Ok(mails)
    }
}

/// Creates the signature of an author at a Unix time in seconds, in UTC.
///
/// # Errors
/// git2's error for an invalid name or address.
pub fn commit_signature(author: &CommitAuthor, time_s: i64) -> Result<Signature<'static>, git2::Error> {
    Signature::new(author.name(), author.address(), &Time::new(time_s, 0))
}
