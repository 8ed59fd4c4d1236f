//! Names of tests for each runner: the same test has the same name when it fails and when it passes.

use std::collections::BTreeSet;

use domain::check::TestReport;

use super::{PARSERS, parse_output, tests::read_fixture};

/// Output of one suite with groups: once with a failing test, once with only passing ones.
struct OutputPair {
    runner: &'static str,
    fails: &'static str,
    passes: &'static str,
    names: &'static [&'static str],
}

const PAIRS: [OutputPair; 27] = [
    OutputPair {
        runner: "jest",
        fails: "FAIL src/cart.test.js\n  ✓ is there\n  cart\n    ✓ todo list works (2 ms)\n    nested\n      ✕ total (3 ms)\n\n  ● cart › nested › total\n\n    expect(received).toBe(expected)\n\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 2 passed, 3 total\n",
        passes: "PASS src/cart.test.js\n  ✓ is there\n  cart\n    ✓ todo list works (1 ms)\n    nested\n      ✓ total\n\nTest Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\n",
        names: &["is there", "cart › todo list works", "cart › nested › total"],
    },
    OutputPair {
        runner: "mocha",
        fails: "\n\n  ✔ is there\n  cart\n    ✔ count\n    nested\n      1) total\n\n  stock\n    ✔ count (31ms)\n\n\n  3 passing (5ms)\n  1 failing\n\n  1) cart\n       nested\n         total:\n     AssertionError: 0 is not 30\n      at Context.<anonymous> (cart.js:4:30)\n",
        passes: "\n\n  ✔ is there\n  cart\n    ✔ count\n    nested\n      ✔ total\n\n  stock\n    ✔ count\n\n\n  4 passing (5ms)\n",
        names: &[
            "is there",
            "cart › count",
            "cart › nested › total",
            "stock › count",
        ],
    },
    // The list reporter joins titles by spaces.
    OutputPair {
        runner: "mocha",
        fails: "\n  ✔ cart count: 0ms\n  1) cart total\n\n  1 passing (5ms)\n  1 failing\n\n  1) cart\n       total:\n     AssertionError: 0 is not 30\n",
        passes: "\n  ✔ cart count: 1ms\n  ✔ cart total: 0ms\n\n  2 passing (5ms)\n",
        names: &["cart count", "cart total"],
    },
    OutputPair {
        runner: "vitest",
        fails: " RUN  v3.2.4 /w\n\n ✓ cart.test.ts > cart > count 1ms\n × cart.test.ts > cart > nested > total 4ms\n   → expected +0 to be 30\n\n FAIL  cart.test.ts > cart > nested > total\nAssertionError: expected +0 to be 30\n ❯ cart.test.ts:4:33\n\n Test Files  1 failed (1)\n      Tests  1 failed | 1 passed (2)\n",
        passes: " RUN  v3.2.4 /w\n\n ✓ cart.test.ts > cart > count 1ms\n ✓ cart.test.ts > cart > nested > total 0ms\n\n Test Files  1 passed (1)\n      Tests  2 passed (2)\n",
        names: &[
            "cart.test.ts > cart > count",
            "cart.test.ts > cart > nested > total",
        ],
    },
    // The default reporter lists tests below their file, with or without their groups.
    OutputPair {
        runner: "vitest",
        fails: " ❯ |web| cart.test.ts (2 tests | 1 failed) 8ms\n   ✓ cart > count 301ms\n   × cart > total 4ms\n     → expected +0 to be 30\n\n FAIL  |web| cart.test.ts > cart > total\nAssertionError: expected +0 to be 30\n ❯ cart.test.ts:4:33\n\n Test Files  1 failed (1)\n      Tests  1 failed | 1 passed (2)\n",
        passes: " ✓ |web| cart.test.ts (2 tests) 5ms\n   ✓ cart (2) 5ms\n     ✓ count 1ms\n     ✓ total (retry x1) 2ms\n\n Test Files  1 passed (1)\n      Tests  2 passed (2)\n",
        names: &[
            "|web| cart.test.ts > cart > count",
            "|web| cart.test.ts > cart > total",
        ],
    },
    OutputPair {
        runner: "node",
        fails: "TAP version 13\n# Subtest: cart\n    # Subtest: count\n    ok 1 - count\n      ---\n      duration_ms: 0.1\n      ...\n    # Subtest: total\n    not ok 2 - total\n      ---\n      duration_ms: 0.2\n      failureType: 'testCodeFailure'\n      error: '0 is not 30'\n      ...\n    1..2\nnot ok 1 - cart\n  ---\n  duration_ms: 0.5\n  type: 'suite'\n  failureType: 'subtestsFailed'\n  error: '1 subtest failed'\n  ...\n# Subtest: parent\n    # Subtest: child\n    not ok 1 - child\n      ---\n      failureType: 'testCodeFailure'\n      error: 'no'\n      ...\n    1..1\nnot ok 2 - parent\n  ---\n  type: 'test'\n  failureType: 'subtestsFailed'\n  error: '1 subtest failed'\n  ...\n1..2\n# tests 4\n# suites 1\n# pass 1\n# fail 3\n# cancelled 0\n# skipped 0\n# todo 0\n# duration_ms 9\n",
        passes: "TAP version 13\n# Subtest: cart\n    # Subtest: count\n    ok 1 - count\n      ---\n      duration_ms: 0.1\n      ...\n    # Subtest: total\n    ok 2 - total\n      ---\n      duration_ms: 0.2\n      ...\n    1..2\nok 1 - cart\n  ---\n  duration_ms: 0.5\n  type: 'suite'\n  ...\n# Subtest: parent\n    # Subtest: child\n    ok 1 - child\n      ---\n      duration_ms: 0.2\n      ...\n    1..1\nok 2 - parent\n  ---\n  type: 'test'\n  ...\n1..2\n# tests 4\n# suites 1\n# pass 4\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n# duration_ms 9\n",
        names: &["cart › count", "cart › total", "parent", "parent › child"],
    },
    OutputPair {
        runner: "node",
        fails: "▶ cart\n  ✔ count (0.1ms)\n  ✖ total (0.2ms)\n    AssertionError: 0 is not 30\n\n▶ cart (1.2ms)\n\n▶ stock\n  ✔ total (0.1ms)\n▶ stock (0.4ms)\n\nℹ tests 3\nℹ suites 2\nℹ pass 2\nℹ fail 1\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 9\n\n✖ failing tests:\n\ntest at cart.test.js:3:1\n✖ total (0.2ms)\n  AssertionError: 0 is not 30\n",
        passes: "▶ cart\n  ✔ count (0.1ms)\n  ✔ total (0.2ms)\n▶ cart (1.2ms)\n\n▶ stock\n  ✔ total (0.1ms)\n▶ stock (0.4ms)\n\nℹ tests 3\nℹ suites 2\nℹ pass 3\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 9\n",
        names: &["cart › count", "cart › total", "stock › total"],
    },
    // Newer versions repeat the title of a group with its result.
    OutputPair {
        runner: "node",
        fails: "▶ cart\n  ✔ count (0.1ms)\n  ✖ total (0.2ms)\n✖ cart (1.2ms)\nℹ tests 2\nℹ suites 1\nℹ pass 1\nℹ fail 1\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 9\n\n✖ failing tests:\n\ntest at cart.test.js:3:1\n✖ total (0.2ms)\n  AssertionError: 0 is not 30\n",
        passes: "▶ cart\n  ✔ count (0.1ms)\n  ✔ total (0.2ms)\n✔ cart (1.2ms)\nℹ tests 2\nℹ suites 1\nℹ pass 2\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 9\n",
        names: &["cart › count", "cart › total"],
    },
    OutputPair {
        runner: "exunit",
        fails: "Running ExUnit with seed: 0, max_cases: 4\n\nCartTest [test/cart_test.exs]\n  * test totals counts [L#3]\n  * test totals counts (0.01ms) [L#3]\n  * test totals adds up [L#5]\n  * test totals adds up (3.0ms) [L#5]\n\n  1) test totals adds up (CartTest)\n     test/cart_test.exs:5\n     Assertion with == failed\n\nStockTest [test/stock_test.exs]\n  * test totals adds up (0.01ms) [L#3]\n\nFinished in 0.03 seconds (0.00s async, 0.03s sync)\n3 tests, 1 failure\n",
        passes: "Running ExUnit with seed: 0, max_cases: 4\n\nCartTest [test/cart_test.exs]\n  * test totals counts (0.01ms) [L#3]\n  * test totals adds up (0.01ms) [L#5]\n\nStockTest [test/stock_test.exs]\n  * test totals adds up (0.01ms) [L#3]\n\nFinished in 0.03 seconds (0.00s async, 0.03s sync)\n3 tests, 0 failures\n",
        names: &[
            "test totals counts (CartTest)",
            "test totals adds up (CartTest)",
            "test totals adds up (StockTest)",
        ],
    },
    OutputPair {
        runner: "minitest",
        fails: "# Running:\n\nCartTest#test_count = 0.00 s = .\nCart::when empty#test_0001_adds up = 0.00 s = F\n\n  1) Failure:\nCart::when empty#test_0001_adds up [spec/cart_spec.rb:4]:\nExpected: 30\n  Actual: 0\n\n2 runs, 2 assertions, 1 failures, 0 errors, 0 skips\n",
        passes: "# Running:\n\nCartTest#test_count = 0.00 s = .\nCart::when empty#test_0002_adds up = 0.00 s = .\n\n2 runs, 2 assertions, 0 failures, 0 errors, 0 skips\n",
        names: &["CartTest#test_count", "Cart::when empty#test_adds up"],
    },
    OutputPair {
        runner: "pest",
        fails: "\n   FAIL  Tests\\Unit\\CartTest\n  ✓ it counts                                 0.02s\n  ⨯ `cart` → it adds up                       0.01s\n  ──────────────────────\n   FAILED  Tests\\Unit\\CartTest > `cart` → it adds up   ErrorException\n  Failed asserting that 0 is identical to 30.\n\n  Tests:    1 failed, 1 passed (2 assertions)\n  Duration: 0.05s\n",
        passes: "\n   PASS  Tests\\Unit\\CartTest\n  ✓ it counts                                 0.02s\n  ✓ `cart` → it adds up                       0.01s\n\n  Tests:    2 passed (2 assertions)\n  Duration: 0.05s\n",
        names: &[
            "Tests\\Unit\\CartTest > it counts",
            "Tests\\Unit\\CartTest > `cart` → it adds up",
        ],
    },
    OutputPair {
        runner: "ava",
        fails: "\n  ✔ cart › count\n  ✘ [fail]: cart › total Error thrown in test\n  ─\n\n  cart › total\n\n  cart.js:3\n\n  Error thrown in test:\n\n  ─\n\n  1 test failed\n",
        passes: "\n  ✔ cart › count\n  ✔ cart › total\n  ─\n\n  2 tests passed\n",
        names: &["cart › count", "cart › total"],
    },
    OutputPair {
        runner: "deno",
        fails: "running 2 tests from ./cart_test.ts\ncount ... ok (2ms)\ncart ...\n  total ... FAILED (0ms)\ncart ... FAILED (due to 1 failed step) (2ms)\n\n ERRORS \n\ncart ... total => ./cart_test.ts:4:74\nerror: Error: x\n\nFAILED | 1 passed | 1 failed (1 step) (37ms)\n",
        passes: "running 2 tests from ./cart_test.ts\ncount ... ok (2ms)\ncart ...\n  total ... ok (0ms)\ncart ... ok (2ms)\n\nok | 2 passed (1 step) | 0 failed (37ms)\n",
        names: &["count", "cart"],
    },
    OutputPair {
        runner: "bun",
        fails: "bun test v1.4.5\n\ncart.test.ts:\n(pass) cart > count [0.02ms]\nerror: expect(received).toBe(expected)\n(fail) cart > nested > total [0.16ms]\n\n 1 pass\n 1 fail\nRan 2 tests across 1 file. [10.00ms]\n",
        passes: "bun test v1.4.5\n\ncart.test.ts:\n(pass) cart > count [0.02ms]\n(pass) cart > nested > total [0.16ms]\n\n 2 pass\n 0 fail\nRan 2 tests across 1 file. [10.00ms]\n",
        names: &["cart > count", "cart > nested > total"],
    },
    OutputPair {
        runner: "swift",
        fails: "✔ Test count() passed after 0.001 seconds.\n✘ Test adds(_:) recorded an issue with 1 argument n → 2 at CartTests.swift:9:5: Expectation failed: 0 == 30\n✘ Test adds(_:) with 2 test cases failed after 0.001 seconds with 1 issue.\n✘ Test run with 2 tests failed after 0.002 seconds with 1 issue.\n",
        passes: "✔ Test count() passed after 0.001 seconds.\n✔ Test adds(_:) with 2 test cases passed after 0.001 seconds.\n✔ Test run with 2 tests passed after 0.002 seconds.\n",
        names: &["count()", "adds(_:)"],
    },
    OutputPair {
        runner: "tap",
        fails: "TAP version 14\n# Subtest: cart\n    ok 1 - count\n    # Subtest: nested\n        not ok 1 - total\n        1..1\n    not ok 2 - nested\n    1..2\nnot ok 1 - cart\n# Subtest: stock\n    ok 1 - total\n    1..1\nok 2 - stock\n1..2\n",
        passes: "TAP version 14\n# Subtest: cart\n    ok 1 - count\n    # Subtest: nested\n        ok 1 - total\n        1..1\n    ok 2 - nested\n    1..2\nok 1 - cart\n# Subtest: stock\n    ok 1 - total\n    1..1\nok 2 - stock\n1..2\n",
        names: &["cart › count", "cart › nested › total", "stock › total"],
    },
    OutputPair {
        runner: "tap",
        fails: "TAP version 13\n1..1\nnot ok 1 - cart.test.js # time=28.03ms {\n    1..1\n    not ok 1 - cart # time=24.63ms {\n        1..2\n        ok 1 - count # time=0.2ms\n        not ok 2 - total # time=14.78ms\n    }\n}\n",
        passes: "TAP version 13\n1..1\nok 1 - cart.test.js # time=28.03ms {\n    1..1\n    ok 1 - cart # time=24.63ms {\n        1..2\n        ok 1 - count # time=0.2ms\n        ok 2 - total # time=1.78ms\n    }\n}\n",
        names: &["cart.test.js › cart › count", "cart.test.js › cart › total"],
    },
    OutputPair {
        runner: "go",
        fails: "=== RUN   TestTotal\n=== RUN   TestTotal/one\n=== RUN   TestTotal/two\n--- FAIL: TestTotal (0.00s)\n    --- PASS: TestTotal/one (0.00s)\n    --- FAIL: TestTotal/two (0.00s)\n        cart_test.go:21: total = 0, want 30\nFAIL\nFAIL\tacme/shop\t0.004s\nFAIL\n",
        passes: "=== RUN   TestTotal\n=== RUN   TestTotal/one\n=== RUN   TestTotal/two\n--- PASS: TestTotal (0.00s)\n    --- PASS: TestTotal/one (0.00s)\n    --- PASS: TestTotal/two (0.00s)\nPASS\nok  \tacme/shop\t0.004s\n",
        names: &["TestTotal", "TestTotal/one", "TestTotal/two"],
    },
    OutputPair {
        runner: "gotestsum",
        fails: "PASS acme/shop.TestTotal/one (0.00s)\nFAIL acme/shop.TestTotal/two (0.00s)\n\n=== Failed\n=== FAIL: acme/shop TestTotal/two (0.00s)\n    cart_test.go:21: total = 0, want 30\n\nDONE 3 tests, 2 failures in 0.312s\n",
        passes: "PASS acme/shop.TestTotal/one (0.00s)\nPASS acme/shop.TestTotal/two (0.00s)\nPASS acme/shop.TestTotal (0.00s)\n\nDONE 3 tests in 0.312s\n",
        names: &[
            "acme/shop.TestTotal",
            "acme/shop.TestTotal/one",
            "acme/shop.TestTotal/two",
        ],
    },
    OutputPair {
        runner: "playwright",
        fails: "\nRunning 2 tests using 1 worker\n\n  ✓  1 [chromium] › cart.spec.js:2:1 › cart › count (6ms)\n  ✘  2 [chromium] › cart.spec.js:3:31 › cart › total @smoke (14ms)\n\n\n  1) [chromium] › cart.spec.js:3:31 › cart › total @smoke ─────────────────────\n\n    Error: expect(received).toBe(expected)\n\n  1 failed\n    [chromium] › cart.spec.js:3:31 › cart › total @smoke ────────────────\n  1 passed (1.0s)\n",
        passes: "\nRunning 2 tests using 1 worker\n\n  ✓  1 [chromium] › cart.spec.js:2:1 › cart › count (6ms)\n  ✓  2 [chromium] › cart.spec.js:9:31 › cart › total @smoke (14ms)\n\n  2 passed (1.0s)\n",
        names: &[
            "[chromium] › cart.spec.js › cart › count",
            "[chromium] › cart.spec.js › cart › total @smoke",
        ],
    },
    OutputPair {
        runner: "ctest",
        fails: "Test project /w/build\n1/2 Test #1: cart.count .......................   Passed    0.01 sec\n2/2 Test #2: cart.total .......................***Failed    0.00 sec\n\n50% tests passed, 1 tests failed out of 2\n\nThe following tests FAILED:\n\t  2 - cart.total (Failed)\n",
        passes: "Test project /w/build\n1/2 Test #1: cart.count .......................   Passed    0.01 sec\n2/2 Test #2: cart.total .......................   Passed    0.00 sec\n\n100% tests passed, 0 tests failed out of 2\n",
        names: &["cart.count", "cart.total"],
    },
    OutputPair {
        runner: "googletest",
        fails: "[ RUN      ] All/Cart.Total/0\ncart_test.cc:4: Failure\n[  FAILED  ] All/Cart.Total/0, where GetParam() = 5 (0 ms)\n[ RUN      ] Cart.Empty\n[       OK ] Cart.Empty (0 ms)\n[==========] 2 tests from 2 test suites ran. (0 ms total)\n[  PASSED  ] 1 test.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] All/Cart.Total/0, where GetParam() = 5\n",
        passes: "[ RUN      ] All/Cart.Total/0\n[       OK ] All/Cart.Total/0 (0 ms)\n[ RUN      ] Cart.Empty\n[       OK ] Cart.Empty (0 ms)\n[==========] 2 tests from 2 test suites ran. (0 ms total)\n[  PASSED  ] 2 tests.\n",
        names: &["All/Cart.Total/0", "Cart.Empty"],
    },
    OutputPair {
        runner: "cargo",
        fails: "running 2 tests\ntest cart::tests::count ... ok\ntest cart::tests::total - should panic ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        passes: "running 2 tests\ntest cart::tests::count ... ok\ntest cart::tests::total - should panic ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        names: &["cart::tests::count", "cart::tests::total"],
    },
    OutputPair {
        runner: "pytest",
        fails: "PASSED tests/test_cart.py::TestCart::test_count\nFAILED tests/test_cart.py::TestCart::test_total[1 - 2] - assert 1 == 2\n==== 1 failed, 1 passed in 0.12s ====\n",
        passes: "PASSED tests/test_cart.py::TestCart::test_count\nPASSED tests/test_cart.py::TestCart::test_total[1 - 2]\n==== 2 passed in 0.12s ====\n",
        names: &[
            "tests/test_cart.py::TestCart::test_count",
            "tests/test_cart.py::TestCart::test_total[1 - 2]",
        ],
    },
    OutputPair {
        runner: "unittest",
        fails: "test_count (shop.CartTest.test_count) ... ok\ntest_total (shop.CartTest.test_total) ... FAIL\n\n======\nFAIL: test_total (shop.CartTest.test_total) (kind='new')\n------\nTraceback (most recent call last):\nAssertionError: 0 != 30\n\n------\nRan 2 tests in 0.001s\n\nFAILED (failures=1)\n",
        passes: "test_count (shop.CartTest.test_count) ... ok\ntest_total (shop.CartTest.test_total) ... ok\n\n------\nRan 2 tests in 0.001s\n\nOK\n",
        names: &["shop.CartTest.test_count", "shop.CartTest.test_total"],
    },
    OutputPair {
        runner: "bats",
        fails: " ✓ cart: count\n ✗ cart: total\n   (in test file cart.bats, line 4)\n\n2 tests, 1 failure\n",
        passes: " ✓ cart: count\n ✓ cart: total\n\n2 tests, 0 failures\n",
        names: &["cart: count", "cart: total"],
    },
    OutputPair {
        runner: "cargo",
        fails: "        PASS [   0.004s] shop cart::tests::count\n        FAIL [   0.005s] shop cart::tests::total\n     Summary [   0.006s] 2 tests run: 1 passed, 1 failed, 0 skipped\n        FAIL [   0.005s] shop cart::tests::total\n",
        passes: "        PASS [   0.004s] shop cart::tests::count\n        PASS [   0.005s] shop cart::tests::total\n     Summary [   0.006s] 2 tests run: 2 passed, 0 skipped\n",
        names: &["shop cart::tests::count", "shop cart::tests::total"],
    },
];

fn list_names(report: &TestReport) -> BTreeSet<&str> {
    let failing = report.failing.iter().map(|test| test.id.as_str());
    let others = report.passing.iter().chain(&report.skipping);
    failing.chain(others.map(String::as_str)).collect()
}

#[test]
fn later_run_hides_no_failure() {
    let others = [
        ("phpunit_failed.txt", "OK (3 tests, 5 assertions)\n"),
        ("rspec_failed.txt", "3 examples, 0 failures\n"),
        ("dbt_failed.txt", "Done. PASS=2 WARN=0 ERROR=0 SKIP=0 TOTAL=2\n"),
    ];
    let others = others.map(|(name, passes)| (read_fixture(name), passes));
    let dart = (
        "00:00 +0 -1: cart adds up [E]\n00:00 +0 -1: Some tests failed.\n".to_owned(),
        "00:00 +2: All tests passed!\n",
    );
    let pairs = PAIRS.into_iter().map(|pair| (pair.fails.to_owned(), pair.passes));
    for (fails, passes) in pairs.chain(others).chain([dart]) {
        assert_eq!(parse_output(passes).unwrap().failed, 0, "{passes}");
        // The exit code of both commands is that of the last one.
        let both = format!("{fails}\n{passes}");
        assert!(parse_output(&both).unwrap().failed > 0, "{both}");
    }
}

#[test]
fn sum_of_parallel_rspec_counts_once() {
    let output = "2 examples, 1 failure\n3 examples, 0 failures\n5 examples, 1 failure\n";
    let report = parse_output(output).unwrap();
    assert_eq!((report.passed, report.failed), (4, 1));
}

#[test]
fn failing_and_passing_test_have_one_name() {
    for pair in PAIRS {
        let expected: BTreeSet<&str> = pair.names.iter().copied().collect();
        for (output, is_failing) in [(pair.fails, true), (pair.passes, false)] {
            let takers = PARSERS.iter().filter(|parse| parse(output).is_some()).count();
            let report = parse_output(output).unwrap();
            assert_eq!((takers, report.runner.as_str()), (1, pair.runner), "{output}");
            assert_eq!(list_names(&report), expected, "{output}");
            assert_eq!(report.failing.is_empty(), !is_failing, "{output}");
            assert_eq!(report.failed > 0, is_failing, "{output}");
            assert!(!report.collection_error, "{output}");
            assert!(
                report.names_all_passing() && !report.bounded().truncated,
                "{output}"
            );
        }
    }
}
