//! First fetch of a large repository in steps, of which each finished one is kept.
//!
//! The files of the base branches come first, without history: the mirror is usable then. Older generations of commits
//! follow, then the other branches. Only one task works on a mirror at a time; other processes may read it meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use domain::{CommitId, cause::format_error_chain};
use git2::Oid;
use tokio::time::Instant;

use crate::{
    BareRepository, Error, GitCredentials, GitTransport,
    fetch_steps::{NextStep, RunningFetch, StepRecord},
    mirrors::is_about_full_disk,
    recovery::{check_objects, forget_unchecked, pack_references, recover_partial_packs, remove_leftovers},
    repository::convert_commit_id,
    shallow::{read_boundary, settle_boundary, write_boundary},
    transport::{build_refspec, run_blocking_task},
};

// Namespace for commits that a caller needs before their branch is fetched.
const WANTED: &str = "refs/wanted/";
// Loose references after which a step packs them.
const LOOSE_REFERENCES: usize = 200;

/// Remote of a fetch in steps.
#[derive(Clone, Copy, Debug)]
pub struct StepTarget<'a> {
    /// URL of the repository.
    pub url: &'a str,
    /// Credentials of the remote.
    pub auth: Option<&'a GitCredentials>,
    /// Branches that come first.
    pub bases: &'a [&'a str],
}

/// Progress of a first fetch after one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepProgress {
    /// Another step is needed.
    Unfinished,
    /// History and branches are complete.
    Finished,
}

/// True for an end that a smaller step may avoid.
fn is_interruption(error: &Error) -> bool {
    matches!(
        error,
        Error::Unavailable(_) | Error::Stalled(_) | Error::TimedOut(_)
    ) && !is_full_disk(error)
}

fn is_full_disk(error: &Error) -> bool {
    is_about_full_disk(&format_error_chain(error))
}

impl GitTransport {
    /// True while the first fetch in steps of this mirror is not finished.
    pub fn is_in_steps(&self) -> bool {
        StepRecord::exists(self.git_dir())
    }

    /// Begins a first fetch in steps, of an empty mirror.
    ///
    /// # Errors
    /// [`Error::Failed`] when the disk cannot be written.
    pub async fn begin_steps(&self) -> Result<(), Error> {
        self.in_mirror(|place| StepRecord::default().write(place)).await
    }

    /// Gives up a fetch in steps; an ordinary fetch brings the rest.
    ///
    /// # Errors
    /// [`Error::Failed`] when the disk cannot be written.
    pub async fn leave_steps(&self) -> Result<(), Error> {
        self.in_mirror(finish_steps).await
    }

    /// Fetches the files of those base branches whose head is new. `heads` has the heads of the base branches at the
    /// remote: the caller reads them, because git cannot list a branch without all others.
    ///
    /// # Errors
    /// Those of [`GitTransport::fetch`].
    pub async fn fetch_tips(
        &self,
        target: StepTarget<'_>,
        heads: &BTreeMap<String, CommitId>,
    ) -> Result<(), Error> {
        let mut record = self.open_record().await?;
        for (branch, head) in heads {
            if self.local_head(branch).await?.is_none() {
                self.fetch_tip(target, &mut record, branch, head).await?;
            }
            if self.local_head(branch).await?.as_ref() != Some(head) {
                self.refresh_tip(target, &mut record, branch).await?;
            }
        }
        Ok(())
    }

    /// Fetches a branch that is not a base, as far as the base branch lacks its commits. False when the remote does not
    /// send it; a later step brings it then.
    ///
    /// # Errors
    /// [`Error::Denied`], [`Error::RefusedObject`], or a failure of the disk.
    pub async fn fetch_branch_early(&self, target: StepTarget<'_>, branch: &str) -> Result<bool, Error> {
        self.fetch_early(target, &build_refspec(branch)).await
    }

    /// Fetches a commit like [`Self::fetch_branch_early`].
    ///
    /// # Errors
    /// Those of [`Self::fetch_branch_early`].
    pub async fn fetch_commit_early(&self, target: StepTarget<'_>, commit: &CommitId) -> Result<bool, Error> {
        self.fetch_early(target, &format!("+{commit}:{WANTED}{commit}"))
            .await
    }

    /// Performs the next step after the base branches.
    ///
    /// # Errors
    /// Those of [`GitTransport::fetch`]. After an interruption the next step is smaller.
    pub async fn fetch_step(&self, target: StepTarget<'_>) -> Result<StepProgress, Error> {
        if !self.is_in_steps() {
            return Ok(StepProgress::Finished);
        }
        let mut record = self.open_record().await?;
        let is_shallow = !self.in_mirror(read_boundary).await?.is_empty();
        match record.next_step(is_shallow) {
            NextStep::Complete => {
                self.complete_partial(target, &mut record).await?;
                Ok(StepProgress::Unfinished)
            }
            NextStep::Deepen(generations) => {
                self.deepen(target, &mut record, generations).await?;
                Ok(StepProgress::Unfinished)
            }
            NextStep::Branches(most) => self.fetch_other_branches(target, &mut record, most).await,
        }
    }

    /// Reads the record, and decides about the leftovers of an interrupted fetch.
    async fn open_record(&self) -> Result<StepRecord, Error> {
        self.in_mirror(|place| {
            let mut record = StepRecord::read(place)?;
            match record.running {
                Some(running) if running.keeps_objects() => {
                    recover_partial_packs(place)?;
                    let found = find_partial_commits(place, &record, running)?;
                    record.partial.extend(found);
                }
                Some(_) | None => remove_leftovers(place)?,
            }
            record.running = None;
            record.write(place)?;
            Ok(record)
        })
        .await
    }

    /// Runs one fetch, recorded as in progress.
    async fn run_recorded(
        &self,
        target: StepTarget<'_>,
        record: &mut StepRecord,
        running: RunningFetch,
        (refspecs, options): (&[&str], &[&str]),
    ) -> Result<(), Error> {
        record.running = Some(running);
        self.store(record).await?;
        let fetched = self.fetch_with(target.url, target.auth, refspecs, options).await;
        match fetched {
            Ok(()) => record.running = None,
            // The partial pack occupies the space that the next try needs.
            Err(error) if is_full_disk(&error) => {
                self.in_mirror(remove_leftovers).await?;
                record.running = None;
                self.store(record).await?;
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        self.store(record).await
    }

    /// Fetches the files of a head without its history, or continues with the head of an interrupted try.
    async fn fetch_tip(
        &self,
        target: StepTarget<'_>,
        record: &mut StepRecord,
        branch: &str,
        head: &CommitId,
    ) -> Result<(), Error> {
        let started = record.tips.get(branch).cloned();
        if let Some(tip) = started.filter(|tip| record.partial.contains(tip) && !record.is_abandoned) {
            self.complete_files(target, record, [tip.clone()].into()).await?;
            // The remote may have dropped the commit; then the present head is fetched.
            if !record.is_abandoned {
                let name = branch.to_owned();
                self.in_mirror(move |place| adopt_tip(place, &name, &tip)).await?;
                record.tips.remove(branch);
                record.partial.clear();
                return self.store(record).await;
            }
        }
        record.tips.insert(branch.to_owned(), head.clone());
        let refspec = build_refspec(branch);
        let fetch = ([refspec.as_str()], ["--depth=1"]);
        self.run_recorded(target, record, RunningFetch::Tip, (&fetch.0, &fetch.1))
            .await?;
        record.tips.remove(branch);
        self.settle(record).await
    }

    /// Fetches the new commits of a base branch, at most those that are newer than the known history.
    async fn refresh_tip(
        &self,
        target: StepTarget<'_>,
        record: &mut StepRecord,
        branch: &str,
    ) -> Result<(), Error> {
        let refspec = build_refspec(branch);
        let refspecs = [refspec.as_str()];
        let Some(since) = self.in_mirror(find_newest_boundary).await? else {
            return self
                .run_recorded(target, record, RunningFetch::Other, (&refspecs, &[]))
                .await;
        };
        // A plain fetch would bring the whole history of an old branch that was merged meanwhile.
        let since = format!("--shallow-since=@{since} +0000");
        let recent = self
            .run_recorded(target, record, RunningFetch::Other, (&refspecs, &[&since]))
            .await;
        match recent {
            Ok(()) => {}
            Err(error @ (Error::Denied(_) | Error::RefusedObject { .. })) => return Err(error),
            Err(error) if is_full_disk(&error) => return Err(error),
            // The remote has no commit since then by the clocks of the authors.
            Err(_) => {
                self.in_mirror(remove_leftovers).await?;
                let options = ["--depth=1"];
                self.run_recorded(target, record, RunningFetch::Other, (&refspecs, &options))
                    .await?;
            }
        }
        self.settle(record).await
    }

    async fn fetch_early(&self, target: StepTarget<'_>, refspec: &str) -> Result<bool, Error> {
        let mut record = self.open_record().await?;
        let is_shallow = !self.in_mirror(read_boundary).await?.is_empty();
        // Only its own commits: the history that it shares with the base branch comes with the steps.
        let excluded = target
            .bases
            .iter()
            .map(|base| format!("--shallow-exclude=refs/heads/{base}"));
        let excluded = excluded.take(usize::from(is_shallow)).collect::<Vec<_>>();
        let options: Vec<&str> = excluded.iter().map(String::as_str).collect();
        let fetched = self
            .run_recorded(target, &mut record, RunningFetch::Other, (&[refspec], &options))
            .await;
        match fetched {
            Ok(()) => {}
            Err(error @ (Error::Denied(_) | Error::RefusedObject { .. })) => return Err(error),
            Err(error) if is_full_disk(&error) => return Err(error),
            Err(error) => {
                let error = format_error_chain(&error);
                tracing::debug!(refspec, error, "not fetched before the history");
                return Ok(false);
            }
        }
        self.settle(&mut record).await?;
        Ok(true)
    }

    /// Fetches older generations of commits.
    async fn deepen(
        &self,
        target: StepTarget<'_>,
        record: &mut StepRecord,
        generations: u32,
    ) -> Result<(), Error> {
        // The present heads, so that the step brings no new commits.
        let mut heads = BTreeSet::new();
        for branch in target.bases {
            heads.extend(self.local_head(branch).await?);
        }
        // Without a commit, git would fetch the remote's default branch.
        if heads.is_empty() {
            return self.in_mirror(finish_steps).await;
        }
        let heads: Vec<&str> = heads.iter().map(CommitId::as_str).collect();
        let depth = format!("--deepen={generations}");
        let running = StepRecord::kind_of_deepening(generations);
        let before = self.in_mirror(read_boundary).await?;
        let started = Instant::now();
        let fetched = self
            .run_recorded(target, record, running, (&heads, &[&depth]))
            .await;
        match fetched {
            Ok(()) => record.generations.finish(started.elapsed()),
            Err(error) => {
                if is_interruption(&error) {
                    record.generations.interrupt();
                    self.store(record).await?;
                }
                return Err(error);
            }
        }
        self.settle(record).await?;
        if self.in_mirror(read_boundary).await? != before {
            return Ok(());
        }
        // The remote dropped the commits of a branch that is gone.
        let heads = self.heads(target.url, target.auth).await?;
        self.in_mirror(move |place| drop_gone_branches(place, heads))
            .await?;
        self.settle(record).await?;
        if self.in_mirror(read_boundary).await? == before {
            let problem = "the remote sends no older history".to_owned();
            return Err(Error::Unavailable(problem));
        }
        Ok(())
    }

    /// Completes the commits that an interrupted step left, and takes them into the history.
    async fn complete_partial(&self, target: StepTarget<'_>, record: &mut StepRecord) -> Result<(), Error> {
        let partial = record.partial.clone();
        self.complete_files(target, record, partial).await?;
        if record.is_abandoned {
            return self.store(record).await;
        }
        self.in_mirror(|place| {
            // A fetch did not check these objects together.
            check_objects(place)?;
            forget_unchecked(place)
        })
        .await?;
        record.partial.clear();
        self.settle(record).await
    }

    /// Fetches the missing files of commits, by the ids of the objects.
    async fn complete_files(
        &self,
        target: StepTarget<'_>,
        record: &mut StepRecord,
        commits: BTreeSet<CommitId>,
    ) -> Result<(), Error> {
        let mut before = Vec::new();
        loop {
            let missing = self.missing_files(&commits).await?;
            if missing.is_empty() {
                return Ok(());
            }
            if missing == before {
                record.is_abandoned = true;
                return Ok(());
            }
            let mut rest = missing.as_slice();
            while !rest.is_empty() {
                let size = usize::try_from(record.objects.get()).unwrap_or(usize::MAX);
                let (some, others) = rest.split_at(size.min(rest.len()));
                let ids: Vec<&str> = some.iter().map(String::as_str).collect();
                let started = Instant::now();
                let fetched = self
                    .run_recorded(target, record, RunningFetch::Objects, (&ids, &[]))
                    .await;
                match fetched {
                    Ok(()) => record.objects.finish(started.elapsed()),
                    Err(Error::NotFound(problem)) => {
                        tracing::warn!(problem, "the remote lacks objects of an interrupted fetch");
                        record.is_abandoned = true;
                        record.running = None;
                        return Ok(());
                    }
                    Err(error) => {
                        if is_interruption(&error) {
                            record.objects.interrupt();
                            self.store(record).await?;
                        }
                        return Err(error);
                    }
                }
                rest = others;
            }
            before = missing;
        }
    }

    /// Fetches some of the branches that are missing or have another head; finishes the fetch when there are none.
    async fn fetch_other_branches(
        &self,
        target: StepTarget<'_>,
        record: &mut StepRecord,
        most: u32,
    ) -> Result<StepProgress, Error> {
        let heads = self.heads(target.url, target.auth).await?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let pending = self
            .in_mirror(move |place| find_pending(place, heads, most))
            .await?;
        if pending.is_empty() {
            self.in_mirror(finish_steps).await?;
            return Ok(StepProgress::Finished);
        }
        let refspecs: Vec<String> = pending.iter().map(|branch| build_refspec(branch)).collect();
        let refspecs: Vec<&str> = refspecs.iter().map(String::as_str).collect();
        let started = Instant::now();
        let fetched = self
            .run_recorded(target, record, RunningFetch::Other, (&refspecs, &[]))
            .await;
        match fetched {
            Ok(()) => {
                record.branches.finish(started.elapsed());
                let is_many = pending.len() > LOOSE_REFERENCES;
                self.store(record).await?;
                if is_many {
                    self.in_mirror(pack_references).await?;
                }
                Ok(StepProgress::Unfinished)
            }
            Err(error) if is_interruption(&error) => {
                record.branches.interrupt();
                self.store(record).await?;
                Err(error)
            }
            Err(error) if is_full_disk(&error) => Err(error),
            // The ordinary fetch finds the branches with a refused history.
            Err(Error::RefusedObject { .. } | Error::Failed(_) | Error::NotFound(_)) => {
                self.in_mirror(finish_steps).await?;
                Ok(StepProgress::Finished)
            }
            Err(error) => Err(error),
        }
    }

    /// Moves the boundary to the oldest commits that are present, and stores the record.
    async fn settle(&self, record: &mut StepRecord) -> Result<(), Error> {
        let partial = record.partial.clone();
        self.in_mirror(move |place| settle_mirror(place, &partial))
            .await?;
        self.store(record).await
    }

    async fn store(&self, record: &StepRecord) -> Result<(), Error> {
        let record = record.clone();
        self.in_mirror(move |place| record.write(place)).await
    }

    async fn local_head(&self, branch: &str) -> Result<Option<CommitId>, Error> {
        let branch = branch.to_owned();
        self.in_mirror(move |place| BareRepository::open(place)?.branch_head(&branch))
            .await
    }

    /// Runs work on the mirror outside of the runtime's threads.
    async fn in_mirror<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let place = self.git_dir().to_owned();
        run_blocking_task(move || work(&place)).await
    }
}

impl BareRepository {
    /// Adds a reference to a commit until the first fetch in steps is finished, so that clones get it without its branch.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks the commit.
    pub fn hold_commit(&self, commit: &CommitId) -> Result<(), Error> {
        let id = self.commit(commit)?.id();
        let name = format!("{WANTED}{commit}");
        self.objects().reference(&name, id, true, "journeyman")?;
        Ok(())
    }
}

/// Finds the commits that an interrupted fetch may have left without their files.
fn find_partial_commits(
    git_dir: &Path,
    record: &StepRecord,
    running: RunningFetch,
) -> Result<Vec<CommitId>, Error> {
    let repository = BareRepository::open(git_dir)?;
    match running {
        RunningFetch::Tip => {
            let tips = record.tips.values();
            Ok(tips.filter(|tip| repository.contains(tip)).cloned().collect())
        }
        // Such a fetch brings parents of the boundary and no other commits.
        RunningFetch::Generation => {
            let mut found = Vec::new();
            let boundary = read_boundary(git_dir)?;
            for commit in &boundary {
                for parent in repository.named_parents(*commit)?.unwrap_or_default() {
                    if !boundary.contains(&parent) && repository.named_parents(parent)?.is_some() {
                        found.push(convert_commit_id(parent)?);
                    }
                }
            }
            Ok(found)
        }
        RunningFetch::Objects | RunningFetch::Other => Ok(Vec::new()),
    }
}

/// Makes a complete commit the head of a base branch, without its history.
fn adopt_tip(git_dir: &Path, branch: &str, tip: &CommitId) -> Result<(), Error> {
    let repository = BareRepository::open(git_dir)?;
    let id = Oid::from_str(tip.as_str())?;
    let has_parents = repository
        .named_parents(id)?
        .is_some_and(|parents| !parents.is_empty());
    if has_parents {
        let mut boundary = read_boundary(git_dir)?;
        boundary.insert(id);
        write_boundary(git_dir, &boundary)?;
    }
    // The branch comes last: only a checked commit is used.
    check_objects(git_dir)?;
    forget_unchecked(git_dir)?;
    BareRepository::open(git_dir)?.set_branch(branch, tip)
}

fn settle_mirror(git_dir: &Path, partial: &BTreeSet<CommitId>) -> Result<(), Error> {
    let boundary = read_boundary(git_dir)?;
    if boundary.is_empty() {
        return Ok(());
    }
    let partial: BTreeSet<Oid> = partial
        .iter()
        .map(|commit| Oid::from_str(commit.as_str()))
        .collect::<Result<_, _>>()?;
    let repository = BareRepository::open(git_dir)?;
    let reachable = repository.reachable_boundary(&boundary)?;
    let settled = settle_boundary(&reachable, |commit| {
        if partial.contains(&commit) && !boundary.contains(&commit) {
            return Ok(None);
        }
        repository.named_parents(commit)
    })?;
    if settled == boundary {
        return Ok(());
    }
    write_boundary(git_dir, &settled)
}

/// Time of the newest boundary commit, as Unix seconds; `None` for complete history.
fn find_newest_boundary(git_dir: &Path) -> Result<Option<i64>, Error> {
    let repository = BareRepository::open(git_dir)?;
    let mut newest = None;
    for commit in read_boundary(git_dir)? {
        // A removed branch may have left its boundary without the commit.
        if let Ok(commit) = repository.objects().find_commit(commit) {
            newest = newest.max(Some(commit.time().seconds().max(0)));
        }
    }
    Ok(newest)
}

/// Chooses branches whose head the mirror lacks.
fn find_pending(
    git_dir: &Path,
    heads: BTreeMap<String, CommitId>,
    most: usize,
) -> Result<Vec<String>, Error> {
    let here = BareRepository::open(git_dir)?.heads_by_name()?;
    let pending = heads
        .into_iter()
        .filter(|(name, head)| here.get(name) != Some(head));
    Ok(pending.map(|(name, _)| name).take(most).collect())
}

/// Removes branches that the remote no longer has, and the commits that callers requested.
fn drop_gone_branches(git_dir: &Path, heads: BTreeMap<String, CommitId>) -> Result<(), Error> {
    let repository = BareRepository::open(git_dir)?;
    repository.prune_branches(&heads.into_keys().collect())?;
    repository.remove_references(WANTED)
}

fn finish_steps(git_dir: &Path) -> Result<(), Error> {
    BareRepository::open(git_dir)?.remove_references(WANTED)?;
    StepRecord::remove(git_dir)
}
