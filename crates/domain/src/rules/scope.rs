//! Scope of a change: the modules of a repository that it may modify, and the files outside of them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::rules::{glob::is_path_covered, sections::ModuleRules};

/// Scope of a ticket's change. A file belongs to the first module with a matching path. A file without a
/// module is always in scope.
#[derive(Clone, Debug)]
pub struct ChangeScope<'a> {
    modules: &'a [ModuleRules],
    /// Kind of the ticket in lower case.
    kind: String,
    widened: BTreeSet<String>,
}

/// A module outside of the ticket's scope that the model requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WidenedModule {
    /// Name of the module in the rules.
    pub module: String,
    /// Reason of the request, for people.
    pub reason: String,
}

/// Properties of a ticket that determine its scope together with the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeInputs {
    /// The type of the ticket in its tracker.
    pub kind: String,
    /// Modules that the model requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widened: Vec<WidenedModule>,
}

impl<'a> ChangeScope<'a> {
    /// Creates the scope for a kind of ticket, with the requested modules.
    pub fn new(modules: &'a [ModuleRules], kind: &str, widened: &[WidenedModule]) -> Self {
        Self {
            modules,
            kind: kind.trim().to_lowercase(),
            widened: widened.iter().map(|wish| wish.module.clone()).collect(),
        }
    }

    /// Returns true when the scope permits changes of a module.
    pub fn is_open(&self, module: &ModuleRules) -> bool {
        let is_kind = |kind: &String| kind.to_lowercase() == self.kind;
        module.kinds.is_empty() || module.kinds.iter().any(is_kind) || self.widened.contains(&module.name)
    }

    /// Returns the module that a file belongs to.
    pub fn module_of(&self, path: &str) -> Option<&'a ModuleRules> {
        let has = |module: &&ModuleRules| module.paths.iter().any(|pattern| is_path_covered(pattern, path));
        self.modules.iter().find(has)
    }

    /// Returns the modules with these files, in the order of the rules.
    pub fn touched_modules<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Vec<&'a ModuleRules> {
        let touched: BTreeSet<&str> = paths
            .filter_map(|path| Some(self.module_of(path)?.name.as_str()))
            .collect();
        let is_touched = |module: &&ModuleRules| touched.contains(module.name.as_str());
        self.modules.iter().filter(is_touched).collect()
    }

    /// Returns the file with its module if the file is outside of the scope.
    pub fn outside(&self, path: &str) -> Option<OutOfScopeFile> {
        let module = self.module_of(path).filter(|module| !self.is_open(module))?;
        Some(OutOfScopeFile {
            path: path.to_owned(),
            module: module.name.clone(),
        })
    }
}

/// A changed file outside of the scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfScopeFile {
    /// Path relative to the root.
    pub path: String,
    /// The module that contains the file.
    pub module: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_module(name: &str, paths: &[&str], kinds: &[&str]) -> ModuleRules {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        ModuleRules {
            name: name.to_owned(),
            paths: owned(paths),
            description: String::new(),
            kinds: owned(kinds),
            ..ModuleRules::default()
        }
    }

    #[test]
    fn touched_modules_are_listed_once_in_order() {
        let mut modules = [
            build_module("core", &["core"], &[]),
            build_module("api", &["api"], &[]),
            build_module("rest", &["**/*.md"], &[]),
        ];
        modules[1].owners = vec!["eve".to_owned()];
        let scope = ChangeScope::new(&modules, "", &[]);
        let list = |paths: &[&str]| {
            let touched = scope.touched_modules(paths.iter().copied());
            touched
                .into_iter()
                .map(|module| module.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            list(&["api/a.rs", "core/b.rs", "api/c.md", "x.txt"]),
            ["core", "api"]
        );
        assert_eq!(list(&["README.md"]), ["rest"]);
        assert!(list(&["x.txt"]).is_empty());
    }

    #[test]
    fn scope_excludes_modules_until_widened() {
        let modules = [
            build_module("core", &["core"], &[]),
            build_module("api", &["api"], &["Story"]),
            build_module("rest", &["**"], &["Chore"]),
        ];
        let bug = ChangeScope::new(&modules, "bug", &[]);
        assert_eq!(bug.outside("core/Task.java"), None);
        assert_eq!(bug.outside("api/TaskController.java").unwrap().module, "api");
        assert_eq!(bug.outside("README.md").unwrap().module, "rest");
        let story = ChangeScope::new(&modules[..2], " story", &[]);
        assert_eq!(story.outside("api/TaskController.java"), None);
        assert_eq!(story.outside("README.md"), None, "a file of no module");
        let change = [build_module("api", &["api"], &["änderung"])];
        let scope = ChangeScope::new(&change, "Änderung", &[]);
        assert_eq!(scope.outside("api/a.rs"), None, "letters beyond ASCII");
        let widened = WidenedModule {
            module: "api".to_owned(),
            reason: "The field is in the request.".to_owned(),
        };
        let bug = ChangeScope::new(&modules, "Bug", &[widened]);
        assert_eq!(bug.outside("api/TaskController.java"), None);
        assert!(bug.outside("web/x.ts").is_some());
    }
}
