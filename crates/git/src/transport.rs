//! Fetch, push and look at a remote over HTTP.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use domain::CommitId;
use secrecy::{ExposeSecret, SecretString};

use crate::{Error, cli};

/// How long one operation may take unless told otherwise.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(300);

/// Credentials for one call: a header that git sends, never an argument and never on disk.
#[derive(Clone, Debug)]
pub struct Auth(SecretString);

impl Auth {
    /// `Authorization: Bearer <token>`.
    pub fn bearer(token: &SecretString) -> Self {
        Self(SecretString::from(format!(
            "Authorization: Bearer {}",
            token.expose_secret()
        )))
    }

    /// `Authorization: Basic …`; for a GitHub App's token the user is `x-access-token`.
    pub fn basic(user: &str, password: &SecretString) -> Self {
        let pair = STANDARD.encode(format!("{user}:{}", password.expose_secret()));
        Self(SecretString::from(format!("Authorization: Basic {pair}")))
    }
}

/// What a push did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The remote branch moved.
    Updated,
    /// The remote branch was there already.
    UpToDate,
}

/// Runs `git` for one bare repository. Callers see to it that only one fetch runs on a repository at a time.
#[derive(Clone, Debug)]
pub struct Transport {
    git_dir: PathBuf,
    deadline: Duration,
    authority: Option<PathBuf>,
    /// A header that tells the remote of the caller's trace.
    trace: Option<String>,
}

impl Transport {
    /// Transport for the bare repository at `git_dir`, which only trusted code may write. Deadline: 300 s.
    pub fn new(git_dir: impl Into<PathBuf>) -> Self {
        Self {
            git_dir: git_dir.into(),
            deadline: DEFAULT_DEADLINE,
            authority: None,
            trace: None,
        }
    }

    /// The same for a remote whose certificate is of the authorities in this file, and of no others.
    #[must_use]
    pub fn with_authority(self, file: impl Into<PathBuf>) -> Self {
        Self {
            authority: Some(file.into()),
            ..self
        }
    }

    /// The same with another deadline per operation.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// The same with the caller's `traceparent` in the head of every request; for remotes of our own.
    #[must_use]
    pub fn in_trace(self, traceparent: Option<String>) -> Self {
        let trace = traceparent.map(|parent| format!("traceparent: {parent}"));
        Self { trace, ..self }
    }

    /// Fetches `refspecs`, e.g. `+refs/heads/*:refs/heads/*`; `prune` deletes what the remote no longer has.
    ///
    /// # Errors
    /// [`Error::Denied`], [`Error::NotFound`], [`Error::Unavailable`], [`Error::TimedOut`], [`Error::Failed`].
    pub async fn fetch(
        &self,
        url: &str,
        auth: Option<&Auth>,
        refspecs: &[&str],
        prune: bool,
    ) -> Result<(), Error> {
        let mut args: Vec<OsString> = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]
            .map(Into::into)
            .to_vec();
        args.extend(["--no-recurse-submodules", "--no-auto-maintenance", "--force"].map(Into::into));
        if prune {
            args.push("--prune".into());
        }
        args.extend(["--".into(), OsString::from(url)]);
        args.extend(refspecs.iter().map(OsString::from));
        let output = self.run(&args, auth).await?;
        if output.success {
            Ok(())
        } else {
            Err(classify(&output.stderr))
        }
    }

    /// Sets the remote's `branch` to `local_commit`, but only if it is at `expected` (absent: if it does not exist).
    ///
    /// # Errors
    /// [`Error::LeaseStale`] when the branch is elsewhere, [`Error::Rejected`], [`Error::Denied`], [`Error::NotFound`],
    /// [`Error::Unavailable`], [`Error::TimedOut`] (look before you push again), [`Error::Failed`].
    pub async fn push(
        &self,
        url: &str,
        auth: Option<&Auth>,
        local_commit: &CommitId,
        branch: &str,
        expected: Option<&CommitId>,
    ) -> Result<Pushed, Error> {
        check_branch(branch)?;
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
        let output = self.run(&args, auth).await?;
        read_push(&output)
    }

    /// The head of the remote's `branch`, if it has one.
    ///
    /// # Errors
    /// [`Error::Denied`], [`Error::NotFound`] (no such repository), [`Error::Unavailable`], [`Error::TimedOut`],
    /// [`Error::Failed`].
    pub async fn ls_remote(
        &self,
        url: &str,
        auth: Option<&Auth>,
        branch: &str,
    ) -> Result<Option<CommitId>, Error> {
        check_branch(branch)?;
        let name = format!("refs/heads/{branch}");
        let args: Vec<OsString> = ["ls-remote", "--quiet", "--", url, &name]
            .map(Into::into)
            .to_vec();
        let output = self.run(&args, auth).await?;
        if !output.success {
            return Err(classify(&output.stderr));
        }
        // The pattern also matches as a suffix, so the name is compared in full.
        let line = output
            .stdout
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .find(|(_, found)| *found == name);
        line.map(|(id, _)| {
            id.parse()
                .map_err(|_| Error::Failed("ls-remote answered garbage".into()))
        })
        .transpose()
    }

    async fn run(&self, args: &[OsString], auth: Option<&Auth>) -> Result<cli::Output, Error> {
        let secret = auth.map(|auth| auth.0.expose_secret());
        let headers: Vec<&str> = secret.into_iter().chain(self.trace.as_deref()).collect();
        let remote = cli::Remote {
            headers: &headers,
            authority: self.authority.as_deref(),
        };
        Box::pin(cli::run(&self.git_dir, args, remote, self.deadline)).await
    }
}

fn check_branch(branch: &str) -> Result<(), Error> {
    let is_valid =
        git2::Reference::is_valid_name(&format!("refs/heads/{branch}")) && !branch.starts_with('-');
    if is_valid {
        Ok(())
    } else {
        Err(Error::Failed(format!("{branch:?} is not a branch name").into()))
    }
}

/// Reads `git push --porcelain`: one line for our one ref, `<flag>\t<from>:<to>\t<text>`.
fn read_push(output: &cli::Output) -> Result<Pushed, Error> {
    let line = output
        .stdout
        .lines()
        .find(|line| line.contains(":refs/heads/") && line.contains('\t'));
    let Some((flag, rest)) = line.and_then(|line| line.split_once('\t')) else {
        return Err(classify(&output.stderr));
    };
    let text = rest.split_once('\t').map_or(rest, |(_, text)| text);
    match flag {
        "=" => Ok(Pushed::UpToDate),
        "!" if text.contains("stale info") || text.contains("failed to update ref") => {
            Err(Error::LeaseStale(text.to_owned()))
        }
        "!" => Err(Error::Rejected(format!(
            "{text}; {}",
            cli::summary(&output.stderr)
        ))),
        _ if output.success => Ok(Pushed::Updated),
        _ => Err(classify(&output.stderr)),
    }
}

fn classify(stderr: &str) -> Error {
    let has = |needles: &[&str]| needles.iter().any(|needle| stderr.contains(needle));
    let text = cli::summary(stderr);
    if has(&[
        "Authentication failed",
        "could not read Username",
        "error: 401",
        "error: 403",
        "Permission to",
    ]) {
        Error::Denied(text)
    } else if has(&[
        "not found",
        "error: 404",
        "couldn't find remote ref",
        "not our ref",
        "not appear to be a git",
    ]) {
        Error::NotFound(text)
    } else if has(&[
        "Could not resolve",
        "Failed to connect",
        "Couldn't connect",
        "Connection re",
        "error: 429",
        "error: 5",
        "timed out",
        "too slow",
        "early EOF",
        "hung up",
        "RPC failed",
        "SSL",
        "Empty reply",
    ]) {
        Error::Unavailable(text)
    } else {
        Error::Failed(text.into())
    }
}
