//! Symbols of a text: functions, classes, types and constants.

use tree_sitter::Node;

use super::{
    grammar::{GrammarLanguage, parse_tree},
    wire::SourceSymbol,
};

/// Limit of the depth of visited nodes.
const MAX_DEPTH: usize = 200;
/// Limit of symbols in one text.
const MAX_SYMBOLS: usize = 20_000;
/// Limit of a definition's displayed text, in characters.
const MAX_SHOWN: usize = 160;

/// Returns the symbols in text order; none for a language without definitions.
pub(super) fn list_symbols(language: GrammarLanguage, text: &str) -> Vec<SourceSymbol> {
    let mut found = Vec::new();
    if language.has_symbols()
        && let Some(tree) = parse_tree(language, text)
    {
        collect_symbols(tree.root_node(), text, 0, 0, &mut found);
    }
    found
}

fn collect_symbols(node: Node<'_>, text: &str, depth: usize, nesting: usize, found: &mut Vec<SourceSymbol>) {
    if nesting > MAX_DEPTH || found.len() >= MAX_SYMBOLS {
        return;
    }
    let symbol = read_symbol(node, text, depth);
    let inner = depth + usize::from(symbol.is_some());
    // Definitions inside a function are local to it, so they are not symbols.
    let ends_here = symbol.is_some() && is_function(node.kind());
    found.extend(symbol);
    if ends_here {
        return;
    }
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        collect_symbols(child, text, inner, nesting + 1, found);
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
            | "field_definition"
            | "public_field_definition"
            | "assignment_expression"
            | "const_spec"
            | "const_item"
            | "static_item"
    )
}

fn is_type(kind: &str) -> bool {
    matches!(
        kind,
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
    )
}

fn read_symbol(node: Node<'_>, text: &str, depth: usize) -> Option<SourceSymbol> {
    let name = match node.kind() {
        "variable_declarator" if !holds_function(node, "value") && !is_constant(node, text) => return None,
        "field_definition" | "public_field_definition" if !holds_function(node, "value") => return None,
        "assignment_expression" => {
            let left = node.child_by_field_name("left")?;
            let is_export = text_of(left, text).is_some_and(is_exported);
            (is_export && holds_function(node, "right")).then_some(left)?
        }
        kind if is_function(kind) || is_type(kind) => ["name", "property", "type"]
            .iter()
            .find_map(|field| node.child_by_field_name(field))?,
        _ => return None,
    };
    Some(SourceSymbol {
        name: text_of(name, text)?.to_owned(),
        line: node.start_position().row + 1,
        end: node.end_position().row + usize::from(node.end_position().column > 0),
        depth,
        text: definition_line(node, text),
    })
}

fn holds_function(node: Node<'_>, field: &str) -> bool {
    node.child_by_field_name(field).is_some_and(|value| {
        matches!(
            value.kind(),
            "arrow_function" | "function_expression" | "generator_function"
        )
    })
}

/// Returns true for `const LIMIT = 3;` at the top level of a file, or for an exported constant of any name.
fn is_constant(node: Node<'_>, text: &str) -> bool {
    let Some(declaration) = node
        .parent()
        .filter(|above| above.kind() == "lexical_declaration")
    else {
        return false;
    };
    let place = declaration.parent().map_or("", |above| above.kind());
    let name = node
        .child_by_field_name("name")
        .and_then(|name| text_of(name, text));
    let is_upper = name.is_some_and(|name| !name.contains(char::is_lowercase));
    place == "export_statement" || (place == "program" && is_upper)
}

/// Returns true for `exports.f` and `module.exports`.
fn is_exported(left: &str) -> bool {
    left.starts_with("exports.") || left.starts_with("module.exports")
}

fn text_of<'a>(node: Node<'_>, text: &'a str) -> Option<&'a str> {
    node.utf8_text(text.as_bytes()).ok()
}

/// Returns the first line of a definition, including its modifiers (`export`, `pub`, `type`).
fn definition_line(node: Node<'_>, text: &str) -> String {
    let start = node.start_byte();
    let before = text.get(..start).unwrap_or_default();
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let own = before[line..]
        .rfind([';', '{', '}'])
        .map_or(line, |at| line + at + 1);
    let first = text[own..].lines().next().unwrap_or_default().trim();
    let first = first.trim_end_matches('{').trim_end();
    first.chars().take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse_symbols(path: &str, text: &str) -> Vec<SourceSymbol> {
        list_symbols(GrammarLanguage::of(Path::new(path)).unwrap(), text)
    }

    #[test]
    fn each_language_shows_its_symbols() {
        for (path, text, wanted) in [
            (
                "a.py",
                "class A:\n    def f(self):\n        def inner(): pass\n\ndef g(): pass\n",
                ["A", "f", "g"].as_slice(),
            ),
            (
                "a.rs",
                "struct S;\nimpl S { fn f(&self) {} }\npub const N: u8 = 1;\n",
                &["S", "S", "f", "N"],
            ),
            (
                "a.go",
                "package a\nconst N = 1\ntype T struct{}\nfunc (t T) M() {}\nfunc F() {}\n",
                &["N", "T", "M", "F"],
            ),
            (
                "A.java",
                "class A { A() {} int f() { return 1; } }\n",
                &["A", "A", "f"],
            ),
            (
                "a.ts",
                "interface I {}\nclass C { handler = () => 1; x = 2; }\nconst f = () => 1;\nexport const limit = 3;\nconst local = 4;\n",
                &["I", "C", "handler", "f", "limit"],
            ),
            (
                "a.js",
                "function f() {}\nclass C { m() {} }\nexports.g = function () {};\n",
                &["f", "C", "m", "exports.g"],
            ),
        ] {
            let names: Vec<String> = parse_symbols(path, text)
                .into_iter()
                .map(|symbol| symbol.name)
                .collect();
            assert_eq!(names, wanted, "{path}");
        }
    }

    #[test]
    fn definition_line_includes_its_modifiers() {
        let texts = |path, text| -> Vec<String> {
            parse_symbols(path, text)
                .into_iter()
                .map(|symbol| symbol.text)
                .collect()
        };
        assert_eq!(
            texts("a.go", "package a\n\ntype T struct {\n}\n"),
            ["type T struct"]
        );
        assert_eq!(
            texts("a.ts", "export const f = () => {\n};\nexport class C {}\n"),
            ["export const f = () =>", "export class C {}"]
        );
    }
}
