//! Syntax of source files by tree-sitter: whether a text can be parsed, and where not.

use std::path::Path;

use tree_sitter::{Language, Node, Parser, Tree};

/// Longer texts are not parsed, in bytes.
pub(super) const MAX_BYTES: u64 = 1024 * 1024;

/// The language of a file by its name.
pub(super) fn language(path: &Path) -> Option<Language> {
    let extension = path.extension()?.to_str()?;
    let language = match extension {
        "py" | "pyi" => tree_sitter_python::LANGUAGE,
        "js" | "jsx" | "mjs" | "cjs" => tree_sitter_javascript::LANGUAGE,
        "ts" | "mts" | "cts" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        "tsx" => tree_sitter_typescript::LANGUAGE_TSX,
        "rs" => tree_sitter_rust::LANGUAGE,
        "go" => tree_sitter_go::LANGUAGE,
        "java" => tree_sitter_java::LANGUAGE,
        "json" => tree_sitter_json::LANGUAGE,
        "yaml" | "yml" => tree_sitter_yaml::LANGUAGE,
        "toml" => tree_sitter_toml_ng::LANGUAGE,
        _ => return None,
    };
    Some(language.into())
}

/// Parses a text; nothing for a language that is not known or a text that is too long.
pub(super) fn tree(path: &Path, text: &str) -> Option<Tree> {
    if text.len() as u64 > MAX_BYTES {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&language(path)?).ok()?;
    parser.parse(text, None)
}

/// Whether a file may become `after`: unless it could be parsed before and no longer can.
///
/// # Errors
/// A text for the model that names the place.
pub(super) fn check(path: &Path, before: Option<&str>, after: &str) -> Result<(), String> {
    let Some(parsed) = tree(path, after) else {
        return Ok(());
    };
    if !parsed.root_node().has_error() {
        return Ok(());
    }
    let was_broken = before
        .filter(|before| !before.trim().is_empty())
        .and_then(|before| tree(path, before))
        .is_some_and(|before| before.root_node().has_error());
    if was_broken {
        return Ok(());
    }
    let at = first_error(parsed.root_node());
    let (line, column) = (at.start_position().row, at.start_position().column + 1);
    let what = if at.is_missing() {
        format!("{:?} is missing", at.kind())
    } else {
        "a syntax error".to_owned()
    };
    let shown = after.lines().nth(line).unwrap_or_default().trim_end();
    Err(format!(
        "{} could not be parsed any more, so it was not changed: {what} at line {}, column {column}:\n{:>5} {}\nCorrect the \
         change, or call again with force = true if the file is right as it is.",
        path.display(),
        line + 1,
        line + 1,
        super::cut(shown, 300)
    ))
}

/// The first node, in the order of the text, that is an error itself.
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
    use super::*;

    #[test]
    fn each_language_takes_good_text_and_names_the_place_in_bad_text() {
        for (name, good, bad) in [
            ("a.py", "def f(x):\n    return x\n", "def f(x):\n    return (x\n"),
            ("a.js", "const f = (x) => x;\n", "const f = (x => x;\n"),
            ("a.ts", "let x: number = 1;\n", "let x: number = ;\n"),
            ("a.tsx", "const a = <b>c</b>;\n", "const a = <b>c</;\n"),
            ("a.rs", "fn main() {}\n", "fn main( {}\n"),
            ("a.go", "package a\n\nfunc f() {}\n", "package a\n\nfunc f( {}\n"),
            ("A.java", "class A { int x; }\n", "class A { int x }\n"),
            ("a.json", "{\"a\": 1}\n", "{\"a\": }\n"),
            ("a.yaml", "a:\n  - b\n", "a: [b\n"),
            ("a.toml", "[a]\nb = 1\n", "[a\nb = 1\n"),
        ] {
            let path = Path::new(name);
            assert_eq!(check(path, None, good), Ok(()), "{name}");
            let error = check(path, Some(good), bad).unwrap_err();
            assert!(
                error.contains("at line ") && error.contains("force = true"),
                "{name}: {error}"
            );
        }
    }

    #[test]
    fn a_file_that_was_broken_before_and_an_unknown_language_are_left_alone() {
        assert_eq!(check(Path::new("a.py"), Some("def (:\n"), "def ((:\n"), Ok(()));
        assert_eq!(check(Path::new("a.txt"), None, "def (:\n"), Ok(()));
    }
}
