//! `journeyman try`, and `process-ticket` on a folder: neither Jira nor GitHub, and no settings except the
//! model's address.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use testkit::{
    ScriptStep, ScriptedModel, fixture,
    model::{MODEL_API_KEY, surrounding_replies},
};
use tokio::io::AsyncWriteExt;

use crate::{
    checkout::{create_repository, run_git},
    program::{Program, Ran, run_program},
    terminal::at_terminal_with,
};

const TEXT: &str = "Cart total ignores the quantity\n\nThe tests in tests/test_cart.py show it.";
const BRANCH: &str = "fix/shop-1-count-every-piece-in-the-carts-total";

/// Returns the environment of a user: a key, and in these tests the address of the stand-in.
pub(crate) fn build_user_environment(model: &ScriptedModel, state: &Path) -> Vec<(String, String)> {
    [
        ("ANTHROPIC_API_KEY", MODEL_API_KEY.to_owned()),
        ("ANTHROPIC_BASE_URL", model.url()),
        ("XDG_STATE_HOME", state.display().to_string()),
        // The name of a model with a known price, so that the output contains costs.
        ("JOURNEYMAN__MODEL__NAME", "claude-haiku-4-5".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Folder with the fixture's repository, and a scripted model.
struct Scene {
    model: ScriptedModel,
    root: TempDir,
}

impl Scene {
    async fn start(script: Vec<ScriptStep>) -> Self {
        bootstrap::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        let scene = Self {
            model: ScriptedModel::start(script).await.unwrap(),
            root,
        };
        create_repository(&scene.folder(), "trunk", &fixture::list_shop_files());
        scene
    }

    /// Scene whose repository declares packages that its copy lacks.
    async fn with_packages(script: Vec<ScriptStep>) -> Self {
        let scene = Self::start(script).await;
        std::fs::write(scene.folder().join("requirements.txt"), "pytest\n").unwrap();
        scene.git(&["add", "--all"]);
        scene.git(&["commit", "-q", "-m", "Name the packages"]);
        scene
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("shop")
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    fn git(&self, arguments: &[&str]) -> String {
        run_git(&self.folder(), arguments)
    }

    fn environment(&self) -> Vec<(String, String)> {
        build_user_environment(&self.model, &self.state())
    }

    async fn try_with(&self, more: &[&str]) -> Ran {
        let arguments = [&["try", TEXT][..], more].concat();
        run_program("journeyman", &arguments, &self.environment(), &self.folder()).await
    }

    /// Returns head, index and status of the user's checkout.
    fn mine(&self) -> (String, Vec<u8>, String) {
        let read = |path: &str| std::fs::read(self.folder().join(".git").join(path)).unwrap();
        let head = String::from_utf8(read("HEAD")).unwrap();
        (head, read("index"), self.git(&["status", "--porcelain", "-uno"]))
    }

    fn branches(&self) -> String {
        self.git(&["branch", "--format=%(refname:short)"])
    }
}

/// Returns a line's value, such as the path in `patch   /path`.
fn find_line_value<'a>(ran: &'a Ran, name: &str) -> &'a str {
    let line = ran.out.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name}: {ran:?}")).trim()
}

#[tokio::test(flavor = "multi_thread")]
async fn try_writes_branch_and_patch_only() {
    let scene = Scene::start(fixture::build_shop_script()).await;
    std::fs::write(scene.folder().join("README.md"), "mine\n").unwrap();
    scene.git(&["config", "user.name", "Ada Lovelace"]);
    scene.git(&["config", "user.email", "ada@acme.example"]);
    let before = scene.mine();
    let ran = scene.try_with(&[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let next = format!("next     git diff trunk...{BRANCH}  #");
    for said in [
        "work starts from trunk at",
        "uncommitted changes to 1 file are not seen",
        "\nplan     ",
        "\nrun      ✗ python3 -m unittest -q  exit code 1",
        "\nedit     shop/cart.py +1 −1\n",
        "\nrun      ✓ python3 -m unittest -q",
        "\ncheck    ✓ python3",
        "\nproof    ",
        "Shown by the repository's own tests.",
        "\nfix(cart): Count every piece in the cart's total",
        "\n  shop/cart.py +1 −1\n",
        &next,
    ] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    assert!(
        !ran.out.contains('\u{1b}') && !ran.out.contains(" ms  "),
        "neither color nor timeline: {}",
        ran.out
    );
    let notice = format!("before the first run with {}:", scene.model.address());
    assert!(ran.out.contains(&notice), "{notice}: {}", ran.out);
    assert!(
        scene.state().join("journeyman/named-providers").is_file(),
        "the next run has no notice"
    );
    assert!(ran.out.lines().count() <= 28, "{}", ran.out);
    assert!(find_line_value(&ran, "cost ").starts_with("$0."), "{}", ran.out);
    assert_eq!(find_line_value(&ran, "branch "), BRANCH);
    assert_eq!(scene.branches(), format!("{BRANCH}\ntrunk"));
    let by = scene.git(&["log", "-1", "--format=%an <%ae>, %cn", BRANCH]);
    assert_eq!(by, "Ada Lovelace <ada@acme.example>, Ada Lovelace");
    assert_eq!(scene.mine(), before);
    let readme = std::fs::read_to_string(scene.folder().join("README.md")).unwrap();
    assert_eq!(readme, "mine\n");

    let checkout = scene.root.path().join("checkout");
    let place = checkout.to_str().unwrap();
    scene.git(&["worktree", "add", "-q", "--detach", place, "trunk"]);
    scene.git(&["-C", place, "am", "-q", find_line_value(&ran, "patch ")]);
    assert_eq!(scene.git(&["-C", place, "diff", "HEAD", BRANCH]), "");
    let (passed, output) = e2e::run_ci_tests(&checkout).await.unwrap();
    assert!(passed, "{output}");
    let text = std::fs::read_to_string(find_line_value(&ran, "text ")).unwrap();
    assert!(text.starts_with("# fix(cart): Count every piece"), "{text}");
    assert!(scene.model.violations().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn try_beside_branch_in_the_way_names_it() {
    let scene = Scene::start(fixture::build_shop_script()).await;
    scene.git(&["branch", "fix"]);
    let ran = scene.try_with(&[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let named = "the branch fix stands in the way of branches in the folder fix/";
    assert!(ran.out.contains(named), "{}", ran.out);
    let flat = BRANCH.replace('/', "-");
    assert_eq!(find_line_value(&ran, "branch "), flat);
    assert_eq!(scene.branches(), format!("fix\n{flat}\ntrunk"));
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_only_lines_of_standard_output() {
    let scene = Scene::start(fixture::build_shop_script()).await;
    let refused = scene.try_with(&["-o", "json"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let ran = scene.try_with(&["-o", "jsonl"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let entries: Vec<domain::JournalEntry> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = entries.last().unwrap();
    assert!(
        matches!(
            last.fact,
            domain::Fact::RunFinished {
                reason: domain::StopReason::Completed
            }
        ),
        "{last:?}"
    );
    assert_eq!(scene.branches(), format!("{BRANCH}\ntrunk"));
    assert!(ran.err.contains("work starts from trunk at"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cost_limit_ends_run_before_model_call() {
    let scene = Scene::start(fixture::build_shop_script()).await;
    let ran = scene.try_with(&["--max-cost", "0.000001"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err
            .contains("journeyman: the run spent its budget (budget_spent)"),
        "{ran:?}"
    );
    assert!(ran.err.contains("next: raise --max-cost"), "{ran:?}");
    assert_eq!(scene.model.call_count(), 0);
    let wrong = scene.try_with(&["--max-cost", "none"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

/// Sequence that begins green text.
const GREEN: &str = "\u{1b}[32m";

#[tokio::test(flavor = "multi_thread")]
async fn terminal_has_color_unless_user_disables_it() {
    for (name, value, is_colored) in [("COLORTERM", "", true), ("NO_COLOR", "1", false)] {
        let scene = Scene::start(fixture::build_shop_script()).await;
        let mut environment = scene.environment();
        environment.push((name.to_owned(), value.to_owned()));
        let ran = at_terminal_with(&["try", TEXT], &[], &environment, &scene.folder()).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.out.contains(GREEN), is_colored, "{name}: {ran:?}");
        assert!(ran.out.contains("shop/cart.py"), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn try_dry_run_leaves_folder_unchanged() {
    let scene = Scene::start(fixture::build_shop_script()).await;
    let git = scene.folder().join(".git");
    let before = (scene.mine(), files_beneath(&git));
    let file = scene.root.path().join("ticket.md");
    std::fs::write(&file, format!("# {TEXT}\n")).unwrap();
    let place = scene.folder().display().to_string();
    let arguments = [
        "process-ticket",
        file.to_str().unwrap(),
        "--repository",
        &place,
        "--dry-run",
    ];
    let ran = run_program("journeyman", &arguments, &scene.environment(), scene.root.path()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for said in [
        "(not written: --dry-run)",
        "# fix(cart): Count every piece",
        "+        full = sum(line.price * line.quantity for line in self._lines)",
        "cost     $0.",
    ] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    assert_eq!((scene.mine(), files_beneath(&git)), before);
    assert_eq!(scene.branches(), "trunk");
}

/// Lists all files below a folder.
fn files_beneath(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn accept_checks_out_branch_of_clean_folder() {
    let scene = Scene::start(fixture::build_shop_script()).await;
    std::fs::write(scene.folder().join("README.md"), "mine\n").unwrap();
    let refused = scene.try_with(&["--accept"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused
            .err
            .contains("uncommitted changes to 1 file: commit or stash them")
            && refused.complaints().len() == 1,
        "{refused:?}"
    );
    assert!(!scene.state().exists(), "nothing was started");
    scene.git(&["checkout", "-q", "--", "README.md"]);
    let ran = scene.try_with(&["--accept"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(scene.git(&["symbolic-ref", "--short", "HEAD"]), BRANCH);
    assert_eq!(scene.git(&["status", "--porcelain", "-uno"]), "");
    let (passed, output) = e2e::run_ci_tests(&scene.folder()).await.unwrap();
    assert!(passed, "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn try_names_missing_setting_and_next_step() {
    let scene = Scene::start(Vec::new()).await;
    let keyless = run_program("journeyman", &["try", TEXT], &[], &scene.folder()).await;
    assert_eq!(keyless.code, Some(64), "{keyless:?}");
    assert_eq!(
        keyless.err,
        "journeyman: model.api_key: is missing: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a settings file with \
         [model] by --settings\n"
    );
    let nowhere = tempfile::tempdir().unwrap();
    let ran = run_program("journeyman", &["try", TEXT], &scene.environment(), nowhere.path()).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.contains("is not in a git repository: run `git init") && ran.complaints().len() == 1,
        "{ran:?}"
    );
    let (environment, folder) = (scene.environment(), scene.folder());
    let empty = run_program("journeyman", &["try", " "], &environment, &folder).await;
    assert_eq!(empty.code, Some(1), "{empty:?}");
    assert!(empty.err.contains("the text is empty"), "{empty:?}");
    let ran = run_program(
        "journeyman",
        &["process-ticket", "ENG-1"],
        &scene.environment(),
        scene.root.path(),
    )
    .await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(!scene.state().exists(), "nothing was started");
}

#[tokio::test(flavor = "multi_thread")]
async fn try_names_missing_packages_and_runs_given_setup() {
    let script = vec![
        ScriptStep::call("run_command", json!({"command": "cat made.txt"})),
        fixture::nothing_to_do().expecting("by the setup"),
    ];
    let scene = Scene::with_packages(script).await;
    let ran = scene.try_with(&["--setup", "echo by the setup > made.txt"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err
            .contains("(given_up): already done: There is nothing to do."),
        "{ran:?}"
    );
    assert!(!ran.out.contains("checks may not run"), "{ran:?}");
    assert_eq!(scene.model.violations(), Vec::<String>::new());

    let scene = Scene::with_packages(vec![fixture::nothing_to_do()]).await;
    let ran = scene.try_with(&[]).await;
    for said in [
        "a virtual environment is not in it: checks may not run",
        " --setup '.venv/bin/pip install -r requirements.txt' --allow pypi",
    ] {
        assert!(ran.out.contains(said), "{said}: {ran:?}");
    }
    assert!(!ran.out.contains("--allow has no effect"), "{ran:?}");
    let scene = Scene::with_packages(vec![fixture::nothing_to_do()]).await;
    let idle = scene.try_with(&["--no-setup", "--allow", "pypi"]).await;
    assert!(
        idle.out
            .contains("--allow has no effect: this run has no setup, and other commands reach no host"),
        "{idle:?}"
    );
    let wrong = scene.try_with(&["--allow", "https://pypi.org"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_user_declines_proposed_setup() {
    let scene = Scene::with_packages(vec![fixture::nothing_to_do()]).await;
    let steps = [(
        "The command may reach pypi.org, files.pythonhosted.org and no other host",
        "n",
    )];
    let ran = at_terminal_with(&["try", TEXT], &steps, &scene.environment(), &scene.folder()).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("(given_up)"), "{ran:?}");
}

/// Returns the last two lines of a run without any answer of the model.
async fn run_without_answer(scene: &Scene, url: &str, key: &str) -> String {
    let mut environment = scene.environment();
    environment.retain(|(name, _)| !name.starts_with("ANTHROPIC_"));
    for (name, value) in [("ANTHROPIC_API_KEY", key), ("ANTHROPIC_BASE_URL", url)] {
        environment.push((name.to_owned(), value.to_owned()));
    }
    let ran = run_program("journeyman", &["try", TEXT], &environment, &scene.folder()).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!ran.out.contains("retry 1"), "nobody waits: {ran:?}");
    assert!(
        !key.is_empty() && !ran.out.contains(key) && !ran.err.contains(key),
        "{ran:?}"
    );
    let complaints = ran.complaints();
    complaints[complaints.len() - 2..].join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn try_without_answer_names_address_and_step() {
    let scene = Scene::start(Vec::new()).await;
    let (host, wrong) = (scene.model.address(), "wrong-key-of-nobody");
    for (url, key, parts) in [
        (
            "http://127.0.0.1:1".to_owned(),
            MODEL_API_KEY,
            vec!["the model provider at 127.0.0.1:1 cannot be reached"],
        ),
        (
            "https://nowhere.invalid".to_owned(),
            MODEL_API_KEY,
            vec!["the model provider at nowhere.invalid cannot be reached"],
        ),
        (
            scene.model.url(),
            wrong,
            vec!["401", "for the key in ANTHROPIC_API_KEY", "it says"],
        ),
    ] {
        let error = run_without_answer(&scene, &url, key).await;
        let begins = "journeyman: the model did not answer (model_failed): ";
        assert!(
            error.starts_with(begins) && error.contains("give the same command again"),
            "{error}"
        );
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    assert!(!scene.branches().contains("fix/"), "{host}: {}", scene.branches());
}

#[tokio::test(flavor = "multi_thread")]
async fn try_ends_at_question_without_terminal() {
    let question = json!({"questions": [{"text": "Which rounding?"}]});
    let scene = Scene::start(vec![ScriptStep::call("ask", question)]).await;
    let ran = scene.try_with(&[]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let end = ran.complaints();
    assert_eq!(
        end[end.len() - 3..],
        [
            "journeyman: the run asked a question, and there is no terminal to answer at",
            "  question: Which rounding?",
            "next: write the answer into the text, or give the command at a terminal"
        ]
    );
    assert_eq!(scene.branches(), "trunk");
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_try_leaves_folder_unchanged() {
    for signal in [Signal::INT, Signal::HUP] {
        let waits = json!({"command": "sleep 300", "timeout_s": 300});
        let scene = Scene::start(vec![ScriptStep::call("run_command", waits)]).await;
        let arguments = ["try", TEXT, "--verbose"];
        let mut first = Program::start("journeyman", &arguments, &scene.environment(), &scene.folder());
        first.until_output_contains("run_command sleep 300").await;
        first.signal(signal);
        let ran = first.ended().await;
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert!(ran.out.contains("run finished: stopped"), "{ran:?}");
        assert_eq!(scene.branches(), "trunk");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_try_leaves_no_server_or_launcher() {
    let waits = json!({"command": "sleep 300", "timeout_s": 300});
    let scene = Scene::start(vec![ScriptStep::call("run_command", waits)]).await;
    let mut killed = Program::start(
        "journeyman",
        &["try", TEXT, "--verbose"],
        &scene.environment(),
        &scene.folder(),
    );
    killed.until_output_contains("run_command sleep 300").await;
    killed.runs("sleep").await;
    assert!(
        killed.family_size() >= 3,
        "a server, the launcher and the command"
    );
    killed.signal(Signal::KILL);
    // The wait includes all descendants.
    let ran = killed.ended().await;
    assert_eq!(ran.code, None, "{ran:?}");
    assert_eq!(scene.branches(), "trunk");
}

/// Wrapper that runs a command in a new terminal and types lines there.
const TERMINAL: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/// Runs `journeyman try` with these rules, types the lines at its terminal and returns the terminal's text.
async fn type_at_terminal(scene: &Scene, rules: &str, lines: &str) -> String {
    let file = scene.root.path().join("defaults.yaml");
    std::fs::write(&file, rules).unwrap();
    let mut child = tokio::process::Command::new("python3")
        .args(["-c", TERMINAL])
        .arg(e2e::find_binary("journeyman").unwrap())
        .args(["try", TEXT, "--config"])
        .arg(&file)
        .envs(scene.environment())
        .current_dir(scene.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    // The input stays open: a terminal that hangs up would end the command.
    let mut keyboard = child.stdin.take().unwrap();
    keyboard.write_all(lines.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    drop(keyboard);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}");
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_user_answers_question_and_approves_change() {
    let question = json!({"questions": [{"text": "Are prices gross or net?",
        "options": ["They are gross.", "They are net."]}]});
    let mut script = vec![ScriptStep::call("ask", question)];
    script.extend(fixture::build_shop_script());
    script[1].expect = Some("They are net.".to_owned());
    let scene = Scene::start(script).await;
    let shown = type_at_terminal(&scene, "agent: {approval: before_push}\n", "2\nyes\n").await;
    for said in [
        "question: Are prices gross or net?",
        "  2. They are net.",
        "answer, or the number of an option > ",
        "+        full = sum(line.price * line.quantity for line in self._lines)",
        "question: do you approve this change?",
        "  3. yes, after changes",
        "git switch ",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    assert_eq!(scene.branches(), format!("{BRANCH}\ntrunk"));
    assert_eq!(scene.model.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_user_returns_plan_and_approves_it() {
    let plan = |goal: &str| {
        json!({
            "goal": goal,
            "approach": "Multiply before the\u{1b}[2J discount.",
            "steps": [{"what": "Multiply by the quantity.", "files": ["shop/cart.py"]}],
            "risks": ["Rounding moves."]
        })
    };
    let scene = Scene::start(fixture::build_shop_script()).await;
    let again = ScriptStep::call("submit_plan", plan("Every piece counts, the free ones too."))
        .expecting("count free pieces");
    let planning = vec![
        ScriptStep::call("submit_plan", plan("Every piece counts.")),
        again,
    ];
    scene.model.set_script_of(surrounding_replies::PLAN, "", planning);
    let shown = type_at_terminal(&scene, "agent: {approval: plan}\n", "count free pieces\nyes\n").await;
    for said in [
        "goal: Every piece counts.",
        "  1. Multiply by the quantity. shop/cart.py",
        "risk: Rounding moves.",
        "question: do you approve this plan?",
        "goal: Every piece counts, the free ones too.",
        "git switch ",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    assert!(
        !shown.contains("\u{1b}[2J"),
        "what a model wrote does not reach the terminal's controls"
    );
    assert_eq!(scene.branches(), format!("{BRANCH}\ntrunk"));
    assert_eq!(scene.model.violations(), Vec::<String>::new());
}
