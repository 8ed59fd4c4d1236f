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
            | "var_spec"
            | "const_item"
            | "static_item"
            | "declaration"
            | "field_declaration"
            | "type_definition"
            | "alias_declaration"
            | "concept_definition"
            | "preproc_def"
            | "preproc_function_def"
            | "method"
            | "singleton_method"
            | "const_element"
            | "property_declaration"
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
            | "trait_declaration"
            | "object_declaration"
            | "type_alias"
    )
}

fn read_symbol(node: Node<'_>, text: &str, depth: usize) -> Option<SourceSymbol> {
    let name = find_name(node, text)?;
    Some(SourceSymbol {
        name: text_of(find_unqualified_name(name), text)?.to_owned(),
        line: node.start_position().row + 1,
        end: node.end_position().row + usize::from(node.end_position().column > 0),
        depth,
        text: definition_line(node, name, text),
    })
}

/// Returns the name of a definition; `None` for a node that defines nothing.
fn find_name<'tree>(node: Node<'tree>, text: &str) -> Option<Node<'tree>> {
    match node.kind() {
        "variable_declarator" if !holds_function(node, "value") && !is_constant(node, text) => None,
        "field_definition" | "public_field_definition" if !holds_function(node, "value") => None,
        "assignment_expression" => {
            let left = node.child_by_field_name("left")?;
            let is_export = text_of(left, text).is_some_and(is_exported);
            (is_export && holds_function(node, "right")).then_some(left)
        }
        // Ruby and Python: an assignment to a constant.
        "assignment" => node
            .child_by_field_name("left")
            .filter(|left| left.kind() == "constant" || is_python_constant(*left, text)),
        // JavaScript and TypeScript have these kinds too, with other names.
        "class" | "module" => node
            .child_by_field_name("name")
            .filter(|name| matches!(name.kind(), "constant" | "scope_resolution")),
        "const_element" => find_child(node, "name"),
        "property_declaration" => find_kotlin_constant(node, text),
        // A definition without a value marks that a header is included.
        "preproc_def" => {
            node.child_by_field_name("value")?;
            node.child_by_field_name("name")
        }
        // Without a body it is a reference.
        "namespace_definition"
        | "class_specifier"
        | "struct_specifier"
        | "union_specifier"
        | "enum_specifier" => {
            node.child_by_field_name("body")?;
            node.child_by_field_name("name")
        }
        "type_definition" => find_declared_name(node).map(|(name, _)| name),
        "declaration" | "field_declaration" => find_declared_function(node),
        "function_definition" if node.child_by_field_name("declarator").is_some() => {
            find_declared_function(node)
        }
        kind if is_function(kind) || is_type(kind) => ["name", "property", "type"]
            .iter()
            .find_map(|field| node.child_by_field_name(field)),
        _ => None,
    }
}

fn find_child<'tree>(node: Node<'tree>, kind: &str) -> Option<Node<'tree>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .find(|child| child.kind() == kind)
}

/// Returns true for the name in `LIMIT = 3` of a module or a class.
fn is_python_constant(name: Node<'_>, text: &str) -> bool {
    name.kind() == "identifier"
        && text_of(name, text)
            .is_some_and(|name| name.contains(char::is_uppercase) && !name.contains(char::is_lowercase))
}

/// Returns the name of `const val LIMIT = 3`.
fn find_kotlin_constant<'tree>(node: Node<'tree>, text: &str) -> Option<Node<'tree>> {
    let modifiers = text_of(find_child(node, "modifiers")?, text)?;
    let is_constant = modifiers.split_whitespace().any(|word| word == "const");
    let variable = find_child(node, "variable_declaration").filter(|_| is_constant)?;
    find_child(variable, "identifier")
}

/// Returns the name of the function that a declaration of C or C++ declares.
fn find_declared_function(node: Node<'_>) -> Option<Node<'_>> {
    let (name, is_function) = find_declared_name(node)?;
    is_function.then_some(name)
}

/// Returns the name that a declaration of C or C++ declares, and true if it is a function.
fn find_declared_name(node: Node<'_>) -> Option<(Node<'_>, bool)> {
    let mut declarator = find_inner_declarator(node)?;
    let mut is_function = false;
    while let Some(inner) = find_inner_declarator(declarator) {
        // `int (*name)(int)` declares a pointer to a function.
        is_function |=
            declarator.kind() == "function_declarator" && inner.kind() != "parenthesized_declarator";
        declarator = inner;
    }
    Some((declarator, is_function))
}

fn find_inner_declarator(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        // These have no field for it.
        "reference_declarator" | "parenthesized_declarator" | "attributed_declarator" => node.named_child(0),
        _ => node.child_by_field_name("declarator"),
    }
}

/// Returns the last part of a qualified name, without arguments of a template.
fn find_unqualified_name(name: Node<'_>) -> Node<'_> {
    let mut part = name;
    while matches!(
        part.kind(),
        "qualified_identifier" | "scope_resolution" | "template_function" | "template_type"
    ) && let Some(inner) = part.child_by_field_name("name")
    {
        part = inner;
    }
    part
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

/// Returns the first line of a definition, including its modifiers (`export`, `pub`, `type`), and the lines up
/// to its name. Lines of a body in between are left out.
fn definition_line(node: Node<'_>, name: Node<'_>, text: &str) -> String {
    let start = find_signature_start(node).unwrap_or_else(|| node.start_byte());
    let before = text.get(..start).unwrap_or_default();
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let own = before[line..]
        .rfind([';', '{', '}'])
        .map_or(line, |at| line + at + 1);
    let breaks = text
        .get(own..name.end_byte())
        .map_or(0, |before_name| before_name.matches('\n').count());
    let lines: Vec<&str> = text[own..].lines().take(breaks + 1).map(str::trim).collect();
    let joined = match lines.as_slice() {
        [first, .., last] if first.ends_with('{') => format!("{first} … {last}"),
        header => header.join(" "),
    };
    let shown = joined.trim().trim_end_matches('{').trim_end();
    shown.chars().take(MAX_SHOWN).collect()
}

/// Returns the first byte of a definition after its annotations; `None` if nothing else is in the node.
fn find_signature_start(node: Node<'_>) -> Option<usize> {
    let mut cursor = node.walk();
    node.children(&mut cursor).find_map(|child| match child.kind() {
        "annotation" | "marker_annotation" | "attribute_list" | "decorator" => None,
        "modifiers" => find_signature_start(child),
        _ => Some(child.start_byte()),
    })
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
                "LIMIT = 3\nlocal = 4\nclass A:\n    MAX: int = 5\n    def f(self):\n        def inner(): pass\n\ndef g(): pass\n",
                ["LIMIT", "A", "MAX", "f", "g"].as_slice(),
            ),
            (
                "a.rs",
                "struct S;\nimpl S { fn f(&self) {} }\npub const N: u8 = 1;\n",
                &["S", "S", "f", "N"],
            ),
            (
                "a.go",
                "package a\nconst N = 1\nvar ErrGone = f()\ntype T struct{}\nfunc (t T) M() {}\nfunc F() { var local int }\n",
                &["N", "ErrGone", "T", "M", "F"],
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
            (
                "a.h",
                "#ifndef A_H\n#define A_H\nstruct line;\nint (*callback)(int);\nextern int total(struct line *first);\n",
                &["total"],
            ),
            ("a.ts", "const local = class Inner {};\nmodule M {}\n", &[]),
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
        assert_eq!(
            texts(
                "A.java",
                "@Entity\nclass A {\n  @Override\n  public int f() {\n  }\n}\n"
            ),
            ["class A", "public int f()"]
        );
    }

    /// Returns the definitions of a text, indented by their depth.
    fn render_outline(path: &str, text: &str) -> Vec<String> {
        let symbols = parse_symbols(path, text).into_iter();
        symbols
            .map(|symbol| "  ".repeat(symbol.depth) + &symbol.text)
            .collect()
    }

    #[test]
    fn nested_definitions_show_their_signatures() {
        for (path, text, wanted) in [
            (
                "a.c",
                "#define LIMIT 10\ntypedef struct {\n  int size;\n} cart_t;\nenum kind { SMALL, LARGE };\n\
                 static cart_t *\nfind_cart(int id)\n{\n  int inner(void);\n  return 0;\n}\n",
                [
                    "#define LIMIT 10",
                    "typedef struct { … } cart_t;",
                    "enum kind { SMALL, LARGE };",
                    "static cart_t * find_cart(int id)",
                ]
                .as_slice(),
            ),
            (
                "a.cpp",
                "namespace shop {\ntemplate <typename T> class Cart : public Base<T> {\n public:\n  \
                 explicit Cart(int size);\n  int &at(int place);\n  struct Line { int price; };\n  int size_;\n};\n\
                 template <typename T> int Cart<T>::total() const { return 0; }\n}\nusing Id = int;\nclass Forward;\n",
                &[
                    "namespace shop",
                    "  template <typename T> class Cart : public Base<T>",
                    "    explicit Cart(int size);",
                    "    int &at(int place);",
                    "    struct Line { int price; };",
                    "  template <typename T> int Cart<T>::total() const { return 0; }",
                    "using Id = int;",
                ],
            ),
            (
                "a.rb",
                "module Shop\n  LIMIT = 3\n  class Cart < Base\n    def total(currency: :eur)\n      def inner; end\n    \
                 end\n\n    def self.empty = new([])\n  end\nend\nclass Shop::Line; end\n",
                &[
                    "module Shop",
                    "  LIMIT = 3",
                    "  class Cart < Base",
                    "    def total(currency: :eur)",
                    "    def self.empty = new([])",
                    "class Shop::Line; end",
                ],
            ),
            (
                "a.php",
                "<?php\nnamespace Shop;\nconst LIMIT = 3;\n#[Entity]\nfinal class Cart implements Priced\n{\n    use Logs;\n    \
                 public const MAX = 9;\n    private array $items = [];\n    \
                 public function total(?string $currency = null): int\n    {\n        $sum = function () {};\n        \
                 return 0;\n    }\n}\nfunction helper(array $a): void {}\n",
                &[
                    "const LIMIT = 3;",
                    "final class Cart implements Priced",
                    "  public const MAX = 9;",
                    "  public function total(?string $currency = null): int",
                    "function helper(array $a): void {}",
                ],
            ),
            (
                "a.kt",
                "const val LIMIT = 3\nval local = 4\n\n@Serializable\ndata class Cart(val items: List<Item>) : Priced {\n    \
                 @Throws(IOException::class)\n    override fun total(): Int {\n        fun inner() {}\n        return 0\n    }\n\n    \
                 companion object {\n        fun empty() = Cart(listOf())\n    }\n}\n\n\
                 object Registry {\n    fun <T> find(id: Id): T? = null\n}\ntypealias Id = String\n",
                &[
                    "const val LIMIT = 3",
                    "data class Cart(val items: List<Item>) : Priced",
                    "  override fun total(): Int",
                    "  fun empty() = Cart(listOf())",
                    "object Registry",
                    "  fun <T> find(id: Id): T? = null",
                    "typealias Id = String",
                ],
            ),
            (
                "a.sh",
                "#!/bin/sh\nLIMIT=3\nbuild() {\n  inner() { :; }\n}\nfunction deploy {\n  build\n}\n",
                &["build()", "function deploy"],
            ),
        ] {
            assert_eq!(render_outline(path, text), wanted, "{path}");
        }
    }

    #[test]
    fn name_of_symbol_has_no_qualifier() {
        for (path, text, wanted) in [
            ("a.cpp", "int shop::Cart<T>::total() { return 0; }\n", "total"),
            ("a.rb", "class Shop::Line; end\n", "Line"),
            (
                "a.c",
                "static char **find_names(void) { return 0; }\n",
                "find_names",
            ),
        ] {
            let found = parse_symbols(path, text);
            assert_eq!(found[0].name, wanted, "{path}");
        }
    }

    #[test]
    fn broken_text_keeps_later_symbols() {
        for (path, text) in [
            (
                "a.c",
                "int first(void) { return (1; }\nint second(void) { return 2; }\n",
            ),
            (
                "a.cpp",
                "class Cart {\n  int total( ;\n};\nint second() { return 2; }\n",
            ),
            ("a.rb", "class Cart\n  def total(\n  end\nend\ndef second; end\n"),
            (
                "a.php",
                "<?php\nclass Cart {\n  public function total( {}\n}\nfunction second() {}\n",
            ),
            (
                "a.kt",
                "class Cart {\n    fun total() = (1\n}\n\nfun second() {}\n",
            ),
            ("a.sh", "first() {\n  echo $(\n}\nsecond() { :; }\n"),
        ] {
            let names: Vec<String> = parse_symbols(path, text)
                .into_iter()
                .map(|symbol| symbol.name)
                .collect();
            assert!(names.contains(&"second".to_owned()), "{path}: {names:?}");
        }
    }
}
