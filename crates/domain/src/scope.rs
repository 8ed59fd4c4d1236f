//! Which parts of a repository a change may touch.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{ModuleRules, Outside, glob::covers};

/// Where a ticket's change may be. A file belongs to the first module whose paths cover it; a file of no module may always be
/// changed.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    modules: &'a [ModuleRules],
    kind: &'a str,
    widened: BTreeSet<String>,
}

/// A module that the model needs beyond those of the ticket's kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Widened {
    /// Its name in the rules.
    pub module: String,
    /// Why, for people.
    pub reason: String,
}

/// What the scope of a ticket's change depends on beside the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeOf {
    /// The type of the ticket, as its tracker names it.
    pub kind: String,
    /// Modules that were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widened: Vec<Widened>,
}

impl<'a> Scope<'a> {
    /// The scope of a kind of ticket, with the modules that were asked for.
    pub fn new(modules: &'a [ModuleRules], kind: &'a str, widened: &[Widened]) -> Self {
        Self {
            modules,
            kind: kind.trim(),
            widened: widened.iter().map(|wish| wish.module.clone()).collect(),
        }
    }

    /// Whether files of a module may be changed.
    pub fn is_open(&self, module: &ModuleRules) -> bool {
        let is_kind = |kind: &String| kind.eq_ignore_ascii_case(self.kind);
        module.kinds.is_empty() || module.kinds.iter().any(is_kind) || self.widened.contains(&module.name)
    }

    /// The module that a file belongs to.
    pub fn module_of(&self, path: &str) -> Option<&'a ModuleRules> {
        let has = |module: &&ModuleRules| module.paths.iter().any(|pattern| covers(pattern, path));
        self.modules.iter().find(has)
    }

    /// A file of a module that may not be changed.
    pub fn outside(&self, path: &str) -> Option<Outside> {
        let module = self.module_of(path).filter(|module| !self.is_open(module))?;
        Some(Outside {
            path: path.to_owned(),
            module: module.name.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, paths: &[&str], kinds: &[&str]) -> ModuleRules {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        ModuleRules {
            name: name.to_owned(),
            paths: owned(paths),
            description: String::new(),
            kinds: owned(kinds),
        }
    }

    #[test]
    fn a_bug_stays_in_the_modules_of_bugs_until_more_is_asked_for() {
        let modules = [
            module("core", &["core"], &[]),
            module("api", &["api"], &["Story"]),
            module("rest", &["**"], &["Chore"]),
        ];
        let bug = Scope::new(&modules, "bug", &[]);
        assert_eq!(bug.outside("core/Task.java"), None);
        assert_eq!(bug.outside("api/TaskController.java").unwrap().module, "api");
        assert_eq!(bug.outside("README.md").unwrap().module, "rest");
        let story = Scope::new(&modules[..2], " story", &[]);
        assert_eq!(story.outside("api/TaskController.java"), None);
        assert_eq!(story.outside("README.md"), None, "a file of no module");
        let widened = Widened {
            module: "api".to_owned(),
            reason: "The field is in the request.".to_owned(),
        };
        let bug = Scope::new(&modules, "Bug", &[widened]);
        assert_eq!(bug.outside("api/TaskController.java"), None);
        assert!(bug.outside("web/x.ts").is_some());
    }
}
