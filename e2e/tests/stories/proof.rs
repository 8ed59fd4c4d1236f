//! Evidence of checks about a change, and its consequences.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use domain::{Fact, JournalEntry, StopReason};
use e2e::{Options, TestWorld};
use insta::assert_snapshot;
use serde_json::json;
use testkit::{ScriptStep, fixture};

use crate::{
    comment_with, complete_ticket, end_of, only_pull_request, start_default_world, start_world_with_rules,
    transcripts::{
        abridge_model_request, compare_normalized_snapshot, first_of_work, last_of_review, last_of_work,
        render_pull_text,
    },
};

/// Returns the evidence section of a pull request's body.
fn extract_evidence(body: &str) -> &str {
    let from = body.find("### Evidence").unwrap_or_default();
    let rest = &body[from..];
    let ends = ["\n\n### ", "\n\n<details>"].map(|next| rest.find(next).unwrap_or(rest.len()));
    &rest[..ends.into_iter().min().unwrap_or(rest.len())]
}

#[tokio::test(flavor = "multi_thread")]
async fn reviewer_and_users_read_same_evidence() {
    let world = start_default_world().await;
    complete_ticket(&world).await;
    compare_normalized_snapshot(|| {
        assert_snapshot!(abridge_model_request(&last_of_review(&world)), @r#"
        Review this change. The checkout is branch main at commit [short] with the change.

        <ticket-[code]>
        <key-[code]>
        ENG-1
        </key-[code]>
        <summary-[code]>
        Cart total ignores the quantity
        </summary-[code]>
        <type-[code]>
        Bug
        </type-[code]>
        <priority-[code]>
        Medium
        </priority-[code]>
        <labels-[code]>

        </labels-[code]>
        <description-[code]>
        Three mugs at 8.50 and a poster at 12.00 should cost 37.50, the cart says 20.50.

        The tests in tests/test_cart.py show it; they are right. Discounts must keep working.
        </description-[code]>
        </ticket-[code]>

        The change:

        <diff-[code]>
        1 file(s) changed
        diff --git a/shop/cart.py b/shop/cart.py
        index b044048..23e50da 100644
        --- a/shop/cart.py
        +++ b/shop/cart.py
        @@ -26,5 +26,5 @@ class Cart:

             def total(self, discount_percent=0):
                 """The price of everything, in cents, rounded down after the discount."""
        -        full = sum(line.price for line in self._lines)
        +        full = sum(line.price * line.quantity for line in self._lines)
                 return full * (100 - discount_percent) // 100

        </diff-[code]>

        What its checks showed, in fresh trees beside the base:

        - `python3 -m unittest -q`: red on the base, green with the change, 4 passed
          - failed before and passes now: tests.test_cart.CartTest.test_a_discount_is_taken_from_the_whole
          - failed before and passes now: tests.test_cart.CartTest.test_every_piece_is_paid

        The repository's own instructions for contributors:

        <instructions-[code]>
        # For agents

        - Run the tests before every commit; all of them must pass:

          ```sh
          python3 -m unittest -q
          ```

        - Do not change the tests to make them pass.
        - Prices are whole cents; no floating point.

        </instructions-[code]>
        "#);
        assert_snapshot!(render_pull_text(&only_pull_request(&world)), @r#"
        fix(cart): Count every piece in the cart's total (ENG-1) (draft)

        The total added each line's price once, whatever its quantity. It now multiplies by the quantity, before the discount.

        The tests in `tests/test_cart.py` failed before and pass now.

        **Root cause.** `total` left the quantity of a line out.

        ### Evidence

        A test that failed before passes with the change, and the others are no worse. Shown by the repository's own tests.

        | check | before | with the change |
        |---|---|---|
        | `python3 -m unittest -q` | fails | passes, 4 passed |

        **Failed before and passes now**

        - `tests.test_cart.CartTest.test_a_discount_is_taken_from_the_whole`
        - `tests.test_cart.CartTest.test_every_piece_is_paid`

        ### Acceptance criteria

        | # | the ticket asks | shown by, as the author says |
        |---|---|---|
        | 1 | Three mugs at 8.50 and a poster at 12.00 should cost 37.50 | tests/test_cart.py |

        <details>
        <summary>Details</summary>

        Ticket: Cart total ignores the quantity

        Level of evidence: E3 (a test fails without the change and passes with it).

        **What changed**

        - `shop/cart.py`: The total multiplies each price by its quantity. (+1 -1)

        1 file: 1 line added, 1 removed.

        It took [time] of work and [n] tokens of models whose price is not known.

        </details>

        ---

        For [ENG-1](http://[server]/browse/ENG-1) · Ask for changes in a review · `/stop` `/retry` `/help` · written by Journeyman (run `jira:ENG-1@[n]`)
        "#);
    });
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn weakened_test_needs_users_approval() {
    let world = start_default_world().await;
    let weaken = json!({"command": "sed -i '0,/    def test_/s//    @unittest.skip(\"later\")\\n    def test_/' tests/test_cart.py"});
    let mut script = fixture::build_shop_script();
    let hand_over = script.pop().unwrap();
    script.push(ScriptStep::call("run_command", weaken));
    script.push(ScriptStep {
        expect: None,
        ..hand_over.clone()
    });
    script.push(ScriptStep {
        expect: None,
        ..hand_over
    });
    world.model.set_script("", script);
    let key = world.ask().unwrap();
    let comment = comment_with(&world, &key, "approve").await;
    compare_normalized_snapshot(|| {
        assert_snapshot!(abridge_model_request(&last_of_work(&world)), @r#"
        Noted.
        ---
        The change weakens checks of the repository, so it needs a person's approval as it is:

        - tests/test_cart.py line 7: test_an_empty_cart_costs_nothing is left out now
        - tests/test_cart.py: Runs no more: 1 test: `python3 -m unittest -q` names none of them

        Take that back if the ticket does not ask for it, and call finish again. If it is needed, call finish as it is and say why under `decisions`.
        "#);
        assert_snapshot!(comment, @r#"
        A change in 2 files for acme/shop is ready and waits for your decision before it is pushed: commit [short] for the branch fix/ENG-1-count-every-piece-in-the-carts-total.
        The total added each line's price once, whatever its quantity. It now multiplies by the quantity, before the discount.
        The tests in tests/test_cart.py failed before and pass now.
        Root cause. total left the quantity of a line out.
        Evidence
        A test that failed before passes with the change, and the others are no worse. Shown by the repository's own tests.
        check
        before
        with the change
        python3 -m unittest -q
        fails
        passes, 3 passed
        Ran before and does not run with the change: 1 test of python3 -m unittest -q
        Failed before and passes now
        tests.test_cart.CartTest.test_a_discount_is_taken_from_the_whole
        tests.test_cart.CartTest.test_every_piece_is_paid
        Changes that weaken checks
        tests/test_cart.py line 7: test_an_empty_cart_costs_nothing is left out now (needs a person's approval)
        tests/test_cart.py: Runs no more: 1 test: python3 -m unittest -q names none of them
        Acceptance criteria
        #
        the ticket asks
        shown by, as the author says
        1
        Three mugs at 8.50 and a poster at 12.00 should cost 37.50
        tests/test_cart.py
        Details
        Ticket: Cart total ignores the quantity
        Level of evidence: E3 (a test fails without the change and passes with it).
        What changed
        shop/cart.py: The total multiplies each price by its quantity. (+1 -1)
        tests/test_cart.py (+1 -0)
        2 files: 2 lines added, 1 removed.
        It took [time] of work and [n] tokens of models whose price is not known.
        diff --git a/shop/cart.py b/shop/cart.py
        index b044048..23e50da 100644
        --- a/shop/cart.py
        +++ b/shop/cart.py
        @@ -26,5 +26,5 @@ class Cart:
         
             def total(self, discount_percent=0):
                 """The price of everything, in cents, rounded down after the discount."""
        -        full = sum(line.price for line in self._lines)
        +        full = sum(line.price * line.quantity for line in self._lines)
                 return full * (100 - discount_percent) // 100
        diff --git a/tests/test_cart.py b/tests/test_cart.py
        index 9147347..1a408c2 100644
        --- a/tests/test_cart.py
        +++ b/tests/test_cart.py
        @@ -4,6 +4,7 @@ from shop.cart import Cart
         
         
         class CartTest(unittest.TestCase):
        +    @unittest.skip("later")
             def test_an_empty_cart_costs_nothing(self):
                 self.assertEqual(Cart().total(), 0)
        Decide in a comment: /approve [short], /reject, or /feedback and what to change. Or with journeyman decide jira:ENG-1@[n] approve --head [short]. An approval covers this commit only.
        Journeyman, run jira:ENG-1@[n]
        "#);
    });
    assert!(world.github.pull_requests(fixture::REPOSITORY).is_empty());
    world.stop().await.unwrap();
}

/// Completes a ticket on a base where a test of something else fails, too.
async fn complete_beside_stock_failure(world: &TestWorld) {
    let red = "import unittest\n\n\nclass Stock(unittest.TestCase):\n    def test_stock_is_counted(self):\n        self.assertEqual(1, 2)\n";
    let files = [("tests/test_stock.py", red)];
    world
        .github
        .commit(fixture::REPOSITORY, "main", "A test of the stock", &files)
        .unwrap();
    let mut script = fixture::build_shop_script();
    script[4].expect = Some("failures=1".to_owned());
    world.model.set_script("", script);
    complete_ticket(world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_failure_is_not_blamed_on_change() {
    let world = start_default_world().await;
    complete_beside_stock_failure(&world).await;
    // No run has left a result of the base.
    assert!(!first_of_work(&world).contains("<failing-on-base-"));
    let pull = only_pull_request(&world);
    compare_normalized_snapshot(|| {
        assert_snapshot!(extract_evidence(&pull.body), @r#"
        ### Evidence

        A test that failed before passes with the change, and the others are no worse. Shown by the repository's own tests.

        | check | before | with the change |
        |---|---|---|
        | `python3 -m unittest -q` | fails | fails, 4 passed |

        **Failed before and passes now**

        - `tests.test_cart.CartTest.test_a_discount_is_taken_from_the_whole`
        - `tests.test_cart.CartTest.test_every_piece_is_paid`

        **Fails without the change too**

        - `tests.test_stock.Stock.test_stock_is_counted`
        "#)
    });
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn model_learns_failures_of_base_first() {
    let world = start_world_with_rules("agent:\n  base_checks: always\n").await;
    complete_beside_stock_failure(&world).await;
    let task = first_of_work(&world);
    let (_, failures) = task.split_once("<failing-on-base-").expect("the base fails");
    let (failures, _) = failures.split_once("</failing-on-base-").expect("the list ends");
    assert!(
        failures.contains("\npython3 -m unittest -q: fails\n"),
        "{failures}"
    );
    for test in [
        "tests.test_cart.CartTest.test_a_discount_is_taken_from_the_whole",
        "tests.test_cart.CartTest.test_every_piece_is_paid",
        "tests.test_stock.Stock.test_stock_is_counted",
    ] {
        assert!(failures.contains(&format!("\n  - {test}")), "{test}: {failures}");
    }
    assert_eq!(failures.matches("\n  - ").count(), 3, "{failures}");
    let body = only_pull_request(&world).body;
    let evidence = extract_evidence(&body);
    assert!(
        evidence.contains("| `python3 -m unittest -q` | fails | fails, 4 passed |"),
        "{evidence}"
    );
    assert!(
        evidence.ends_with(
            "**Fails without the change too**\n\n- `tests.test_stock.Stock.test_stock_is_counted`"
        ),
        "{evidence}"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unloadable_base_test_is_no_evidence() {
    let world = start_default_world().await;
    let test = "import unittest\n\nfrom shop import vat\n\n\nclass Vat(unittest.TestCase):\n    def test_vat_is_a_fifth(self):\n        self.assertEqual(vat.of(10), 2)\n";
    let script = vec![
        ScriptStep::call(
            "write_file",
            json!({"path": "shop/vat.py", "content": "def of(net):\n    return net / 5\n"}),
        )
        .and_call(
            "write_file",
            json!({"path": "tests/test_vat.py", "content": test}),
        ),
        fixture::build_finish_step("vat", "Add the value-added tax"),
    ];
    world.model.set_script("", script);
    let key = world.ask().unwrap();
    end_of(&world, &key, 0).await;
    let pull = only_pull_request(&world);
    compare_normalized_snapshot(|| {
        assert_snapshot!(extract_evidence(&pull.body), @r#"
        ### Evidence

        The existing checks fail as they did before; no test shows the change itself.

        | check | before | with the change |
        |---|---|---|
        | `python3 -m unittest -q` | fails | fails, 3 passed |

        **Fails without the change too**

        - `tests.test_cart.CartTest.test_a_discount_is_taken_from_the_whole`
        - `tests.test_cart.CartTest.test_every_piece_is_paid`
        "#)
    });
    world.stop().await.unwrap();
}

/// Named pipe that gives each reader the next word: `wrong` to the reader with that number, `right` to the
/// others.
struct Clock {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    writer: JoinHandle<()>,
}

impl Clock {
    fn start(folder: &Path, wrong: usize) -> Self {
        let path = folder.join("clock");
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let is_over = Arc::new(AtomicBool::new(false));
        let (place, over) = (path.clone(), Arc::clone(&is_over));
        let write = move || {
            let words = (0..1_000).map(|reader| if reader == wrong { "wrong\n" } else { "right\n" });
            for word in words {
                // Opening the pipe blocks until a reader opens it.
                let mut pipe = OpenOptions::new().write(true).open(&place).unwrap();
                if over.load(Ordering::SeqCst) {
                    return;
                }
                // The reader takes one line. The text exceeds a pipe's buffer, so the write fails after the
                // reader has closed it.
                let more = "right\n".repeat(100_000);
                let _ = pipe.write_all(format!("{word}{more}").as_bytes());
            }
        };
        let writer = std::thread::spawn(write);
        Self {
            path,
            is_over,
            writer,
        }
    }

    fn stop(self) {
        self.is_over.store(true, Ordering::SeqCst);
        drop(std::fs::File::open(&self.path).unwrap());
        self.writer.join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flaky_test_is_named_without_blame() {
    let folder = tempfile::tempdir().unwrap();
    // The model runs the tests twice; the third run is the first of the proof.
    let clock = Clock::start(folder.path(), 2);
    let exposed = folder.path().display().to_string();
    let world = TestWorld::start(Options {
        // One check after another, so that the clock knows which run reads it.
        settings: vec![
            ("EXECUTOR__EXPOSED", exposed),
            ("EXECUTOR__SLOTS", "1".to_owned()),
        ],
        ..Options::default()
    })
    .await
    .unwrap();
    let test = format!(
        "import unittest\n\n\nclass Clock(unittest.TestCase):\n    def test_the_clock_is_right(self):\n        with open(\"{}\") as clock:\n            self.assertEqual(clock.readline(), \"right\\n\")\n",
        clock.path.display()
    );
    let files = [("tests/test_clock.py", test.as_str())];
    world
        .github
        .commit(fixture::REPOSITORY, "main", "A test of the clock", &files)
        .unwrap();
    complete_ticket(&world).await;
    let pull = only_pull_request(&world);
    compare_normalized_snapshot(|| {
        assert_snapshot!(extract_evidence(&pull.body), @r#"
        ### Evidence

        A test that failed before passes with the change, and the others are no worse. Shown by the repository's own tests.

        | check | before | with the change |
        |---|---|---|
        | `python3 -m unittest -q` | fails | fails, 4 passed |

        **Failed before and passes now**

        - `tests.test_cart.CartTest.test_a_discount_is_taken_from_the_whole`
        - `tests.test_cart.CartTest.test_every_piece_is_paid`

        **Fails in some runs of the same files only, so it shows nothing**

        - `tests.test_clock.Clock.test_the_clock_is_right`
        "#)
    });
    world.stop().await.unwrap();
    clock.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn output_proof_exposes_false_claim() {
    let world = start_default_world().await;
    let main = "from shop.cart import Cart\n\nprint('cart total:', Cart().total())\n";
    let mut finish = fixture::build_finish_step("cart", "Print the cart's total");
    finish.calls[0].1["demonstrations"] = json!([
        {"command": "python3 -m shop 2>&1 | tail -c 40", "prints": "cart total: 0"},
        {"command": "python3 -m unittest -q 2>&1 | tail -1", "prints": "FAILED (failures=2)"},
    ]);
    let script = vec![
        ScriptStep::call("write_file", json!({"path": "shop/__main__.py", "content": main})),
        finish,
    ];
    world.model.set_script("", script);
    let key = world.ask().unwrap();
    end_of(&world, &key, 0).await;
    let pull = only_pull_request(&world);
    compare_normalized_snapshot(|| {
        assert_snapshot!(extract_evidence(&pull.body), @r#"
        ### Evidence

        A command prints what the change is for, and did not before; no test shows it.

        | check | before | with the change |
        |---|---|---|
        | `python3 -m unittest -q` | fails | fails, 2 passed |

        | command | printed before | prints with the change |
        |---|---|---|
        | `python3 -m shop 2>&1 \| tail -c 40` | `package and cannot be directly executed` | `cart total: 0` |

        **Said by the author, and not seen when it was run with and without the change**

        - `python3 -m unittest -q 2>&1 | tail -1` prints `FAILED (failures=2)`

        **Fails without the change too**

        - `tests.test_cart.CartTest.test_a_discount_is_taken_from_the_whole`
        - `tests.test_cart.CartTest.test_every_piece_is_paid`
        "#)
    });
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_tests_return_change_to_work() {
    let world = start_default_world().await;
    let mut script = fixture::build_shop_script();
    let more = |from: &str, to: &str| {
        let command = format!("sed -i 's/return {from}full/return {to}full/' shop/cart.py");
        ScriptStep::call("run_command", json!({"command": command}))
    };
    script[3] = more("", "1 + ");
    script[4].expect = None;
    script.push(more("1 + ", "").expecting("test_an_empty_cart_costs_nothing"));
    script.push(fixture::build_finish_step(
        "cart",
        "Count every piece in the cart's total",
    ));
    world.model.set_script("", script);
    complete_ticket(&world).await;
    let calls = world.model.calls();
    compare_normalized_snapshot(|| {
        assert_snapshot!(abridge_model_request(&calls[5]), @r#"
        Noted.
        ---
        Checks are worse with your change than before it. They ran in a fresh copy of the files.

        `python3 -m unittest -q`: tests.test_cart.CartTest.test_an_empty_cart_costs_nothing
        The end of its output:

        ======================================================================
        FAIL: test_a_discount_is_taken_from_the_whole (tests.test_cart.CartTest.test_a_discount_is_taken_from_the_whole)
        ----------------------------------------------------------------------
        Traceback (most recent call last):
          File "[folder]/data/executor/workspaces/acme.shop.0/tree/tests/test_cart.py", line 19, in test_a_discount_is_taken_from_the_whole
            self.assertEqual(cart.total(discount_percent=10), 1798)
        AssertionError: 1799 != 1798

        ======================================================================
        FAIL: test_an_empty_cart_costs_nothing (tests.test_cart.CartTest.test_an_empty_cart_costs_nothing)
        ----------------------------------------------------------------------
        Traceback (most recent call last):
          File "[folder]/data/executor/workspaces/acme.shop.0/tree/tests/test_cart.py", line 8, in test_an_empty_cart_costs_nothing
            self.assertEqual(Cart().total(), 0)
        AssertionError: 1 != 0

        ======================================================================
        FAIL: test_every_piece_is_paid (tests.test_cart.CartTest.test_every_piece_is_paid)
        ----------------------------------------------------------------------
        Traceback (most recent call last):
          File "[folder]/data/executor/workspaces/acme.shop.0/tree/tests/test_cart.py", line 14, in test_every_piece_is_paid
            self.assertEqual(cart.total(), 3750)
        AssertionError: 3751 != 3750

        ----------------------------------------------------------------------
        Ran 4 tests in [time]

        FAILED (failures=3)


        Correct the change, then call finish again.
        "#);
        assert_snapshot!(extract_evidence(&only_pull_request(&world).body), @r#"
        ### Evidence

        A test that failed before passes with the change, and the others are no worse. Shown by the repository's own tests.

        | check | before | with the change |
        |---|---|---|
        | `python3 -m unittest -q` | fails | passes, 4 passed |

        **Failed before and passes now**

        - `tests.test_cart.CartTest.test_a_discount_is_taken_from_the_whole`
        - `tests.test_cart.CartTest.test_every_piece_is_paid`
        "#);
    });
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_list_turns_checks_off() {
    let world = start_world_with_rules("agent:\n  checks: []\n").await;
    let key = world.ask().unwrap();
    let run = world.run(&key, 0).await.unwrap();
    let (journal, reason) = world.finished(&run).await.unwrap();
    assert_eq!(reason, StopReason::Completed);
    let is_check = |entry: &JournalEntry| matches!(entry.fact, Fact::CheckRequested { .. });
    assert!(!journal.iter().any(is_check), "a check ran");
    assert_eq!(
        extract_evidence(&only_pull_request(&world).body),
        "### Evidence\n\nNo check could be run here, so nothing was verified."
    );
    world.stop().await.unwrap();
}
