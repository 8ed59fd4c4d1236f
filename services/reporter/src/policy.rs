//! What a change must look like before it is pushed: pure checks over the recomputed difference.

use std::{collections::BTreeSet, fmt};

use domain::{RepositoryName, Rules, TicketKey};
use git::{ChangeKind, ChangeSet, CommitInfo, FileChange, FileMode};
use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::{command, config::Settings, secret};

/// What a change is measured against.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    protected: GlobSet,
    /// Largest file that a change may add.
    pub(crate) max_file_bytes: u64,
    /// Largest pack that is imported.
    pub(crate) max_pack_bytes: u64,
}

impl Limits {
    /// The limits of the settings; an error when a protected path is no glob.
    pub(crate) fn new(settings: &Settings) -> Result<Self, globset::Error> {
        let mut protected = GlobSetBuilder::new();
        for pattern in &settings.protected_paths {
            protected.add(Glob::new(pattern)?);
        }
        Ok(Self {
            protected: protected.build()?,
            max_file_bytes: settings.max_file_bytes,
            max_pack_bytes: settings.max_pack_bytes,
        })
    }
}

/// One thing that is wrong; reads as words for the model: what, and what to change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Violation {
    /// The branch's name is not legal in git.
    BranchName { branch: String },
    /// The branch is one that people own.
    BranchOfPeople { branch: String },
    /// The branch does not name its ticket.
    BranchWithoutTicket { branch: String, ticket: String },
    /// Nothing differs from the base.
    NoChange,
    /// A path that only people may change.
    Protected { path: String },
    /// A path inside a git directory.
    GitDirectory { path: String },
    /// A link that leaves the repository.
    EscapingLink { path: String, target: String },
    /// A submodule was added, moved or removed.
    Submodule { path: String },
    /// Content that belongs into Git LFS.
    LfsContent { path: String },
    /// A file over the limit.
    TooLarge {
        path: String,
        size_bytes: u64,
        limit_bytes: u64,
    },
    /// A file whose added lines are too many to look at.
    TooMuch { path: String },
    /// Words in a commit's message that act on a ticket.
    Command { words: String, commit: String },
    /// Something that looks like a credential.
    Secret { kind: &'static str, place: String },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BranchName { branch } => {
                write!(
                    f,
                    "`{branch}` is not a legal branch name; create a branch with a plain name"
                )
            }
            Self::BranchOfPeople { branch } => {
                write!(
                    f,
                    "`{branch}` belongs to people; create a branch of your own and commit there"
                )
            }
            Self::BranchWithoutTicket { branch, ticket } => {
                write!(
                    f,
                    "the branch `{branch}` does not name the ticket; create one whose name contains `{ticket}`"
                )
            }
            Self::NoChange => f.write_str("nothing differs from the base; commit a change first"),
            Self::Protected { path } => {
                write!(
                    f,
                    "`{path}` is protected and only people change it; take it out of the change"
                )
            }
            Self::GitDirectory { path } => write!(f, "`{path}` lies in a git directory; remove it"),
            Self::EscapingLink { path, target } => {
                write!(
                    f,
                    "the link `{path}` points out of the repository (`{target}`); remove it or link inside"
                )
            }
            Self::Submodule { path } => {
                write!(
                    f,
                    "`{path}` is a submodule, which only people add, move or remove; leave it as it was"
                )
            }
            Self::LfsContent { path } => write!(
                f,
                "Git LFS keeps the content of `{path}` (.gitattributes), and nobody here can upload it; take the file out of the change and say in the pull request what a person has to add"
            ),
            Self::TooLarge {
                path,
                size_bytes,
                limit_bytes,
            } => {
                write!(
                    f,
                    "`{path}` has {size_bytes} bytes and the limit is {limit_bytes}; remove or shrink it"
                )
            }
            Self::TooMuch { path } => write!(
                f,
                "the change adds more text than can be looked through for credentials, `{path}` among it; leave out what is generated"
            ),
            Self::Command { words, commit } => write!(
                f,
                "the message of commit {commit} says `{words}`, which acts on a ticket when it is pushed; create a new branch and commit there with a message that names no ticket after such a word"
            ),
            Self::Secret { kind, place } => write!(
                f,
                "what looks like a {kind} stands in {place}; remove it, then create a new branch and commit there: this branch would keep it in its history"
            ),
        }
    }
}

/// Every violation in one text; at most 20 of them.
pub(crate) fn explain(violations: &[Violation]) -> String {
    let list: Vec<String> = violations
        .iter()
        .take(20)
        .map(|violation| format!("- {violation}"))
        .collect();
    let more = violations.len().saturating_sub(20);
    let more = if more > 0 {
        format!("\n- and {more} more")
    } else {
        String::new()
    };
    format!("the push was refused:\n{}{more}", list.join("\n"))
}

/// Checks the branch's name: legal, not one of people's, and naming its ticket.
pub(crate) fn check_branch(branch: &str, ticket: &TicketKey, rules: &Rules) -> Result<(), Violation> {
    let named = || branch.to_owned();
    if !is_legal_branch(branch) {
        return Err(Violation::BranchName { branch: named() });
    }
    let people = [
        rules.repo.default_branch.as_str(),
        rules.target_branch(),
        "main",
        "master",
        "HEAD",
    ];
    if people.iter().any(|name| name.eq_ignore_ascii_case(branch)) {
        return Err(Violation::BranchOfPeople { branch: named() });
    }
    let key = match ticket {
        TicketKey::Jira { .. } => ticket.short(),
        TicketKey::GitHub { number, .. } => number.to_string(),
    };
    if contains_word(branch, &key) {
        Ok(())
    } else {
        Err(Violation::BranchWithoutTicket {
            branch: named(),
            ticket: key,
        })
    }
}

/// Checks the whole difference.
pub(crate) fn check_change(
    change: &ChangeSet,
    commits: &[CommitInfo],
    limits: &Limits,
) -> Result<(), Vec<Violation>> {
    let mut violations = BTreeSet::new();
    if change.files.is_empty() {
        violations.insert(Violation::NoChange);
    }
    for file in &change.files {
        violations.extend(check_file(file, limits));
    }
    for commit in commits {
        if let Some(kind) = commit.message.lines().find_map(secret::find) {
            let place = format!("the message of commit {}", commit.id.short());
            violations.insert(Violation::Secret { kind, place });
        }
    }
    if violations.is_empty() {
        Ok(())
    } else {
        Err(violations.into_iter().collect())
    }
}

/// Checks what one commit alone adds: what a later one removes stays in the history.
pub(crate) fn check_step(step: &ChangeSet, limits: &Limits) -> Vec<Violation> {
    let files = step.files.iter();
    files.flat_map(|file| check_content(file, limits)).collect()
}

/// Checks that no commit's message closes or moves a ticket other than the commit's own.
pub(crate) fn check_messages(
    commits: &[CommitInfo],
    ticket: &TicketKey,
    repository: &RepositoryName,
) -> Vec<Violation> {
    let found = commits.iter().filter_map(|commit| {
        Some(Violation::Command {
            words: command::find(&commit.message, ticket, repository)?,
            commit: commit.id.short().to_owned(),
        })
    });
    found.collect()
}

fn check_file(file: &FileChange, limits: &Limits) -> Vec<Violation> {
    let path = || file.path.clone();
    let mut violations = Vec::new();
    for touched in std::iter::once(&file.path).chain(&file.old_path) {
        if limits.protected.is_match(touched) {
            violations.push(Violation::Protected {
                path: touched.clone(),
            });
        }
    }
    if file.mode == FileMode::Submodule {
        violations.push(Violation::Submodule { path: path() });
    }
    if file.kind == ChangeKind::Deleted {
        return violations;
    }
    if file.breaks_lfs {
        violations.push(Violation::LfsContent { path: path() });
    }
    if file.path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
        violations.push(Violation::GitDirectory { path: path() });
    }
    match &file.mode {
        FileMode::Symlink(target) if leaves_repository(&file.path, target) => {
            violations.push(Violation::EscapingLink {
                path: path(),
                target: target.clone(),
            });
        }
        FileMode::Symlink(_) | FileMode::Regular | FileMode::Executable | FileMode::Submodule => {}
    }
    violations.extend(check_content(file, limits));
    violations
}

/// Whether all that a file adds could be looked at, and holds no credential.
fn check_content(file: &FileChange, limits: &Limits) -> Vec<Violation> {
    let path = || file.path.clone();
    let mut violations = Vec::new();
    if file.size_bytes > limits.max_file_bytes {
        let (size_bytes, limit_bytes) = (file.size_bytes, limits.max_file_bytes);
        violations.push(Violation::TooLarge {
            path: path(),
            size_bytes,
            limit_bytes,
        });
    }
    if file.is_cut {
        violations.push(Violation::TooMuch { path: path() });
    }
    violations.extend(secret_in(file));
    violations
}

fn secret_in(file: &FileChange) -> Option<Violation> {
    let kind = file.added_lines.iter().find_map(|line| secret::find(line))?;
    Some(Violation::Secret {
        kind,
        place: format!("`{}`", file.path),
    })
}

/// Whether a link at `path` with this target leads out of the repository or into its git directory.
fn leaves_repository(path: &str, target: &str) -> bool {
    if target.starts_with('/') || target.contains('\\') {
        return true;
    }
    let mut folders: Vec<&str> = path.split('/').collect();
    folders.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if folders.pop().is_none() {
                    return true;
                }
            }
            part if part.eq_ignore_ascii_case(".git") => return true,
            part => folders.push(part),
        }
    }
    false
}

/// The rules of `git check-ref-format`, and no name that a command line could take for an option.
fn is_legal_branch(branch: &str) -> bool {
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    !branch.is_empty()
        && branch.len() <= 200
        && !branch.starts_with(['-', '/'])
        && !branch.ends_with(['/', '.'])
        && !branch.contains("..")
        && !branch.contains("@{")
        && branch != "@"
        && !branch.chars().any(forbidden)
        && branch
            .split('/')
            .all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"))
}

fn contains_word(text: &str, word: &str) -> bool {
    let (text, word) = (text.to_ascii_lowercase(), word.to_ascii_lowercase());
    text.match_indices(&word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        before.is_none_or(|c| !c.is_alphanumeric()) && after.is_none_or(|c| !c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> FileChange {
        FileChange {
            path: path.to_owned(),
            old_path: None,
            kind: ChangeKind::Added,
            mode: FileMode::Regular,
            size_bytes: 10,
            added_lines: vec!["hello".to_owned()],
            is_cut: false,
            breaks_lfs: false,
        }
    }

    fn verdict(file: FileChange) -> String {
        let limits = Limits::new(&Settings::default()).unwrap();
        let change = ChangeSet {
            files: vec![file],
            ..ChangeSet::default()
        };
        match check_change(&change, &[], &limits) {
            Ok(()) => String::new(),
            Err(violations) => explain(&violations),
        }
    }

    #[test]
    fn an_ordinary_change_passes() {
        assert_eq!(verdict(file("src/shop/cart.py")), "");
        assert_eq!(
            verdict(FileChange {
                mode: FileMode::Symlink("../a".into()),
                ..file("docs/b")
            }),
            ""
        );
    }

    /// Each breach with a word of what is said of it.
    fn assert_named(breaches: impl IntoIterator<Item = (FileChange, &'static str)>) {
        for (given, words) in breaches {
            let said = verdict(given.clone());
            assert!(said.contains(words), "{given:?}: {said}");
            assert!(!said.contains("ghp_"), "{said}");
        }
    }

    #[test]
    fn each_breach_is_named_with_what_to_change() {
        assert_named([
            (file(".github/workflows/ci.yml"), "protected"),
            (
                FileChange {
                    kind: ChangeKind::Deleted,
                    ..file(".github/workflows/ci.yml")
                },
                "protected",
            ),
            (
                FileChange {
                    old_path: Some(".github/workflows/a.yml".into()),
                    ..file("b.yml")
                },
                "protected",
            ),
            (file("vendor/.git/config"), "git directory"),
            (
                FileChange {
                    mode: FileMode::Symlink("/etc/passwd".into()),
                    ..file("a")
                },
                "out of the repository",
            ),
            (
                FileChange {
                    mode: FileMode::Symlink("../../x".into()),
                    ..file("a/b")
                },
                "out of the repository",
            ),
            (
                FileChange {
                    mode: FileMode::Symlink(".git/config".into()),
                    ..file("a")
                },
                "out of the repository",
            ),
            (
                FileChange {
                    mode: FileMode::Submodule,
                    ..file("vendor/x")
                },
                "submodule",
            ),
            (
                FileChange {
                    mode: FileMode::Submodule,
                    kind: ChangeKind::Deleted,
                    ..file("vendor/x")
                },
                "submodule",
            ),
        ]);
    }

    #[test]
    fn each_breach_by_content_is_named_with_what_to_change() {
        let token = format!("t = 'ghp_{}'", "a1B2c3D4e5".repeat(4));
        assert_named([
            (
                FileChange {
                    breaks_lfs: true,
                    ..file("logo.psd")
                },
                "Git LFS",
            ),
            (
                FileChange {
                    size_bytes: 20 * 1024 * 1024,
                    ..file("big.bin")
                },
                "limit",
            ),
            (
                FileChange {
                    is_cut: true,
                    ..file("fixtures.sql")
                },
                "more text than can be looked through",
            ),
            (
                FileChange {
                    added_lines: vec![token],
                    ..file("settings.py")
                },
                "GitHub token",
            ),
        ]);
    }

    #[test]
    fn an_empty_change_is_refused() {
        let limits = Limits::new(&Settings::default()).unwrap();
        assert_eq!(
            check_change(&ChangeSet::default(), &[], &limits),
            Err(vec![Violation::NoChange])
        );
    }

    #[test]
    fn a_branch_is_legal_and_names_its_ticket() {
        let jira: TicketKey = "jira:ENG-12".parse().unwrap();
        let github: TicketKey = "github:acme/shop#7".parse().unwrap();
        let rules = Rules::default();
        for (branch, ticket, passes) in [
            ("feat/ENG-12-round-totals", &jira, true),
            ("feat/eng-12", &jira, true),
            ("feat/ENG-123-other", &jira, false),
            ("feat/XENG-12", &jira, false),
            ("main", &jira, false),
            ("fix/7-cart", &github, true),
            ("fix/gh-7", &github, true),
            ("fix/77", &github, false),
            ("-ENG-12", &jira, false),
            ("a..ENG-12", &jira, false),
            ("ENG-12.lock", &jira, false),
            ("ENG-12 x", &jira, false),
            ("", &jira, false),
        ] {
            assert_eq!(check_branch(branch, ticket, &rules).is_ok(), passes, "{branch}");
        }
    }
}
