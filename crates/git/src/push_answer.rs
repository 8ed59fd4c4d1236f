//! Meaning of what the `git` command line prints about a push or a refusal of the remote.

use crate::{Error, cli};

/// The line in a refusal of the git gate which says that its mirror is not complete yet; its percentage follows.
pub const NOT_READY: &str = "journeyman: not ready";
/// The line in a refusal of the git gate which says that a branch's history is refused; the reason follows.
pub const REFUSED_BRANCH: &str = "journeyman: branch refused";

/// What a push did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The remote branch moved.
    Updated,
    /// The remote branch was there already.
    UpToDate,
}

/// Reads `git push --porcelain`: one line for our one ref, `<flag>\t<from>:<to>\t<text>`.
pub(crate) fn read_push(output: &cli::Output, branch: &str) -> Result<Pushed, Error> {
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
        "!" if is_name_conflict(text, &output.stderr) => Err(Error::BranchInTheWay {
            branch: branch.to_owned(),
            by: named_in_the_way(&output.stderr).unwrap_or_default(),
        }),
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

/// Whether a branch could not be made because of another one's name: in the words of `git`, of its newer releases, and of
/// GitHub.
fn is_name_conflict(text: &str, stderr: &str) -> bool {
    let words = ["directory file conflict", "refname conflict", "name conflict"];
    words.iter().any(|words| text.contains(words)) || stderr.contains("exists; cannot create")
}

/// The branch in `cannot lock ref 'refs/heads/fix/a': 'refs/heads/fix' exists; cannot create 'refs/heads/fix/a'`.
fn named_in_the_way(stderr: &str) -> Option<String> {
    let (before, _) = stderr.split_once("' exists; cannot create")?;
    let (_, name) = before.rsplit_once('\'')?;
    Some(name.strip_prefix("refs/heads/")?.to_owned())
}

/// The percentage behind [`NOT_READY`] in what the gate said; absent when it said something else.
fn not_ready(stderr: &str) -> Option<Error> {
    let (_, rest) = stderr.split_once(NOT_READY)?;
    let line = rest.lines().next().unwrap_or_default();
    let digits: String = line.chars().filter(char::is_ascii_digit).take(3).collect();
    Some(Error::NotReady {
        percent: digits.parse().ok(),
    })
}

/// The kind of failure that git's error text is about.
pub(crate) fn classify(stderr: &str) -> Error {
    if let Some(not_ready) = not_ready(stderr) {
        return not_ready;
    }
    if let Some((_, rest)) = stderr.split_once(REFUSED_BRANCH) {
        let reason = rest.lines().next().unwrap_or_default();
        let reason = reason.trim_start_matches(':').trim().chars().take(400).collect();
        return Error::RefusedHistory(reason);
    }
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
