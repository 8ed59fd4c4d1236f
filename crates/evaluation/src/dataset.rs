//! Data sets: one JSON object per line and instance, with the field names of SWE-bench.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use data_encoding::HEXLOWER;
use domain::CommitId;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Deserializer, de::IgnoredAny};

// Default and maximum time limit of one test command, in seconds.
const DEFAULT_LIMIT_S: u64 = 600;
const MAX_LIMIT_S: u64 = 1800;

/// Task whose solution is known by its tests.
#[derive(Clone, Debug)]
pub struct EvalInstance {
    /// Id: letters, digits, `.`, `_`, `-`.
    pub id: String,
    /// Source of its files.
    pub source: InstanceSource,
    /// Task description; the first line is the ticket's summary.
    pub problem_statement: String,
    /// Patch with the deciding tests; may be empty when the base contains them.
    pub test_patch: String,
    /// Tests that fail on the base and must pass.
    pub fail_to_pass: Vec<String>,
    /// Tests that pass on the base and must still pass.
    pub pass_to_pass: Vec<String>,
    /// Shell commands that run the tests.
    pub tests: Vec<String>,
    /// Shell commands that run once after a checkout, without network.
    pub setup: Vec<String>,
    /// Reference solution. Only the grader sees it.
    pub patch: Option<String>,
    /// Publication time of the task, as written in the data set.
    pub created_at: Option<String>,
    /// Time limit of one test command, in seconds.
    pub limit_s: u64,
    /// SHA-256 of its line.
    pub digest: String,
}

/// Source of the files at the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceSource {
    /// Git repository in a local folder, at a commit.
    Git(PathBuf, CommitId),
    /// Git bundle, at a commit.
    Bundle(PathBuf, CommitId),
    /// Folder without git: its files are the base.
    Files(PathBuf),
}

impl InstanceSource {
    /// Path of the folder or file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Git(path, _) | Self::Bundle(path, _) | Self::Files(path) => path,
        }
    }
}

/// Line of a data set. Known fields without a use are ignored; unknown ones are refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DatasetLine {
    instance_id: String,
    repo: Option<String>,
    dir: Option<PathBuf>,
    bundle: Option<PathBuf>,
    #[serde(default)]
    base_commit: String,
    problem_statement: String,
    #[serde(default)]
    test_patch: String,
    #[serde(
        rename = "FAIL_TO_PASS",
        alias = "fail_to_pass",
        deserialize_with = "deserialize_list"
    )]
    fail_to_pass: Vec<String>,
    #[serde(
        rename = "PASS_TO_PASS",
        alias = "pass_to_pass",
        default,
        deserialize_with = "deserialize_list"
    )]
    pass_to_pass: Vec<String>,
    #[serde(default, alias = "test_cmds", deserialize_with = "deserialize_list")]
    test_command: Vec<String>,
    #[serde(default, deserialize_with = "deserialize_list")]
    setup: Vec<String>,
    patch: Option<String>,
    created_at: Option<String>,
    timeout_s: Option<u64>,
    #[serde(rename = "hints_text", default)]
    _hints: IgnoredAny,
    #[serde(rename = "version", default)]
    _version: IgnoredAny,
    #[serde(rename = "environment_setup_commit", default)]
    _environment: IgnoredAny,
    #[serde(rename = "difficulty", default)]
    _difficulty: IgnoredAny,
    #[serde(rename = "language", default)]
    _language: IgnoredAny,
}

/// Parses a list, one text, or a list as the text of a JSON array.
fn deserialize_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a text or a list of texts")]
    enum ListOrText {
        List(Vec<String>),
        Text(String),
    }
    Ok(match ListOrText::deserialize(deserializer)? {
        ListOrText::List(list) => list,
        ListOrText::Text(text) if text.is_empty() => Vec::new(),
        ListOrText::Text(text) => serde_json::from_str(&text).unwrap_or_else(|_| vec![text]),
    })
}

/// Reads every instance of a file, in its order.
///
/// # Errors
/// An unreadable file, or its first invalid line, with number and field.
pub fn read_dataset(file: &Path) -> anyhow::Result<Vec<EvalInstance>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    // Paths in a data set are relative to its own folder, independent of the working directory.
    let file = std::path::absolute(file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let (mut instances, mut ids) = (Vec::new(), BTreeSet::new());
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let place = || format!("{}:{number}", file.display());
        let instance = parse_instance(line, folder).with_context(place)?;
        if !ids.insert(instance.id.clone()) {
            bail!("{}: instance_id: {} is there twice", place(), instance.id);
        }
        instances.push(instance);
    }
    if instances.is_empty() {
        bail!("{}: there is no instance", file.display());
    }
    Ok(instances)
}

fn parse_instance(line: &str, folder: &Path) -> anyhow::Result<EvalInstance> {
    let mut json = serde_json::Deserializer::from_str(line);
    let written: DatasetLine = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let problem = error.into_inner();
        match path.as_str() {
            "." => anyhow!("{problem}"),
            _ => anyhow!("{path}: {problem}"),
        }
    })?;
    json.end()?;
    check_line(&written)?;
    let source = parse_source(&written, folder)?;
    Ok(EvalInstance {
        id: written.instance_id,
        source,
        problem_statement: written.problem_statement,
        test_patch: written.test_patch,
        fail_to_pass: written.fail_to_pass,
        pass_to_pass: written.pass_to_pass,
        tests: written.test_command,
        setup: written.setup,
        patch: written.patch.filter(|patch| !patch.is_empty()),
        created_at: written.created_at,
        limit_s: written.timeout_s.unwrap_or(DEFAULT_LIMIT_S),
        // The digest covers the whole line, so that a resumed evaluation plays a changed instance again.
        digest: hash_to_hex(line.as_bytes()),
    })
}

fn check_line(line: &DatasetLine) -> anyhow::Result<()> {
    let legal = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let id = &line.instance_id;
    // The id becomes the name of folders.
    if !(1..=100).contains(&id.len()) || !id.chars().all(legal) || id.starts_with('.') {
        bail!("instance_id: {id:?} must be 1 to 100 letters, digits, '.', '_' and '-', without '.' first");
    }
    if line.problem_statement.trim().is_empty() {
        bail!("problem_statement: is empty");
    }
    if line.fail_to_pass.is_empty() {
        bail!("FAIL_TO_PASS: names no test, so nothing would show a solution");
    }
    if line.test_command.iter().all(|command| command.trim().is_empty()) {
        bail!("test_command: is missing");
    }
    if let Some(both) = line
        .fail_to_pass
        .iter()
        .find(|test| line.pass_to_pass.contains(test))
    {
        bail!("PASS_TO_PASS: {both} is in FAIL_TO_PASS as well");
    }
    if line
        .timeout_s
        .is_some_and(|seconds| !(1..=MAX_LIMIT_S).contains(&seconds))
    {
        bail!("timeout_s: must be between 1 and {MAX_LIMIT_S}");
    }
    Ok(())
}

fn parse_source(line: &DatasetLine, folder: &Path) -> anyhow::Result<InstanceSource> {
    let base = || -> anyhow::Result<CommitId> {
        let id = line.base_commit.parse();
        id.map_err(|problem| anyhow!("base_commit: {problem}"))
    };
    match (&line.dir, &line.bundle) {
        (Some(_), Some(_)) => bail!("bundle: there is dir as well; name one of them"),
        (Some(dir), None) => {
            let dir = resolve_path(folder, dir, "dir", Path::is_dir, "a folder")?;
            // A bare repository has no folder .git.
            let is_git = dir.join(".git").exists() || dir.join("HEAD").is_file();
            match (is_git, line.base_commit.as_str()) {
                (true, _) => Ok(InstanceSource::Git(dir, base()?)),
                (false, "") => Ok(InstanceSource::Files(dir)),
                (false, _) => bail!("base_commit: {} is no git repository and has none", dir.display()),
            }
        }
        (None, Some(bundle)) => {
            let bundle = resolve_path(folder, bundle, "bundle", Path::is_file, "a file")?;
            Ok(InstanceSource::Bundle(bundle, base()?))
        }
        (None, None) => match &line.repo {
            Some(repo) => bail!(
                "repo: {repo:?} is the name of a remote repository, which is not fetched: give a local folder as dir or \
                 a git bundle as bundle"
            ),
            None => bail!("dir: is missing: give a local folder as dir or a git bundle as bundle"),
        },
    }
}

fn resolve_path(
    folder: &Path,
    path: &Path,
    field: &str,
    is: fn(&Path) -> bool,
    what: &str,
) -> anyhow::Result<PathBuf> {
    let path = folder.join(path);
    if !is(&path) {
        bail!("{field}: {} is not {what}", path.display());
    }
    path.canonicalize()
        .with_context(|| format!("{field}: {}", path.display()))
}

/// SHA-256 in hexadecimal.
pub fn hash_to_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn build_sample_line() -> Value {
        json!({
            "instance_id": "shop-1", "dir": "shop", "problem_statement": "It is wrong.", "test_patch": "",
            "FAIL_TO_PASS": ["a"], "PASS_TO_PASS": ["b"], "test_command": "make test",
        })
    }

    fn create_dataset_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("shop")).unwrap();
        std::fs::create_dir_all(folder.path().join("kept/.git")).unwrap();
        std::fs::write(folder.path().join("shop.bundle"), "").unwrap();
        folder
    }

    fn read_with(change: &Value) -> anyhow::Result<EvalInstance> {
        let folder = create_dataset_folder();
        let mut line = build_sample_line();
        for (name, value) in change.as_object().unwrap() {
            line[name] = value.clone();
        }
        let file = folder.path().join("set.jsonl");
        std::fs::write(&file, format!("\n{line}\n")).unwrap();
        Ok(read_dataset(&file)?.remove(0))
    }

    fn expect_refusal(change: &Value) -> String {
        format!("{:#}", read_with(change).unwrap_err())
    }

    #[test]
    fn swe_bench_line_parses_text_lists() {
        let commit = "1".repeat(40);
        let instance = read_with(&json!({
            "repo": "acme/shop", "dir": null, "bundle": "shop.bundle", "base_commit": commit, "version": "4.1",
            "FAIL_TO_PASS": "[\"t (m.C)\", \"u\"]", "PASS_TO_PASS": "[]", "hints_text": "", "patch": "",
            "environment_setup_commit": commit, "created_at": "2024-01-02T00:00:00Z", "difficulty": "1h",
        }))
        .unwrap();
        assert_eq!(instance.fail_to_pass, ["t (m.C)", "u"]);
        assert!(instance.pass_to_pass.is_empty() && instance.patch.is_none());
        assert!(
            matches!(&instance.source, InstanceSource::Bundle(path, at) if path.ends_with("shop.bundle") && at.as_str() == commit)
        );
        assert_eq!(instance.created_at.as_deref(), Some("2024-01-02T00:00:00Z"));
        assert_eq!(instance.tests, ["make test"]);
    }

    #[test]
    fn dataset_paths_are_relative_to_file() {
        assert!(
            matches!(read_with(&json!({})).unwrap().source, InstanceSource::Files(path) if path.ends_with("shop"))
        );
        let git = json!({"dir": "kept", "base_commit": "2".repeat(40)});
        assert!(matches!(read_with(&git).unwrap().source, InstanceSource::Git(..)));
    }

    #[test]
    fn dataset_errors_name_line_and_field() {
        for (change, said) in [
            (
                json!({"instance_id": "../x"}),
                "instance_id: \"../x\" must be 1 to 100",
            ),
            (json!({"problem_statement": " "}), "problem_statement: is empty"),
            (json!({"FAIL_TO_PASS": []}), "FAIL_TO_PASS: names no test"),
            (
                json!({"FAIL_TO_PASS": 3}),
                "FAIL_TO_PASS: a text or a list of texts",
            ),
            (
                json!({"PASS_TO_PASS": ["a"]}),
                "PASS_TO_PASS: a is in FAIL_TO_PASS",
            ),
            (json!({"test_command": ""}), "test_command: is missing"),
            (json!({"timeout_s": 0}), "timeout_s: must be between 1 and 1800"),
            (json!({"dir": "nowhere"}), "nowhere is not a folder"),
            (json!({"dir": "kept"}), "base_commit: "),
            (
                json!({"base_commit": "1".repeat(40)}),
                "is no git repository and has none",
            ),
            (json!({"bundle": "shop.bundle"}), "bundle: there is dir as well"),
            (
                json!({"dir": null, "repo": "acme/shop"}),
                "repo: \"acme/shop\" is the name of a remote repository",
            ),
            (json!({"dir": null}), "dir: is missing"),
            (json!({"tset_patch": ""}), "unknown field `tset_patch`"),
        ] {
            let problem = expect_refusal(&change);
            assert!(
                problem.contains("set.jsonl:2: ") && problem.contains(said),
                "{change}: {problem}"
            );
        }
    }

    #[test]
    fn an_instance_is_there_once() {
        let folder = create_dataset_folder();
        let file = folder.path().join("set.jsonl");
        std::fs::write(&file, format!("{0}\n{0}\n", build_sample_line())).unwrap();
        let problem = format!("{:#}", read_dataset(&file).unwrap_err());
        assert!(
            problem.ends_with("set.jsonl:2: instance_id: shop-1 is there twice"),
            "{problem}"
        );
        std::fs::write(&file, "\n").unwrap();
        assert!(read_dataset(&file).is_err());
    }
}
