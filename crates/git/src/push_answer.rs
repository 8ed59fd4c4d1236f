//! Parsing of git's messages about a push or a refusal by the remote.

use crate::{Error, cli, unusable::classify_unusable_remote};

/// Line of the git gate's refusal while its mirror is incomplete, followed by a percentage.
pub const NOT_READY: &str = "journeyman: not ready";
/// Line of the git gate's refusal of a branch with a refused history, followed by the reason.
pub const REFUSED_BRANCH: &str = "journeyman: branch refused";

// Words of a server's hooks that are kept. A hook may print pages, and its reason comes first.
const MAX_REJECTION_CHARS: usize = 1000;

/// Result of a successful push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushResult {
    /// The remote branch was moved.
    Updated,
    /// The remote branch was at the commit before.
    UpToDate,
}

/// Parses `git push --porcelain`: one line for the single ref, `<flag>\t<from>:<to>\t<text>`.
pub(crate) fn parse_push(output: &cli::GitOutput, branch: &str) -> Result<PushResult, Error> {
    let line = output
        .stdout
        .lines()
        .find(|line| line.contains(":refs/heads/") && line.contains('\t'));
    let Some((flag, rest)) = line.and_then(|line| line.split_once('\t')) else {
        return Err(classify_stderr(&output.stderr));
    };
    let text = rest.split_once('\t').map_or(rest, |(_, text)| text);
    match flag {
        "=" => Ok(PushResult::UpToDate),
        "!" if is_name_conflict(text, &output.stderr) => Err(Error::BranchInTheWay {
            branch: branch.to_owned(),
            by: parse_conflicting_branch(&output.stderr)
                .or_else(|| parse_conflicting_branch(text))
                .unwrap_or_default(),
        }),
        "!" if is_queued(&output.stderr) => Err(Error::Queued(branch.to_owned())),
        "!" if is_moved(text) => Err(Error::LeaseStale(text.to_owned())),
        "!" => Err(Error::Rejected(format!(
            "{text}; {}",
            summarize_rejection(&output.stderr)
        ))),
        _ if output.success => Ok(PushResult::Updated),
        _ => Err(classify_stderr(&output.stderr)),
    }
}

/// Summarizes the words of the server about a refused push: those of its hooks and rules, which git marks by `remote:`.
/// The last lines of git itself only repeat that the push failed.
fn summarize_rejection(stderr: &str) -> String {
    let words = stderr.lines().filter_map(|line| line.strip_prefix("remote:"));
    let words: Vec<&str> = words.map(str::trim).filter(|line| !line.is_empty()).collect();
    if words.is_empty() {
        return cli::summarize_stderr(stderr);
    }
    words.join("; ").chars().take(MAX_REJECTION_CHARS).collect()
}

/// True when another branch's name prevents the branch: in the messages of git, of newer releases of git, and
/// of GitHub.
fn is_name_conflict(text: &str, stderr: &str) -> bool {
    let words = ["directory file conflict", "refname conflict", "name conflict"];
    let says = |said: &str| said.contains("exists; cannot create");
    words.iter().any(|words| text.contains(words)) || says(text) || says(stderr)
}

/// True when the branch is not where the push expects it: git's refusal of the lease, and the refusals of servers, of
/// several releases of git, whose ref moved while the push was under way.
fn is_moved(text: &str) -> bool {
    let words = [
        "stale info",
        "failed to update ref",
        "but expected",
        "incorrect old value",
        "reference already exists",
        "reference does not exist",
        "unable to resolve reference",
    ];
    words.iter().any(|words| text.contains(words))
}

/// True when GitHub refuses the push because the branch is in a merge queue: `GH006: … Branches that are queued for
/// merging cannot be updated`.
fn is_queued(stderr: &str) -> bool {
    ["queued for merging", "added to a merge queue"]
        .iter()
        .any(|words| stderr.contains(words))
}

/// Extracts the branch from `cannot lock ref 'refs/heads/fix/a': 'refs/heads/fix' exists; cannot create
/// 'refs/heads/fix/a'`.
fn parse_conflicting_branch(stderr: &str) -> Option<String> {
    let (before, _) = stderr.split_once("' exists; cannot create")?;
    let (_, name) = before.rsplit_once('\'')?;
    Some(name.strip_prefix("refs/heads/")?.to_owned())
}

/// Parses the percentage after [`NOT_READY`]; `None` for other messages.
fn parse_not_ready(stderr: &str) -> Option<Error> {
    let (_, rest) = stderr.split_once(NOT_READY)?;
    let line = rest.lines().next().unwrap_or_default();
    let digits: String = line.chars().filter(char::is_ascii_digit).take(3).collect();
    Some(Error::NotReady {
        percent: digits.parse().ok(),
    })
}

/// Classifies git's error message.
pub(crate) fn classify_stderr(stderr: &str) -> Error {
    if let Some(not_ready) = parse_not_ready(stderr) {
        return not_ready;
    }
    if let Some((_, rest)) = stderr.split_once(REFUSED_BRANCH) {
        let reason = rest.lines().next().unwrap_or_default();
        let reason = reason.trim_start_matches(':').trim().chars().take(400).collect();
        return Error::RefusedHistory(reason);
    }
    if let Some(unusable) = classify_unusable_remote(stderr) {
        return unusable;
    }
    // git has no codes for these failures; `LC_ALL=C` pins the language of the texts.
    let has = |needles: &[&str]| needles.iter().any(|needle| stderr.contains(needle));
    let text = cli::summarize_stderr(stderr);
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
        "Proxy CONNECT",
        "CONNECT tunnel",
        "from proxy",
        "error: 407",
        "error: 429",
        "error: 5",
        "timed out",
        "too slow",
        "early EOF",
        "transfer closed",
        "unexpected disconnect",
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse_push(reason: &str) -> Error {
        let line = format!("!\tabc:refs/heads/fix/x\t[remote rejected] ({reason})\n");
        let output = cli::GitOutput {
            success: false,
            stdout: format!("To https://github.example/acme/shop.git\n{line}Done\n"),
            stderr: "error: failed to push some refs to 'https://github.example/acme/shop.git'\n".to_owned(),
        };
        parse_push(&output, "fix/x").unwrap_err()
    }

    #[test]
    fn ref_that_moved_during_push_is_stale() {
        for reason in [
            "failed to update ref",
            "cannot lock ref 'refs/heads/fix/x': is at 1111111 but expected 2222222",
            "cannot lock ref 'refs/heads/fix/x': reference already exists",
            "cannot lock ref 'refs/heads/fix/x': unable to resolve reference 'refs/heads/fix/x'",
            "incorrect old value provided",
            "reference does not exist",
        ] {
            let error = refuse_push(reason);
            assert!(matches!(error, Error::LeaseStale(_)), "{reason}: {error}");
        }
        let error = refuse_push("pre-receive hook declined");
        assert!(matches!(error, Error::Rejected(_)), "{error}");
    }

    #[test]
    fn branch_in_the_way_is_named_by_status() {
        let error = refuse_push(
            "cannot lock ref 'refs/heads/fix/x': 'refs/heads/fix' exists; cannot create 'refs/heads/fix/x'",
        );
        let Error::BranchInTheWay { branch, by } = error else {
            panic!("{error}");
        };
        assert_eq!((branch.as_str(), by.as_str()), ("fix/x", "fix"));
    }

    #[test]
    fn rejection_keeps_words_of_hooks() {
        let stderr = "remote: error: GH013: Repository rule violations found for refs/heads/fix/x.        \n\
            remote: \n\
            remote: - Commit message must match a given regex pattern: ^ENG-        \n\
            remote:   Found 1 violation:        \n\
            remote:   0123456789abcdef        \n\
            error: failed to push some refs to 'https://github.example/acme/shop.git'\n";
        assert_eq!(
            summarize_rejection(stderr),
            "error: GH013: Repository rule violations found for refs/heads/fix/x.; - Commit message must match a given \
             regex pattern: ^ENG-; Found 1 violation:; 0123456789abcdef"
        );
        let long = format!("remote: {}\n", "x".repeat(5000));
        assert_eq!(summarize_rejection(&long).len(), MAX_REJECTION_CHARS);
        assert_eq!(summarize_rejection("error: no\n"), "error: no");
    }
}
