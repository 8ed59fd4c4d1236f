//! Findings in a checkout: default branch, commit style, template and checks.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use domain::{RepositoryName, RepositoryRules, check::CheckCandidate};
use tokio::process::Command;

use super::{
    super::branch_folders::{describe_obstacle, list_branch_folders},
    declared_setup::{DeclaredSetup, is_declaration, read_declared_setup},
};

// Commits whose subjects are read.
const COMMITS: &str = "50";
// Limit of read files.
const MAX_READ: usize = 60;
// Limit of printed checks.
const MAX_CHECKS: usize = 5;
// Paths at which GitHub finds a template, the default of the rules first.
const TEMPLATES: [&str; 4] = [
    ".github/PULL_REQUEST_TEMPLATE.md",
    ".github/pull_request_template.md",
    "PULL_REQUEST_TEMPLATE.md",
    "docs/PULL_REQUEST_TEMPLATE.md",
];
/// Files that reveal the toolchain of a repository.
const TOOLCHAINS: [(&str, &str); 12] = [
    ("Cargo.toml", "Rust"),
    ("go.mod", "Go"),
    ("package.json", "JavaScript"),
    ("pyproject.toml", "Python"),
    ("setup.py", "Python"),
    ("requirements.txt", "Python"),
    ("pom.xml", "Java (Maven)"),
    ("build.gradle", "Java (Gradle)"),
    ("build.gradle.kts", "Kotlin (Gradle)"),
    ("Gemfile", "Ruby"),
    ("composer.json", "PHP"),
    ("dbt_project.yml", "dbt"),
];

/// Findings in a checkout.
#[derive(Debug, Default)]
pub(super) struct CheckoutFindings {
    branch: String,
    toolchains: Vec<&'static str>,
    is_plain: bool,
    template: Option<&'static str>,
    has_pre_commit: bool,
    checks: Vec<CheckCandidate>,
    setup: DeclaredSetup,
    /// Branches with the name of a folder of ours.
    obstacles: Vec<String>,
}

impl CheckoutFindings {
    /// Inspects the commit that is checked out.
    pub(super) async fn in_checkout(folder: &Path) -> anyhow::Result<Self> {
        let place = folder.to_owned();
        let opened = tokio::task::spawn_blocking(move || git::FolderRepository::open(&place).err());
        if let Some(problem @ git::Error::Unusable(_)) = opened.await? {
            return Err(problem).with_context(|| folder.display().to_string());
        }
        // The commit is read instead of the working tree, so that ignored and uncommitted files have no influence.
        let listed = list_paths(folder).await;
        let paths = listed.with_context(|| format!("{}: no checkout with a commit", folder.display()))?;
        let mut files = Vec::with_capacity(paths.len());
        let mut read = 0;
        for path in &paths {
            let mut text = None;
            if read < MAX_READ && executor::may_name_checks(path) {
                read += 1;
                // A binary file contains no checks, so the error of a non-UTF-8 output is dropped.
                text = run_git(folder, &["show", &format!("HEAD:{path}")]).await.ok();
            }
            files.push((path.clone(), text));
        }
        // Tools generate the subjects of merge commits.
        let subjects = run_git(folder, &["log", "-n", COMMITS, "--no-merges", "--format=%s"]).await?;
        let has = |wanted: &str| paths.iter().any(|path| path == wanted);
        let mut toolchains: Vec<&str> = TOOLCHAINS
            .iter()
            .filter(|(file, _)| has(file))
            .map(|(_, name)| *name)
            .collect();
        // The table lists the files of one toolchain in sequence, so `dedup` suffices.
        toolchains.dedup();
        Ok(Self {
            branch: find_default_branch(folder).await?,
            toolchains,
            is_plain: !is_conventional(&subjects),
            template: TEMPLATES.into_iter().find(|path| has(path)),
            has_pre_commit: has(".pre-commit-config.yaml"),
            checks: executor::checks_in(&files),
            setup: read_setup(folder, &paths).await,
            obstacles: list_blocking_branches(folder).await?,
        })
    }

    /// Lines for the terminal.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("branch   {}", self.branch)];
        if !self.toolchains.is_empty() {
            lines.push(format!("made of  {}", self.toolchains.join(", ")));
        }
        let style = if self.is_plain { "plain" } else { "conventional" };
        lines.push(format!("commits  {style}"));
        if let Some(template) = self.template {
            lines.push(format!("template {template}"));
        }
        for check in self.checks.iter().take(MAX_CHECKS) {
            let place: PathBuf = [".", &check.directory]
                .iter()
                .filter(|part| !part.is_empty())
                .collect();
            lines.push(format!(
                "check    {} in {} ({})",
                check.command,
                place.display(),
                check.why
            ));
        }
        for command in &self.setup.commands {
            lines.push(format!(
                "setup    {} (from {})",
                command.replace('\n', "; "),
                self.setup.source
            ));
        }
        if !self.setup.programs.is_empty() {
            let programs: Vec<&str> = self.setup.programs.iter().map(String::as_str).collect();
            lines.push(format!("programs {}", programs.join(", ")));
        }
        for reason in &self.setup.left_out {
            lines.push(format!("left out {reason}"));
        }
        for branch in &self.obstacles {
            lines.push(format!("warning  {}", describe_obstacle(branch)));
        }
        if self.checks.is_empty() {
            lines.push("check    none was found: name some in the rules (agent.checks)".to_owned());
        }
        lines
    }

    /// Text of the rules file, without default values. Checks are omitted, because each run detects them again.
    pub(super) fn rules(
        &self,
        repository: &RepositoryName,
        project: Option<&str>,
        label: Option<&str>,
    ) -> anyhow::Result<String> {
        // Every JSON string is also a valid YAML string.
        let quoted = |text: &str| serde_json::to_string(text);
        let mut text = "# Every key and its default: docs/rules.md\nrepo:\n".to_owned();
        text += &format!(
            "  owner: {}\n  name: {}\n",
            quoted(repository.owner())?,
            quoted(repository.name())?
        );
        if self.branch != "main" {
            text += &format!("  default_branch: {}\n", quoted(&self.branch)?);
        }
        if let Some(project) = project {
            text += &format!("jira:\n  project_key: {}\n", quoted(project)?);
        }
        if let Some(label) = label {
            text += &format!("issues:\n  labels: [{}]\n", quoted(label)?);
        }
        if self.is_plain {
            text += "commits:\n  style: plain\n";
        }
        if let Some(template) = self.template.filter(|path| *path != TEMPLATES[0]) {
            text += &format!("pull_request:\n  template_path: {}\n", quoted(template)?);
        }
        if self.has_pre_commit {
            text += "ci:\n  auto_fix: [pre-commit]\n";
        }
        text += &self.setup.render_rules()?;
        Ok(text)
    }
}

/// Reads the setup that the checked out commit declares; `None` when it declares no commands.
///
/// # Errors
/// The folder is not a checkout with a commit.
pub(in crate::commands::local) async fn list_declared_setup(
    folder: &Path,
) -> anyhow::Result<Option<DeclaredSetup>> {
    let paths = list_paths(folder).await?;
    let setup = read_setup(folder, &paths).await;
    Ok(Some(setup).filter(|setup| !setup.commands.is_empty()))
}

/// Paths of the checked out commit.
async fn list_paths(folder: &Path) -> anyhow::Result<Vec<String>> {
    // Without -z git quotes paths with unusual characters.
    let asked = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD"];
    let listed = run_git(folder, &asked).await?;
    let paths = listed.split('\0').filter(|path| !path.is_empty());
    Ok(paths.map(str::to_owned).collect())
}

async fn read_setup(folder: &Path, paths: &[String]) -> DeclaredSetup {
    let mut declarations = Vec::new();
    for path in paths.iter().filter(|path| is_declaration(path)).take(MAX_READ) {
        if let Ok(text) = run_git(folder, &["show", &format!("HEAD:{path}")]).await {
            declarations.push((path.clone(), text));
        }
    }
    read_declared_setup(paths, &declarations)
}

/// Branches of the checkout and its remote with the name of a folder of ours.
async fn list_blocking_branches(folder: &Path) -> anyhow::Result<Vec<String>> {
    let format = "--format=%(refname)";
    let named = run_git(
        folder,
        &["for-each-ref", format, "refs/heads", "refs/remotes/origin"],
    )
    .await?;
    let short = |name: &str| {
        let own = name.strip_prefix("refs/heads/");
        own.or(name.strip_prefix("refs/remotes/origin/"))
            .map(str::to_owned)
    };
    let branches: BTreeSet<String> = named.lines().filter_map(short).collect();
    let folders = list_branch_folders(&RepositoryRules::default());
    Ok(branches.intersection(&folders).cloned().collect())
}

/// Default branch of the remote, else the branch that is checked out.
async fn find_default_branch(folder: &Path) -> anyhow::Result<String> {
    let remote = run_git(folder, &["symbolic-ref", "--short", "refs/remotes/origin/HEAD"]).await;
    if let Some(branch) = remote
        .ok()
        .as_deref()
        .and_then(|name| name.trim().strip_prefix("origin/"))
    {
        return Ok(branch.to_owned());
    }
    let own = run_git(folder, &["symbolic-ref", "--short", "HEAD"]).await;
    own.map(|name| name.trim().to_owned())
        .context("no branch is checked out, and origin names no default branch")
}

/// True when most commit subjects start with a type, such as `fix(cart): …`. A repository with fewer than five commits
/// counts as conventional.
fn is_conventional(subjects: &str) -> bool {
    let typed = |line: &&str| {
        let Some((before, _)) = line.split_once(": ") else {
            return false;
        };
        let kind = before.split('(').next().unwrap_or_default().trim_end_matches('!');
        !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let count = subjects.lines().count();
    count < 5 || subjects.lines().filter(typed).count() * 2 >= count
}

async fn run_git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let ran = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .output()
        .await;
    let ran = ran.context("git cannot be started")?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        bail!(
            "git {}: {}",
            arguments[0],
            said.lines().next().unwrap_or_default()
        );
    }
    String::from_utf8(ran.stdout).context("git printed no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_follows_most_commits() {
        let typed = "fix(cart): count\nfeat!: more\nchore: less\ndocs: words\nWhatever\n";
        assert!(is_conventional(typed));
        assert!(!is_conventional("Count\nMore: of it\nLess\nfix: one\nWords\n"));
        assert!(is_conventional("Initial commit\n"), "too few to tell");
    }

    #[test]
    fn generated_rules_omit_default_values() {
        let repository = RepositoryName::new("acme", "shop").unwrap();
        let usual = CheckoutFindings {
            branch: "main".to_owned(),
            template: Some(TEMPLATES[0]),
            ..CheckoutFindings::default()
        };
        let head = "# Every key and its default: docs/rules.md\nrepo:\n  owner: \"acme\"\n  name: \"shop\"\n";
        let text = usual.rules(&repository, Some("ENG"), None).unwrap();
        assert_eq!(text, format!("{head}jira:\n  project_key: \"ENG\"\n"));
        let other = CheckoutFindings {
            branch: "trunk".to_owned(),
            is_plain: true,
            template: Some(TEMPLATES[2]),
            has_pre_commit: true,
            ..CheckoutFindings::default()
        };
        let text = other.rules(&repository, None, Some("a: \"b\"")).unwrap();
        let rest = "  default_branch: \"trunk\"\nissues:\n  labels: [\"a: \\\"b\\\"\"]\ncommits:\n  style: plain\n\
                    pull_request:\n  template_path: \"PULL_REQUEST_TEMPLATE.md\"\nci:\n  auto_fix: [pre-commit]\n";
        assert_eq!(text, format!("{head}{rest}"));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("shop.yaml"), text).unwrap();
        let book = bootstrap::rules::RulesBook::read(
            folder.path(),
            &bootstrap::rules::ConfiguredInstances::default(),
        );
        let book = book.unwrap();
        assert!(book.problems().is_empty(), "{:?}", book.problems());
        let rules = book.repositories().next().unwrap();
        assert_eq!(rules.issues.labels, ["a: \"b\""]);
    }
}
