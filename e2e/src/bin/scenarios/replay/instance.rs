//! Fix as an instance of `journeyman eval`, and the script of a model that knows the fix.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use testkit::ScriptStep;
use tokio::process::Command;

use crate::replay::{
    catalogue::{PackageRelease, PublishedFix},
    fetch::{ArchiveStore, read_program_output, run_program},
};

pub(crate) struct ReplayInstance {
    pub(crate) fix: PublishedFix,
    folder: PathBuf,
    base: String,
    /// Diff of the fix.
    patch: String,
    /// Diff that adds the test.
    test_patch: String,
}

impl ReplayInstance {
    /// Creates the repository at the base and both diffs in a fresh folder below `out`.
    ///
    /// # Errors
    /// When a release cannot be downloaded, or the releases do not differ in the catalogue's files.
    pub(crate) async fn make(fix: PublishedFix, store: &ArchiveStore, out: &Path) -> anyhow::Result<Self> {
        let folder = out.join("instances").join(&fix.id);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let release = tempfile::tempdir()?;
        store.unpack(&fix, &fix.from, release.path()).await?;
        write_base(&fix, release.path(), &folder)?;
        for arguments in [
            &["init", "-q", "-b", "main"][..],
            &["add", "--all"],
            &["commit", "-q", "-m", "Base"],
        ] {
            run_git(&folder, arguments).await?;
        }
        let base = run_git(&folder, &["rev-parse", "HEAD"]).await?.trim().to_owned();
        write_fix(&fix, &fix.to, store, &folder).await?;
        let patch = run_git(&folder, &["diff"]).await?;
        run_git(&folder, &["checkout", "-q", "--", "."]).await?;
        write_content(&folder.join(&fix.test_file), fix.test.trim_start())?;
        // `git diff` ignores untracked files; intent-to-add makes the new test file part of it.
        run_git(&folder, &["add", "--intent-to-add", "--all"]).await?;
        let test_patch = run_git(&folder, &["diff"]).await?;
        for arguments in [&["reset", "-q", "--hard"][..], &["clean", "-q", "-f", "-d"]] {
            run_git(&folder, arguments).await?;
        }
        anyhow::ensure!(
            !patch.is_empty(),
            "the releases do not differ in {}",
            fix.files.join(", ")
        );
        Ok(Self {
            fix,
            folder,
            base,
            patch,
            test_patch,
        })
    }

    /// Line of the instance in the data set.
    pub(crate) fn line(&self) -> Value {
        let fix = &self.fix;
        json!({
            "instance_id": fix.id, "dir": self.folder, "base_commit": self.base,
            "problem_statement": fix.ticket.trim(), "test_patch": self.test_patch, "patch": self.patch,
            "FAIL_TO_PASS": fix.fails, "PASS_TO_PASS": fix.passes, "test_command": fix.command,
            "language": fix.language,
        })
    }

    /// Script of the model: read, write the test, see it fail, fix, see it pass, finish.
    pub(crate) fn script(&self) -> Vec<ScriptStep> {
        let fix = &self.fix;
        let test = ScriptStep::call("run_command", json!({"command": fix.command, "timeout_s": 300}));
        let files = fix
            .files
            .iter()
            .map(|path| json!({"path": path, "change": "Repairs what the ticket describes."}));
        let files: Vec<Value> = files.collect();
        let first = fix.files.first().map_or("", String::as_str);
        vec![
            ScriptStep::call("read_file", json!({"path": first})),
            ScriptStep::call(
                "write_file",
                json!({"path": fix.test_file, "content": fix.test.trim_start()}),
            ),
            test.clone(),
            ScriptStep::call("apply_patch", json!({"patch": self.patch})),
            test,
            ScriptStep::call(
                "finish",
                json!({
                    "type": "fix", "scope": fix.package, "title": fix.summary(),
                    "summary": format!("{} no longer happens; a test shows it.", fix.summary()),
                    "root_cause": "See the change.", "files": files,
                }),
            ),
        ]
    }
}

/// Writes the base: the release with its test command, without files that need other packages.
fn write_base(fix: &PublishedFix, release: &Path, folder: &Path) -> anyhow::Result<()> {
    for path in list_files(release)? {
        let relative = path.strip_prefix(release)?;
        let is_of = |names: &[String]| names.iter().any(|name| relative.starts_with(name));
        if (fix.keep.is_empty() || is_of(&fix.keep)) && !is_of(&fix.leave_out) {
            write_content(&folder.join(relative), &std::fs::read(&path)?)?;
        }
    }
    let guide = format!(
        "# For agents\n\nRun the tests before every commit:\n\n```sh\n{}\n```\n",
        fix.command
    );
    write_content(&folder.join("AGENTS.md"), &guide)?;
    let is_unittest = fix.command.contains("unittest");
    if is_unittest {
        write_content(&folder.join("tests/__init__.py"), "")?;
    }
    let manifest = folder.join("Cargo.toml");
    if manifest.exists() {
        write_content(
            &manifest,
            &without_dependencies(&std::fs::read_to_string(&manifest)?)?,
        )?;
        // These files name the dependencies that the manifest no longer has, or describe the published
        // package.
        for name in ["Cargo.lock", "Cargo.toml.orig", ".cargo_vcs_info.json"] {
            drop(std::fs::remove_file(folder.join(name)));
        }
        write_content(&folder.join(".gitignore"), "/target\n/Cargo.lock\n")?;
    }
    Ok(())
}

/// Removes the dependencies from a manifest. Cargo would download optional and development dependencies
/// before any command.
fn without_dependencies(manifest: &str) -> anyhow::Result<String> {
    let whole: toml::Table = toml::from_str(manifest)?;
    let package = whole
        .get("package")
        .and_then(toml::Value::as_table)
        .context("no package")?;
    let mut kept = toml::Table::new();
    for key in ["name", "version", "edition"] {
        if let Some(value) = package.get(key) {
            kept.insert(key.to_owned(), value.clone());
        }
    }
    let mut own = toml::Table::new();
    own.insert("package".to_owned(), kept.into());
    own.insert("workspace".to_owned(), toml::Table::new().into());
    Ok(toml::to_string(&own)?)
}

/// Writes the fixed files into the folder.
async fn write_fix(
    fix: &PublishedFix,
    to: &PackageRelease,
    store: &ArchiveStore,
    folder: &Path,
) -> anyhow::Result<()> {
    let release = tempfile::tempdir()?;
    store.unpack(fix, to, release.path()).await?;
    if let Some(patch) = &to.patch {
        let mut git = Command::new("git");
        git.arg("apply")
            .args(fix.files.iter().map(|path| format!("--include={path}")));
        return run_program(
            git.arg(release.path().join("patches").join(patch))
                .current_dir(folder),
        )
        .await;
    }
    for path in &fix.files {
        let content = std::fs::read(release.path().join(path)).with_context(|| path.clone())?;
        write_content(&folder.join(path), &content)?;
    }
    Ok(())
}

fn list_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => found.extend(list_files(&entry.path())?),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    Ok(found)
}

fn write_content(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    std::fs::create_dir_all(path.parent().context("a file in a folder")?)?;
    Ok(std::fs::write(path, content)?)
}

async fn run_git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let me = [
        "-c",
        "user.name=Replay",
        "-c",
        "user.email=replay@example.com",
        "-c",
        "core.autocrlf=false",
    ];
    read_program_output(Command::new("git").args(me).args(arguments).current_dir(folder)).await
}
