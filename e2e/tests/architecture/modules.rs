//! The files of a crate are in an order: a file that uses another one is not used by it, directly or through others. A registry may
//! name the files beneath it (`mod.rs`, `lib.rs`), which use what it defines.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use cargo_metadata::Target;

use crate::{load_metadata, without_test_items};

/// Pairs of modules (`a::b`) of which the first uses the second.
type Uses = BTreeSet<(String, String)>;
/// Segments of a module's path below the crate's root, which has none.
type ModulePath = Vec<String>;

/// Folders whose files use each other in a circle: target, folder. The list only gets shorter.
const KNOTS: [(&str, &str); 6] = [
    // The stage hires its people, who act on it.
    ("scenarios", "crash_matrix"),
    ("executor", "retrieval"),
    ("planner", "model"),
    ("testkit", "github"),
    ("testkit", "jira"),
    ("testkit", "model"),
];

#[test]
fn files_use_each_other_in_no_circle() {
    let (mut crates, mut circles) = (0, Vec::new());
    for package in load_metadata().workspace_packages() {
        for target in package
            .targets
            .iter()
            .filter(|target| target.is_lib() || target.is_bin())
        {
            let mut uses = collect_uses(target);
            crates += 1;
            // A program of one file has the name of its library.
            let knots = KNOTS
                .iter()
                .filter(|(name, _)| *name == target.name && !uses.is_empty())
                .collect::<Vec<_>>();
            for (_, folder) in knots {
                let is_inside = |(from, to): &(String, String)| is_in(folder, from) && is_in(folder, to);
                let inside: Uses = uses.iter().filter(|edge| is_inside(edge)).cloned().collect();
                assert!(
                    !find_circle(&inside).is_empty(),
                    "{} {folder} has no circle any more",
                    target.name
                );
                uses.retain(|edge| !is_inside(edge));
            }
            circles.extend(
                find_circle(&uses)
                    .into_iter()
                    .map(|line| format!("{} {}: {line}", package.name, target.name)),
            );
        }
    }
    assert!(crates > 15, "the crates are not read as expected");
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

fn is_in(folder: &str, module: &str) -> bool {
    module
        .strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Uses that lead back to the module that they start from.
fn find_circle(uses: &Uses) -> Vec<String> {
    uses.iter()
        .filter(|(from, to)| find_reachable_modules(uses, to).contains(from.as_str()))
        .map(|(from, to)| format!("{from} uses {to}"))
        .collect()
}

fn find_reachable_modules<'u>(uses: &'u Uses, from: &'u str) -> BTreeSet<&'u str> {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        let direct = uses.iter().filter(|(user, _)| user == next);
        open.extend(
            direct
                .map(|(_, used)| used.as_str())
                .filter(|used| seen.insert(used)),
        );
    }
    seen
}

/// Modules of a crate, each with its code and with the names that it takes out of modules beneath it.
struct Modules(BTreeMap<ModulePath, (String, BTreeMap<String, String>)>);

impl Modules {
    fn read(target: &Target) -> Self {
        let mut found = BTreeMap::new();
        let mut open = vec![(ModulePath::new(), target.src_path.as_std_path().to_owned())];
        while let Some((module, file)) = open.pop() {
            let text = code_of(&file);
            for (name, file) in modules_in(&file, &text, module.is_empty()) {
                open.push(([module.as_slice(), &[name]].concat(), file));
            }
            let exported = list_exported_names(&text);
            found.insert(module, (text, exported));
        }
        Self(found)
    }

    /// The module that defines the item of a path, through the registries that export it.
    fn defining(&self, path: &[String]) -> ModulePath {
        let mut module = ModulePath::new();
        for segment in path {
            let mut next = [module.as_slice(), std::slice::from_ref(segment)].concat();
            // A registry may export from a registry.
            for _ in 0..4 {
                let Some(child) = self
                    .0
                    .get(&module)
                    .and_then(|(_, exported)| exported.get(segment))
                else {
                    break;
                };
                let below = [module.as_slice(), std::slice::from_ref(child)].concat();
                if self.0.contains_key(&next) || !self.0.contains_key(&below) {
                    break;
                }
                next = [below.as_slice(), std::slice::from_ref(segment)].concat();
                module = below;
            }
            if !self.0.contains_key(&next) {
                break;
            }
            module = next;
        }
        module
    }
}

/// Uses of each other among the files of a crate. The root names them all, and a registry those beneath it.
fn collect_uses(target: &Target) -> Uses {
    let modules = Modules::read(target);
    let mut uses = Uses::new();
    for (module, (text, _)) in &modules.0 {
        for path in paths_used(module, text) {
            let used = modules.defining(&path);
            if !module.is_empty() && !used.is_empty() && !used.starts_with(module) {
                uses.insert((module.join("::"), used.join("::")));
            }
        }
    }
    uses
}

/// Returns the files of the modules that a file declares.
fn modules_in(file: &Path, text: &str, is_root: bool) -> Vec<(String, PathBuf)> {
    let folder = file.parent().unwrap();
    let stem = file.file_stem().unwrap();
    let folder = if is_root || stem == "mod" {
        folder.to_owned()
    } else {
        folder.join(stem)
    };
    let mut found = Vec::new();
    let mut path = None;
    for line in text.lines().map(str::trim) {
        if let Some(named) = line.strip_prefix("#[path = \"") {
            path = named
                .split('"')
                .next()
                .map(|named| file.parent().unwrap().join(named));
        } else if let Some(name) = parse_module_declaration(line) {
            let file = path.take().unwrap_or_else(|| folder.join(format!("{name}.rs")));
            let inside = folder.join(name).join("mod.rs");
            found.push((name.to_owned(), if file.exists() { file } else { inside }));
        }
    }
    found
}

fn parse_module_declaration(line: &str) -> Option<&str> {
    let words = line.strip_suffix(';')?;
    let (visibility, name) = words.rsplit_once("mod ")?;
    (visibility.is_empty() || visibility.starts_with("pub")).then_some(name.trim_start_matches("r#"))
}

/// Returns the names that the root re-exports, with their modules.
fn list_exported_names(root: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in root.split("use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        for path in parse_use_tree(statement) {
            let path = path.strip_prefix(&["self".to_owned()]).unwrap_or(&path);
            if let [module, .., name] = path {
                found.insert(name.clone(), module.clone());
            }
        }
    }
    found
}

/// Paths below the crate's root that the file of a module names by `crate::` or `super::`.
fn paths_used(module: &[String], text: &str) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | ':')) {
                continue;
            }
            let paths = parse_use_tree(&text[at..]);
            found.extend(paths.iter().map(|path| below_root(module, path)));
        }
    }
    found
}

fn below_root(module: &[String], path: &[String]) -> Vec<String> {
    let mut place = module.to_vec();
    for segment in path {
        match segment.as_str() {
            "crate" => place.clear(),
            "super" => drop(place.pop()),
            "self" => {}
            name => place.push(name.to_owned()),
        }
    }
    place
}

/// Returns the paths of a use tree such as `crate::{a::B, c}`.
fn parse_use_tree(tree: &str) -> Vec<Vec<String>> {
    let mut reader = Reader { rest: tree };
    reader.tree()
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn tree(&mut self) -> Vec<Vec<String>> {
        let name = self.name();
        if self.takes("::") {
            let below = if self.takes("{") {
                self.trees()
            } else {
                self.tree()
            };
            let joined = below.into_iter().map(|path| [vec![name.clone()], path].concat());
            return joined.collect();
        }
        if self.takes("as ") {
            self.name();
        }
        vec![if name.is_empty() { Vec::new() } else { vec![name] }]
    }

    fn trees(&mut self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        while !self.takes("}") && !self.rest.is_empty() {
            found.extend(self.tree());
            if !self.takes(",") && !self.rest.starts_with('}') {
                self.rest = self.rest.get(1..).unwrap_or_default();
            }
        }
        found
    }

    fn name(&mut self) -> String {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        name.to_owned()
    }

    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

/// Returns the built code of a file without comments.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines = without_test_items(&text);
    let code = lines
        .iter()
        .map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

#[test]
fn circle_is_found_through_every_way_to_name_a_module() {
    let module = |path: &[&str]| path.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let used = |path: &[&str], text: &str| {
        let paths = paths_used(&module(path), text);
        paths.iter().map(|path| path.join("::")).collect::<Vec<_>>()
    };
    assert_eq!(
        used(&["a"], "use crate::{b::{self, B}, c::C as D,\n d};"),
        ["b", "b::B", "c::C", "d"]
    );
    assert_eq!(
        used(&["a"], "fn f() -> crate::b::B<super::c::C> {}"),
        ["b::B", "c::C"]
    );
    assert_eq!(
        used(&["a", "x"], "use super::y;\nuse super::super::b;"),
        ["a::y", "b"]
    );
    assert_eq!(
        used(&["a"], "not_crate::b::B; $crate::c; other::super_::d"),
        Vec::<String>::new()
    );
    let file = |text: &str| (text.to_owned(), list_exported_names(text));
    let modules = Modules(BTreeMap::from([
        (module(&[]), file("mod b;\npub use b::{B, inner::C};")),
        (module(&["b"]), file("mod inner;\nuse self::inner::C;")),
        (module(&["b", "inner"]), file("")),
    ]));
    let defining = |path: &[&str]| modules.defining(&module(path)).join("::");
    assert_eq!(defining(&["B"]), "b");
    assert_eq!(defining(&["C"]), "b::inner");
    assert_eq!(defining(&["b", "inner", "D", "e"]), "b::inner");
    let edge = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let uses = Uses::from([edge("a", "b"), edge("b", "c"), edge("c", "b"), edge("c", "d")]);
    assert_eq!(find_circle(&uses), ["b uses c", "c uses b"]);
}
