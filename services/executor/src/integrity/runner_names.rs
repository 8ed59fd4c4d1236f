//! Names that a file binds to a test runner or to the global object, and lines that replace a part of what they
//! stand for.
//!
//! `from pytest import Function` and `const g = globalThis` give a runner another name, which no pattern of one
//! line shows.

use std::collections::BTreeSet;

use super::paths::SourceLanguage;
use crate::pattern::LazyPattern;

static PYTHON_ALIAS: LazyPattern = LazyPattern::new(
    r"\b(?:(?:_?pytest|pluggy)(?:\.\w+)*|unittest(?:\.(?:case|result|runner|suite|loader|main))?)\s+as\s+(\w+)",
);
static PYTHON_IMPORT: LazyPattern = LazyPattern::new(
    r"(?m)^[ \t]*from[ \t]+(?:(?:_?pytest|pluggy)(?:\.\w+)*|unittest(?:\.(?:case|result|runner|suite|loader|main))?)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^\n#;]+))",
);
static PYTHON_MODULE: LazyPattern = LazyPattern::new(
    r"^\s*(\w+)\s*=.*(?:\bimport_module\(|\b__import__\(|\bsys\.modules\[|\bsys\.modules\.get\()\s*['\x22](?:_?pytest|pluggy|unittest)\b",
);
static PYTHON_REBOUND: LazyPattern =
    LazyPattern::new(r"^\s*(\w+)\s*=\s*(?:getattr\(\s*)?([A-Za-z_]\w*)(?:(?:\.\w+)*\s*|\s*,[^)]*\)\s*)$");
static PYTHON_ASSIGNED: LazyPattern = LazyPattern::new(r"\b([A-Za-z_]\w*)(?:\.\w+)*\.(\w+)\s*=(?:[^=]|$)");
static PYTHON_SET: LazyPattern =
    LazyPattern::new(r"\b(?:setattr|delattr|__setattr__|__delattr__|patch\.object)\(\s*([A-Za-z_]\w*)");

static SCRIPT_GLOBAL: LazyPattern = LazyPattern::new(
    r"\b(?:const|let|var)\s+(\w+)(?:\s*:\s*[^=]+)?\s*=\s*(?:typeof\s[^;]*\?\s*)?\(?(?:globalThis|global)\b(?:\s+as\s[^;]*|\s*(?:\)|:|\|\||\?\?|&&).*)?\s*;?\s*$",
);
static SCRIPT_RETURN_THIS: LazyPattern = LazyPattern::new(
    r"\b(?:const|let|var)\s+(\w+)\s*=.*(?:\bFunction\(|\beval\)?\()\s*['\x22](?:return\s+)?this['\x22]",
);
static SCRIPT_REBOUND: LazyPattern =
    LazyPattern::new(r"\b(?:const|let|var)\s+(\w+)(?:\s*:\s*[^=]+)?\s*=\s*(\w+)\s*;?\s*$");
static SCRIPT_MODULE: LazyPattern = LazyPattern::new(
    r"\b(?:const|let|var)\s+(\w+)\s*=\s*(?:require\(\s*['\x22](?:(?:node:)?(?:module|assert|test)|node:assert/strict|assert/strict|expect|@jest/globals|vitest)['\x22]\s*\)|module\.constructor\b)|\bimport\s+(?:\*\s+as\s+)?(\w+)\s+from\s+['\x22](?:(?:node:)?(?:module|assert|test)|node:assert/strict|assert/strict|expect|@jest/globals|vitest)['\x22]",
);
static SCRIPT_ASSIGNED: LazyPattern = LazyPattern::new(
    r"\b(\w+)(?:\.|\[\s*['\x22`])(\w+)\b['\x22`\]]*(?:\.\w+|\[[^\]]*\])*\s*(?:\|\||&&|\?\?)?=(?:[^=>]|$)",
);
static SCRIPT_SET: LazyPattern = LazyPattern::new(
    r"\b(?:Object\.(?:defineProperty|defineProperties|assign|setPrototypeOf)|Reflect\.(?:set|defineProperty|deleteProperty|setPrototypeOf))\(\s*(\w+)\b(?:\s*,\s*['\x22`](\w+)['\x22`]\s*[,)])?",
);

/// Functions of JavaScript runners that tests find in the global object.
const TEST_GLOBALS: [&str; 15] = [
    "after",
    "afterAll",
    "afterEach",
    "assert",
    "before",
    "beforeAll",
    "beforeEach",
    "describe",
    "expect",
    "it",
    "jest",
    "specify",
    "suite",
    "test",
    "vi",
];
/// Attributes of a test case that decide how a failure is printed, not whether a test fails.
const PRINTING: [&str; 2] = ["longMessage", "maxDiff"];

/// Names of one file for runners.
#[derive(Debug, Default)]
pub(super) struct RunnerNames {
    /// Modules of runners, their parts, and other names for both.
    parts: BTreeSet<String>,
    /// Names for the global object.
    globals: BTreeSet<String>,
}

impl RunnerNames {
    /// Reads the names that a file binds.
    pub(super) fn read(language: SourceLanguage, text: &str) -> Self {
        let mut names = Self::default();
        if language == SourceLanguage::Python {
            names.read_python(text);
        } else if language == SourceLanguage::Script {
            names.read_script(text);
        }
        names
    }

    fn read_python(&mut self, text: &str) {
        self.parts
            .extend(["pytest", "_pytest", "pluggy", "unittest"].map(str::to_owned));
        self.parts
            .extend(PYTHON_ALIAS.all(text).map(|alias| alias[1].to_owned()));
        for import in PYTHON_IMPORT.all(text) {
            let list = import.get(1).or(import.get(2)).map_or("", |list| list.as_str());
            // The last word is the name in this file, as in `Function as F`.
            let bound = list.split(',').filter_map(|name| name.split_whitespace().last());
            self.parts
                .extend(bound.filter(|name| *name != "mock").map(str::to_owned));
        }
        for line in text.lines() {
            if let Some(module) = PYTHON_MODULE.first(line) {
                self.parts.insert(module.to_owned());
            } else if let Some(bound) = PYTHON_REBOUND.captures(line)
                && self.parts.contains(&bound[2])
            {
                self.parts.insert(bound[1].to_owned());
            }
        }
    }

    fn read_script(&mut self, text: &str) {
        self.globals
            .extend(["global", "globalThis", "window"].map(str::to_owned));
        for line in text.lines() {
            let global = SCRIPT_GLOBAL
                .first(line)
                .or_else(|| SCRIPT_RETURN_THIS.first(line));
            if let Some(name) = global {
                self.globals.insert(name.to_owned());
            } else if let Some(module) = SCRIPT_MODULE.captures(line) {
                let name = module.get(1).or(module.get(2));
                self.parts.extend(name.map(|name| name.as_str().to_owned()));
            } else if let Some(bound) = SCRIPT_REBOUND.captures(line) {
                if self.globals.contains(&bound[2]) {
                    self.globals.insert(bound[1].to_owned());
                } else if self.parts.contains(&bound[2]) {
                    self.parts.insert(bound[1].to_owned());
                }
            }
        }
    }

    /// Returns true when a line replaces a part of a runner under one of these names.
    pub(super) fn are_patched_by(&self, line: &str) -> bool {
        if self.parts.is_empty() && self.globals.is_empty() {
            return false;
        }
        // Only JavaScript has names for the global object.
        let (assigned, set) = if self.globals.is_empty() {
            (&PYTHON_ASSIGNED, &PYTHON_SET)
        } else {
            (&SCRIPT_ASSIGNED, &SCRIPT_SET)
        };
        let is_replaced = assigned.all(line).any(|found| {
            let is_part = self.parts.contains(&found[1]) && !PRINTING.contains(&&found[2]);
            is_part || (self.globals.contains(&found[1]) && TEST_GLOBALS.contains(&&found[2]))
        });
        let is_set = set.all(line).any(|found| {
            // Tests replace functions of a browser by their names, as Jest's documentation shows for `matchMedia`.
            let is_other = found
                .get(2)
                .is_some_and(|name| !TEST_GLOBALS.contains(&name.as_str()));
            self.parts.contains(&found[1]) || (self.globals.contains(&found[1]) && !is_other)
        });
        is_replaced || is_set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_patched(language: SourceLanguage, text: &str) -> bool {
        let names = RunnerNames::read(language, text);
        text.lines().any(|line| names.are_patched_by(line))
    }

    #[test]
    fn patched_runner_is_found_under_other_names() {
        for text in [
            "import pytest\npytest.Function.runtest = f\n",
            "from pytest import Function\nFunction.obj = f\n",
            "from pytest import (\n    Item,\n    Function as F,\n)\nF.obj = f\n",
            "from pytest import Function\nsetattr(Function, name, f)\n",
            "import _pytest.python as p\np.Function.setup = f\n",
            "import pytest as p\nF = p.Function\nF.obj = f\n",
            "import pytest\nF = getattr(pytest, name)\nF.obj = f\n",
            "p = importlib.import_module('pytest')\np.Function.obj = f\n",
            "from unittest import TestCase as T\nT.assertEqual = f\n",
        ] {
            assert!(is_patched(SourceLanguage::Python, text), "{text}");
        }
        for text in [
            "const g = globalThis;\ng.expect = f;\n",
            "const g: any = globalThis as any\ng['expect'] = f\n",
            "var root = typeof globalThis !== 'undefined' ? globalThis : global;\nroot.it = f;\n",
            "const g = new Function('return this')();\ng.describe ||= f;\n",
            "const a = globalThis;\nconst b = a;\nb.test = f;\n",
            "const g = globalThis;\nObject.defineProperties(g, table);\n",
            "const g = globalThis;\nReflect.set(g, 'expect', f);\n",
            "Object.defineProperty(window, 'expect', { value: f });\n",
            "Object.defineProperty(window, 'ex' + 'pect', { value: f });\n",
            "Object.assign(window, table);\n",
            "global['expect'] = f;\n",
            "globalThis.expect =\n  f;\n",
            "const M = require('node:module');\nM._load = f;\n",
            "const M = module.constructor;\nM._load = f;\n",
            "import a from 'node:assert';\na.strictEqual = f;\n",
        ] {
            assert!(is_patched(SourceLanguage::Script, text), "{text}");
        }
    }

    #[test]
    fn other_names_patch_nothing() {
        for text in [
            "from shop import Function\nFunction.limit = 3\n",
            "import pytest\nconfig.pytest = True\nassert pytest.approx == f\n",
            "from unittest import TestCase\nTestCase.maxDiff = None\n",
            "from unittest import mock\nmock.return_value = 3\n",
            "import pytest\npytestmark = pytest.mark.slow\nself.pytest.x = 1\n",
        ] {
            assert!(!is_patched(SourceLanguage::Python, text), "{text}");
        }
        for text in [
            "const fetch = globalThis.fetch;\nfetch.expect = f;\n",
            "const root = globalThis;\nroot.cart = f;\n",
            "const cart = load();\ncart.test = f;\ncart.expect = 3;\n",
            "const g = globalThis;\nif (g.expect === f) {}\nconst h = () => g.expect;\n",
            "globalThis.prices = [];\n",
            "Object.defineProperty(window, 'matchMedia', { value: f });\n",
            "Reflect.deleteProperty(globalThis, 'fetch');\n",
        ] {
            assert!(!is_patched(SourceLanguage::Script, text), "{text}");
        }
        assert!(!is_patched(SourceLanguage::Go, "pytest.Function = f\n"));
        for pattern in [
            &PYTHON_ALIAS,
            &PYTHON_IMPORT,
            &PYTHON_MODULE,
            &PYTHON_REBOUND,
            &PYTHON_ASSIGNED,
            &PYTHON_SET,
            &SCRIPT_GLOBAL,
            &SCRIPT_RETURN_THIS,
            &SCRIPT_REBOUND,
            &SCRIPT_MODULE,
            &SCRIPT_ASSIGNED,
            &SCRIPT_SET,
        ] {
            assert!(pattern.is_sound());
        }
    }
}
