//! Tests of real runners of several ecosystems in real workspaces: a named test fails before the fix and
//! passes after it.

use proto::executor::{CheckOutcome, HeadTree, check_tree::Kind};

use super::*;

/// A runner with a wrong product, a test that detects it, and the fix.
struct RunnerStory {
    name: &'static str,
    /// Command that succeeds in the sandbox if the runner can be used.
    probe: &'static str,
    files: &'static [(&'static str, &'static str)],
    fixed: (&'static str, &'static str),
    command: &'static str,
    /// Name of the test that fails before the fix, as its runner prints it.
    failing: &'static str,
}

const NODE_TEST: &str = "const test = require('node:test');\nconst assert = require('node:assert');\nconst { total } = require('./cart');\ntest('adds up', () => assert.strictEqual(total([1, 2]), 3));\ntest('is empty', () => assert.strictEqual(total([]), 0));\n";
const NODE_WRONG: &str = "exports.total = (lines) => 0;\n";
const NODE_RIGHT: &str = "exports.total = (lines) => lines.reduce((sum, line) => sum + line, 0);\n";
const JEST_TEST: &str =
    "const { total } = require('./cart');\ntest('adds up', () => expect(total([1, 2])).toBe(3));\n";
/// Build script that writes a constant for the crate. It names no files, so cargo lists those of the package
/// through git.
const BUILD_SCRIPT: &str = "fn main() {\n    let folder = std::env::var(\"OUT_DIR\").unwrap();\n    std::fs::write(std::path::Path::new(&folder).join(\"rate.rs\"), \"pub const RATE: u32 = 1;\").unwrap();\n}\n";
const RUST_WRONG: &str = "include!(concat!(env!(\"OUT_DIR\"), \"/rate.rs\"));\n\n/// Adds up.\npub fn total(lines: &[u32]) -> u32 {\n    let _ = lines;\n    0\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds_up() {\n        assert_eq!(super::total(&[1, 2]), 3);\n    }\n}\n";
const RUST_RIGHT: &str = "include!(concat!(env!(\"OUT_DIR\"), \"/rate.rs\"));\n\n/// Adds up.\npub fn total(lines: &[u32]) -> u32 {\n    lines.iter().sum::<u32>() * RATE\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds_up() {\n        assert_eq!(super::total(&[1, 2]), 3);\n    }\n}\n";

const STORIES: [RunnerStory; 8] = [
    RunnerStory {
        name: "unittest",
        probe: "python3 --version",
        files: &[
            ("cart.py", "def total(lines):\n    return 0\n"),
            (
                "test_cart.py",
                "import unittest\nfrom cart import total\n\n\nclass CartTest(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n",
            ),
        ],
        fixed: ("cart.py", "def total(lines):\n    return sum(lines)\n"),
        command: "python3 -m unittest discover -v",
        failing: "test_cart.CartTest.test_total",
    },
    RunnerStory {
        name: "pytest",
        probe: "python3 -m pytest --version",
        files: &[
            ("cart.py", "def total(lines):\n    return 0\n"),
            (
                "test_cart.py",
                "from cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
            ),
        ],
        fixed: ("cart.py", "def total(lines):\n    return sum(lines)\n"),
        command: "python3 -m pytest",
        failing: "test_cart.py::test_total",
    },
    RunnerStory {
        name: "node behind npm",
        probe: "npm --version",
        files: &[
            (
                "package.json",
                "{\"name\":\"shop\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node --test\"}}\n",
            ),
            ("cart.js", NODE_WRONG),
            ("cart.test.js", NODE_TEST),
        ],
        fixed: ("cart.js", NODE_RIGHT),
        command: "npm test",
        failing: "adds up",
    },
    RunnerStory {
        name: "node behind make",
        probe: "make --version && node --version",
        files: &[
            ("Makefile", "test:\n\tnode --test --test-reporter=tap\n"),
            ("cart.js", NODE_WRONG),
            ("cart.test.js", NODE_TEST),
        ],
        fixed: ("cart.js", NODE_RIGHT),
        command: "make test",
        failing: "adds up",
    },
    RunnerStory {
        name: "jest",
        probe: "jest --version",
        files: &[
            ("package.json", "{\"name\":\"shop\"}\n"),
            ("cart.js", NODE_WRONG),
            ("cart.test.js", JEST_TEST),
        ],
        fixed: ("cart.js", NODE_RIGHT),
        command: "jest --verbose",
        failing: "adds up",
    },
    RunnerStory {
        name: "cargo",
        probe: "cargo --version",
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\nbuild = \"build.rs\"\n\n[lib]\ndoctest = false\n\n[workspace]\n",
            ),
            ("build.rs", BUILD_SCRIPT),
            (
                "Cargo.lock",
                "version = 3\n\n[[package]]\nname = \"shop\"\nversion = \"0.1.0\"\n",
            ),
            ("src/lib.rs", RUST_WRONG),
        ],
        fixed: ("src/lib.rs", RUST_RIGHT),
        command: "cargo test --offline",
        failing: "tests::adds_up",
    },
    RunnerStory {
        name: "go",
        probe: "go version",
        files: &[
            ("go.mod", "module acme/shop\n\ngo 1.20\n"),
            (
                "cart.go",
                "package shop\n\nfunc Total(lines []int) int { return 0 }\n",
            ),
            (
                "cart_test.go",
                "package shop\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {\n\tif Total([]int{1, 2}) != 3 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n",
            ),
        ],
        fixed: (
            "cart.go",
            "package shop\n\nfunc Total(lines []int) int {\n\tsum := 0\n\tfor _, line := range lines {\n\t\tsum += line\n\t}\n\treturn sum\n}\n",
        ),
        command: "CGO_ENABLED=0 go test -vet=off -v ./...",
        failing: "TestTotal",
    },
    RunnerStory {
        name: "minitest",
        probe: "ruby -rminitest -e 0",
        files: &[
            ("cart.rb", "def total(lines) = 0\n"),
            (
                "test_cart.rb",
                "require 'minitest/autorun'\nrequire_relative 'cart'\nclass CartTest < Minitest::Test\n  def test_total = assert_equal(3, total([1, 2]))\nend\n",
            ),
        ],
        fixed: ("cart.rb", "def total(lines) = lines.sum\n"),
        command: "ruby test_cart.rb -v",
        failing: "CartTest#test_total",
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn runners_name_what_a_fix_repairs() {
    for story in &STORIES {
        let world = World::start(1).await;
        let session = world.open(1).await;
        let head = || Kind::Head(HeadTree {});
        let probe = session.check("probe", head(), story.probe).await;
        if probe.exit_code != Some(0) {
            println!("not run: {} is not usable here ({})", story.name, probe.reason);
            continue;
        }
        for (number, (path, text)) in story.files.iter().enumerate() {
            session.write(&format!("w{number}"), path, text).await;
        }
        let before = session.check("before", head(), story.command).await;
        assert_eq!(
            before.outcome(),
            CheckOutcome::Red,
            "{}: {}",
            story.name,
            before.output_tail
        );
        let tests = before.tests.unwrap_or_default();
        assert!(
            tests.failing.iter().any(|test| test.id == story.failing),
            "{}: {tests:?}",
            story.name
        );
        let (path, text) = story.fixed;
        session.write("fix", path, text).await;
        let after = session.check("after", head(), story.command).await;
        assert_eq!(
            after.outcome(),
            CheckOutcome::Green,
            "{}: {}",
            story.name,
            after.output_tail
        );
        let tests = after.tests.unwrap();
        assert!(
            tests.failing.is_empty() && tests.passed > 0,
            "{}: {tests:?}",
            story.name
        );
        let is_named = tests.passing.iter().any(|id| id == story.failing);
        assert!(is_named, "{}: {tests:?}", story.name);
        println!("{}: {} fails and passes", story.name, story.failing);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_packages_give_setup_hint() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let head = || Kind::Head(HeadTree {});
    if session.check("probe", head(), "node --version").await.exit_code != Some(0) {
        println!("not run: node is not usable here");
        return;
    }
    // No manifest declares the package, and the change itself imports it.
    session.write("1", "cart.js", "require('left-pad');\n").await;
    session
        .write("2", "cart.test.js", "require('node:test');\nrequire('./cart');\n")
        .await;
    let own = session.check("own", head(), "node --test").await;
    assert_eq!(own.outcome(), CheckOutcome::Red, "{}", own.output_tail);
    assert!(own.setup_hint.is_none());
    let absent = session.check("absent", head(), "jest-of-this-project --ci").await;
    assert_eq!(absent.outcome(), CheckOutcome::Inert, "{}", absent.output_tail);
    let hint = absent.setup_hint.unwrap();
    assert!(hint.missing.contains("jest-of-this-project"), "{hint:?}");
}
