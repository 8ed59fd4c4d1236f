//! The demo's repository, ticket and script: a small real project with a real failing test.

use serde_json::json;

use crate::model::Step;

/// The repository's name.
pub const REPOSITORY: &str = "acme/shop";
/// The Jira project that it belongs to.
pub const PROJECT: &str = "ENG";
/// The command that fails before the change and passes after it.
pub const TEST_COMMAND: &str = "python3 -m unittest -q";
/// The branch that the change of [`script`] gets for the ticket `ENG-1`.
pub const BRANCH: &str = "fix/ENG-1-count-every-piece-in-the-carts-total";
/// The title of its pull request.
pub const TITLE: &str = "fix(cart): Count every piece in the cart's total (ENG-1)";

const SEARCH: &str = "        full = sum(line.price for line in self._lines)";
const REPLACE: &str = "        full = sum(line.price * line.quantity for line in self._lines)";

/// The repository's files: path and content.
#[must_use]
pub fn files() -> Vec<(&'static str, &'static str)> {
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

/// The ticket: summary and description.
#[must_use]
pub fn ticket() -> (&'static str, &'static str) {
    (
        "Cart total ignores the quantity",
        "Three mugs at 8.50 and a poster at 12.00 should cost 37.50, the cart says 20.50.\n\n\
         The tests in tests/test_cart.py show it; they are right. Discounts must keep working.",
    )
}

/// The steps that fix it.
#[must_use]
pub fn script() -> Vec<Step> {
    let edits = format!("<<<<<<< SEARCH\n{SEARCH}\n=======\n{REPLACE}\n>>>>>>> REPLACE");
    vec![
        Step::call(
            "search_content",
            json!({"pattern": "def total", "file_pattern": "*.py"}),
        )
        .and_call("run_command", json!({"command": TEST_COMMAND}))
        .expecting("ignores the quantity"),
        Step::call("read_file", json!({"path": "shop/cart.py"})).expecting("FAILED"),
        Step::call("edit_file", json!({"path": "shop/cart.py", "edits": edits}))
            .expecting("line.price for line"),
        Step::call("run_command", json!({"command": TEST_COMMAND, "timeout_s": 60})),
        finish("cart", "Count every piece in the cart's total").expecting("OK"),
    ]
}

/// The step that hands a change over.
#[must_use]
pub fn finish(scope: &str, title: &str) -> Step {
    let summary = "The total added each line's price once, whatever its quantity. It now multiplies by the quantity, \
                   before the discount.\n\nThe tests in `tests/test_cart.py` failed before and pass now.";
    Step::call(
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

/// A model's end of work without a change.
#[must_use]
pub fn nothing_to_do() -> Step {
    Step::call(
        "give_up",
        json!({"kind": "already_done", "evidence": "There is nothing to do."}),
    )
}

/// A small change of its own for a ticket: the file that it adds, and what is in it.
#[must_use]
pub fn note(key: &str) -> (String, String) {
    (format!("notes/{key}.md"), format!("This is the note of {key}.\n"))
}

/// The branch that the change of [`note_script`] gets.
#[must_use]
pub fn note_branch(key: &str) -> String {
    format!("feat/{key}-add-the-note-of-{}", key.to_lowercase())
}

/// The steps that add a ticket's [`note`]; whatever of them is done twice has the same result.
#[must_use]
pub fn note_script(key: &str) -> Vec<Step> {
    note_script_with(key, "sleep 0.3; ls notes")
}

/// The same with another command for the tests of the note.
#[must_use]
pub fn note_script_with(key: &str, command: &str) -> Vec<Step> {
    let (path, content) = note(key);
    vec![
        Step::call("read_file", json!({"path": "README.md"})),
        Step::call("write_file", json!({"path": path, "content": content})),
        Step::call("run_command", json!({"command": command})),
        Step::call(
            "finish",
            json!({
                "type": "feat",
                "title": format!("Add the note of {key}"),
                "summary": "Adds the note that was asked for; there is nothing to test."
            }),
        ),
    ]
}
