//! Lists the content of a commit that is stored in another place.

use domain::CommitId;

use crate::{
    BareRepository, Error, ExternalContent,
    external_content::{find_external_content, find_lfs_files},
    lfs_pointer::LfsFile,
};

impl BareRepository {
    /// Lists the paths whose content the commit refers to without containing it.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks the commit.
    pub fn elsewhere(&self, commit: &CommitId) -> Result<ExternalContent, Error> {
        find_external_content(self.objects(), &self.commit(commit)?.tree()?)
    }

    /// Lists the files of a commit whose content is in Git LFS, with their pointers; at most 20,000.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks the commit.
    pub fn lfs_files(&self, commit: &CommitId) -> Result<Vec<LfsFile>, Error> {
        find_lfs_files(self.objects(), &self.commit(commit)?.tree()?)
    }
}
