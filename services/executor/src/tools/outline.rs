//! `outline`: the symbols of a file, or of the whole repository, the most used first.

use std::{
    collections::{HashMap, HashSet},
    fs::FileType,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use tree_sitter::Node;

use super::{Call, Run, Tool, cut, object, parse, syntax};
use crate::workspace::explain;

/// Shown at most, in bytes: about 8,000 tokens.
const BUDGET: usize = 32 * 1024;
/// Files read for the whole repository, and the longest of them in bytes.
const MAX_FILES: usize = 5000;
const MAX_FILE: u64 = 256 * 1024;
const MAX_DEPTH: usize = 200;

pub(super) const TOOL: Tool = Tool {
    name: "outline",
    description: "Shows functions, classes and types with their lines: of one file when path is given, else of the \
                  whole repository, the most used files first. A cheap first look before reading files. Knows Python, \
                  JavaScript, TypeScript, Rust, Go and Java.",
    schema: || object(&[("path", "string", "File; absent: the whole repository")], 0),
    read_only: true,
    run: Run::Blocking(run),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    path: Option<String>,
}

struct Symbol {
    name: String,
    line: usize,
    depth: usize,
    text: String,
}

struct FileOutline {
    path: PathBuf,
    symbols: Vec<Symbol>,
    words: HashSet<String>,
}

fn run(call: &Call, input: &str) -> Result<String, String> {
    let input: Input = parse(input)?;
    match input.path.as_deref().filter(|path| !matches!(*path, "" | ".")) {
        Some(path) => one_file(call, path),
        None => Ok(repository(call)),
    }
}

fn one_file(call: &Call, path: &str) -> Result<String, String> {
    let path = call.workspace.existing(path)?;
    let bytes = call
        .workspace
        .root()
        .read(&path, syntax::MAX_BYTES)
        .map_err(|error| explain(&path, &error))?;
    let symbols = symbols(&path, &String::from_utf8_lossy(&bytes))
        .ok_or_else(|| format!("{}: this language has no outline. Use read_file.", path.display()))?;
    if symbols.is_empty() {
        return Ok(format!("{} has no symbols.", path.display()));
    }
    Ok(cut(&shown(&path, &symbols), BUDGET).to_owned())
}

fn repository(call: &Call) -> String {
    let root = call.workspace.root();
    let mut files = Vec::new();
    for path in call.workspace.paths(FileType::is_file) {
        if files.len() >= MAX_FILES || call.cancel.is_cancelled() {
            break;
        }
        if syntax::language(&path).is_none() {
            continue;
        }
        let Ok(bytes) = root.read(&path, MAX_FILE) else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        if let Some(symbols) = symbols(&path, &text).filter(|symbols| !symbols.is_empty()) {
            files.push(FileOutline {
                path,
                symbols,
                words: words(&text),
            });
        }
    }
    if files.is_empty() {
        return "No file has an outline. Use list_directory and search_content.".to_owned();
    }
    let order = ranked(&files);
    let mut text = String::new();
    let mut left_out = 0;
    for file in order {
        let shown = shown(&file.path, &file.symbols);
        if text.len() + shown.len() > BUDGET {
            left_out += 1;
        } else {
            text.push_str(&shown);
        }
    }
    if left_out > 0 {
        text.push_str(&format!("[{left_out} more files; give path to see one]\n"));
    }
    text
}

/// Most used first: by how many other files name a symbol of theirs.
fn ranked(files: &[FileOutline]) -> Vec<&FileOutline> {
    let mut naming: HashMap<&str, usize> = HashMap::new();
    for file in files {
        for word in &file.words {
            *naming.entry(word).or_default() += 1;
        }
    }
    // A name that many files define says little about each.
    let mut defining: HashMap<&str, usize> = HashMap::new();
    for symbol in files.iter().flat_map(|file| &file.symbols) {
        *defining.entry(&symbol.name).or_default() += 1;
    }
    let score = |file: &FileOutline| -> usize {
        let of = |symbol: &Symbol| match defining.get(symbol.name.as_str()) {
            Some(1) => naming.get(symbol.name.as_str()).map_or(0, |count| count - 1),
            Some(_) | None => 0,
        };
        file.symbols.iter().map(of).sum()
    };
    let mut order: Vec<(usize, &FileOutline)> = files.iter().map(|file| (score(file), file)).collect();
    order.sort_by(|(one, a), (two, b)| two.cmp(one).then_with(|| a.path.cmp(&b.path)));
    order.into_iter().map(|(_, file)| file).collect()
}

fn words(text: &str) -> HashSet<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_word(c))
        .filter(|word| word.len() > 2)
        .map(str::to_owned)
        .collect()
}

fn shown(path: &Path, symbols: &[Symbol]) -> String {
    let lines = symbols.iter().map(|symbol| {
        format!(
            "{:>6} {}{}\n",
            symbol.line,
            "  ".repeat(symbol.depth.min(8)),
            symbol.text
        )
    });
    format!("{}\n{}", path.display(), lines.collect::<String>())
}

/// Nothing for a language without symbols.
fn symbols(path: &Path, text: &str) -> Option<Vec<Symbol>> {
    if matches!(path.extension()?.to_str()?, "json" | "yaml" | "yml" | "toml") {
        return None;
    }
    let tree = syntax::tree(path, text)?;
    let mut found = Vec::new();
    collect(tree.root_node(), text, 0, 0, &mut found);
    Some(found)
}

fn collect(node: Node<'_>, text: &str, depth: usize, nesting: usize, found: &mut Vec<Symbol>) {
    if nesting > MAX_DEPTH {
        return;
    }
    let symbol = symbol(node, text, depth);
    let inner = depth + usize::from(symbol.is_some());
    // What is defined inside a function is nobody else's.
    let ends_here = symbol.is_some() && is_function(node.kind());
    found.extend(symbol);
    if ends_here {
        return;
    }
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        collect(child, text, inner, nesting + 1, found);
    }
}

fn is_function(kind: &str) -> bool {
    matches!(
        kind,
        "function_definition"
            | "function_item"
            | "function_declaration"
            | "generator_function_declaration"
            | "method_declaration"
            | "method_definition"
            | "constructor_declaration"
            | "variable_declarator"
    )
}

fn symbol(node: Node<'_>, text: &str, depth: usize) -> Option<Symbol> {
    let is_type = matches!(
        node.kind(),
        "class_definition"
            | "class_declaration"
            | "abstract_class_declaration"
            | "interface_declaration"
            | "enum_declaration"
            | "record_declaration"
            | "type_alias_declaration"
            | "type_spec"
            | "struct_item"
            | "enum_item"
            | "trait_item"
            | "impl_item"
            | "mod_item"
            | "type_item"
            | "macro_definition"
            | "function_signature_item"
    );
    let is_function = match node.kind() {
        "variable_declarator" => {
            let value = node.child_by_field_name("value")?;
            matches!(value.kind(), "arrow_function" | "function_expression")
        }
        kind => is_function(kind),
    };
    if !is_type && !is_function {
        return None;
    }
    let name = node
        .child_by_field_name("name")
        .or_else(|| node.child_by_field_name("type"))?;
    let first = text
        .get(node.start_byte()..)?
        .lines()
        .next()?
        .trim_end()
        .trim_end_matches('{')
        .trim_end();
    Some(Symbol {
        name: name.utf8_text(text.as_bytes()).ok()?.to_owned(),
        line: node.start_position().row + 1,
        depth,
        text: cut(first, 160).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::tests::World;

    fn names(path: &str, text: &str) -> Vec<String> {
        symbols(Path::new(path), text)
            .unwrap()
            .into_iter()
            .map(|symbol| symbol.name)
            .collect()
    }

    #[test]
    fn each_language_shows_its_symbols() {
        for (path, text, wanted) in [
            (
                "a.py",
                "class A:\n    def f(self):\n        def inner(): pass\n\ndef g(): pass\n",
                ["A", "f", "g"],
            ),
            ("a.rs", "struct S;\nimpl S { fn f(&self) {} }\n", ["S", "S", "f"]),
            (
                "a.go",
                "package a\ntype T struct{}\nfunc (t T) M() {}\nfunc F() {}\n",
                ["T", "M", "F"],
            ),
            (
                "A.java",
                "class A { A() {} int f() { return 1; } }\n",
                ["A", "A", "f"],
            ),
            (
                "a.ts",
                "interface I {}\nclass C {}\nconst f = () => 1;\n",
                ["I", "C", "f"],
            ),
            ("a.js", "function f() {}\nclass C { m() {} }\n", ["f", "C", "m"]),
        ] {
            assert_eq!(names(path, text), wanted, "{path}");
        }
    }

    #[test]
    fn a_file_is_shown_with_lines_and_the_repository_with_the_most_used_file_first() {
        let world = World::new();
        let text = world.run("outline", &json!({ "path": "cart.py" })).unwrap();
        assert_eq!(
            text,
            "shop/cart.py\n     1 def total(items):\n     5 def count(items):\n"
        );
        for (path, content) in [
            ("a.py", "def unused_thing():\n    pass\n"),
            (
                "z.py",
                "from shop.cart import total\n\ndef z():\n    return total([])\n",
            ),
        ] {
            world
                .run("write_file", &json!({ "path": path, "content": content }))
                .unwrap();
        }
        let text = world.run("outline", &json!({})).unwrap();
        assert!(text.starts_with("shop/cart.py\n"), "{text}");
        assert!(text.contains("a.py\n     1 def unused_thing():"), "{text}");
    }
}
