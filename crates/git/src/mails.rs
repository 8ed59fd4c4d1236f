//! Change as emails, the patch format that keeps commits.

use domain::CommitId;
use git2::{Email, EmailCreateOptions, Oid};

use crate::{BareRepository, Error};

impl BareRepository {
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
