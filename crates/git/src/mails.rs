//! A change as mails, the form of a patch that keeps commits.

use domain::CommitId;
use git2::{Email, EmailCreateOptions, Oid};

use crate::{Error, Repository};

impl Repository {
    /// The commits that `head` has and `base` has not, oldest first, each as a mail that `git am` takes; at most 1,000.
    ///
    /// # Errors
    /// [`Error::Missing`] when a commit is not there.
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
