//! Bare mirrors of the repositories. The git gate serves them, and pushes start from them. Only the reporter writes
//! them.
//!
//! A fetch belongs to its mirror, not to a caller: several callers wait for one fetch, and it continues without them.

mod mirror_fetch;
mod step_fetches;
mod step_note;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bootstrap::rules::RulesStore;
use domain::{BranchPush, CommitId, OutboundRefusal, RepositoryName, cause::format_error_chain};
use git::{
    BareRepository, DiskFloor, GitCredentials, GitTransport, MirrorFolder, PushResult,
    find_conflicting_branch,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::{mirror_fetch::RemoteSettings, step_note::WantedHead};
use self::{
    mirror_fetch::{FetchState, MirrorFetches},
    step_note::is_in_steps,
};
use crate::{
    effect_error::{EffectError, FETCH_WAIT},
    folders::{FolderPlace, FolderTable},
    message,
};

// Longest wait of a report for a fetch. Meanwhile the report holds its ticket and a slot.
const PATIENCE: Duration = Duration::from_secs(60);
// Fetches of one reader. A push of ours can outdate the first one, which began before it.
const MOST_FETCHES: usize = 2;
// Interval of the check for mirrors that need maintenance, and time after which a mirror needs it again.
const MAINTENANCE_EVERY: Duration = Duration::from_secs(60 * 60);
const MAINTAINED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// State of a mirror for the gate.
#[derive(Debug)]
pub(crate) enum MirrorView {
    /// The mirror is at most 5 s behind the remote, or contains the requested commit or branch.
    Ready(Arc<Path>),
    /// A fetch is in progress.
    NotReady {
        /// Progress of the fetch, in percent.
        percent: Option<u8>,
    },
    /// The requested branch is refused permanently.
    RefusedBranch {
        /// Reason of the refusal, for people.
        reason: String,
    },
}

/// All mirrors below one folder.
pub(crate) struct RepositoryMirrors {
    fetches: Arc<MirrorFetches>,
}

impl RepositoryMirrors {
    /// Opens the mirrors below `root`. Fetches use the writing accounts. Unused mirrors are removed while the disk
    /// has less free space than the floor.
    pub(crate) fn new(
        root: PathBuf,
        floor: DiskFloor,
        github: github::GitHubWriter,
        folders: FolderTable,
        (rules, remotes): (RulesStore, RemoteSettings),
    ) -> Self {
        let folder = Arc::new(MirrorFolder::new(root));
        Self {
            fetches: Arc::new(MirrorFetches::new(
                folder,
                floor,
                github,
                folders,
                (rules, remotes),
            )),
        }
    }

    /// Returns the path of a repository's mirror. The mirror is not removed while a caller holds the path.
    pub(crate) fn hold(&self, repository: &RepositoryName) -> Arc<Path> {
        self.fetches.folder.get(repository).path
    }

    /// Returns the mirror, at most 5 s behind the remote.
    pub(crate) async fn fresh(&self, repository: &RepositoryName) -> Result<Arc<Path>, EffectError> {
        // Held before the fetch, because the fetch of another mirror may remove unused ones to make
        // room.
        let mirror = self.hold(repository);
        for _ in 0..MOST_FETCHES {
            if self.fetches.is_fresh(repository) {
                break;
            }
            self.fetched(repository).await?;
        }
        Ok(mirror)
    }

    /// Waits for a fetch, in progress or new. A first clone may take longer than the wait.
    async fn fetched(&self, repository: &RepositoryName) -> Result<(), EffectError> {
        let mut state = self.fetches.join(repository);
        let now = mirror_fetch::wait_until(&mut state, PATIENCE, FetchState::is_done).await?;
        if now.is_done() {
            return now.outcome();
        }
        let percent = now.percent();
        Err(EffectError::HeldBack {
            detail: git::Error::NotReady { percent }.to_string(),
            wait: FETCH_WAIT,
        })
    }

    /// Returns the mirror for a caller of the gate, which waits up to `patience`.
    ///
    /// A mirror whose wanted branch lacks the commit that GitHub `reported` is fetched at any age, once for a caller. It is
    /// served without that commit if the remote lacks it, too: the branch can be rewritten since the report.
    /// During a first clone, the branches that have arrived are served to callers that request them.
    pub(crate) async fn view(
        &self,
        repository: &RepositoryName,
        wanted: &WantedHead,
        reported: Option<&CommitId>,
        patience: Duration,
    ) -> Result<MirrorView, EffectError> {
        // Held before the fetch, as in `fresh`.
        let mirror = self.hold(repository);
        let asked = Instant::now();
        // The first fetch can have begun before the report.
        for _ in 0..MOST_FETCHES {
            if self.fetches.is_fresh(repository)
                && (self.fetches.has_searched(repository, asked)
                    || has_reported_commit(&mirror, wanted, reported).await?)
            {
                break;
            }
            let mut state = self.fetches.join(repository);
            let is_over = |state: &FetchState| state.is_done() || state.is_usable();
            let mut now = mirror_fetch::wait_until(&mut state, patience, is_over).await?;
            // A first clone that began before the report ends first; the next fetch has the commit.
            if now.is_usable() && !has_reported_commit(&mirror, wanted, reported).await? {
                now = mirror_fetch::wait_until(&mut state, patience, FetchState::is_done).await?;
            }
            // A usable first clone has the base branches only, so the requested branch or commit has to be in it.
            let is_enough = now.is_done() || (now.is_usable() && has_wanted_head(&mirror, wanted).await?);
            if !is_enough {
                let percent = now.percent();
                return Ok(MirrorView::NotReady { percent });
            }
            if !now.is_done() {
                break;
            }
            now.outcome()?;
        }
        if !has_reported_commit(&mirror, wanted, reported).await? {
            self.fetches.end_search(repository, asked);
        }
        if is_in_steps(&mirror) && !self.bring_wanted(repository, &mirror, wanted, patience).await? {
            let percent = self.fetches.with_note(repository, |note| note.steps.percent());
            return Ok(MirrorView::NotReady { percent });
        }
        // Asked last, because the fetch above decides which branches are refused.
        let refused = wanted
            .branch
            .as_deref()
            .and_then(|branch| self.fetches.refusal_of(repository, branch));
        Ok(match refused {
            Some(reason) => MirrorView::RefusedBranch { reason },
            None => MirrorView::Ready(mirror),
        })
    }

    /// Fetches the wanted head of a mirror whose first fetch takes steps. False if it is not there within `patience`, or
    /// if the history up to the base branch is missing.
    async fn bring_wanted(
        &self,
        repository: &RepositoryName,
        mirror: &Arc<Path>,
        wanted: &WantedHead,
        patience: Duration,
    ) -> Result<bool, EffectError> {
        let bases = self.fetches.base_branches(repository);
        let is_base = wanted
            .branch
            .as_ref()
            .is_some_and(|branch| bases.contains(branch));
        // A branch may have moved since an earlier fetch; a commit that is present stays the same.
        let is_needed = !is_base && (wanted.branch.is_some() || !has_wanted_head(mirror, wanted).await?);
        if is_needed && self.fetches.want(repository, std::slice::from_ref(wanted)) {
            let mut state = self.fetches.join(repository);
            let now = mirror_fetch::wait_until(&mut state, patience, FetchState::is_done).await?;
            if !now.is_done() {
                return Ok(false);
            }
            now.outcome()?;
        }
        let (mirror, wanted) = (Arc::clone(mirror), wanted.clone());
        run_blocking(move || {
            let mirror = BareRepository::open(&mirror)?;
            let is_ready = wanted.is_in(&mirror)? && wanted.has_history(&mirror, &bases)?;
            if let Some(commit) = wanted.commit.as_ref().filter(|_| is_ready) {
                // The branch of a commit that we pushed may not be fetched yet, and clones follow references.
                mirror.hold_commit(commit)?;
            }
            Ok::<_, git::Error>(is_ready)
        })
        .await
    }

    /// Returns the mirror with a commit of the remote. The commit may be newer than the last fetch.
    pub(crate) async fn with_commit(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> Result<Arc<Path>, EffectError> {
        self.with_heads(repository, &[WantedHead::commit(commit)]).await
    }

    /// Returns the mirror with heads of the remote, which may be newer than the last fetch. Heads that the remote lacks
    /// are missing in the mirror.
    pub(crate) async fn with_heads(
        &self,
        repository: &RepositoryName,
        heads: &[WantedHead],
    ) -> Result<Arc<Path>, EffectError> {
        let mirror = self.fresh(repository).await?;
        if has_wanted_heads(&mirror, heads).await? {
            return Ok(mirror);
        }
        self.fetches.want(repository, heads);
        // A fetch of up to 5 s ago may not contain the commits yet.
        self.fetched(repository).await?;
        if is_in_steps(&mirror) && !has_wanted_heads(&mirror, heads).await? {
            return Err(git::Error::HistoryIncomplete.into());
        }
        Ok(mirror)
    }

    /// Returns the mirror as it is. Fetches it if this process has not done so.
    pub(crate) async fn existing(&self, repository: &RepositoryName) -> Result<Arc<Path>, EffectError> {
        if self.fetches.is_known(repository) {
            Ok(self.hold(repository))
        } else {
            self.fresh(repository).await
        }
    }

    /// Removes unused mirrors while the disk has less free space than the floor. Returns true if it has enough then.
    pub(crate) async fn make_room(&self) -> Result<bool, EffectError> {
        self.fetches.make_room().await
    }

    /// Returns the local folder of a repository; `None` for a repository on a server.
    pub(crate) fn place(&self, repository: &RepositoryName) -> Result<Option<FolderPlace>, EffectError> {
        self.fetches.folders.of(repository)
    }

    /// Returns the head of a branch of the remote.
    pub(crate) async fn remote_head(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<CommitId>, EffectError> {
        let Some(place) = self.place(repository)? else {
            return Ok(self.fetches.github.branch_head(repository, branch).await?);
        };
        let branch = branch.to_owned();
        run_blocking(move || place.branch_head(&branch)).await
    }

    /// Pushes one commit of the mirror to one branch of the remote.
    pub(crate) async fn push(&self, push: &BranchPush) -> Result<PushResult, EffectError> {
        let mirror = self.hold(&push.repository);
        let pushing = Box::pin(self.push_from(&mirror, push));
        let pushed = failpoint::around("reporter.push", pushing).await?;
        if !self.record_pushed(&mirror, push).await {
            // The remote has changed, so the next reader needs a fetch.
            self.fetches.forget_time(&push.repository);
        }
        Ok(pushed)
    }

    /// Moves the mirror's branch to a pushed commit, as a fetch after the push would do. False if a fetch is needed for
    /// that.
    async fn record_pushed(&self, mirror: &Arc<Path>, push: &BranchPush) -> bool {
        // The branches of a local folder are not all mirrored, and those of a first fetch in steps not yet.
        if push.repository.local_folder().is_some() || is_in_steps(mirror) {
            return false;
        }
        // A fetch in progress may have read the remote before the push, and would remove the branch again.
        let Ok(working) = self.fetches.folder.get(&push.repository).state.try_lock_owned() else {
            return false;
        };
        let (mirror, branch, head) = (Arc::clone(mirror), push.branch.clone(), push.head.clone());
        let recorded = run_blocking(move || {
            // Until the branch is written, even if the caller is gone.
            let _working = working;
            BareRepository::open(&mirror)?.set_branch(&branch, &head)
        });
        match recorded.await {
            Ok(()) => true,
            Err(error) => {
                let error = format_error_chain(&error);
                tracing::debug!(repository = %push.repository, branch = push.branch, error, "pushed branch not mirrored");
                false
            }
        }
    }

    /// Moves a branch of GitHub to a commit that GitHub has. Commits that the caller does not expect stay.
    pub(crate) async fn move_branch(&self, moved: &RemotePush<'_>) -> Result<(), EffectError> {
        let moving = Box::pin(move_to_signed(&self.fetches.github, moved));
        failpoint::around("reporter.signed_branch.move", moving).await?;
        self.fetches.forget_time(moved.repository);
        Ok(())
    }

    async fn push_from(&self, mirror: &Arc<Path>, push: &BranchPush) -> Result<PushResult, EffectError> {
        if let Some(place) = self.place(&push.repository)? {
            let (mirror, push) = (Arc::clone(mirror), push.clone());
            let branch = push.branch.clone();
            let pushed = run_blocking(move || Ok::<_, git::Error>(place.push(&mirror, &push))).await?;
            return pushed.map_err(|error| {
                // A folder has no temporary failures of a remote service: a retry would fail, too.
                if let git::Error::Failed(_) = error {
                    return EffectError::Failed(format_error_chain(&error));
                }
                EffectError::of_push(error, &branch)
            });
        }
        let transport = self.fetches.transport(mirror);
        let wanted = RemotePush {
            repository: &push.repository,
            branch: &push.branch,
            head: &push.head,
            expected: push.expected.as_ref(),
        };
        push_commit(&self.fetches.github, &transport, &wanted).await
    }

    /// Continues the first fetches that the last shutdown interrupted, and packs unused mirrors once a day, one at a
    /// time, until shutdown.
    pub(crate) async fn maintain(&self, shutdown: CancellationToken) {
        for repository in self.fetches.folder.names() {
            self.fetches.continue_steps(&repository);
        }
        loop {
            let waited = shutdown
                .run_until_cancelled(tokio::time::sleep(MAINTENANCE_EVERY))
                .await;
            if waited.is_none() {
                return;
            }
            self.maintain_once(MAINTAINED_FOR).await;
        }
    }

    /// Packs each unused mirror whose last packing is older than `due`.
    pub(crate) async fn maintain_once(&self, due: Duration) {
        let names: Vec<RepositoryName> = self.fetches.folder.names().collect();
        for repository in names {
            self.fetches.maintain(&repository, due).await;
        }
    }
}

/// Returns true if a mirror contains the requested branch and commit, or if neither is named.
async fn has_wanted_head(mirror: &Arc<Path>, wanted: &WantedHead) -> Result<bool, EffectError> {
    has_wanted_heads(mirror, std::slice::from_ref(wanted)).await
}

async fn has_wanted_heads(mirror: &Arc<Path>, wanted: &[WantedHead]) -> Result<bool, EffectError> {
    let (mirror, wanted) = (Arc::clone(mirror), wanted.to_vec());
    run_blocking(move || {
        let mirror = BareRepository::open(&mirror)?;
        for head in &wanted {
            if !head.is_in(&mirror)? {
                return Ok(false);
            }
        }
        Ok::<_, git::Error>(true)
    })
    .await
}

/// Returns true if the wanted branch of a mirror contains the commit that GitHub reported in it, or if none is named.
async fn has_reported_commit(
    mirror: &Arc<Path>,
    wanted: &WantedHead,
    reported: Option<&CommitId>,
) -> Result<bool, EffectError> {
    let (Some(branch), Some(reported)) = (wanted.branch.clone(), reported.cloned()) else {
        return Ok(true);
    };
    let mirror = Arc::clone(mirror);
    run_blocking(move || {
        let mirror = BareRepository::open(&mirror)?;
        match mirror.branch_head(&branch)? {
            Some(head) => mirror.is_known_descendant(&head, &reported),
            None => Ok(false),
        }
    })
    .await
}

/// Push of one commit to one branch of a remote.
#[derive(Debug)]
pub(crate) struct RemotePush<'a> {
    pub(crate) repository: &'a RepositoryName,
    pub(crate) branch: &'a str,
    pub(crate) head: &'a CommitId,
    /// Head of the remote branch before the push; absent for a new branch.
    pub(crate) expected: Option<&'a CommitId>,
}

/// Pushes with the writing account. The push never replaces commits that the caller does not expect.
pub(crate) async fn push_commit(
    github: &github::GitHubWriter,
    transport: &GitTransport,
    push: &RemotePush<'_>,
) -> Result<PushResult, EffectError> {
    let (url, auth) = resolve_remote(github.push_remote(push.repository)).await?;
    let pushed = transport.push(&url, Some(&auth), push.head, push.branch, push.expected);
    pushed
        .await
        .map_err(|error| EffectError::of_push(error, push.branch))
}

/// Moves a branch to a signed commit, which GitHub has created.
async fn move_to_signed(github: &github::GitHubWriter, moved: &RemotePush<'_>) -> Result<(), EffectError> {
    let RemotePush {
        repository,
        branch,
        head,
        expected,
    } = *moved;
    let commits = github.commits();
    let elsewhere = |head| {
        let branch = branch.to_owned();
        EffectError::Refused(OutboundRefusal::BranchMoved { branch, head })
    };
    let Some(expected) = expected else {
        let refused = match commits.create_branch(repository, branch, head).await {
            Ok(()) => return Ok(()),
            // The branch exists since the check.
            Err(github::Error::Conflict { .. }) => return Err(elsewhere(None)),
            Err(error @ github::Error::Rejected { .. }) => error,
            Err(error) => return Err(error.into()),
        };
        // GitHub does not name the branch whose name is a folder of this one.
        let folder = branch.split('/').next().unwrap_or(branch);
        let there = commits.branches_with_prefix(repository, folder).await?;
        let by = find_conflicting_branch(branch, there.keys().map(String::as_str));
        return Err(by.map_or_else(
            || reject_move(branch, &refused),
            |by| {
                EffectError::Refused(OutboundRefusal::BranchInTheWay {
                    branch: branch.to_owned(),
                    by: by.to_owned(),
                })
            },
        ));
    };
    match commits.forward_branch(repository, branch, head).await {
        Ok(()) => Ok(()),
        Err(error @ github::Error::Rejected { .. }) => match github.branch_head(repository, branch).await? {
            Some(there) if there == *head => Ok(()),
            // The branch is where it was, so GitHub refuses the move itself.
            Some(there) if there == *expected => Err(explain_refused_move(branch, error)),
            there => Err(elsewhere(there)),
        },
        Err(error) => Err(error.into()),
    }
}

fn explain_refused_move(branch: &str, error: github::Error) -> EffectError {
    let detail = format_error_chain(&error);
    if error.is_about_merge_queue() {
        return EffectError::Queued(detail);
    }
    if detail.to_ascii_lowercase().contains("fast forward") {
        return EffectError::Refused(OutboundRefusal::Outside {
            detail: message::signed_history_rewritten(branch),
        });
    }
    reject_move(branch, &error)
}

/// Refusal of a branch move over the API: a rule of the server, as at a push.
fn reject_move(branch: &str, error: &github::Error) -> EffectError {
    EffectError::Refused(OutboundRefusal::PushRejected {
        branch: branch.to_owned(),
        detail: format_error_chain(error),
    })
}

/// Explains the refusal of a push from the expected commit, by the head that the branch has afterwards.
///
/// A branch that is still at the expected commit is locked by another push, such as an earlier try whose response was
/// lost. That push may succeed, so the outcome is unknown.
pub(crate) fn explain_stale_push(
    branch: String,
    expected: Option<&CommitId>,
    there: Result<Option<CommitId>, EffectError>,
) -> EffectError {
    match there {
        Ok(head) if head.as_ref() == expected => EffectError::Unknown(message::push_in_progress(&branch)),
        Ok(head) => EffectError::Refused(OutboundRefusal::BranchMoved { branch, head }),
        Err(error) => error,
    }
}

/// Returns the address and the credentials of a remote.
async fn resolve_remote(
    remote: impl Future<Output = Result<github::GitRemote, github::Error>>,
) -> Result<(String, GitCredentials), EffectError> {
    let remote = failpoint::around("reporter.github.token", remote).await?;
    Ok((remote.url, GitCredentials::basic("x-access-token", &remote.token)))
}

/// Runs git2 work on a thread for blocking work, away from the threads of the runtime.
pub(crate) async fn run_blocking<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, EffectError>
where
    T: Send + 'static,
    E: Send + 'static,
    EffectError: From<E>,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(EffectError::Failed(message::work_was_cut())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_move_waits_for_end_of_queue() {
        let refuse = |detail: &str| {
            let detail = detail.to_owned();
            explain_refused_move("fix/ENG-1", github::Error::Rejected { detail })
        };
        let queued = refuse("Branches that are queued for merging cannot be updated.");
        assert!(matches!(&queued, EffectError::Queued(_)), "{queued}");
        for other in [
            "Update is not a fast forward",
            "Cannot update this protected ref.",
        ] {
            let refused = refuse(other);
            assert!(matches!(&refused, EffectError::Refused(_)), "{other}: {refused}");
        }
    }
}
