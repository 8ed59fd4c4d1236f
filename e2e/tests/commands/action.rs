//! The GitHub Action: its steps as a runner performs them, job after job, against the stand-ins. A job starts on a new
//! machine, so only the state that action.yml keeps reaches the next one.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use journeyman::account_settings::find_default_model;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    ScriptStep,
    fixture::{self, REPOSITORY},
    github::{RunConclusion, WORKFLOW_TOKEN},
    model::MODEL_API_KEY,
    poll_until,
};
use tokio::process::Command;

use crate::{find_repository_root, program::GONE_WITHIN, read_yaml, stage::Stage};

/// Rules file of the repository. Without the required checks a job would wait for the first one.
const RULES: &str = "issues: {labels: [journeyman]}\nci: {required: true}\n";
/// Prefix of the keys of kept states.
const STATE: &str = "journeyman-state-";

/// Runner of one repository's jobs, with its cache.
struct StandInRunner {
    action: Value,
    inputs: BTreeMap<&'static str, String>,
    /// Values of the contexts in expressions.
    contexts: BTreeMap<&'static str, String>,
    environment: Vec<(&'static str, String)>,
    workspace: TempDir,
    cache: TempDir,
    jobs: u32,
}

/// End of a job: its log and summary, and whether every step succeeded.
#[derive(Debug)]
struct JobEnd {
    is_good: bool,
    log: String,
    summary: String,
}

impl StandInRunner {
    fn new(stage: &Stage) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        fs::create_dir(workspace.path().join(".github")).unwrap();
        fs::write(workspace.path().join(".github/journeyman.yaml"), RULES).unwrap();
        let program = e2e::find_binary("journeyman").unwrap();
        Self {
            action: read_yaml("action.yml"),
            inputs: BTreeMap::from([
                ("model-key", MODEL_API_KEY.to_owned()),
                ("model-base-url", stage.model.url()),
                ("program", program.display().to_string()),
                // A job that hangs ends with its servers, and fails the test.
                ("time-limit", "5".to_owned()),
            ]),
            contexts: BTreeMap::from([
                ("github.token", WORKFLOW_TOKEN.to_owned()),
                ("github.run_attempt", "1".to_owned()),
                ("github.action_repository", "acme/journeyman".to_owned()),
                ("github.event.repository.default_branch", "main".to_owned()),
            ]),
            environment: vec![
                ("GITHUB_REPOSITORY", REPOSITORY.to_owned()),
                ("GITHUB_API_URL", stage.github.api_url()),
                ("GITHUB_SERVER_URL", stage.github.git_url()),
                ("RUNNER_ENVIRONMENT", "self-hosted".to_owned()),
            ],
            workspace,
            cache: tempfile::tempdir().unwrap(),
            jobs: 0,
        }
    }

    /// Replaces the expressions of a text. Contexts that the test does not know are a failure.
    fn expand(&self, text: &str) -> String {
        let Some((before, rest)) = text.split_once("${{") else {
            return text.to_owned();
        };
        let (expression, after) = rest.split_once("}}").unwrap();
        let expression = expression.trim();
        let value = match expression.strip_prefix("inputs.") {
            Some(name) => self.input(name),
            None => {
                let known = self.contexts.get(expression);
                known.unwrap_or_else(|| panic!("{expression}")).clone()
            }
        };
        format!("{before}{value}{}", self.expand(after))
    }

    fn input(&self, name: &str) -> String {
        let declared = &self.action["inputs"][name];
        assert!(declared.is_object(), "action.yml has no input {name}");
        let given = self.inputs.get(name).cloned();
        given.unwrap_or_else(|| self.expand(declared["default"].as_str().unwrap_or_default()))
    }

    /// Runs the steps of the action on a new machine.
    async fn run_job(&mut self) -> JobEnd {
        self.jobs += 1;
        let machine = tempfile::tempdir().unwrap();
        let temp = machine.path().join("temp");
        fs::create_dir(&temp).unwrap();
        self.contexts.insert("runner.temp", temp.display().to_string());
        self.contexts.insert("github.run_id", self.jobs.to_string());
        let mut end = JobEnd {
            is_good: true,
            log: String::new(),
            summary: String::new(),
        };
        for step in self.action["runs"]["steps"].as_array().unwrap() {
            match step["if"].as_str() {
                None if !end.is_good => continue,
                None | Some("always()") => {}
                Some(other) => panic!("{other}"),
            }
            match step["uses"].as_str() {
                None => self.run_step(step, machine.path(), &mut end).await,
                Some("actions/cache/restore@v4") => self.restore(&step["with"]).await,
                Some("actions/cache/save@v4") => self.keep(&step["with"]).await,
                Some(other) => panic!("{other}"),
            }
        }
        assert_no_process_left(machine.path(), &end.log).await;
        end.summary = fs::read_to_string(machine.path().join("summary")).unwrap_or_default();
        end
    }

    /// Runs one step as a runner does: variables and folders of earlier steps come from their files.
    async fn run_step(&self, step: &Value, machine: &Path, end: &mut JobEnd) {
        assert_eq!(step["shell"], "bash");
        let (variables, folders) = (machine.join("variables"), machine.join("folders"));
        let summary = machine.join("summary");
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let mut path = read(&folders).lines().rev().collect::<Vec<_>>().join(":");
        path.push(':');
        path.push_str(&std::env::var_os("PATH").unwrap().to_string_lossy());
        let earlier = read(&variables);
        let nats = std::env::var_os("JOURNEYMAN_NATS_SERVER");
        let mut command = Command::new("bash");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c"])
            .arg(self.expand(step["run"].as_str().unwrap()))
            .env_clear()
            .envs(nats.map(|nats| ("JOURNEYMAN_NATS_SERVER", nats)))
            .envs(earlier.lines().filter_map(|line| line.split_once('=')))
            .envs(self.environment.iter().map(|(name, value)| (*name, value)))
            .env("PATH", path)
            .env("HOME", machine)
            .env("GITHUB_ACTION_PATH", find_repository_root())
            .env("GITHUB_WORKSPACE", self.workspace.path())
            .env("GITHUB_RUN_ID", self.jobs.to_string())
            .env("GITHUB_ENV", &variables)
            .env("GITHUB_PATH", &folders)
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("RUNNER_TEMP", machine.join("temp"))
            .current_dir(self.workspace.path())
            .kill_on_drop(true);
        let given = step["env"].as_object().unwrap().iter();
        command.envs(given.map(|(name, value)| (name, self.expand(value.as_str().unwrap()))));
        let ran = command.output().await.unwrap();
        end.is_good &= ran.status.success();
        end.log.push_str(&String::from_utf8_lossy(&ran.stdout));
        end.log.push_str(&String::from_utf8_lossy(&ran.stderr));
    }

    /// Restores the newest state, as the prefix of its key finds it.
    async fn restore(&self, with: &Value) {
        assert_eq!(with["restore-keys"], STATE);
        let newest = (1..self.jobs).rev().map(|job| self.kept_state(job));
        let Some(kept) = newest.into_iter().find(|kept| kept.exists()) else {
            return;
        };
        for (number, target) in self.state_folders(with).iter().enumerate() {
            copy_folder(&kept.join(number.to_string()), target).await;
        }
    }

    async fn keep(&self, with: &Value) {
        let key = self.expand(with["key"].as_str().unwrap());
        assert_eq!(key, format!("{STATE}{}-1", self.jobs));
        let kept = self.kept_state(self.jobs);
        for (number, folder) in self.state_folders(with).iter().enumerate() {
            copy_folder(folder, &kept.join(number.to_string())).await;
        }
    }

    fn kept_state(&self, job: u32) -> PathBuf {
        self.cache.path().join(job.to_string())
    }

    fn state_folders(&self, with: &Value) -> Vec<PathBuf> {
        let paths = with["path"].as_str().unwrap().lines();
        paths.map(|path| PathBuf::from(self.expand(path))).collect()
    }
}

/// Fails if a process of a job outlives it. The folder of its machine identifies its processes.
async fn assert_no_process_left(machine: &Path, log: &str) {
    let left = async || list_processes_of(machine).is_empty().then_some(());
    let gone = poll_until("the end of the job's processes", GONE_WITHIN, left).await;
    gone.unwrap_or_else(|error| panic!("{error}: {:?}\n{log}", list_processes_of(machine)));
}

/// Names of the live processes of a folder.
fn list_processes_of(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|process| is_process_of(process, folder))
        .map(|process| fs::read_to_string(process.join("comm")).unwrap_or_default())
        .collect()
}

/// True for a process that works in a folder, or has it in its arguments or environment.
fn is_process_of(process: &Path, folder: &Path) -> bool {
    let id = process.file_name().and_then(|name| name.to_str());
    if id.is_none_or(|id| id.parse::<u32>().is_err()) {
        return false;
    }
    let name = folder.to_str().unwrap();
    // Processes that ended meanwhile, and those of other users, cannot be read.
    let is_mentioned = ["cmdline", "environ"].into_iter().any(|file| {
        let bytes = fs::read(process.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(name)
    });
    is_mentioned || fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
}

/// Copies a folder, if it exists.
async fn copy_folder(from: &Path, to: &Path) {
    if !from.exists() {
        return;
    }
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().await;
    assert!(copied.unwrap().success(), "{}", from.display());
}

/// Opens the fixture's ticket as an issue with the label of the rules, and returns its number.
fn open_labeled_issue(stage: &Stage) -> u64 {
    let (title, body) = fixture::describe_shop_ticket();
    let number = stage
        .github
        .open_issue_as(REPOSITORY, "ada", title, body)
        .unwrap();
    stage
        .github
        .label_issue(REPOSITORY, number, "journeyman", "rita")
        .unwrap();
    number
}

#[tokio::test(flavor = "multi_thread")]
async fn labeled_issue_is_merged_across_jobs() {
    let stage = Stage::start("").await;
    let mut runner = StandInRunner::new(&stage);
    let number = open_labeled_issue(&stage);
    let worked = runner.run_job().await;
    assert!(worked.is_good, "{}", worked.log);
    assert!(!worked.log.contains(MODEL_API_KEY) && !worked.log.contains(WORKFLOW_TOKEN));
    let pulls = stage.github.pull_requests(REPOSITORY);
    let [pull] = pulls.as_slice() else {
        panic!("{pulls:#?}\n{}", worked.log)
    };
    assert!(
        pull.draft && pull.body.contains(&format!("Fixes #{number}")),
        "{pull:#?}"
    );
    let commits = stage.github.commits(REPOSITORY, pull.number).unwrap();
    assert!(
        commits[0].author.starts_with("github-actions[bot] <41898282+"),
        "{commits:?}"
    );

    let of_action = [("Journeyman reviews", RunConclusion::Success, "")];
    stage
        .github
        .run_checks(REPOSITORY, &pull.head_sha, &of_action)
        .unwrap();
    let unchecked = runner.run_job().await;
    assert!(unchecked.is_good, "{}", unchecked.log);
    assert!(
        stage.github.pull_requests(REPOSITORY)[0].draft,
        "a job of the action does not count as CI: {}",
        unchecked.log
    );

    let checks = [("test", RunConclusion::Success, "")];
    stage
        .github
        .run_checks(REPOSITORY, &pull.head_sha, &checks)
        .unwrap();
    let checked = runner.run_job().await;
    assert!(checked.is_good, "{}", checked.log);
    assert!(
        !stage.github.pull_requests(REPOSITORY)[0].draft,
        "{}",
        checked.log
    );

    stage.github.merge(REPOSITORY, pull.number, "grace").unwrap();
    let merged = runner.run_job().await;
    assert!(merged.is_good, "{}", merged.log);
    let issue = stage.github.issue(REPOSITORY, number).unwrap();
    assert_eq!(issue.closed_as.as_deref(), Some("completed"), "{}", merged.log);

    let nothing = runner.run_job().await;
    assert!(
        nothing.is_good && nothing.log.contains("nothing is left to do"),
        "{}",
        nothing.log
    );
    assert!(nothing.summary.contains("nothing was due"), "{}", nothing.summary);
    assert_eq!(stage.github.pull_requests(REPOSITORY).len(), 1);
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_run_fails_job_with_reason() {
    let stage = Stage::start("").await;
    stage.model.set_script("", vec![fixture::nothing_to_do()]);
    let mut runner = StandInRunner::new(&stage);
    open_labeled_issue(&stage);
    let failed = runner.run_job().await;
    assert!(!failed.is_good, "{}", failed.log);
    let error = "::error title=Journeyman::journeyman ended with 1";
    assert!(failed.log.contains(error), "{}", failed.log);
    let reason = "ended: given up, already done: There is nothing to do.";
    let mut lines = failed.summary.lines();
    assert!(
        lines.any(|line| line.starts_with("journeyman: github:") && line.ends_with(reason)),
        "{}",
        failed.summary
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn time_limit_leaves_work_to_next_job() {
    let stage = Stage::start("").await;
    let mut script = fixture::build_shop_script();
    // The results of the first step come before those that the script expects.
    script[0].expect = None;
    let waits = json!({"command": "sleep 50", "timeout_s": 60});
    script.insert(0, ScriptStep::call("run_command", waits));
    stage.model.set_script("", script);
    let mut runner = StandInRunner::new(&stage);
    open_labeled_issue(&stage);
    // The command runs longer than this limit on every machine.
    let usual = runner.inputs.insert("time-limit", "0.2".to_owned()).unwrap();
    let limited = runner.run_job().await;
    assert!(limited.is_good, "{}", limited.log);
    let warning =
        "::warning title=Journeyman::the time limit of 0.2 minutes ended this job; the next one continues";
    assert!(limited.log.contains(warning), "{}", limited.log);
    assert!(stage.github.pull_requests(REPOSITORY).is_empty());

    runner.inputs.insert("time-limit", usual);
    let completed = runner.run_job().await;
    assert!(completed.is_good, "{}", completed.log);
    assert!(
        completed.summary.contains("run finished: completed"),
        "{}",
        completed.summary
    );
    assert_eq!(stage.github.pull_requests(REPOSITORY).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_state_opens_no_second_pull_request() {
    let stage = Stage::start("").await;
    let mut runner = StandInRunner::new(&stage);
    open_labeled_issue(&stage);
    let worked = runner.run_job().await;
    assert!(worked.is_good, "{}", worked.log);
    let calls = stage.model.call_count();
    runner.cache = tempfile::tempdir().unwrap();
    let again = runner.run_job().await;
    assert!(again.is_good, "{}", again.log);
    assert_eq!(stage.model.call_count(), calls, "{}", again.log);
    assert_eq!(stage.github.pull_requests(REPOSITORY).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_inputs_fail_job_by_name() {
    let stage = Stage::start("").await;
    let mut runner = StandInRunner::new(&stage);
    for (name, value, complaint) in [
        ("model-key", "", "model-key is empty"),
        ("model-dialect", "other", "model-dialect is other"),
        ("program", "/no/such/journeyman", "program: /no/such/journeyman"),
    ] {
        let before = runner.inputs.insert(name, value.to_owned());
        let refused = runner.run_job().await;
        assert!(!refused.is_good, "{name}");
        let error = format!("::error title=Journeyman::{complaint}");
        assert!(refused.log.contains(&error), "{name}: {}", refused.log);
        match before {
            Some(before) => drop(runner.inputs.insert(name, before)),
            None => drop(runner.inputs.remove(name)),
        }
    }
    let rules = runner.workspace.path().join(".github/journeyman.yaml");
    fs::write(rules, "repo: {owner: acme, name: other}\n").unwrap();
    let refused = runner.run_job().await;
    assert!(
        !refused.is_good && refused.log.contains("has the key repo; leave it out"),
        "{}",
        refused.log
    );
    assert_eq!(stage.model.call_count(), 0);
}

#[cfg(target_arch = "x86_64")]
#[tokio::test(flavor = "multi_thread")]
async fn download_is_installed_with_right_checksum_alone() {
    let stage = Stage::start("").await;
    let mut runner = StandInRunner::new(&stage);
    let release = tempfile::tempdir().unwrap();
    let name = format!(
        "journeyman-{}-x86_64-unknown-linux-gnu",
        env!("CARGO_PKG_VERSION")
    );
    let bin = release.path().join(&name).join("bin");
    fs::create_dir_all(&bin).unwrap();
    let program = e2e::find_binary("journeyman").unwrap();
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", program.display());
    fs::write(bin.join("journeyman"), script).unwrap();
    let packed = Command::new("sh")
        .args([
            "-c",
            "chmod +x $0/bin/journeyman && tar -czf $0.tar.gz $0 && sha256sum $0.tar.gz >SHA256SUMS",
        ])
        .arg(&name)
        .current_dir(release.path())
        .status()
        .await;
    assert!(packed.unwrap().success());
    runner.inputs.remove("program");
    let address = format!("file://{}", release.path().display());
    runner.inputs.insert("release-url", address);
    let installed = runner.run_job().await;
    assert!(installed.is_good, "{}", installed.log);

    fs::write(
        release.path().join("SHA256SUMS"),
        format!("{:064} {name}.tar.gz\n", 0),
    )
    .unwrap();
    let refused = runner.run_job().await;
    assert!(
        !refused.is_good && refused.log.contains("the checksum of journeyman-"),
        "{}",
        refused.log
    );
}

#[test]
fn action_has_models_of_command() {
    let script = fs::read_to_string(find_repository_root().join("packaging/action/work.sh")).unwrap();
    for dialect in ["anthropic", "openai", "openai-responses"] {
        let model = find_default_model(dialect).unwrap();
        assert!(
            script.contains(&format!("    {dialect}) usual={model} ;;\n")),
            "{dialect}"
        );
    }
}

#[test]
fn workflow_by_hand_needs_default_branch() {
    let workflow = read_yaml("packaging/action/journeyman.yml");
    let condition = workflow["jobs"]["journeyman"]["if"].as_str().unwrap();
    let on_default_branch = "(github.event_name != 'workflow_dispatch' || github.ref_name == \
                             github.event.repository.default_branch)";
    // The state is a cache of the branch, so each event has to fulfill this part.
    let (events, branch) = condition.rsplit_once(") && ").unwrap();
    assert_eq!(branch.trim(), on_default_branch);
    assert!(
        events.starts_with("(github.event_name != 'issue_comment' || "),
        "{events}"
    );
}

#[test]
fn action_page_names_inputs_and_shows_workflows() {
    let page = fs::read_to_string(find_repository_root().join("docs/action.md")).unwrap();
    let action = read_yaml("action.yml");
    for name in action["inputs"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
    for file in ["journeyman.yml", "journeyman-reviews.yml"] {
        let path = format!("packaging/action/{file}");
        let workflow = fs::read_to_string(find_repository_root().join(&path)).unwrap();
        assert!(page.contains(&workflow), "docs/action.md shows another {path}");
        let parsed = read_yaml(&path);
        assert!(parsed["on"].is_object(), "{path}");
        // By these names the workflows do not count as CI.
        let name = parsed["name"].as_str().unwrap();
        assert!(github::is_action_workflow(name), "{path}: {name}");
        for job in parsed["jobs"].as_object().unwrap().values() {
            let name = job["name"].as_str().unwrap();
            assert!(github::is_action_job(name), "{path}: {name}");
        }
    }
}
