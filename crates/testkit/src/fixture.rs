//! Repository, ticket and model script of the demo: a small project with a failing test.

use serde_json::{Value, json};

use crate::model::ScriptStep;

/// Full name of the demo repository on GitHub.
pub const REPOSITORY: &str = "acme/shop";
/// Key of the demo's Jira project.
pub const PROJECT: &str = "ENG";
/// Test command that fails before the change and passes after it.
pub const TEST_COMMAND: &str = "python3 -m unittest -q";
/// Branch of the change of [`build_shop_script`] for the ticket `ENG-1`.
pub const BRANCH: &str = "fix/ENG-1-count-every-piece-in-the-carts-total";
/// Pull request title of the same change.
pub const TITLE: &str = "fix(cart): Count every piece in the cart's total (ENG-1)";

const SEARCH: &str = "        full = sum(line.price for line in self._lines)";
const REPLACE: &str = "        full = sum(line.price * line.quantity for line in self._lines)";

/// Path and content of each file of the repository.
#[must_use]
pub fn list_shop_files() -> Vec<(&'static str, &'static str)> {
    vec![
        (".gitignore", include_str!("../data/shop/gitignore")),
        ("AGENTS.md", include_str!("../data/shop/AGENTS.md")),
        ("README.md", include_str!("../data/shop/README.md")),
        ("shop/__init__.py", include_str!("../data/shop/shop/__init__.py")),
        ("shop/cart.py", include_str!("../data/shop/shop/cart.py")),
        (
            "tests/__init__.py",
            include_str!("../data/shop/tests/__init__.py"),
        ),
        (
            "tests/test_cart.py",
            include_str!("../data/shop/tests/test_cart.py"),
        ),
    ]
}

/// Summary and description of the ticket.
#[must_use]
pub fn describe_shop_ticket() -> (&'static str, &'static str) {
    (
        "Cart total ignores the quantity",
        "Three mugs at 8.50 and a poster at 12.00 should cost 37.50, the cart says 20.50.\n\n\
         The tests in tests/test_cart.py show it; they are right. Discounts must keep working.",
    )
}

/// Model replies that fix the ticket.
#[must_use]
pub fn build_shop_script() -> Vec<ScriptStep> {
    let edits = format!("<<<<<<< SEARCH\n{SEARCH}\n=======\n{REPLACE}\n>>>>>>> REPLACE");
    vec![
        ScriptStep::call(
            "search_content",
            json!({"pattern": "def total", "file_pattern": "*.py"}),
        )
        .and_call("run_command", json!({"command": TEST_COMMAND}))
        // `ignores the quantity` comes from the ticket: the step proves that the prompt contains the
        // description.
        .expecting("ignores the quantity"),
        ScriptStep::call("read_file", json!({"path": "shop/cart.py"})).expecting("FAILED"),
        ScriptStep::call("edit_file", json!({"path": "shop/cart.py", "edits": edits}))
            .expecting("line.price for line"),
        ScriptStep::call("run_command", json!({"command": TEST_COMMAND, "timeout_s": 60})),
        build_finish_step("cart", "Count every piece in the cart's total").expecting("OK"),
    ]
}

/// Returns the `finish` call of a bug fix with this scope and title.
#[must_use]
pub fn build_finish_step(scope: &str, title: &str) -> ScriptStep {
    let summary = "The total added each line's price once, whatever its quantity. It now multiplies by the quantity, \
                   before the discount.\n\nThe tests in `tests/test_cart.py` failed before and pass now.";
    ScriptStep::call(
        "finish",
        json!({
            "type": "fix",
            "scope": scope,
            "title": title,
            "summary": summary,
            "root_cause": "`total` left the quantity of a line out.",
            "files": [{"path": "shop/cart.py", "change": "The total multiplies each price by its quantity."}],
            "criteria": [{
                "quote": "Three mugs at 8.50 and a poster at 12.00 should cost 37.50",
                "shown_by": "tests/test_cart.py"
            }]
        }),
    )
}

/// Model replies that repair a failed check by adding a file. The first one follows a message that contains
/// `expected`.
#[must_use]
pub fn build_repair_script(file: &str, expected: &str) -> Vec<ScriptStep> {
    let finish = json!({
        "type": "fix",
        "scope": "cart",
        "title": "Add the missing note",
        "summary": "The check asks for a note on rounding, which was missing.",
    });
    vec![
        ScriptStep::call("write_file", json!({"path": file, "content": "Rounded.\n"})).expecting(expected),
        ScriptStep::call("finish", finish),
    ]
}

/// Model replies that add the note on rounding that a message asks for, which contains `expected`, and answer
/// comments with `replies`.
#[must_use]
pub fn build_note_script(expected: &str, replies: &Value) -> Vec<ScriptStep> {
    let note = json!({"path": "notes/rounding.md", "content": "Rounded.\n"});
    let finish = json!({
        "type": "docs",
        "scope": "cart",
        "title": "Add a note on rounding",
        "summary": "Adds the note that was asked for.",
        "replies": replies,
    });
    vec![
        ScriptStep::call("write_file", note).expecting(expected),
        ScriptStep::call("finish", finish),
    ]
}

/// Returns the `give_up` call of a ticket that needs no change.
#[must_use]
pub fn nothing_to_do() -> ScriptStep {
    ScriptStep::call(
        "give_up",
        json!({"kind": "already_done", "evidence": "There is nothing to do."}),
    )
}

/// Path and content of the file that a ticket's note adds. Each ticket has another path, so notes of many
/// tickets never conflict.
#[must_use]
pub fn describe_note_file(key: &str) -> (String, String) {
    (format!("notes/{key}.md"), format!("This is the note of {key}.\n"))
}

/// Branch of the change of [`note_script`].
#[must_use]
pub fn note_branch(key: &str) -> String {
    format!("feat/{key}-add-the-note-of-{}", key.to_lowercase())
}

/// Model replies that add a ticket's note. Each reply is idempotent, so a replayed turn changes nothing.
#[must_use]
pub fn note_script(key: &str) -> Vec<ScriptStep> {
    note_script_with(key, "sleep 0.3; ls notes")
}

/// [`note_script`] with another test command.
#[must_use]
pub fn note_script_with(key: &str, command: &str) -> Vec<ScriptStep> {
    let (path, content) = describe_note_file(key);
    vec![
        ScriptStep::call("read_file", json!({"path": "README.md"})),
        ScriptStep::call("write_file", json!({"path": path, "content": content})),
        ScriptStep::call("run_command", json!({"command": command})),
        ScriptStep::call(
            "finish",
            json!({
                "type": "feat",
                "title": format!("Add the note of {key}"),
                "summary": "Adds the note that was asked for; there is nothing to test."
            }),
        ),
    ]
}
