//! `journeyman eval`: a data set of three tasks with the stand-in for the model.

use std::{path::PathBuf, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{ScriptStep, ScriptedModel, fixture, model::MODEL_API_KEY, poll_until};

use crate::{
    checkout::{create_repository, run_git},
    program::{Program, Ran, run_program},
};

/// Deciding test, which no file of the base contains.
const HIDDEN: &str = "import unittest\n\nfrom shop.cart import Cart\n\n\nclass HiddenTest(unittest.TestCase):\n    \
                      def test_pieces(self):\n        cart = Cart()\n        cart.add(\"mug\", 100, quantity=2)\n        \
                      self.assertEqual(cart.total(), 200)\n";
const FAILS: &str = "test_pieces (tests.test_hidden.HiddenTest.test_pieces)";
const PASSES: &str =
    "test_an_empty_cart_costs_nothing (tests.test_cart.CartTest.test_an_empty_cart_costs_nothing)";

struct Scene {
    model: ScriptedModel,
    root: TempDir,
    base: String,
    later: String,
}

impl Scene {
    /// Creates the shop with a second commit that solves the ticket, and a model that solves one task and
    /// only claims to solve the other.
    async fn start() -> Self {
        bootstrap::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        let shop = root.path().join("shop");
        create_repository(&shop, "trunk", &fixture::list_shop_files());
        let base = run_git(&shop, &["rev-parse", "HEAD"]);
        let cart = shop.join("shop/cart.py");
        let text = std::fs::read_to_string(&cart).unwrap();
        let solved = text.replace(
            "full = sum(line.price for line in self._lines)",
            "full = 0\n        for line in self._lines:\n            full = full + line.price * line.quantity",
        );
        std::fs::write(&cart, solved).unwrap();
        run_git(&shop, &["commit", "-q", "-a", "-m", "Later solution"]);
        let later = run_git(&shop, &["rev-parse", "HEAD"]);
        let model = ScriptedModel::start(Vec::new()).await.unwrap();
        let mut solves = vec![ScriptStep::call(
            "run_command",
            json!({ "command": build_search_command(&later) }),
        )];
        solves.extend(fixture::build_shop_script());
        // The searched commit is in no repository that the command can read.
        solves[1].expect = Some("Base\nnot here\nBase\nnot there\nnot there".to_owned());
        model.set_script("ignores the quantity", solves);
        model.set_script("Postage", fixture::note_script_with("ENG-1", "true"));
        Self {
            model,
            root,
            base,
            later,
        }
    }

    fn dataset(&self) -> String {
        let shop = self.root.path().join("shop");
        let gold = run_git(&shop, &["diff", &self.base, &self.later]);
        let line = |id: &str, text: &str, fails: &str| {
            json!({
                "instance_id": id, "dir": "shop", "base_commit": self.base, "problem_statement": text,
                "test_patch": build_addition_patch("tests/test_hidden.py", HIDDEN), "patch": gold,
                "FAIL_TO_PASS": json!([fails]).to_string(), "PASS_TO_PASS": [],
                "test_command": "python3 -m unittest -v",
            })
        };
        let mut lines = [
            line("cart-1", fixture::describe_shop_ticket().0, FAILS),
            line("cart-2", "Postage is missing\n\nAdd it.", FAILS),
            line("cart-3", "Nothing is wrong", PASSES),
        ];
        lines[0]["problem_statement"] = format!(
            "{}\n\n{}",
            fixture::describe_shop_ticket().0,
            fixture::describe_shop_ticket().1
        )
        .into();
        lines[0]["PASS_TO_PASS"] = json!([PASSES]);
        let file = self.root.path().join("set.jsonl");
        std::fs::write(&file, lines.map(|line| format!("{line}\n")).concat()).unwrap();
        file.display().to_string()
    }

    fn environment(&self) -> Vec<(String, String)> {
        [
            ("ANTHROPIC_API_KEY", MODEL_API_KEY.to_owned()),
            ("ANTHROPIC_BASE_URL", self.model.url()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    async fn eval(&self, more: &[&str]) -> Ran {
        let dataset = self.dataset();
        // The name of a model with a known price, so that the results contain costs.
        let first = ["eval", &dataset, "--model", "claude-haiku-4-5"];
        let arguments = [&first[..], more].concat();
        run_program("journeyman", &arguments, &self.environment(), self.root.path()).await
    }

    fn results(&self) -> PathBuf {
        self.root.path().join("eval-results")
    }

    fn summary(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.results().join("summary.json")).unwrap()).unwrap()
    }
}

/// Builds a patch that adds a file.
fn build_addition_patch(path: &str, content: &str) -> String {
    let count = content.lines().count();
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    format!(
        "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{count} @@\n{lines}"
    )
}

/// Builds a command that searches a commit in everything that a workspace's git can read: its objects and
/// those of the mirror.
fn build_search_command(commit: &str) -> String {
    format!(
        "exec 2>/dev/null; git log --all --format=%s; git cat-file -t {commit} || echo not here; common=$(git rev-parse --git-common-dir); \
         for objects in $(cat $common/objects/info/alternates); do git --git-dir=${{objects%/objects}} log --all --format=%s; \
         git --git-dir=${{objects%/objects}} cat-file -t {commit} || echo not there; done"
    )
}

fn find_result<'a>(summary: &'a Value, instance: &str) -> &'a Value {
    let all = summary["results"].as_array().unwrap();
    let found = all.iter().find(|one| one["instance"] == instance);
    found.unwrap_or_else(|| panic!("{instance}: {summary:#}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn eval_grades_tasks_and_hides_later_commits() {
    let scene = Scene::start().await;
    let ran = scene.eval(&["--jobs", "2"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(scene.model.violations(), Vec::<String>::new());
    let summary = scene.summary();
    let solved = find_result(&summary, "cart-1");
    assert_eq!(
        (&solved["resolved"], &solved["stop"]),
        (&json!(true), &json!("completed")),
        "{summary:#}"
    );
    assert_eq!(
        (&solved["evidence"], &solved["leak"]),
        (&json!("E3"), &Value::Null)
    );
    let claimed = find_result(&summary, "cart-2");
    assert_eq!(
        (&claimed["resolved"], &claimed["delivered"]),
        (&json!(false), &json!(true)),
        "{summary:#}"
    );
    assert_eq!(claimed["unmet"], json!([FAILS]));
    assert_eq!(summary["false_done"], json!(1));
    assert_eq!(summary["invalid"][0]["instance"], "cart-3");
    for said in [
        "resolved   cart-1",
        "false_done cart-2",
        "invalid    cart-3                           passes on the base already: test_an_empty_cart",
        "instances          2 valid, 1 invalid",
        "resolved           1 of 2 runs, 50.0 % (95 %: 9.5 % to 90.5 %)",
        "pass^1             50.0 %",
    ] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    let kept = scene.results().join("runs/cart-1.1");
    let journal = std::fs::read_to_string(kept.join("journal.jsonl")).unwrap();
    assert!(
        journal.contains("not here") && !journal.contains("Later solution"),
        "{journal}"
    );
    let patch = std::fs::read_to_string(kept.join("change.patch")).unwrap();
    assert!(
        patch.contains("+        full = sum(line.price * line.quantity"),
        "{patch}"
    );
    let tests = std::fs::read_to_string(kept.join("tests.txt")).unwrap();
    assert!(tests.contains("test_pieces") && tests.contains("OK"), "{tests}");
    assert_eq!(
        run_git(
            &scene.root.path().join("shop"),
            &["branch", "--format=%(refname:short)"]
        ),
        "trunk"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn eval_stops_at_budget_and_resumes() {
    let scene = Scene::start().await;
    let ran = scene.eval(&["--max-cost", "0.000001"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.out.contains("ended early        --max-cost is reached"),
        "{}",
        ran.out
    );
    let first = scene.summary();
    assert_eq!(
        (&first["finished"], &first["missing"]),
        (&json!(1), &json!(1)),
        "{first:#}"
    );
    assert_eq!(find_result(&first, "cart-1")["resolved"], true);
    let paid = scene.model.all_calls().len();

    let refused = scene.eval(&[]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("continue with --resume"), "{refused:?}");
    assert_eq!(scene.model.all_calls().len(), paid);

    // Another evaluation without a resolved task, for the comparison.
    let other = scene.root.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let kept = std::fs::read_to_string(scene.results().join("results.jsonl")).unwrap();
    let unresolved = kept.replace("\"resolved\":true", "\"resolved\":false");
    std::fs::write(other.join("results.jsonl"), unresolved).unwrap();
    let more = ["--resume", "-o", "json", "--compare", other.to_str().unwrap()];
    let ran = scene.eval(&more).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&summary["finished"], &summary["missing"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(find_result(&summary, "cart-1"), find_result(&first, "cart-1"));
    let solved = scene
        .model
        .calls()
        .iter()
        .filter(|call| call.marker == "ignores the quantity")
        .count();
    assert_eq!(
        solved,
        fixture::build_shop_script().len() + 1,
        "it was played once"
    );
    let compared = &summary["comparison"];
    assert_eq!(
        (&compared["gained"], &compared["lost"]),
        (&json!(["cart-1"]), &json!([])),
        "{compared}"
    );
    assert_eq!(compared["p"], json!(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_ends_with_what_is_there() {
    let scene = Scene::start().await;
    let waits = json!({"command": "sleep 300", "timeout_s": 300});
    scene
        .model
        .set_script("Postage", vec![ScriptStep::call("run_command", waits)]);
    let dataset = scene.dataset();
    let arguments = ["eval", &dataset, "--model", "claude-haiku-4-5"];
    let evaluation = Program::start("journeyman", &arguments, &scene.environment(), scene.root.path());
    let timeline = scene.results().join("runs/cart-2.1/timeline.txt");
    let begun = poll_until(
        "the second task's command",
        Duration::from_secs(120),
        async || {
            let text = std::fs::read_to_string(&timeline).unwrap_or_default();
            text.contains("run_command sleep 300").then_some(())
        },
    );
    begun.await.unwrap();
    evaluation.signal(Signal::INT);
    let ran = evaluation.ended().await;
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(
        ran.out.contains("ended early        it was interrupted"),
        "{}",
        ran.out
    );
    let summary = scene.summary();
    assert_eq!(
        (&summary["finished"], &summary["missing"]),
        (&json!(1), &json!(1)),
        "{summary:#}"
    );
    assert_eq!(find_result(&summary, "cart-1")["resolved"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn eval_refuses_wrong_data_set_before_spending() {
    let scene = Scene::start().await;
    let dataset = scene.dataset();
    let text = std::fs::read_to_string(&dataset).unwrap();
    std::fs::write(
        &dataset,
        text.replace("\"dir\":\"shop\"", "\"repo\":\"acme/shop\""),
    )
    .unwrap();
    let arguments = ["eval", &dataset];
    let ran = run_program("journeyman", &arguments, &scene.environment(), scene.root.path()).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err
            .contains("set.jsonl:1: repo: \"acme/shop\" is the name of a remote repository")
            && ran.complaints().len() == 1,
        "{ran:?}"
    );
    assert!(scene.model.all_calls().is_empty() && !scene.results().exists());
}
