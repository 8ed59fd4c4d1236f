//! Bare mirrors of repositories, one each, fetched from the git gate.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bootstrap::{tls::TlsClient, trace};
use domain::{CommitId, RepositoryName};
use git::{
    BareRepository, DiskFloor, FetchSettings, FetchWatch, GitCredentials, GitTransport, MirrorFolder,
    run_blocking_task,
};
use secrecy::SecretString;
use tracing::Instrument as _;

use crate::content_gate::{GateAddress, digest_references};

/// Base of a workspace, with the location of its repository.
pub(crate) struct WantedBase {
    pub(crate) repository: RepositoryName,
    /// Base URL of the git gate.
    pub(crate) gate_url: String,
    /// File of the authority that issued the gate's certificate; `None` for those of the system.
    pub(crate) gate_authority: Option<PathBuf>,
    /// Client for requests to a gate with a certificate.
    pub(crate) gate_tls: Option<TlsClient>,
    /// Grant for the git gate.
    pub(crate) gate_grant: SecretString,
    /// Base commit; `None` for the current head of `base_branch`.
    pub(crate) base: Option<CommitId>,
    pub(crate) base_branch: String,
    /// Commit that GitHub reported in `base_branch`. A head without it is outdated.
    pub(crate) reported: Option<CommitId>,
}

// For 5 seconds after a fetch, the git gate serves its mirror without asking the remote. The rest is a
// margin.
const GATE_FRESH: Duration = Duration::from_millis(5_200);

/// Mirrors on disk. The state of each is true if its last use by this process ended regularly, so that no
/// lock file remains.
pub(crate) struct MirrorStore {
    folder: Arc<MirrorFolder<bool>>,
    settings: FetchSettings,
}

/// Path of a mirror. The mirror is not deleted while a clone of this exists.
pub(crate) type MirrorPath = Arc<Path>;

impl MirrorStore {
    pub(crate) fn new(folder: PathBuf, settings: FetchSettings) -> Self {
        Self {
            folder: Arc::new(MirrorFolder::new(folder)),
            settings,
        }
    }

    /// Returns the repositories with a mirror that is not empty.
    pub(crate) fn warm(&self) -> Vec<RepositoryName> {
        let is_filled = |name: &RepositoryName| {
            let path = self.folder.path(name);
            let heads =
                || fs::read_dir(path.join("refs/heads")).is_ok_and(|mut heads| heads.next().is_some());
            path.join("packed-refs").exists() || heads()
        };
        let mut names: Vec<_> = self.folder.names().filter(is_filled).collect();
        names.sort();
        names
    }

    /// Deletes unused mirrors while the free disk space is below the floor. Blocks.
    pub(crate) fn make_room(&self, floor: DiskFloor) {
        for repository in self.folder.make_room(floor) {
            tracing::info!(%repository, "a mirror goes, the disk is nearly full");
        }
    }

    /// Ensures that the mirror contains the base, and returns its commit.
    ///
    /// A pinned commit that exists needs no network. A fetch continues when the caller is gone, so that the
    /// next caller finds its result.
    pub(crate) async fn prepare(
        &self,
        wanted: &Arc<WantedBase>,
    ) -> Result<(CommitId, MirrorPath), git::Error> {
        let mirror = self.folder.get(&wanted.repository);
        let (wanted, watch) = (Arc::clone(wanted), FetchWatch::new(self.settings));
        let preparing = tokio::spawn(
            async move {
                let mut is_clean = mirror.state.lock().await;
                // The mirror counts as unclean during the work, so that it stays unclean after an abort.
                prepare_mirror(&mirror.path, std::mem::take(&mut *is_clean)).await?;
                mirror.touch();
                let base = fetch_base(&wanted, &mirror.path, &mut is_clean, watch).await?;
                require_reported_commit(&wanted, &mirror.path, &base).await?;
                Ok((base, Arc::clone(&mirror.path)))
            }
            .in_current_span(),
        );
        preparing
            .await
            .unwrap_or_else(|error| Err(git::Error::Failed(error.into())))
    }
}

/// Fetches the base, with its history as far as the base branch needs it.
///
/// A mirror with the references of the gate starts no fetch.
/// If the wanted commit is missing, a second fetch follows, because the commit may have been pushed after the
/// gate's last fetch. While the gate's first clone is in progress, the planner repeats the call with a new
/// grant and displays the progress.
async fn fetch_base(
    wanted: &WantedBase,
    path: &Path,
    is_clean: &mut bool,
    watch: FetchWatch,
) -> Result<CommitId, git::Error> {
    if let Some(base) = &wanted.base
        && contains_commit(path, base).await?
        && has_history(path, base, &wanted.base_branch).await?
    {
        *is_clean = true;
        return Ok(base.clone());
    }
    if let Some(head) = find_current_head(wanted, path).await? {
        *is_clean = true;
        return Ok(head);
    }
    let fetched = match fetch_once(wanted, path, is_clean, &watch).await {
        Err(git::Error::NotFound(_)) if wanted.base.is_some() => {
            tokio::time::sleep(GATE_FRESH).await;
            fetch_once(wanted, path, is_clean, &watch).await
        }
        fetched => fetched,
    };
    let base = fetched?;
    if has_history(path, &base, &wanted.base_branch).await? {
        return Ok(base);
    }
    // This mirror is at an earlier state of the gate's history.
    fetch_from_gate(wanted, path, &watch, true).await?;
    if has_history(path, &base, &wanted.base_branch).await? {
        return Ok(base);
    }
    Err(git::Error::NotReady { percent: None })
}

/// Returns the head of the base branch if this mirror has the references of the gate, so that a fetch would change
/// nothing. The gate decides about its age, as for a fetch.
async fn find_current_head(wanted: &WantedBase, path: &Path) -> Result<Option<CommitId>, git::Error> {
    // A missing commit needs a fetch in any case.
    if wanted.base.is_some() {
        return Ok(None);
    }
    let (mirror, branch) = (path.to_owned(), wanted.base_branch.clone());
    let known = run_blocking_task(move || {
        let mirror = BareRepository::open(&mirror)?;
        let head = mirror.branch_head(&branch)?;
        let head = head.filter(|head| mirror.contains(head));
        head.map(|head| Ok((head, mirror.reference_digest()?)))
            .transpose()
    });
    let Some((head, own)) = known.await? else {
        return Ok(None);
    };
    let grant = wanted.gate_grant.clone();
    let address = GateAddress::new(
        &wanted.gate_url,
        &wanted.repository,
        grant,
        wanted.gate_tls.as_ref(),
    );
    let digested = digest_references(address, &wanted.base_branch, wanted.reported.as_ref());
    let digested = Box::pin(digested).await?;
    Ok(digested.filter(|digest| *digest == own).map(|_| head))
}

/// Fetches all branches of the gate; with `is_deepened` all of its history, too.
async fn fetch_from_gate(
    wanted: &WantedBase,
    path: &Path,
    watch: &FetchWatch,
    is_deepened: bool,
) -> Result<(), git::Error> {
    let url = format!(
        "{}/{}.git",
        wanted.gate_url.trim_end_matches('/'),
        wanted.repository
    );
    let auth = GitCredentials::bearer(&wanted.gate_grant);
    let mut transport = GitTransport::new(path)
        .in_trace(trace::format_traceparent())
        .with_watch(watch.clone());
    // During its first clone the gate already serves a commit or branch that has arrived, so the request
    // names it.
    transport = match &wanted.base {
        Some(base) => transport.with_header(git::WANTED_COMMIT, base.as_str()),
        None => transport.with_header(git::WANTED_BRANCH, &wanted.base_branch),
    };
    if let Some(reported) = &wanted.reported {
        transport = transport.with_header(git::REPORTED_COMMIT, reported.as_str());
    }
    if let Some(authority) = &wanted.gate_authority {
        transport = transport.with_authority(authority);
    }
    let refspecs = git::MIRRORED_NAMESPACES.map(|namespace| format!("+{namespace}*:{namespace}*"));
    let refspecs: Vec<&str> = refspecs.iter().map(String::as_str).collect();
    let fetched = transport.fetch_mirror(&url, Some(&auth), &refspecs, is_deepened);
    failpoint::around("executor.mirror.fetch", fetched).await
}

async fn fetch_once(
    wanted: &WantedBase,
    path: &Path,
    is_clean: &mut bool,
    watch: &FetchWatch,
) -> Result<CommitId, git::Error> {
    fetch_from_gate(wanted, path, watch, false).await?;
    *is_clean = true;
    let missing = |what: String| git::Error::NotFound(format!("{what} in {}", wanted.repository));
    match &wanted.base {
        Some(base) if contains_commit(path, base).await? => Ok(base.clone()),
        Some(base) => Err(missing(format!("commit {}", base.short()))),
        None => {
            let (path, branch) = (path.to_owned(), wanted.base_branch.clone());
            let head = run_blocking_task(move || BareRepository::open(&path)?.branch_head(&branch)).await?;
            head.ok_or_else(|| missing(format!("branch {}", wanted.base_branch)))
        }
    }
}

/// Refuses a head of the base branch that lacks the commit which GitHub reported in it.
///
/// A gate of this release has fetched for the request, an earlier one fetches within 5 seconds. The planner repeats the
/// call. After a while it no longer names the commit, because the branch can be rewritten since the report.
async fn require_reported_commit(
    wanted: &WantedBase,
    path: &Path,
    head: &CommitId,
) -> Result<(), git::Error> {
    let Some(reported) = wanted.reported.clone() else {
        return Ok(());
    };
    let (path, head) = (path.to_owned(), head.clone());
    let has_commit =
        run_blocking_task(move || BareRepository::open(&path)?.is_known_descendant(&head, &reported));
    if has_commit.await? {
        Ok(())
    } else {
        Err(git::Error::NotReady { percent: None })
    }
}

async fn prepare_mirror(path: &Path, is_clean: bool) -> Result<(), git::Error> {
    let path = path.to_owned();
    run_blocking_task(move || {
        let made = if is_clean {
            BareRepository::init_bare(&path)
        } else {
            git::remove_leftovers(&path)?;
            BareRepository::take_over(&path)
        };
        made.map(drop)
    })
    .await
}

async fn contains_commit(path: &Path, commit: &CommitId) -> Result<bool, git::Error> {
    let (path, commit) = (path.to_owned(), commit.clone());
    run_blocking_task(move || Ok(BareRepository::open(&path)?.contains(&commit))).await
}

/// Returns true if the commits between a base and its base branch are complete, so that their common ancestor is known.
async fn has_history(path: &Path, base: &CommitId, base_branch: &str) -> Result<bool, git::Error> {
    let (path, base, branch) = (path.to_owned(), base.clone(), base_branch.to_owned());
    run_blocking_task(move || {
        let mirror = BareRepository::open(&path)?;
        let Some(head) = mirror.branch_head(&branch)? else {
            return Ok(true);
        };
        match mirror.merge_base(&head, &base) {
            Ok(_) => Ok(true),
            Err(git::Error::HistoryIncomplete) => Ok(false),
            Err(error) => Err(error),
        }
    })
    .await
}
