//! Conflict about one line of the fixture's cart: the three versions of it, and the model's replies.

use serde_json::{Value, json};
use testkit::{ScriptStep, fixture};

/// Start of the first message of a resolution.
pub const RESOLUTION: &str = "The pull request that was made for this ticket conflicts with main";
/// File with the line.
pub const CART: &str = "shop/cart.py";
/// Line of the pull request.
pub const OURS: &str = "full = sum(line.price * line.quantity for line in self._lines)";
/// Line of the base branch.
pub const THEIRS: &str = "full = sum(max(line.price, 0) for line in self._lines)";
/// Line that keeps both changes.
pub const BOTH: &str = "full = sum(max(line.price, 0) * line.quantity for line in self._lines)";

/// Line before both changes.
const BEFORE: &str = "full = sum(line.price for line in self._lines)";

/// Returns the cart with another line for the sum.
#[must_use]
pub fn build_cart(line: &str) -> String {
    let files = fixture::list_shop_files();
    let cart = files.iter().find(|(path, _)| *path == CART);
    cart.map_or_else(String::new, |(_, text)| text.replace(BEFORE, line))
}

/// Returns the reasons for which a resolution drops both lines.
#[must_use]
pub fn name_both_lines() -> Value {
    json!([OURS, THEIRS].map(|quote| json!({"path": CART, "quote": quote, "reason": "One line has both."})))
}

/// Returns the `finish` call of a resolution with the named changes that it drops.
#[must_use]
pub fn build_resolution_finish(dropped: &Value) -> ScriptStep {
    ScriptStep::call(
        "finish",
        json!({"type": "fix", "scope": "cart", "title": "Merge main into the quantity fix",
            "summary": "The sum multiplies by the quantity and ignores negative prices.", "dropped": dropped}),
    )
}

/// Returns the calls of a resolution with this line, without the end.
#[must_use]
pub fn build_resolution_edit(line: &str) -> Vec<ScriptStep> {
    vec![
        ScriptStep::call("read_file", json!({"path": CART})),
        ScriptStep::call("write_file", json!({"path": CART, "content": build_cart(line)}))
            .expecting("<<<<<<< pull request"),
    ]
}
