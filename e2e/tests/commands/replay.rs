//! `make replay` without downloads: a catalogue with two folders as releases.

use std::path::Path;

use testkit::fixture;

use crate::program::run_program;

const CATALOGUE: &str = r#"
[[fix]]
id = "shop-2"
language = "python"
registry = "folder"
package = "shop"
licence = "none"
from = { version = "one" }
to = { version = "two" }
files = ["shop/cart.py"]
leave_out = ["tests"]
ticket = """
The cart forgets how many pieces there are

Two mugs at 100 cost 100."""
test_file = "tests/test_pieces.py"
command = "python3 -m unittest -v"
fails = ["tests.test_pieces.PiecesTest.test_every_piece_is_paid"]
passes = ["tests.test_pieces.PiecesTest.test_nothing_costs_nothing"]
test = '''
import unittest

from shop.cart import Cart


class PiecesTest(unittest.TestCase):
    def test_every_piece_is_paid(self):
        cart = Cart()
        cart.add("mug", 100, quantity=2)
        self.assertEqual(cart.total(), 200)

    def test_nothing_costs_nothing(self):
        self.assertEqual(Cart().total(), 0)
'''
"#;

fn write_shop_release(folder: &Path, repaired: bool) {
    for (path, content) in fixture::list_shop_files() {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let content = if repaired {
            content.replace("sum(line.price for", "sum(line.price * line.quantity for")
        } else {
            content.to_owned()
        };
        std::fs::write(file, content).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn published_fix_is_replayed_to_accepted_change() {
    let root = tempfile::tempdir().unwrap();
    write_shop_release(&root.path().join("one"), false);
    write_shop_release(&root.path().join("two"), true);
    std::fs::write(root.path().join("catalogue.toml"), CATALOGUE).unwrap();
    let arguments = ["replay", "--catalogue", "catalogue.toml", "--out", "out"];
    let ran = run_program("scenarios", &arguments, &[], root.path()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    let is_silent = |line: &&str| line.starts_with("conflicts ") && !line.ends_with(" 0");
    assert!(!lines.iter().any(is_silent), "{ran:?}");
    assert!(lines.contains(&"conflicts perfect 100 100 0 0"), "{ran:?}");
    let is_fix = |line: &&str| line.starts_with("replay shop-2 python resolved E3 ");
    assert!(lines.iter().any(is_fix), "{ran:?}");
    let refused = run_program(
        "scenarios",
        &["replay", "shop-3", "--catalogue", "catalogue.toml"],
        &[],
        root.path(),
    )
    .await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("no fix is named shop-3"), "{refused:?}");
}
