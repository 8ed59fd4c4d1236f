//! Output of `journeyman try`, word for word, for one repository of each kind.
#![allow(
    clippy::print_stdout,
    reason = "a recording whose programs are not installed is reported as not made"
)]

use std::process::Command;

use serde_json::json;
use tempfile::TempDir;
use testkit::{ScriptStep, ScriptedModel, fixture};

use crate::{checkout::create_repository, folder::build_user_environment, program::run_program};

/// Repository with a defect, and the model's work on it.
struct RecordedRun {
    name: &'static str,
    /// Program with arguments that succeeds if the tests can run.
    probe: &'static [&'static str],
    files: Vec<(&'static str, &'static str)>,
    text: &'static str,
    script: Vec<ScriptStep>,
    arguments: &'static [&'static str],
}

/// Parts of the output that differ between runs.
const VARYING: [(&str, &str); 6] = [
    (
        r"/[^\s:]*/state/journeyman/shop-[0-9a-f]+",
        "/home/ada/.local/state/journeyman/shop",
    ),
    (r"/[^\s:]*/shop: work", "/home/ada/shop: work"),
    (r"\b\d+(\.\d+)? s\b", "… s"),
    (r"\b127\.0\.0\.1:\d+", "model.example"),
    (r"\$0\.\d{4}", "$$0.…"),
    (r"\bat [0-9a-f]{12}\b", "at 3f2c9d01a6be"),
];

/// Returns the replies of a model that writes one file, runs the tests before and after, and hands over.
fn build_edit_script(path: &str, content: &str, command: &str) -> Vec<ScriptStep> {
    vec![
        ScriptStep::call("run_command", json!({"command": command})),
        ScriptStep::call("write_file", json!({"path": path, "content": content})),
        ScriptStep::call("run_command", json!({"command": command})),
        hand_over(path),
    ]
}

fn hand_over(path: &str) -> ScriptStep {
    ScriptStep::call(
        "finish",
        json!({
            "type": "fix",
            "scope": "cart",
            "title": "Add up every price",
            "summary": "The total was always 0; it now adds up the prices.",
            "root_cause": "`total` did not read the prices.",
            "files": [{"path": path, "change": "The total adds up the prices."}],
        }),
    )
}

/// Runs `journeyman try` and compares its output with the recording.
async fn compare_output(recording: RecordedRun) {
    let [program, arguments @ ..] = recording.probe else {
        panic!("{} has no probe", recording.name);
    };
    let probe = Command::new(program).args(arguments).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("not run: {program} is not installed");
        return;
    }
    bootstrap::install_tls_provider();
    let model = ScriptedModel::start(recording.script).await.unwrap();
    let root = TempDir::new().unwrap();
    let folder = root.path().join("shop");
    create_repository(&folder, "main", &recording.files);
    let mut environment = build_user_environment(&model, &root.path().join("state"));
    let home = std::env::var_os("HOME").unwrap_or_default();
    environment.push(("HOME".to_owned(), home.to_string_lossy().into_owned()));
    let arguments = [&["try", recording.text][..], recording.arguments].concat();
    let ran = run_program("journeyman", &arguments, &environment, &folder).await;
    assert_eq!(model.violations(), Vec::<String>::new(), "{ran:?}");
    let shown = format!(
        "$ journeyman {}\n{}{}exit code {}\n",
        quote_arguments(&arguments),
        ran.out,
        ran.err,
        ran.code.unwrap_or(-1),
    );
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (pattern, name) in VARYING {
        settings.add_filter(pattern, name);
    }
    settings.bind(|| insta::assert_snapshot!(recording.name, shown));
}

fn quote_arguments(arguments: &[&str]) -> String {
    let quoted = arguments.iter().map(|argument| {
        if argument.contains(' ') {
            format!("\"{argument}\"")
        } else {
            (*argument).to_owned()
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn try_output_for_python() {
    compare_output(RecordedRun {
        name: "try_python",
        probe: &["python3", "--version"],
        files: fixture::list_shop_files(),
        text: "Cart total ignores the quantity",
        script: fixture::build_shop_script(),
        arguments: &[],
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn try_output_for_node() {
    const FIXED: &str = "exports.total = (prices) => prices.reduce((sum, price) => sum + price, 0);\n";
    compare_output(RecordedRun {
        name: "try_node",
        probe: &["npm", "--version"],
        files: vec![
            (
                "package.json",
                "{\"name\":\"shop\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node --test\"}}\n",
            ),
            ("AGENTS.md", "# For agents\n\nRun the tests:\n\n```sh\nnpm test\n```\n"),
            ("cart.js", "exports.total = () => 0;\n"),
            (
                "cart.test.js",
                "const test = require('node:test');\nconst assert = require('node:assert');\nconst { total } = require('./cart');\ntest('adds up', () => assert.strictEqual(total([1, 2]), 3));\n",
            ),
        ],
        text: "The total of a cart is always 0",
        script: build_edit_script("cart.js", FIXED, "npm test"),
        arguments: &[],
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn try_output_for_rust() {
    const FIXED: &str = "pub fn total(prices: &[u32]) -> u32 {\n    prices.iter().sum()\n}\n";
    compare_output(RecordedRun {
        name: "try_rust",
        probe: &["cargo", "--version"],
        files: vec![
            (
                "Cargo.toml",
                "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\ndoctest = false\n\n[workspace]\n",
            ),
            (
                "Cargo.lock",
                "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 3\n\n[[package]]\nname = \"shop\"\nversion = \"0.1.0\"\n",
            ),
            (".gitignore", "/target\n"),
            (
                "AGENTS.md",
                "# For agents\n\nRun the tests:\n\n```sh\ncargo test --offline\n```\n",
            ),
            ("src/lib.rs", "pub fn total(_prices: &[u32]) -> u32 {\n    0\n}\n"),
            (
                "tests/totals.rs",
                "#[test]\nfn adds_up() {\n    assert_eq!(shop::total(&[1, 2]), 3);\n}\n",
            ),
        ],
        text: "The total of a cart is always 0",
        script: build_edit_script("src/lib.rs", FIXED, "cargo test --offline"),
        arguments: &[],
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn try_output_without_tests() {
    const FIXED: &str = "def total(prices):\n    return sum(prices)\n";
    compare_output(RecordedRun {
        name: "try_no_tests",
        probe: &["python3", "--version"],
        files: vec![("cart.py", "def total(prices):\n    return 0\n")],
        text: "The total of a cart is always 0",
        script: vec![
            ScriptStep::call("write_file", json!({"path": "cart.py", "content": FIXED})),
            hand_over("cart.py"),
            hand_over("cart.py"),
        ],
        arguments: &[],
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn try_output_of_failure() {
    compare_output(RecordedRun {
        name: "try_failure",
        probe: &["python3", "--version"],
        files: fixture::list_shop_files(),
        text: "Cart total ignores the quantity",
        script: fixture::build_shop_script(),
        arguments: &["--max-cost", "0.000001"],
    })
    .await;
}
