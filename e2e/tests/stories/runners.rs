//! One repair per test runner, from the ticket to a pull request with a repaired test as evidence.
#![allow(
    clippy::print_stdout,
    reason = "a runner that is not installed is reported as not run"
)]

use std::process::Command;

use domain::check::EvidenceLevel;
use domain::{ChangeProof, Fact, ShownBy, StopReason};
use e2e::TestWorld;
use serde_json::json;
use testkit::{ScriptStep, fixture};

use crate::{end_of, start_default_world};

/// Repository with one failing test, and its repair.
struct RunnerRepository {
    /// Program with arguments that succeeds if the runner is installed.
    probe: &'static [&'static str],
    /// Test command in the repository's `AGENTS.md`.
    command: &'static str,
    files: &'static [(&'static str, &'static str)],
    repaired: (&'static str, &'static str),
    /// Name of the failing test, as its runner prints it.
    test: &'static str,
}

fn is_installed(probe: &[&str]) -> bool {
    let output = Command::new(probe[0]).args(&probe[1..]).output();
    output.is_ok_and(|output| output.status.success())
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
            "criteria": [{
                "quote": "Three mugs at 8.50 and a poster at 12.00 should cost 37.50",
                "shown_by": "the tests of the repository"
            }]
        }),
    )
}

async fn proof_of(world: &TestWorld, key: &str) -> ChangeProof {
    let run = world.run(key, 0).await.unwrap();
    let journal = world.client.runs().journal(&run).await.unwrap();
    let mut proofs = journal.into_iter().filter_map(|entry| match entry.fact {
        Fact::PhaseFinished {
            output: domain::PhaseOutput::Prove { proof },
        } => Some(*proof),
        _ => None,
    });
    proofs.next_back().unwrap()
}

/// Plays a ticket whose repair one failing test shows, and checks the evidence.
async fn repair_is_shown(repository: RunnerRepository) {
    Box::pin(play_repair(repository)).await;
}

async fn play_repair(repository: RunnerRepository) {
    let RunnerRepository { command, test, .. } = repository;
    if !is_installed(repository.probe) {
        println!("not run: {} is not installed", repository.probe[0]);
        return;
    }
    let world = start_default_world().await;
    // The fixture's own product is correct here, so that its tests do not affect the result.
    let instructions = format!("# For agents\n\nRun the tests:\n\n```sh\n{command}\n```\n");
    let mut files = vec![("AGENTS.md", instructions.as_str()), ("tests/test_cart.py", "")];
    files.extend(repository.files);
    let committed = world
        .github
        .commit(fixture::REPOSITORY, "main", "A total of prices", &files);
    committed.unwrap();
    let (path, content) = repository.repaired;
    let script = vec![
        ScriptStep::call("write_file", json!({"path": path, "content": content})),
        hand_over(path),
    ];
    world.model.set_script("", script);
    let key = world.ask().unwrap();
    let reason = end_of(&world, &key, 0).await;
    let proof = proof_of(&world, &key).await;
    assert_eq!(reason, StopReason::Completed, "{command}: {proof:#?}");
    assert_eq!(proof.level, EvidenceLevel::E3, "{command}: {proof:#?}");
    assert_eq!(proof.shown_by, Some(ShownBy::OwnTests), "{command}: {proof:#?}");
    let row = proof.rows.iter().find(|row| row.command == command);
    let row = row.unwrap_or_else(|| panic!("{command}: {proof:#?}"));
    assert!(row.mended.iter().any(|mended| mended.contains(test)), "{row:#?}");
    assert!(proof.findings.is_empty(), "{command}: {:#?}", proof.findings);
    world.stop().await.unwrap();
}

const PYTHON_WRONG: &str = "def total(prices):\n    return 0\n";
const PYTHON_RIGHT: &str = "def total(prices):\n    return sum(prices)\n";
const NODE_WRONG: &str = "exports.total = () => 0;\n";
const NODE_RIGHT: &str = "exports.total = (prices) => prices.reduce((sum, price) => sum + price, 0);\n";

#[tokio::test(flavor = "multi_thread")]
async fn repair_is_shown_by_unittest() {
    repair_is_shown(RunnerRepository {
        probe: &["python3", "--version"],
        command: "python3 -m unittest",
        files: &[
            ("totals.py", PYTHON_WRONG),
            (
                "tests/test_totals.py",
                "import unittest\n\nfrom totals import total\n\n\nclass TotalsTest(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n",
            ),
        ],
        repaired: ("totals.py", PYTHON_RIGHT),
        test: "test_total",
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_is_shown_by_pytest() {
    repair_is_shown(RunnerRepository {
        probe: &["/usr/bin/python3", "-m", "pytest", "--version"],
        command: "/usr/bin/python3 -m pytest",
        files: &[
            ("totals.py", PYTHON_WRONG),
            (
                "tests/test_totals.py",
                "from totals import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
            ),
        ],
        repaired: ("totals.py", PYTHON_RIGHT),
        test: "tests/test_totals.py::test_total",
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_is_shown_by_node_behind_npm() {
    repair_is_shown(RunnerRepository {
        probe: &["npm", "--version"],
        command: "npm test",
        files: &[
            (
                "package.json",
                "{\"name\":\"shop\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node --test\"}}\n",
            ),
            ("cart.js", NODE_WRONG),
            (
                "cart.test.js",
                "const test = require('node:test');\nconst assert = require('node:assert');\nconst { total } = require('./cart');\ntest('adds up', () => assert.strictEqual(total([1, 2]), 3));\n",
            ),
        ],
        repaired: ("cart.js", NODE_RIGHT),
        test: "adds up",
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_is_shown_by_jest_behind_npm() {
    repair_is_shown(RunnerRepository {
        probe: &["jest", "--version"],
        command: "npm test",
        files: &[
            (
                "package.json",
                "{\"name\":\"shop\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"jest --verbose\"}}\n",
            ),
            ("cart.js", NODE_WRONG),
            (
                "cart.test.js",
                "const { total } = require('./cart');\ntest('adds up', () => expect(total([1, 2])).toBe(3));\n",
            ),
        ],
        repaired: ("cart.js", NODE_RIGHT),
        test: "adds up",
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_is_shown_by_cargo_build_script() {
    repair_is_shown(RunnerRepository {
        probe: &["cargo", "--version"],
        command: "cargo test --offline",
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\nbuild = \"build.rs\"\n\n[lib]\ndoctest = false\n\n[workspace]\n",
            ),
            (
                "Cargo.lock",
                "version = 3\n\n[[package]]\nname = \"shop\"\nversion = \"0.1.0\"\n",
            ),
            (".gitignore", "/target\n__pycache__/\n"),
            (
                "build.rs",
                "fn main() {\n    println!(\"cargo:rerun-if-changed=build.rs\");\n    println!(\"cargo:rustc-env=SHOP_CURRENCY=EUR\");\n}\n",
            ),
            (
                "src/lib.rs",
                "/// Adds up.\npub fn total(_prices: &[u32]) -> u32 {\n    0\n}\n\n/// Currency of every price.\npub const CURRENCY: &str = env!(\"SHOP_CURRENCY\");\n",
            ),
            (
                "tests/totals.rs",
                "#[test]\nfn adds_up() {\n    assert_eq!(shop::total(&[1, 2]), 3);\n}\n\n#[test]\nfn has_currency() {\n    assert_eq!(shop::CURRENCY, \"EUR\");\n}\n",
            ),
        ],
        repaired: (
            "src/lib.rs",
            "/// Adds up.\npub fn total(prices: &[u32]) -> u32 {\n    prices.iter().sum()\n}\n\n/// Currency of every price.\npub const CURRENCY: &str = env!(\"SHOP_CURRENCY\");\n",
        ),
        test: "adds_up",
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_is_shown_by_go() {
    repair_is_shown(RunnerRepository {
        probe: &["go", "version"],
        command: "go test -vet=off ./...",
        files: &[
            ("go.mod", "module acme/shop\n\ngo 1.20\n"),
            (
                "cart.go",
                "package shop\n\n// Total adds up.\nfunc Total(prices []int) int { return 0 }\n",
            ),
            (
                "cart_test.go",
                "package shop\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {\n\tif Total([]int{1, 2}) != 3 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n",
            ),
        ],
        repaired: (
            "cart.go",
            "package shop\n\n// Total adds up.\nfunc Total(prices []int) int {\n\tsum := 0\n\tfor _, price := range prices {\n\t\tsum += price\n\t}\n\treturn sum\n}\n",
        ),
        test: "TestTotal",
    })
    .await;
}

// Debian's packages of Maven plugins form a repository that works without network.
#[tokio::test(flavor = "multi_thread")]
async fn repair_is_shown_by_maven() {
    repair_is_shown(RunnerRepository {
        probe: &["ls", "/usr/share/maven-repo/org/apache/maven/plugins/maven-surefire-plugin/2.22.3"],
        command: "mvn -o -B -Dmaven.repo.local=/usr/share/maven-repo test",
        files: &[
            (".gitignore", "/target\n__pycache__/\n"),
            ("pom.xml", "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion><groupId>acme</groupId><artifactId>shop</artifactId><version>1</version><properties><maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties><dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope></dependency></dependencies><build><plugins><plugin><groupId>org.apache.maven.plugins</groupId><artifactId>maven-surefire-plugin</artifactId><version>2.22.3</version></plugin><plugin><groupId>org.apache.maven.plugins</groupId><artifactId>maven-compiler-plugin</artifactId><version>3.10.1</version></plugin><plugin><groupId>org.apache.maven.plugins</groupId><artifactId>maven-resources-plugin</artifactId><version>3.3.0</version></plugin></plugins></build></project>\n"),
            ("src/main/java/Cart.java", "/** Totals. */\npublic class Cart {\n    /** Adds up. */\n    public static int total(int[] prices) {\n        return 0;\n    }\n}\n"),
            ("src/test/java/CartTest.java", "import static org.junit.Assert.assertEquals;\n\npublic class CartTest {\n    @org.junit.Test\n    public void addsUp() {\n        assertEquals(3, Cart.total(new int[] {1, 2}));\n    }\n}\n"),
        ],
        repaired: ("src/main/java/Cart.java", "/** Totals. */\npublic class Cart {\n    /** Adds up. */\n    public static int total(int[] prices) {\n        return java.util.Arrays.stream(prices).sum();\n    }\n}\n"),
        test: "addsUp",
    })
    .await;
}
