//! History of commits: common ancestors, walks, emails of a change, and signatures.

use domain::{CommitAuthor, CommitId};
use git2::{Email, EmailCreateOptions, Oid, Revwalk, Signature, Sort, Time};

use crate::{BareRepository, Error, repository::convert_commit_id};

impl BareRepository {
    /// Finds the best common ancestor of two commits; `None` when they share no history.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit.
    pub fn merge_base(&self, one: &CommitId, other: &CommitId) -> Result<Option<CommitId>, Error> {
        let (one, other) = (self.commit(one)?.id(), self.commit(other)?.id());
        match self.objects().merge_base(one, other) {
            Ok(base) => convert_commit_id(base).map(Some),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Walks the commits of `head` that are not in the history of the `known` ones, oldest first.
    pub(crate) fn walk_beyond(&self, known: &[CommitId], head: &CommitId) -> Result<Revwalk<'_>, Error> {
        let mut walk = self.objects().revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE)?;
        walk.push(self.commit(head)?.id())?;
        for commit in known {
            walk.hide(self.commit(commit)?.id())?;
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
