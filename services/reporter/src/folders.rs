//! Local folders with a repository: the only target of changes in addition to GitHub. No other module knows their
//! paths.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use domain::{BranchPush, CommitId, InstanceName, RepositoryName, TicketKey};
use git::{BareRepository, FolderRepository, PushResult};

use crate::{cleared_text::ClearedText, config::FolderSettings, effect_error::EffectError, message};

const PATCH: &str = "change.patch";
const DESCRIPTION: &str = "description.md";

/// All folders of the settings.
pub(crate) struct FolderTable {
    known: BTreeMap<InstanceName, FolderSettings>,
    /// Parent folder of results, for folders without a results path.
    results: PathBuf,
}

impl FolderTable {
    /// Builds the table from the settings. Results go below `data_dir` unless a folder has a results path.
    pub(crate) fn new(known: BTreeMap<InstanceName, FolderSettings>, data_dir: &Path) -> Self {
        Self {
            known,
            results: data_dir.join("results"),
        }
    }

    /// Returns the folder of a repository; `None` for a repository on a server.
    pub(crate) fn of(&self, repository: &RepositoryName) -> Result<Option<FolderPlace>, EffectError> {
        let Some(name) = repository.local_folder() else {
            return Ok(None);
        };
        let known = self.known.get(&name);
        let settings = known.ok_or_else(|| EffectError::Failed(message::no_such_folder(&name)))?;
        let results = settings.results.clone();
        Ok(Some(FolderPlace {
            path: settings.path.clone(),
            results: results.unwrap_or_else(|| self.results.join(name.as_str())),
            write_branch: settings.write_branch,
        }))
    }
}

/// A folder and the place of its results. Every method blocks.
#[derive(Clone, Debug)]
pub(crate) struct FolderPlace {
    path: PathBuf,
    results: PathBuf,
    write_branch: bool,
}

impl FolderPlace {
    /// Fetches the folder's head into the mirror.
    pub(crate) fn fetch(&self, mirror: &Path) -> Result<(), git::Error> {
        FolderRepository::open(&self.path)?.fetch_into(&BareRepository::init_bare(mirror)?)
    }

    /// Returns the head of a branch of the folder.
    pub(crate) fn branch_head(&self, branch: &str) -> Result<Option<CommitId>, git::Error> {
        FolderRepository::open(&self.path)?.branch_head(branch)
    }

    /// Copies the change from the mirror and sets its branch, unless the settings exclude branches.
    pub(crate) fn push(&self, mirror: &Path, push: &BranchPush) -> Result<PushResult, git::Error> {
        // The patch is the result then, and the mirror has the commit already.
        if !self.write_branch {
            return Ok(PushResult::UpToDate);
        }
        let mirror = BareRepository::open(mirror)?;
        let ends = [&push.base, &push.head];
        FolderRepository::open(&self.path)?.write_branch(&mirror, &push.branch, ends, push.expected.as_ref())
    }

    /// Writes the patch of a ticket's change, one mail per commit, and its description. Returns the path of the
    /// patch.
    pub(crate) fn deliver(
        &self,
        mirror: &Path,
        change: &PatchDelivery,
        text: &ClearedText,
    ) -> Result<PathBuf, git::Error> {
        let mirror = BareRepository::open(mirror)?;
        let base = mirror.branch_head(&change.base_branch)?;
        let base = base.ok_or_else(|| git::Error::NotFound(change.base_branch.clone()))?;
        let folder = self.results.join(change.ticket.short());
        std::fs::create_dir_all(&folder)?;
        // The description comes first: the patch is the result, and it must not exist without its text.
        std::fs::write(folder.join(DESCRIPTION), text.as_str())?;
        let patch = folder.join(PATCH);
        std::fs::write(&patch, mirror.mails(&base, &change.head)?)?;
        Ok(patch)
    }
}

/// Change that is delivered as a patch.
#[derive(Clone, Debug)]
pub(crate) struct PatchDelivery {
    /// Ticket of the change.
    pub(crate) ticket: TicketKey,
    /// Branch that the change is based on.
    pub(crate) base_branch: String,
    /// Last commit of the change.
    pub(crate) head: CommitId,
}
