//! Fetch, push and listing of remotes over HTTP.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use domain::CommitId;
use secrecy::{ExposeSecret, SecretString};

use crate::{
    BareRepository, Error,
    cli::{self, CallTimeLimit},
    fsck::find_refused_object,
    progress::{FetchSettings, FetchWatch},
    push_answer::{PushResult, classify_stderr, parse_push},
    recovery::{check_objects, forget_unchecked},
    remote_proxy::GitProxy,
};

/// Header by which a caller names the wanted branch to the git gate.
pub const WANTED_BRANCH: &str = "journeyman-branch";
/// Header by which a caller names the wanted commit to the git gate.
pub const WANTED_COMMIT: &str = "journeyman-commit";
/// Header by which a caller names to the git gate a commit that GitHub reported in the wanted branch. A mirror whose branch
/// lacks it is outdated at any age.
pub const REPORTED_COMMIT: &str = "journeyman-reported-commit";
// Default limit of a push or listing. Fetches are limited by their progress only.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(300);

// Maximum number of failed fetches while the branches are halved.
const MOST_FAILURES: u32 = 200;
// Depth that git takes as unlimited.
const ALL_HISTORY: &str = "--depth=2147483647";
const EVERY_BRANCH: &str = "+refs/heads/*:refs/heads/*";

/// Credentials of one call, as a header that git sends. They are never an argument and never on disk.
#[derive(Clone, Debug)]
pub struct GitCredentials(SecretString);

impl GitCredentials {
    /// Creates `Authorization: Bearer <token>`.
    pub fn bearer(token: &SecretString) -> Self {
        Self(SecretString::from(format!(
            "Authorization: Bearer {}",
            token.expose_secret()
        )))
    }

    /// Creates `Authorization: Basic …`; for a GitHub App's token the user is `x-access-token`.
    pub fn basic(user: &str, password: &SecretString) -> Self {
        let pair = STANDARD.encode(format!("{user}:{}", password.expose_secret()));
        Self(SecretString::from(format!("Authorization: Basic {pair}")))
    }
}

/// Runner of `git` for one bare repository. The caller ensures that only one fetch runs on a repository at a
/// time.
#[derive(Clone, Debug)]
pub struct GitTransport {
    git_dir: PathBuf,
    deadline: Duration,
    authority: Option<PathBuf>,
    /// Headers for our own remotes: the caller's trace, the wanted branch and commit.
    headers: Vec<String>,
    /// Folder of further objects that the repository may read.
    borrowed: Option<PathBuf>,
    watch: FetchWatch,
    proxy: GitProxy,
}

/// Result of a fetch of many branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchedBranches {
    /// Branches that could not be fetched; the mirror lacks them, or has an older head.
    pub refused: BTreeMap<String, RefusedBranch>,
}

/// Branch whose history cannot be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedBranch {
    /// Head of the branch at the remote.
    pub head: CommitId,
    /// Reason in words.
    pub reason: String,
}

impl GitTransport {
    /// Creates a transport for the bare repository at `git_dir`. Each call rewrites its configuration first.
    /// A push or listing takes at most 300 s; a fetch is limited by its progress only.
    pub fn new(git_dir: impl Into<PathBuf>) -> Self {
        Self {
            git_dir: git_dir.into(),
            deadline: DEFAULT_DEADLINE,
            authority: None,
            headers: Vec::new(),
            borrowed: None,
            watch: FetchWatch::new(FetchSettings::default()),
            proxy: GitProxy::default(),
        }
    }

    /// Path of the repository.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Sets the way to remotes outside of the installation. By default every remote is reached directly.
    #[must_use]
    pub fn with_proxy(self, proxy: GitProxy) -> Self {
        Self { proxy, ..self }
    }

    /// Adds the objects of another folder to the repository's.
    #[must_use]
    pub fn with_objects_of(self, objects: impl Into<PathBuf>) -> Self {
        Self {
            borrowed: Some(objects.into()),
            ..self
        }
    }

    /// Sets the watch of the fetches, which has their limits and publishes their progress.
    #[must_use]
    pub fn with_watch(self, watch: FetchWatch) -> Self {
        Self { watch, ..self }
    }

    /// Adds a header to every request, for our own remotes.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push(format!("{name}: {value}"));
        self
    }

    /// Trusts only the certificate authorities in this file.
    #[must_use]
    pub fn with_authority(self, file: impl Into<PathBuf>) -> Self {
        Self {
            authority: Some(file.into()),
            ..self
        }
    }

    /// Sets the limit of pushes and listings.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Adds the caller's `traceparent` to every request, for our own remotes.
    #[must_use]
    pub fn in_trace(mut self, traceparent: Option<String>) -> Self {
        self.headers
            .extend(traceparent.map(|parent| format!("traceparent: {parent}")));
        self
    }

    /// Fetches `refspecs`, e.g. `+refs/heads/*:refs/heads/*`; `prune` deletes branches that the remote no
    /// longer has.
    ///
    /// # Errors
    /// [`Error::Denied`], [`Error::NotFound`], [`Error::Unavailable`], [`Error::Stalled`], [`Error::RefusedObject`],
    /// [`Error::NotReady`], [`Error::Failed`].
    pub async fn fetch(
        &self,
        url: &str,
        auth: Option<&GitCredentials>,
        refspecs: &[&str],
        prune: bool,
    ) -> Result<(), Error> {
        let options: &[&str] = if prune { &["--prune"] } else { &[] };
        self.fetch_with(url, auth, refspecs, options).await
    }

    /// Fetches `refspecs` from a mirror of ours, whose history may be incomplete, and deletes what it no longer has.
    /// With `is_deepened` this repository gets all history that the mirror has.
    ///
    /// # Errors
    /// Those of [`GitTransport::fetch`].
    pub async fn fetch_mirror(
        &self,
        url: &str,
        auth: Option<&GitCredentials>,
        refspecs: &[&str],
        is_deepened: bool,
    ) -> Result<(), Error> {
        let mut options = vec!["--prune", "--update-shallow"];
        if is_deepened {
            options.push(ALL_HISTORY);
        }
        self.fetch_with(url, auth, refspecs, &options).await
    }

    /// Fetches `refspecs` with further options of `git fetch`.
    pub(crate) async fn fetch_with(
        &self,
        url: &str,
        auth: Option<&GitCredentials>,
        refspecs: &[&str],
        options: &[&str],
    ) -> Result<(), Error> {
        let args = ["fetch", "--progress", "--no-tags", "--no-write-fetch-head"];
        let mut args: Vec<OsString> = args.map(Into::into).to_vec();
        args.extend(["--no-recurse-submodules", "--no-auto-maintenance", "--force"].map(Into::into));
        args.extend(options.iter().map(Into::into));
        // The names of many branches exceed the limit of a process's arguments.
        args.extend(["--stdin".into(), "--".into(), OsString::from(url)]);
        let input = refspecs.join("\n") + "\n";
        let output = self
            .run(
                &args,
                input.into(),
                (url, auth),
                CallTimeLimit::Progress(&self.watch),
            )
            .await?;
        if output.success {
            Ok(())
        } else {
            Err(find_refused_object(&output.stderr).unwrap_or_else(|| classify_stderr(&output.stderr)))
        }
    }

    /// Fetches every branch, those of `first` before the others.
    ///
    /// Sound remotes take one fetch. After a refusal the branches with refused history are left out.
    /// `skipped` has heads that were refused before.
    ///
    /// # Errors
    /// Those of [`GitTransport::fetch`]; [`Error::RefusedObject`] only when a branch of `first`, or every
    /// branch, has such an object.
    pub async fn fetch_branches(
        &self,
        url: &str,
        auth: Option<&GitCredentials>,
        first: &[&str],
        skipped: &BTreeMap<String, RefusedBranch>,
    ) -> Result<FetchedBranches, Error> {
        let is_resumed = self.resume(url, auth, first, true).await?;
        let fetched = self.fetch_heads(url, auth, first, skipped).await?;
        // Objects of a partial pack were never checked by a fetch, so they are checked here before the mirror
        // is used.
        if is_resumed {
            let place = self.git_dir.clone();
            run_blocking_task(move || {
                check_objects(&place)?;
                forget_unchecked(&place)
            })
            .await?;
        }
        Ok(fetched)
    }

    /// Fetches those of these branches that the remote has, as the beginning of a first clone. False when it
    /// has none of them.
    ///
    /// # Errors
    /// Those of [`GitTransport::fetch`].
    pub async fn fetch_first(
        &self,
        url: &str,
        auth: Option<&GitCredentials>,
        branches: &[&str],
    ) -> Result<bool, Error> {
        let is_resumed = self.resume(url, auth, branches, false).await?;
        let heads = self.heads(url, auth).await?;
        let mut is_any = false;
        for branch in branches.iter().filter(|branch| heads.contains_key(**branch)) {
            let refspec = build_refspec(branch);
            self.fetch(url, auth, &[&refspec], false).await?;
            is_any = true;
        }
        if is_resumed {
            let place = self.git_dir.clone();
            run_blocking_task(move || check_objects(&place)).await?;
        }
        Ok(is_any)
    }

    async fn fetch_heads(
        &self,
        url: &str,
        auth: Option<&GitCredentials>,
        first: &[&str],
        skipped: &BTreeMap<String, RefusedBranch>,
    ) -> Result<FetchedBranches, Error> {
        if skipped.is_empty() {
            match self.fetch(url, auth, &[EVERY_BRANCH], true).await {
                Err(Error::RefusedObject { .. } | Error::Failed(_)) => {}
                fetched => return fetched.map(|()| FetchedBranches::default()),
            }
        }
        let heads = self.heads(url, auth).await?;
        // Removed branches go first: one of them can be in the way of a new branch.
        let (place, kept) = (self.git_dir.clone(), heads.keys().cloned().collect());
        run_blocking_task(move || BareRepository::open(&place)?.prune_branches(&kept)).await?;
        let (wanted, others): (Vec<_>, Vec<_>) = heads
            .iter()
            .partition(|(branch, _)| first.contains(&branch.as_str()));
        for (branch, _) in wanted {
            let refspec = build_refspec(branch);
            self.fetch(url, auth, &[&refspec], false).await?;
        }
        let mut fetched = FetchedBranches::default();
        let is_skipped = |(branch, head): &(&String, &CommitId)| {
            skipped.get(*branch).is_some_and(|known| known.head == **head)
        };
        let (known, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_skipped);
        for (branch, _) in known {
            let before = skipped.get(branch).cloned();
            fetched
                .refused
                .extend(before.map(|before| (branch.clone(), before)));
        }
        let mut parts = vec![
            others
                .into_iter()
                .map(|(branch, _)| branch.clone())
                .collect::<Vec<_>>(),
        ];
        // A part with a refused or damaged object is halved until the affected branches are alone.
        let mut failures = 0;
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let refspecs: Vec<String> = part.iter().map(|branch| build_refspec(branch)).collect();
            let refspecs: Vec<&str> = refspecs.iter().map(String::as_str).collect();
            match self.fetch(url, auth, &refspecs, false).await {
                Err(refused @ (Error::RefusedObject { .. } | Error::Failed(_))) => {
                    failures += 1;
                    // So many failures are not an odd history: the disk or the remote as a whole fails.
                    if failures > MOST_FAILURES {
                        return Err(refused);
                    }
                    match part.as_slice() {
                        [branch] => {
                            let reason = domain::cause::format_error_chain(&refused);
                            let head = heads.get(branch).cloned();
                            let refused = head.map(|head| (branch.clone(), RefusedBranch { head, reason }));
                            fetched.refused.extend(refused);
                        }
                        several => {
                            let (one, other) = several.split_at(several.len() / 2);
                            parts.extend([one.to_vec(), other.to_vec()]);
                        }
                    }
                }
                Err(error) => return Err(error),
                Ok(()) => {}
            }
        }
        Ok(fetched)
    }

    /// Lists every branch of the remote with its head.
    ///
    /// # Errors
    /// [`Error::Denied`], [`Error::NotFound`] (no such repository), [`Error::Unavailable`],
    /// [`Error::TimedOut`], [`Error::Failed`].
    pub async fn heads(
        &self,
        url: &str,
        auth: Option<&GitCredentials>,
    ) -> Result<BTreeMap<String, CommitId>, Error> {
        let args: Vec<OsString> = ["ls-remote", "--quiet", "--heads", "--", url]
            .map(Into::into)
            .to_vec();
        let limit = CallTimeLimit::Total(self.deadline);
        let output = self.run(&args, Vec::new(), (url, auth), limit).await?;
        if !output.success {
            return Err(classify_stderr(&output.stderr));
        }
        let heads = output.stdout.lines().filter_map(|line| {
            let (id, name) = line.split_once('\t')?;
            Some((name.strip_prefix("refs/heads/")?.to_owned(), id.parse().ok()?))
        });
        Ok(heads.collect())
    }

    /// Sets the remote's `branch` to `local_commit` if it is at `expected` (`None`: missing).
    ///
    /// # Errors
    /// [`Error::LeaseStale`] when the branch is at another commit, [`Error::BranchInTheWay`],
    /// [`Error::Rejected`], [`Error::Denied`], [`Error::NotFound`], [`Error::Unavailable`],
    /// [`Error::TimedOut`] (read the branch before a retry), [`Error::Failed`].
    pub async fn push(
        &self,
        url: &str,
        auth: Option<&GitCredentials>,
        local_commit: &CommitId,
        branch: &str,
        expected: Option<&CommitId>,
    ) -> Result<PushResult, Error> {
        validate_branch_name(branch)?;
        let expected = expected.map(CommitId::as_str).unwrap_or_default();
        let args: Vec<OsString> = vec![
            "push".into(),
            "--porcelain".into(),
            "--no-verify".into(),
            "--no-signed".into(),
            "--no-follow-tags".into(),
            "--recurse-submodules=no".into(),
            format!("--force-with-lease=refs/heads/{branch}:{expected}").into(),
            "--".into(),
            url.into(),
            format!("{local_commit}:refs/heads/{branch}").into(),
        ];
        let limit = CallTimeLimit::Total(self.deadline);
        let output = self.run(&args, Vec::new(), (url, auth), limit).await?;
        match parse_push(&output, branch) {
            Err(Error::BranchInTheWay { branch, by }) if by.is_empty() => {
                // Some servers omit the conflicting name from the message, so it is searched in their
                // listing.
                let there = self.heads(url, auth).await?;
                let by = find_conflicting_branch(&branch, there.keys().map(String::as_str));
                let by = by.unwrap_or("another branch").to_owned();
                Err(Error::BranchInTheWay { branch, by })
            }
            pushed => pushed,
        }
    }

    pub(crate) async fn run(
        &self,
        args: &[OsString],
        input: Vec<u8>,
        (url, auth): (&str, Option<&GitCredentials>),
        patience: CallTimeLimit<'_>,
    ) -> Result<cli::GitOutput, Error> {
        let secret = auth.map(|auth| auth.0.expose_secret());
        let headers: Vec<&str> = secret
            .into_iter()
            .chain(self.headers.iter().map(String::as_str))
            .collect();
        let settings = self.proxy.settings(url);
        let authorities = self.proxy.authorities();
        let remote = cli::RemoteAccess {
            url,
            headers: &headers,
            settings: &settings,
            authority: self.authority.as_deref().or(authorities.as_deref()),
            borrowed: self.borrowed.as_deref(),
        };
        Box::pin(cli::run_git(&self.git_dir, args, input, remote, patience)).await
    }
}

/// Builds the refspec that fetches one branch, also after a rewrite.
pub(crate) fn build_refspec(branch: &str) -> String {
    format!("+refs/heads/{branch}:refs/heads/{branch}")
}

/// Finds the branch whose name prevents `branch`: one of the names is a folder of the other.
pub fn find_conflicting_branch<'a>(
    branch: &str,
    there: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let is_folder = |folder: &str, name: &str| {
        name.strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    there
        .into_iter()
        .find(|there| is_folder(there, branch) || is_folder(branch, there))
}

/// Runs blocking work outside of the runtime's threads.
///
/// # Errors
/// Those of the work; [`Error::Failed`] when it panics.
pub async fn run_blocking_task<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Failed(error.into()))?
}

fn validate_branch_name(branch: &str) -> Result<(), Error> {
    let is_valid =
        // git would parse a leading dash as an option.
        git2::Reference::is_valid_name(&format!("refs/heads/{branch}")) && !branch.starts_with('-');
    if is_valid {
        Ok(())
    } else {
        Err(Error::Failed(format!("{branch:?} is not a branch name").into()))
    }
}
