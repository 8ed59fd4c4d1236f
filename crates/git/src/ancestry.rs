//! How commits descend from one another.

use domain::CommitId;

use crate::{Error, Repository, repository::commit_id};

impl Repository {
    /// The commit where the histories of two commits part; absent when they share none.
    ///
    /// # Errors
    /// [`Error::Missing`] when a commit is not there.
    pub fn merge_base(&self, one: &CommitId, other: &CommitId) -> Result<Option<CommitId>, Error> {
        let (one, other) = (self.commit(one)?.id(), self.commit(other)?.id());
        match self.objects().merge_base(one, other) {
            Ok(base) => commit_id(base).map(Some),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
