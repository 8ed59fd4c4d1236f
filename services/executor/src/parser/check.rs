//! Syntax check of a text.

use tree_sitter::Node;

use super::{
    grammar::{GrammarLanguage, parse_tree},
    wire::SyntaxError,
};

/// Returns the first syntax error of `after`, unless `before` has a syntax error too.
pub(super) fn new_error(language: GrammarLanguage, before: Option<&str>, after: &str) -> Option<SyntaxError> {
    let parsed = parse_tree(language, after).filter(|parsed| parsed.root_node().has_error())?;
    let was_broken = before
        .filter(|before| !before.trim().is_empty())
        .and_then(|before| parse_tree(language, before))
        .is_some_and(|before| before.root_node().has_error());
    if was_broken {
        return None;
    }
    let at = first_error(parsed.root_node());
    Some(SyntaxError {
        line: at.start_position().row + 1,
        column: at.start_position().column + 1,
        missing: at.is_missing().then(|| at.kind().to_owned()),
    })
}

/// Returns the first node in text order that is an error itself.
fn first_error(root: Node<'_>) -> Node<'_> {
    let mut node = root;
    loop {
        let mut cursor = node.walk();
        let inner = node
            .children(&mut cursor)
            .find(|child| child.has_error() || child.is_missing());
        match inner {
            Some(inner) if !node.is_error() => node = inner,
            Some(_) | None => return node,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn find_syntax_error(name: &str, before: Option<&str>, after: &str) -> Option<SyntaxError> {
        new_error(GrammarLanguage::of(Path::new(name)).unwrap(), before, after)
    }

    #[test]
    fn syntax_error_is_located_per_language() {
        for (name, good, bad) in [
            ("a.py", "def f(x):\n    return x\n", "def f(x):\n    return (x\n"),
            ("a.js", "const f = (x) => x;\n", "const f = (x => x;\n"),
            ("a.ts", "let x: number = 1;\n", "let x: number = ;\n"),
            ("a.tsx", "const a = <b>c</b>;\n", "const a = <b>c</;\n"),
            ("a.rs", "fn main() {}\n", "fn main( {}\n"),
            ("a.go", "package a\n\nfunc f() {}\n", "package a\n\nfunc f( {}\n"),
            ("A.java", "class A { int x; }\n", "class A { int x }\n"),
            (
                "a.c",
                "int f(void) { return 1; }\n",
                "int f(void) { return (1; }\n",
            ),
            ("a.cpp", "class A { int f(); };\n", "class A { int f( };\n"),
            ("a.rb", "def f(x)\n  x\nend\n", "def f(x\nend\n"),
            ("a.php", "<?php\nfunction f() {}\n", "<?php\nfunction f( {}\n"),
            ("a.kt", "fun f() {\n}\n", "fun f( {\n}\n"),
            ("a.sh", "f() {\n  echo a\n}\n", "f() {\n  echo \"a\n}\n"),
            ("a.json", "{\"a\": 1}\n", "{\"a\": }\n"),
            ("a.yaml", "a:\n  - b\n", "a: [b\n"),
            ("a.toml", "[a]\nb = 1\n", "[a\nb = 1\n"),
        ] {
            assert_eq!(find_syntax_error(name, None, good), None, "{name}");
            let found = find_syntax_error(name, Some(good), bad).unwrap();
            assert!(found.line >= 1 && found.line <= 3, "{name}: {found:?}");
        }
    }

    #[test]
    fn previously_broken_text_is_accepted() {
        assert_eq!(find_syntax_error("a.py", Some("def (:\n"), "def ((:\n"), None);
        assert!(find_syntax_error("a.py", Some("\n"), "def ((:\n").is_some());
    }
}
