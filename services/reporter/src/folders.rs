//! Local folders with a repository: the only place outside of GitHub that a change can go to. Nothing else in
//! Journeyman knows where they are.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use domain::{CommitId, Instance, PushBranch, RepositoryName, TicketKey};
use git::{Folder, Pushed, Repository};

use crate::{config::FolderSettings, message, outgoing::Outgoing, trouble::Trouble};

const PATCH: &str = "change.patch";
const DESCRIPTION: &str = "description.md";

/// Every folder of the settings.
pub(crate) struct Folders {
    known: BTreeMap<Instance, FolderSettings>,
    /// Below it the results of folders whose settings name no other place.
    results: PathBuf,
}

impl Folders {
    /// Those of the settings; results go below `data_dir` where they have no place of their own.
    pub(crate) fn new(known: BTreeMap<Instance, FolderSettings>, data_dir: &Path) -> Self {
        Self {
            known,
            results: data_dir.join("results"),
        }
    }

    /// The folder that a repository is in; absent: it is on a server.
    pub(crate) fn of(&self, repository: &RepositoryName) -> Result<Option<Place>, Trouble> {
        let Some(name) = repository.local_folder() else {
            return Ok(None);
        };
        let known = self.known.get(&name);
        let settings = known.ok_or_else(|| Trouble::Failed(message::no_such_folder(&name)))?;
        let results = settings.results.clone();
        Ok(Some(Place {
            path: settings.path.clone(),
            results: results.unwrap_or_else(|| self.results.join(name.as_str())),
            write_branch: settings.write_branch,
        }))
    }
}

/// One folder, and where the results of its tickets go. Every method blocks.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    path: PathBuf,
    results: PathBuf,
    write_branch: bool,
}

impl Place {
    /// Brings the folder's head into the mirror.
    pub(crate) fn fetch(&self, mirror: &Path) -> Result<(), git::Error> {
        Folder::open(&self.path)?.fetch_into(&Repository::init_bare(mirror)?)
    }

    /// The commit that a branch of the folder is at.
    pub(crate) fn branch_head(&self, branch: &str) -> Result<Option<CommitId>, git::Error> {
        Folder::open(&self.path)?.branch_head(branch)
    }

    /// Copies the change from the mirror and sets its branch, unless branches are not wanted.
    pub(crate) fn push(&self, mirror: &Path, push: &PushBranch) -> Result<Pushed, git::Error> {
        if !self.write_branch {
            return Ok(Pushed::UpToDate);
        }
        let mirror = Repository::open(mirror)?;
        let ends = [&push.base, &push.head];
        Folder::open(&self.path)?.write_branch(&mirror, &push.branch, ends, push.expected.as_ref())
    }

    /// Writes the patch of a ticket's change, as a mail for each commit, and its text. Gives the patch's place.
    pub(crate) fn deliver(
        &self,
        mirror: &Path,
        change: &Delivery,
        text: &Outgoing,
    ) -> Result<PathBuf, git::Error> {
        let mirror = Repository::open(mirror)?;
        let base = mirror.branch_head(&change.base_branch)?;
        let base = base.ok_or_else(|| git::Error::NotFound(change.base_branch.clone()))?;
        let folder = self.results.join(change.ticket.short());
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(DESCRIPTION), text.as_str())?;
        let patch = folder.join(PATCH);
        std::fs::write(&patch, mirror.mails(&base, &change.head)?)?;
        Ok(patch)
    }
}

/// What is delivered as a patch.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// Whose it is.
    pub(crate) ticket: TicketKey,
    /// Where it begins.
    pub(crate) base_branch: String,
    /// Where it ends.
    pub(crate) head: CommitId,
}
