//! Ancestry of commits.

use domain::CommitId;

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
}
