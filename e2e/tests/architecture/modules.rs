//! The modules of a crate are in an order: what one uses does not use it in turn, directly or through others. A folder is
//! one module here; how its files are in order among themselves is its own affair.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use cargo_metadata::Target;

use crate::{metadata, without_test_items};

/// Which module uses which, with a place where it does.
type Uses = BTreeMap<(String, String), String>;

/// Uses that close a circle and are known. The list only gets shorter: what opens its circle is taken off.
const KNOWN: [(&str, &str, &str); 1] = [
    // The stage hires its people, who act on it.
    ("crash_matrix", "people", "stage"),
];

#[test]
fn no_modules_of_a_crate_use_each_other_in_a_circle() {
    let mut crates = 0;
    for package in metadata().workspace_packages() {
        for target in package
            .targets
            .iter()
            .filter(|target| target.is_lib() || target.is_bin())
        {
            let mut uses = uses_of(target);
            crates += 1;
            for (_, from, to) in KNOWN.iter().filter(|(name, ..)| *name == target.name) {
                let known = (from.to_string(), to.to_string());
                assert!(
                    reached(&uses, to).contains(from),
                    "{from} and {to} are in no circle any more"
                );
                uses.remove(&known).unwrap();
            }
            let circle = circle(&uses);
            assert!(circle.is_empty(), "{} {}: {circle:#?}", package.name, target.name);
        }
    }
    assert!(crates > 15, "the crates are not read as expected");
}

/// The uses that lead back to where they come from.
fn circle(uses: &Uses) -> Vec<String> {
    let leads_back = |from: &str, to: &str| reached(uses, to).contains(from);
    let back = uses.iter().filter(|((from, to), _)| leads_back(from, to));
    back.map(|((from, to), place)| format!("{from} uses {to} in {place}"))
        .collect()
}

fn reached<'u>(uses: &'u Uses, from: &'u str) -> BTreeSet<&'u str> {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        let direct = uses.keys().filter(|(user, _)| user == next);
        open.extend(
            direct
                .map(|(_, used)| used.as_str())
                .filter(|used| seen.insert(used)),
        );
    }
    seen
}

/// What the modules of a crate use of each other. What the root of the crate says is not looked at: it names them all.
fn uses_of(target: &Target) -> Uses {
    let root = target.src_path.as_std_path();
    let text = code_of(root);
    let children = modules_in(root, &text, true);
    let modules: BTreeSet<&str> = children.iter().map(|(name, _)| name.as_str()).collect();
    let exported = exported(&text);
    let mut uses = Uses::new();
    let mut open: Vec<(Vec<String>, PathBuf)> = Vec::new();
    open.extend(
        children
            .iter()
            .map(|(name, file)| (vec![name.clone()], file.clone())),
    );
    while let Some((module, file)) = open.pop() {
        let text = code_of(&file);
        for name in names_used(&module, &text) {
            let defined = exported.get(&name).unwrap_or(&name);
            if modules.contains(defined.as_str()) && *defined != module[0] {
                let place = file.file_name().unwrap_or_default().display().to_string();
                uses.insert((module[0].clone(), defined.clone()), place);
            }
        }
        for (name, file) in modules_in(&file, &text, false) {
            open.push(([module.as_slice(), &[name]].concat(), file));
        }
    }
    uses
}

/// The files of the modules that a file declares.
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
        } else if let Some(name) = declared(line) {
            let file = path.take().unwrap_or_else(|| folder.join(format!("{name}.rs")));
            let inside = folder.join(name).join("mod.rs");
            found.push((name.to_owned(), if file.exists() { file } else { inside }));
        }
    }
    found
}

fn declared(line: &str) -> Option<&str> {
    let words = line.strip_suffix(';')?;
    let (visibility, name) = words.rsplit_once("mod ")?;
    (visibility.is_empty() || visibility.starts_with("pub")).then_some(name.trim_start_matches("r#"))
}

/// The names that the root takes out of its modules, with the module of each.
fn exported(root: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in root.split("use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        for path in paths(statement) {
            if let [module, .., name] = path.as_slice() {
                found.insert(name.clone(), module.clone());
            }
        }
    }
    found
}

/// The first segment below the crate's root of whatever a file of this module names by `crate::` or `super::`.
fn names_used(module: &[String], text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | ':')) {
                continue;
            }
            let paths = paths(&text[at..]);
            found.extend(paths.iter().filter_map(|path| below_the_root(module, path)));
        }
    }
    found
}

fn below_the_root(module: &[String], path: &[String]) -> Option<String> {
    let mut place = module.to_vec();
    for segment in path {
        match segment.as_str() {
            "crate" => place.clear(),
            "super" => drop(place.pop()),
            "self" => {}
            name => place.push(name.to_owned()),
        }
    }
    place.into_iter().next()
}

/// The paths that a tree such as `crate::{a::B, c}` stands for.
fn paths(tree: &str) -> Vec<Vec<String>> {
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

/// What is built, without comments.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines = without_test_items(&text);
    let code = lines
        .iter()
        .map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_circle_is_found_however_the_modules_name_each_other() {
    let module = |path: &[&str]| path.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let used = |path: &[&str], text: &str| names_used(&module(path), text).into_iter().collect::<Vec<_>>();
    assert_eq!(
        used(&["a"], "use crate::{b::{self, B}, c::C as D,\n d};"),
        ["b", "c", "d"]
    );
    assert_eq!(used(&["a"], "fn f() -> crate::b::B<super::c::C> {}"), ["b", "c"]);
    assert_eq!(
        used(&["a", "x"], "use super::y;\nuse super::super::b;"),
        ["a", "b"]
    );
    assert_eq!(
        used(&["a"], "not_crate::b::B; $crate::c; other::super_::d"),
        Vec::<String>::new()
    );
    assert_eq!(exported("mod b;\npub use b::{B, inner::C};")["C"], "b");
    let edge = |from: &str, to: &str| ((from.to_owned(), to.to_owned()), String::new());
    let uses = Uses::from([edge("a", "b"), edge("b", "c"), edge("c", "b"), edge("c", "d")]);
    assert_eq!(circle(&uses), ["b uses c in ", "c uses b in "]);
}
