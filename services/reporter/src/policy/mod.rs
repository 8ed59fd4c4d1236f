//! Policy for changes before their push: pure checks of the recomputed difference.

mod smart_commits;

use std::collections::BTreeSet;

use domain::{
    CommitAuthor, CommitId, MetadataPattern, PatternSubject, PolicyViolation, RepositoryName,
    RepositoryRules, SecretPlace as Place, TicketKey, find_unmet_pattern,
};
use git::{ChangeKind, ChangeSet, CommitInfo, FileMode, InspectionCutoff, PathChange};
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use crate::scan;

// Number of commits above which a push cannot be reviewed.
pub(crate) const MAX_COMMITS: usize = 200;

/// Limits of the settings, as the inspector process receives them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LimitSettings {
    /// Globs that no change may touch.
    pub(crate) protected_paths: Vec<String>,
    /// Largest file that a change may add, in bytes.
    pub(crate) max_file_bytes: u64,
    /// Largest pack that is imported, in bytes.
    pub(crate) max_pack_bytes: u64,
}

/// Compiled limits for a change.
#[derive(Clone, Debug)]
pub(crate) struct ChangeLimits {
    protected: GlobSet,
    /// Largest file that a change may add, in bytes.
    pub(crate) max_file_bytes: u64,
}

impl ChangeLimits {
    /// Compiles the limits.
    ///
    /// # Errors
    /// A protected path is not a valid glob.
    pub(crate) fn new(settings: &LimitSettings) -> Result<Self, globset::Error> {
        let mut protected = GlobSetBuilder::new();
        for pattern in &settings.protected_paths {
            for pattern in with_the_folder_itself(pattern) {
                protected.add(compile_glob(&pattern)?);
            }
        }
        Ok(Self {
            protected: protected.build()?,
            max_file_bytes: settings.max_file_bytes,
        })
    }
}

/// Adds the folder's name to a pattern for its content: a file or link of that name would replace the folder.
fn with_the_folder_itself(pattern: &str) -> Vec<String> {
    let mut patterns = vec![pattern.to_owned()];
    if let Some(folder) = pattern.strip_suffix("/**") {
        patterns.push(folder.to_owned());
    }
    patterns
}

/// Compiles a case-insensitive glob, because some file systems and services ignore case.
fn compile_glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern)
        .case_insensitive(true)
        .literal_separator(true)
        .build()
}

/// Checks the branch name: it must be valid, not belong to people, and contain the ticket's key.
pub(crate) fn check_branch(
    branch: &str,
    ticket: &TicketKey,
    rules: &RepositoryRules,
) -> Result<(), PolicyViolation> {
    check_branch_name(branch, &[&rules.repo.default_branch, rules.target_branch()])?;
    let key = match ticket {
        TicketKey::Jira { .. } | TicketKey::Folder { .. } => ticket.short(),
        TicketKey::GitHub { number, .. } | TicketKey::Discussion { number, .. } => number.to_string(),
    };
    if contains_word(branch, &key) {
        Ok(())
    } else {
        Err(PolicyViolation::BranchWithoutTicket {
            branch: branch.to_owned(),
            ticket: key,
        })
    }
}

/// Checks the name of any branch that is pushed: it must be valid and contain no credential. It must not be one of
/// `targets` or a usual name of a main branch.
pub(crate) fn check_branch_name(branch: &str, targets: &[&str]) -> Result<(), PolicyViolation> {
    let named = || branch.to_owned();
    if let Some(kind) = scan::find_credential(branch) {
        let (kind, place) = (kind.to_owned(), Place::Branch);
        return Err(PolicyViolation::Secret { kind, place });
    }
    if !is_legal_branch(branch) {
        return Err(PolicyViolation::BranchName { branch: named() });
    }
    let mut people = targets.iter().chain(&["main", "master", "HEAD"]);
    if people.any(|name| name.eq_ignore_ascii_case(branch)) {
        return Err(PolicyViolation::BranchOfPeople { branch: named() });
    }
    Ok(())
}

/// Checks that the whole difference is not empty.
pub(crate) fn check_total(total: &ChangeSet) -> Vec<PolicyViolation> {
    let is_empty = total.files.is_empty() && total.cut.is_none();
    is_empty
        .then_some(PolicyViolation::NoChange)
        .into_iter()
        .collect()
}

/// Checks one difference: the whole change, or one commit. A later commit does not remove content from the history.
pub(crate) fn check_change(change: &ChangeSet, limits: &ChangeLimits) -> BTreeSet<PolicyViolation> {
    let mut violations: BTreeSet<PolicyViolation> = change
        .files
        .iter()
        .flat_map(|file| check_file(file, limits))
        .collect();
    violations.extend(change.cut.as_ref().map(|cut| match cut {
        InspectionCutoff::Files { count } => PolicyViolation::TooManyFiles { count: *count },
        InspectionCutoff::Content { path } => PolicyViolation::TooMuch { path: path.clone() },
    }));
    violations
}

/// Checks the commits: known authors, a linear history, and messages that a person reads as written. A message must
/// not act on another ticket, or on people, releases and checks. `merged` are the parents of the one permitted merge.
pub(crate) fn check_commits(
    commits: &[CommitInfo],
    authors: &[CommitAuthor],
    ticket: &TicketKey,
    repository: &RepositoryName,
    merged: Option<&[CommitId]>,
) -> BTreeSet<PolicyViolation> {
    let ours: BTreeSet<String> = authors.iter().map(ToString::to_string).collect();
    commits
        .iter()
        .flat_map(|commit| {
            let is_merge = merged.is_some_and(|parents| commit.parents == parents);
            check_commit(commit, &ours, is_merge, (ticket, repository))
        })
        .collect()
}

/// Checks that the message of each commit meets the patterns of the server.
pub(crate) fn check_messages(
    commits: &[CommitInfo],
    patterns: &[MetadataPattern],
) -> BTreeSet<PolicyViolation> {
    let unmet = commits.iter().filter_map(|commit| {
        let pattern = find_unmet_pattern(patterns, PatternSubject::CommitMessage, &commit.message)?;
        Some(PolicyViolation::Pattern {
            requires: pattern.clone(),
            commit: commit.id.short().to_owned(),
        })
    });
    unmet.collect()
}

fn check_commit(
    commit: &CommitInfo,
    ours: &BTreeSet<String>,
    is_merge: bool,
    (ticket, repository): (&TicketKey, &RepositoryName),
) -> Vec<PolicyViolation> {
    let id = || commit.id.short().to_owned();
    let mut violations = Vec::new();
    // Any other merge could bring in commits that were not checked.
    if commit.parents.len() != 1 && !is_merge {
        violations.push(PolicyViolation::Merge { commit: id() });
    }
    let strangers = [&commit.author, &commit.committer].into_iter();
    violations.extend(strangers.filter(|who| !ours.contains(*who)).map(|who| {
        PolicyViolation::ForeignAuthor {
            commit: id(),
            who: scan::redact_credentials(who).into_owned(),
        }
    }));
    violations.extend(
        commit
            .other_headers
            .iter()
            .take(3)
            .map(|header| PolicyViolation::CommitHeader {
                commit: id(),
                header: header.chars().take(40).collect(),
            }),
    );
    if domain::text::has_hidden(&commit.message) {
        violations.push(PolicyViolation::HiddenCharacters { commit: id() });
    }
    // Release notes quote messages, and pages render them.
    violations.extend(
        scan::find_rendered(&commit.message).map(|kind| PolicyViolation::Secret {
            kind: kind.to_owned(),
            place: Place::Message { commit: id() },
        }),
    );
    violations.extend(
        smart_commits::find_commit_order(&commit.message, ticket, repository)
            .map(|words| PolicyViolation::Command { words, commit: id() }),
    );
    violations
}

fn check_file(file: &PathChange, limits: &ChangeLimits) -> Vec<PolicyViolation> {
    let path = || file.path.clone();
    let mut violations = Vec::new();
    // A rename out of a protected path changes it as well.
    for touched in std::iter::once(&file.path).chain(&file.old_path) {
        if limits.protected.is_match(touched) {
            violations.push(PolicyViolation::Protected {
                path: touched.clone(),
            });
        }
    }
    if file.mode == FileMode::Submodule {
        violations.push(PolicyViolation::Submodule { path: path() });
    }
    // A deleted file has no content to check.
    if file.kind == ChangeKind::Deleted {
        return violations;
    }
    if file.breaks_lfs {
        violations.push(PolicyViolation::LfsContent { path: path() });
    }
    if file.path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
        violations.push(PolicyViolation::GitDirectory { path: path() });
    }
    match &file.mode {
        FileMode::Symlink(target) if leaves_repository(&file.path, target) => {
            violations.push(PolicyViolation::EscapingLink {
                path: path(),
                target: target.clone(),
            });
        }
        FileMode::Symlink(_) | FileMode::Regular | FileMode::Executable | FileMode::Submodule => {}
    }
    violations.extend(check_content(file, limits));
    violations
}

/// Checks the size of a file, and searches its name and its added lines for credentials.
fn check_content(file: &PathChange, limits: &ChangeLimits) -> Vec<PolicyViolation> {
    let path = || file.path.clone();
    let mut violations = Vec::new();
    if file.size_bytes > limits.max_file_bytes {
        let (size_bytes, limit_bytes) = (file.size_bytes, limits.max_file_bytes);
        violations.push(PolicyViolation::TooLarge {
            path: path(),
            size_bytes,
            limit_bytes,
        });
    }
    let secret = |kind: &str, place| PolicyViolation::Secret {
        kind: kind.to_owned(),
        place,
    };
    if let Some(kind) = scan::find_credential(&file.path) {
        violations.push(secret(kind, Place::Path));
    }
    // Only a page decodes entities and percent signs. In code they are literal.
    let find = if is_page(&file.path) {
        scan::find_rendered
    } else {
        scan::find_credential
    };
    let in_line = file.added_lines.iter().find_map(find);
    // A manifest has the kind and the values of a Secret on separate lines.
    if let Some(kind) = in_line.or_else(|| scan::find_multiline(file.added_lines.as_str())) {
        violations.push(secret(kind, Place::File { path: path() }));
    }
    violations
}

/// Returns true if a link at `path` may lead out of the repository or into its git directory.
///
/// `..` is accepted only at the start of the target. There it leads up from the link's own folder, which is a real
/// one. Later in the target it would lead up from the destination of another link.
fn leaves_repository(path: &str, target: &str) -> bool {
    // A backslash separates paths on Windows, where people may check the branch out.
    if target.is_empty() || target.starts_with('/') || target.contains(['\\', '\0']) {
        return true;
    }
    let mut depth = path.split('/').count() - 1;
    let mut is_start = true;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if !is_start || depth == 0 => return true,
            ".." => depth -= 1,
            part if part.eq_ignore_ascii_case(".git") => return true,
            _ => is_start = false,
        }
    }
    false
}

/// Returns true for files that GitHub or a browser renders as a page, because a page decodes entities and percent
/// signs.
fn is_page(path: &str) -> bool {
    const PAGES: [&str; 14] = [
        "md", "markdown", "mdx", "mdown", "mkd", "html", "htm", "xhtml", "svg", "xml", "rst", "adoc",
        "textile", "ipynb",
    ];
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    PAGES.iter().any(|page| ending.eq_ignore_ascii_case(page))
}

/// Returns true for names that satisfy `git check-ref-format` and that a command line cannot take for an option.
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
        // A digit after the key would make it another ticket's: ENG-1 is not in ENG-12.
        before.is_none_or(|c| !c.is_alphanumeric()) && after.is_none_or(|c| !c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn build_path_change(path: &str) -> PathChange {
        PathChange {
            path: path.to_owned(),
            old_path: None,
            kind: ChangeKind::Added,
            mode: FileMode::Regular,
            size_bytes: 10,
            added_lines: ["hello"].into_iter().collect(),
            breaks_lfs: false,
        }
    }

    fn build_limits() -> ChangeLimits {
        ChangeLimits::new(&Settings::default().limits()).unwrap()
    }

    fn build_change_set(files: Vec<PathChange>) -> ChangeSet {
        ChangeSet { files, cut: None }
    }

    fn render_policy_verdict(file: PathChange) -> String {
        let violations: Vec<PolicyViolation> = check_change(&build_change_set(vec![file]), &build_limits())
            .into_iter()
            .collect();
        if violations.is_empty() {
            String::new()
        } else {
            domain::OutboundRefusal::Policy { violations }.words()
        }
    }

    #[test]
    fn an_ordinary_change_passes() {
        assert_eq!(render_policy_verdict(build_path_change("src/shop/cart.py")), "");
        assert_eq!(
            render_policy_verdict(PathChange {
                mode: FileMode::Symlink("../a".into()),
                ..build_path_change("docs/b")
            }),
            ""
        );
    }

    /// Asserts that each violation's text contains a word.
    fn assert_named(breaches: impl IntoIterator<Item = (PathChange, &'static str)>) {
        for (given, words) in breaches {
            let said = render_policy_verdict(given.clone());
            assert!(said.contains(words), "{given:?}: {said}");
            assert!(!said.contains("ghp_"), "{said}");
        }
    }

    #[test]
    fn each_policy_breach_names_its_remedy() {
        assert_named([
            (build_path_change(".github/workflows/ci.yml"), "protected"),
            (
                PathChange {
                    kind: ChangeKind::Deleted,
                    ..build_path_change(".github/workflows/ci.yml")
                },
                "protected",
            ),
            (
                PathChange {
                    old_path: Some(".github/workflows/a.yml".into()),
                    ..build_path_change("b.yml")
                },
                "protected",
            ),
            (build_path_change("vendor/.git/config"), "git directory"),
            (
                PathChange {
                    mode: FileMode::Symlink("/etc/passwd".into()),
                    ..build_path_change("a")
                },
                "out of the repository",
            ),
            (
                PathChange {
                    mode: FileMode::Symlink("../../x".into()),
                    ..build_path_change("a/b")
                },
                "out of the repository",
            ),
            (
                PathChange {
                    mode: FileMode::Symlink(".git/config".into()),
                    ..build_path_change("a")
                },
                "out of the repository",
            ),
            (
                PathChange {
                    mode: FileMode::Submodule,
                    ..build_path_change("vendor/x")
                },
                "submodule",
            ),
            (
                PathChange {
                    mode: FileMode::Submodule,
                    kind: ChangeKind::Deleted,
                    ..build_path_change("vendor/x")
                },
                "submodule",
            ),
        ]);
    }

    #[test]
    fn each_content_breach_names_its_remedy() {
        let token = format!("t = 'ghp_{}'", "a1B2c3D4e5".repeat(4));
        assert_named([
            (
                PathChange {
                    breaks_lfs: true,
                    ..build_path_change("logo.psd")
                },
                "Git LFS",
            ),
            (
                PathChange {
                    size_bytes: 20 * 1024 * 1024,
                    ..build_path_change("big.bin")
                },
                "limit",
            ),
            (
                PathChange {
                    path: format!("docs/ghp_{}.md", "a1B2c3D4e5".repeat(4)),
                    ..build_path_change("")
                },
                "GitHub token",
            ),
            (
                PathChange {
                    added_lines: [token.clone()].into_iter().collect(),
                    ..build_path_change("settings.py")
                },
                "GitHub token",
            ),
            (
                PathChange {
                    added_lines: [token.replace("ghp_", "&#103;hp_")].into_iter().collect(),
                    ..build_path_change("docs/Notes.MD")
                },
                "GitHub token",
            ),
        ]);
    }

    #[test]
    fn credential_over_several_lines_is_found() {
        let value = "a1B2c3D4e5".repeat(2);
        let render_lines_verdict = |text: &str| {
            render_policy_verdict(PathChange {
                added_lines: text.lines().collect(),
                ..build_path_change("src/shop")
            })
        };
        for (text, kind) in [
            (
                format!("kind: Secret\nmetadata:\n  name: shop\ndata:\n  key: {value}"),
                "Kubernetes Secret",
            ),
            (
                format!("machine git.internal\nlogin bot\npassword {value}"),
                "password of a .netrc",
            ),
        ] {
            let said = render_lines_verdict(&text);
            assert!(said.contains(kind) && !said.contains(&value), "{text}: {said}");
        }
        // The value belongs to another document.
        let text = format!("kind: Secret\ndata: {{}}\n---\nkind: ConfigMap\ndata:\n  key: {value}");
        assert_eq!(render_lines_verdict(&text), "", "{text}");
    }

    #[test]
    fn an_empty_change_is_refused() {
        assert_eq!(check_total(&ChangeSet::default()), [PolicyViolation::NoChange]);
        assert_eq!(check_total(&build_change_set(vec![build_path_change("a")])), []);
    }

    #[test]
    fn branch_name_is_legal_with_its_ticket() {
        let jira: TicketKey = "jira:ENG-12".parse().unwrap();
        let github: TicketKey = "github:acme/shop#7".parse().unwrap();
        let rules = RepositoryRules::default();
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

    #[test]
    fn incompletely_inspected_change_is_refused() {
        for (cut, violation) in [
            (
                InspectionCutoff::Files { count: 6_000 },
                PolicyViolation::TooManyFiles { count: 6_000 },
            ),
            (
                InspectionCutoff::Content { path: "a.sql".into() },
                PolicyViolation::TooMuch { path: "a.sql".into() },
            ),
        ] {
            let change = ChangeSet {
                cut: Some(cut),
                ..ChangeSet::default()
            };
            assert_eq!(
                check_change(&change, &build_limits()),
                BTreeSet::from([violation])
            );
        }
    }

    #[test]
    fn build_files_are_protected_in_any_case() {
        for path in [
            ".github/workflows/ci.yml",
            ".github/workflows",
            ".GitHub/Workflows/ci.yml",
            ".github/actions/setup/action.yml",
            ".circleci/config.yml",
            ".gitlab-ci.yml",
            "sub/.gitlab-ci.yml",
            "Jenkinsfile",
            "jenkinsfile",
            "azure-pipelines.yml",
            ".buildkite/pipeline.yml",
            "CODEOWNERS",
            ".github/CODEOWNERS",
            "docs/CODEOWNERS",
            ".gitmodules",
            ".gitattributes",
            "pkg/.npmrc",
            "bitbucket-pipelines.yml",
            ".travis.yml",
            ".vscode/tasks.json",
            "sub/.husky/pre-commit",
            ".envrc",
            "crate/.cargo/config.toml",
            "gradle/wrapper/gradle-wrapper.properties",
            ".claude/settings.json",
        ] {
            assert!(
                render_policy_verdict(build_path_change(path)).contains("protected"),
                "{path}"
            );
        }
        for path in [
            "src/workflows/ci.py",
            ".github/ISSUE_TEMPLATE/bug.md",
            "docs/jenkinsfile.md",
            "Makefile",
            "package.json",
        ] {
            assert_eq!(render_policy_verdict(build_path_change(path)), "", "{path}");
        }
    }

    #[test]
    fn bots_editors_wrappers_are_protected() {
        for path in [
            "azure-pipelines-release.yaml",
            "sub/azure-pipelines.yml",
            "azure-pipelines/build.yml",
            ".azure-pipelines/build.yml",
            ".drone.yml",
            ".cirrus.yml",
            ".woodpecker.yml",
            ".woodpecker.yaml",
            ".woodpecker/test.yml",
            "cloudbuild.yml",
            "cloudbuild.yaml",
            ".mergify.yml",
            ".mergify/config.yml",
            ".github/mergify.yml",
            "bors.toml",
            ".github/settings.yml",
            "renovate.json",
            "renovate.json5",
            ".renovaterc",
            ".renovaterc.json",
            ".github/renovate.json5",
            ".zed/tasks.json",
            ".exrc",
            ".nvimrc",
            ".nvim.lua",
            ".gitpod.yml",
            "lefthook.yml",
            "lefthook.toml",
            ".lefthook.json",
            "sub/lefthook-local.yaml",
            ".cursorrules",
            ".windsurfrules",
            ".github/copilot-instructions.md",
            ".github/instructions/rust.instructions.md",
            "gradlew",
            "android/gradlew.bat",
            "mvnw",
            "mvnw.cmd",
            ".pnp.cjs",
            ".pnp.loader.mjs",
            "tools/bazel",
        ] {
            assert!(
                render_policy_verdict(build_path_change(path)).contains("protected"),
                "{path}"
            );
        }
        for path in [
            "AGENTS.md",
            "CLAUDE.md",
            "GEMINI.md",
            "docs/azure-pipelines.md",
            "docs/renovate.json",
            "src/gradlew.rs",
            "src/cloudbuild.rs",
            "tools/bazel/rules.bzl",
            "src/settings.yml",
        ] {
            assert_eq!(render_policy_verdict(build_path_change(path)), "", "{path}");
        }
    }

    fn build_commit(id: char) -> CommitInfo {
        CommitInfo {
            id: id.to_string().repeat(40).parse().unwrap(),
            message: "fix: totals (ENG-12)".to_owned(),
            author: CommitAuthor::journeyman().to_string(),
            committer: CommitAuthor::of_earlier_releases().to_string(),
            other_headers: Vec::new(),
            parents: vec!["0".repeat(40).parse().unwrap()],
        }
    }

    fn find_commit_violations(commit: CommitInfo) -> Vec<PolicyViolation> {
        let (ticket, repository) = ("jira:ENG-12".parse().unwrap(), "acme/shop".parse().unwrap());
        let authors = [CommitAuthor::journeyman(), CommitAuthor::of_earlier_releases()];
        check_commits(&[commit], &authors, &ticket, &repository, None)
            .into_iter()
            .collect()
    }

    /// Builds an ordinary commit with one change.
    fn build_changed_commit(change: impl Fn(&mut CommitInfo)) -> CommitInfo {
        let mut commit = build_commit('a');
        change(&mut commit);
        commit
    }

    fn build_fake_token() -> String {
        format!("ghp_{}", "a1B2c3D4e5".repeat(4))
    }

    fn assert_each_breaks(cases: impl IntoIterator<Item = (CommitInfo, PolicyViolation)>) {
        for (given, expected) in cases {
            assert_eq!(find_commit_violations(given), [expected]);
        }
    }

    #[test]
    fn commit_has_known_author_and_one_parent() {
        assert_eq!(find_commit_violations(build_commit('a')), []);
        let id = || "a".repeat(12);
        let stranger = || "Ann <ann@acme.example>".to_owned();
        let foreign = |who| PolicyViolation::ForeignAuthor { commit: id(), who };
        let header = "gpgsig".to_owned();
        assert_each_breaks([
            (
                build_changed_commit(|commit| commit.parents.push(commit.parents[0].clone())),
                PolicyViolation::Merge { commit: id() },
            ),
            (
                build_changed_commit(|commit| commit.parents.clear()),
                PolicyViolation::Merge { commit: id() },
            ),
            (
                build_changed_commit(|commit| commit.author = stranger()),
                foreign(stranger()),
            ),
            (
                build_changed_commit(|commit| commit.committer = stranger()),
                foreign(stranger()),
            ),
            (
                build_changed_commit(|commit| {
                    commit.author = format!("{} <a@b.example>", build_fake_token())
                }),
                foreign("[GitHub token removed] <a@b.example>".to_owned()),
            ),
            (
                build_changed_commit(|commit| commit.other_headers = vec![header.clone()]),
                PolicyViolation::CommitHeader {
                    commit: id(),
                    header: header.clone(),
                },
            ),
        ]);
    }

    #[test]
    fn commit_message_has_no_hidden_effect() {
        let id = || "a".repeat(12);
        let says = |message: &str| build_changed_commit(|commit| commit.message = message.to_owned());
        let hidden = || PolicyViolation::HiddenCharacters { commit: id() };
        assert_each_breaks([
            (says("fix\u{202e}"), hidden()),
            (says("fix\n\n\u{1b}[2J"), hidden()),
            (
                says(&format!("fix\n\n{}", build_fake_token())),
                PolicyViolation::Secret {
                    kind: "GitHub token".into(),
                    place: Place::Message { commit: id() },
                },
            ),
            (
                says(&format!("fix\n\n&#103;{}", &build_fake_token()[1..])),
                PolicyViolation::Secret {
                    kind: "GitHub token".into(),
                    place: Place::Message { commit: id() },
                },
            ),
            (
                says("fix\n\nCloses #99"),
                PolicyViolation::Command {
                    words: "Closes #99".into(),
                    commit: id(),
                },
            ),
            (
                says("fix [skip ci]\n\ncc @acme/core"),
                PolicyViolation::Command {
                    words: "@acme/core".into(),
                    commit: id(),
                },
            ),
            (
                says("fix\n\n[CI skip]"),
                PolicyViolation::Command {
                    words: "[CI skip]".into(),
                    commit: id(),
                },
            ),
        ]);
    }

    #[test]
    fn commit_message_meets_patterns_of_server() {
        let pattern = MetadataPattern {
            subject: PatternSubject::CommitMessage,
            operator: domain::PatternOperator::Regex,
            pattern: r"^fix: .+ \(ENG-\d+\)".to_owned(),
            negate: false,
        };
        let patterns = std::slice::from_ref(&pattern);
        let other = build_changed_commit(|commit| commit.message = "totals".to_owned());
        assert_eq!(check_messages(&[build_commit('a')], patterns), BTreeSet::new());
        assert_eq!(check_messages(std::slice::from_ref(&other), &[]), BTreeSet::new());
        assert_eq!(
            check_messages(&[other], patterns),
            BTreeSet::from([PolicyViolation::Pattern {
                requires: pattern.clone(),
                commit: "a".repeat(12),
            }])
        );
    }

    #[test]
    fn a_branch_does_not_carry_a_credential() {
        let branch = format!("fix/ENG-12-ghp_{}", "a1B2c3D4e5".repeat(4));
        let ticket = "jira:ENG-12".parse().unwrap();
        let refused = check_branch(&branch, &ticket, &RepositoryRules::default()).unwrap_err();
        assert!(
            matches!(
                refused,
                PolicyViolation::Secret {
                    place: Place::Branch,
                    ..
                }
            ),
            "{refused:?}"
        );
    }

    #[test]
    fn link_stays_inside_through_other_links() {
        for (path, target, leaves) in [
            ("a/b", "c", false),
            ("a/b", "../c", false),
            ("a/b/c", "../../d/e", false),
            ("docs/link", "./../README.md", false),
            ("a", "..", true),
            ("a/b", "../../x", true),
            ("a/d", "..", false),
            // Each of the two is harmless alone. Together they lead out.
            ("a/l", "d/../x", true),
            ("a/l", "d/x/..", true),
            ("a", "/etc/passwd", true),
            ("a", ".git/config", true),
            ("a/b", "../.GIT/hooks", true),
            ("a", "b\\c", true),
            ("a", "", true),
        ] {
            assert_eq!(leaves_repository(path, target), leaves, "{path} -> {target}");
        }
    }
}
