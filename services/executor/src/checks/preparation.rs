//! Detects what a machine lacks to run a check: packages, toolchains, interpreters, programs, or access to a
//! registry.
//!
//! An import that the change adds without a declaration is a mistake of the change, not of the machine.

use std::collections::BTreeSet;

use domain::{SetupHint, check::TestReport};

use super::installation::{PackageEcosystem, install_hint};
use crate::{
    pattern::LazyPattern,
    sandbox::CommandEnding,
    workspace::{ChangedFile, Workspace, WorkspaceChange, WorkspaceError},
};

/// Largest number of missing modules that are considered.
const MAX_MODULES: usize = 50;

/// Messages about a toolchain or interpreter, or a version of one, that is not chosen or not installed.
static NO_TOOLCHAIN: LazyPattern = LazyPattern::new(
    r"(?mx)
      ^error:\ rustup\ could\ not\ choose\ a\ version\ of | ^error:\ toolchain\ '.*'\ is\ not\ installed | no\ default\ (?:toolchain\ )?(?:is\ )?configured
    | ^error:\ the\ '.*'\ (?:binary|component).*\ is\ not\ applicable\ to | ^error:\ '.*'\ is\ not\ installed\ for\ the\ toolchain
    | ^(?:pyenv|rbenv|nodenv|goenv|jenv|phpenv|plenv):\ (?:version\ .*\ is\ not\ installed|\S+:\ command\ not\ found)
    | ^N/A:\ version\ .*\ is\ not\ yet\ installed | ^nvm:\ .*not\ found
    | ^No\ version\ is\ set\ for\ command | ^asdf:\ No\ version\ set | ^(?:No\ preset\ version\ installed|version\ \S+\ is\ not\ installed\ for)
    | ^mise\ ERROR\b | ^mise\ .*\bis\ not\ installed\b | ^Volta\ error: | ^\s*Node\ is\ not\ available\.
    | ^Internal\ Error:\ (?:Error\ when\ performing|Server\ answered|Cannot\ find\ matching\ keyid) | \bcorepack\b.*\b(?:fetch\ failed|ENOTFOUND|about\ to\ download)
    | \bERR_PNPM_UNSUPPORTED_ENGINE\b | \bcode\ EBADENGINE\b | The\ engine\ .{1,40}\ is\ incompatible\ with\ this\ module
    | ^go:\ .*\btoolchain\ not\ available | \brequires\ go\ >=\ \S+\ \(running\ go | ^go:\ download\ go\d.*:
    | ^Your\ Ruby\ version\ is\ .*,\ but\ your\ Gemfile\ specified
    | \bJAVA_HOME\ (?:is\ not\ (?:set|defined)|environment\ variable\ is\ not\ defined) | ^ERROR:\ JAVA_HOME\b | \binvalid\ (?:target|source)\ release:\ \d | \brelease\ version\ \d+\ not\ supported\b
    | \bNo\ compiler\ is\ provided\ in\ this\ environment\b | \bCannot\ find\ a\ Java\ installation\b | \bNo\ matching\ toolchains?\ found\b
    | ^A\ compatible\ \.NET\ SDK\ was\ not\ found | ^You\ must\ install\ or\ update\ \.NET
    | \bNo\ interpreter\ found\ for\b | \bThe\ currently\ activated\ Python\ version\ .*\ is\ not\ supported | \bCurrent\ Python\ version\ .*\ is\ not\ allowed\b
    | ^ERROR:\ .*could\ not\ find\ python\ interpreter | \bRequested\ Python\ version\ .*\ not\ installed | \bCould\ not\ find\ .*\ interpreter\ for\b
    | ^Your\ requirements\ could\ not\ be\ resolved | \brequires\ php\ .*\ (?:but|your\ php\ version)",
);
/// Messages of package managers about packages that are declared but not installed.
static NOT_INSTALLED: LazyPattern = LazyPattern::new(
    r"(?mx)
      ^error:\ (?:failed\ to\ (?:get|download|fetch|load\ source\ for\ dependency)|no\ matching\ package\ named|Unable\ to\ update)\b | --offline\ was\ specified | \bcan't\ checkout\ from\ '.*':\ you\ are\ in\ the\ offline\ mode
    | \bmodule\ lookup\ disabled\ by\b | ^(?:\S+:\d+:\d+:\ |go:\ )?.*\bno\ required\ module\ provides\ package | \bmissing\ go\.sum\ entry\ for\ module | ^go:\ \S+@\S+:\ (?:Get|reading|unrecognized|git)\ 
    | \bcannot\ find\ (?:module\ providing\ )?package\ .*\ (?:in|:)
    | \bCould\ not\ resolve\ dependencies\ for\ project\b | \bCould\ not\ (?:transfer|find)\ artifact\b | \bin\ offline\ mode\b | \bor\ one\ of\ its\ dependencies\ could\ not\ be\ resolved\b | \bNon-resolvable\ (?:parent\ POM|import\ POM)
    | \bCould\ not\ resolve\ all\ (?:files|artifacts|dependencies|task\ dependencies)\b | \bNo\ cached\ version\ of\b
    | \bnpx\ canceled\ due\ to\ missing\ packages\b | \bcode\ (?:ENOTCACHED|ENOTFOUND|EAI_AGAIN)\b | \bnode_modules\ (?:missing|state\ file\ was\ not\ found) | \bUsage\ Error:\ The\ project\ in\ .*\ doesn't\ seem\ to\ have\ been\ installed
    | \bCouldn't\ find\ the\ node_modules\ state\ file\b | \bRequired\ package\ missing\ from\ disk\b
    | ^Could\ not\ find\ \S+\ in\ (?:any\ of\ the\ sources|locally\ installed\ gems|cached\ gems) | \bRun\ `bundle\ install`\ to\ install\ missing\ gems | ^bundler:\ command\ not\ found:
    | \bvendor/autoload\.php\b | \bYou\ need\ to\ set\ up\ the\ project\ dependencies
    | \bUnchecked\ dependencies\ for\ environment\b | \bCan't\ continue\ due\ to\ errors\ on\ dependencies\b | ^Could\ not\ find\ Hex\b
    | \bNETSDK1004\b | \bNU1(?:101|301)\b
    | ^ERROR:\ No\ matching\ distribution\ found | \bFailed\ to\ fetch:\ `http | \bnetwork\ (?:connectivity|access)\ (?:is|was)\ disabled\b | \bnetwork\ was\ disabled\b
    | \bpytest:\ error:\ unrecognized\ arguments:\ .*--(?:cov|asyncio|django|xdist|timeout|randomly|benchmark)\b | ^(?:ERROR:\ )?.*\bMissing\ required\ plugins:
    | ^env:\ .*\.venv/.*No\ such\ file | (?:^|[\s'\x22])\S*\.venv/bin/\S+:\ (?:No\ such\ file|not\ found|command\ not\ found)",
);
static PYTHON_MODULE: LazyPattern = LazyPattern::new(r"\bNo module named '?([A-Za-z_]\w*)[\w.]*'?");
static NODE_MODULE: LazyPattern = LazyPattern::new(
    r#"(?:Cannot find (?:module|package)|Failed to resolve import|Could not resolve|Preset|Module) ['"]?((?:@[\w.-]+/)?[A-Za-z][\w.-]*)(?:/[^'"\s]*)?['"]? ?(?:from|imported from|in the|not found|or its corresponding|\(|$|\n|\.|,)|Cannot find (?:module|package) '((?:@[\w.-]+/)?[A-Za-z][\w.-]*)(?:/[^']*)?'"#,
);
static RUBY_MODULE: LazyPattern = LazyPattern::new(r"cannot load such file -- ([A-Za-z][\w-]*)");
/// Messages of shells and package managers about a missing program that the project's packages provide.
static PROGRAM: LazyPattern = LazyPattern::new(
    r#"(?m)(?:^|: )(?:line \d+: |\d+: )?([\w.@/-]+): (?:command )?not found$|No module named '?(pytest|tox|nox|nose|coverage)\b|could not determine executable to run|^error: no such command: `(\w+)`|executable file not found|make: ([\w.-]+): No such file or directory"#,
);
/// File names of manifests and lock files that declare dependencies.
static DECLARATION: LazyPattern = LazyPattern::new(
    r"(?:^|/)(?:package\.json|package-lock\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lock|npm-shrinkwrap\.json|pyproject\.toml|setup\.(?:py|cfg)|[\w.-]*requirements[\w.-]*\.(?:txt|in)|requirements/[\w.-]+\.(?:txt|in)|Pipfile(?:\.lock)?|poetry\.lock|uv\.lock|pdm\.lock|environment\.ya?ml|tox\.ini|Gemfile(?:\.lock)?|[\w.-]+\.gemspec|Cargo\.toml|go\.mod|pom\.xml|build\.gradle(?:\.kts)?|composer\.(?:json|lock)|mix\.exs|deno\.jsonc?|[\w.-]+\.csproj)$",
);
static IMPORT: LazyPattern =
    LazyPattern::new(r"\b(?:import|from|require|require_relative|use|load|importorskip|import_module)\b");

/// Facts about a repository that a command's output does not show.
#[derive(Debug, Default)]
pub(super) struct RepositoryFacts {
    /// Every path of the base commit and of the workspace.
    paths: BTreeSet<String>,
    /// Declaring files at the base commit with their texts.
    declared: Vec<(String, String)>,
    /// Lines with an import that the change adds.
    added_imports: Vec<String>,
}

impl RepositoryFacts {
    /// Reads the base commit and the changes of the workspace. Blocks.
    pub(super) fn read(workspace: &Workspace) -> Result<Self, WorkspaceError> {
        let change = WorkspaceChange::read(workspace)?;
        let base = workspace.git.base_files(|path| DECLARATION.is_match(path))?;
        let mut facts = Self::new(base, &change.files);
        facts.paths.extend(change.paths);
        Ok(facts)
    }

    fn new(base: Vec<(String, Option<String>)>, files: &[ChangedFile]) -> Self {
        let mut facts = Self::default();
        for (path, text) in base {
            if let Some(text) = text {
                facts.declared.push((path.clone(), text));
            }
            facts.paths.insert(path);
        }
        for file in files {
            let before = file.before.as_deref().unwrap_or_default();
            let after = file.after.as_deref().unwrap_or_default();
            let is_new = |line: &&str| IMPORT.is_match(line) && !before.lines().any(|known| known == *line);
            facts
                .added_imports
                .extend(after.lines().filter(is_new).map(str::to_owned));
        }
        facts
    }

    /// Returns true when the repository itself has a module of this name.
    fn has_own(&self, module: &str) -> bool {
        let module = module.trim_start_matches('@');
        self.paths.iter().any(|path| {
            path.split('/').any(|part| {
                let stem = part.split('.').next().unwrap_or(part);
                stem == module || part == module
            })
        })
    }

    /// Returns true when the base commit declares this package. Case, `_` and `.` are ignored, because
    /// packages and their modules differ in them.
    fn declares(&self, module: &str) -> bool {
        let bare = |text: &str| text.to_ascii_lowercase().replace(['_', '.'], "-");
        let wanted = bare(module);
        self.declared.iter().any(|(_, text)| {
            // Only whole words count: `yaml` does not match `pyyaml`.
            let text = bare(text);
            text.match_indices(&wanted).any(|(at, _)| {
                let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
                let before = text.get(..at).and_then(|text| text.chars().next_back());
                let after = text.get(at + wanted.len()..).and_then(|text| text.chars().next());
                is_edge(before) && is_edge(after)
            })
        })
    }

    fn is_newly_imported(&self, module: &str) -> bool {
        self.added_imports.iter().any(|line| {
            let names = line.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '@' | '/')));
            let mut names = names.flat_map(|name| [name, name.split('/').next().unwrap_or(name)]);
            names.any(|name| name == module)
        })
    }

    /// Returns true when setup would install the missing module, so that the change is not at fault.
    fn is_for_setup(&self, module: &str) -> bool {
        !self.has_own(module) && (self.declares(module) || !self.is_newly_imported(module))
    }
}

/// Finds what the machine lacked for a command that failed. `facts` is called only when the output is
/// suspicious, because it reads the repository.
pub(super) fn find_missing_setup(
    ending: CommandEnding,
    output: &str,
    tests: Option<&TestReport>,
    facts: impl FnOnce() -> Option<RepositoryFacts>,
) -> Option<MissingSetup> {
    let has_failed = matches!(ending, CommandEnding::Exited(code) if code != 0);
    if !has_failed || !is_suspected(output) {
        return None;
    }
    find_missing(output, tests, &facts()?)
}

/// Returns true when the output justifies a call of [`find_missing`], which reads the repository.
fn is_suspected(output: &str) -> bool {
    let patterns = [
        &NO_TOOLCHAIN,
        &NOT_INSTALLED,
        &PYTHON_MODULE,
        &NODE_MODULE,
        &RUBY_MODULE,
        &PROGRAM,
    ];
    patterns.into_iter().any(|pattern| pattern.is_match(output))
}

/// A lack of the machine, with a hint for setup.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MissingSetup {
    /// Line of the output that reports the lack.
    pub(super) line: String,
    pub(super) hint: SetupHint,
    /// True when nothing else is wrong: the command could not run at all.
    pub(super) is_all: bool,
}

/// Finds what the machine lacked in the output. `tests` is what the parsers read from the same output.
fn find_missing(output: &str, tests: Option<&TestReport>, facts: &RepositoryFacts) -> Option<MissingSetup> {
    let ran = tests.map_or(0, TestReport::ran);
    if let Some(line) = matched_line(&NO_TOOLCHAIN, output) {
        return Some(MissingSetup {
            hint: install_hint(
                PackageEcosystem::of_toolchain(line),
                &facts.paths,
                &facts.declared,
                "a toolchain or interpreter",
            ),
            line: line.to_owned(),
            // Once a test ran, the lack explains at most a part of the result, so it must not turn a red
            // outcome into an inert one.
            is_all: ran == 0,
        });
    }
    if let Some(missing) = find_module(output, tests, facts) {
        return missing;
    }
    if let Some(line) = matched_line(&NOT_INSTALLED, output) {
        let is_new = package_in(line).is_some_and(|name| facts.is_new_declaration(name));
        let ecosystem = PackageEcosystem::of_line(line).or_else(|| PackageEcosystem::of_paths(&facts.paths));
        return (!is_new).then(|| MissingSetup {
            hint: install_hint(
                ecosystem,
                &facts.paths,
                &facts.declared,
                "a package that the project needs",
            ),
            line: line.to_owned(),
            is_all: ran == 0,
        });
    }
    let found = PROGRAM.captures(output)?;
    let program = found
        .iter()
        .skip(1)
        .flatten()
        .next()
        .map_or("a program", |name| name.as_str());
    let line = matched_line(&PROGRAM, output)?;
    let ecosystem =
        PackageEcosystem::of_program(program).or_else(|| PackageEcosystem::of_paths(&facts.paths));
    Some(MissingSetup {
        hint: install_hint(
            ecosystem,
            &facts.paths,
            &facts.declared,
            &format!("the program `{program}`"),
        ),
        line: line.to_owned(),
        is_all: ran == 0,
    })
}

/// Finds missing modules. `Some(None)` means that modules are missing, but setup alone would not bring them.
#[expect(clippy::option_option, reason = "the outer one ends the search")]
fn find_module(
    output: &str,
    tests: Option<&TestReport>,
    facts: &RepositoryFacts,
) -> Option<Option<MissingSetup>> {
    let kinds = [
        (&PYTHON_MODULE, PackageEcosystem::Python),
        (&NODE_MODULE, PackageEcosystem::Node),
        (&RUBY_MODULE, PackageEcosystem::Ruby),
    ];
    let (pattern, ecosystem) = kinds.into_iter().find(|(pattern, _)| pattern.is_match(output))?;
    let modules: BTreeSet<&str> = pattern
        .all(output)
        .take(MAX_MODULES)
        .filter_map(|found| Some(found.iter().skip(1).flatten().next()?.range()))
        .filter_map(|range| output.get(range))
        .collect();
    let mut foreign = modules.iter().filter(|module| facts.is_for_setup(module));
    let Some(first) = foreign.next() else {
        return Some(None);
    };
    let are_all = modules.iter().all(|module| facts.is_for_setup(module));
    let fail_for_it = |tests: &TestReport| {
        let mut messages = tests.failing.iter().map(|test| test.message.as_str());
        tests.passed == 0 && !tests.truncated && messages.all(|message| pattern.is_match(message))
    };
    Some(Some(MissingSetup {
        line: matched_line(pattern, output)?.to_owned(),
        hint: install_hint(
            Some(ecosystem),
            &facts.paths,
            &facts.declared,
            &format!("the package `{first}`"),
        ),
        is_all: are_all && tests.is_none_or(fail_for_it),
    }))
}

impl RepositoryFacts {
    /// Returns true when a package manager lacks a package that only the change declares.
    fn is_new_declaration(&self, package: &str) -> bool {
        !self.declared.is_empty() && !self.declares(package)
    }
}

static PACKAGE: LazyPattern = LazyPattern::new(
    r"(?:package named|failed to get|dependency|provides package|providing package) [`']?([\w@./-]+)|for module providing package ([\w@./-]+)",
);

fn package_in(line: &str) -> Option<&str> {
    let found = PACKAGE.captures(line)?;
    let name = found.iter().skip(1).flatten().next()?.range();
    line.get(name)
}

fn matched_line<'t>(pattern: &LazyPattern, text: &'t str) -> Option<&'t str> {
    let found = pattern.find(text)?;
    let start = text.get(..found.start())?.rfind('\n').map_or(0, |at| at + 1);
    // The match may begin with the preceding line break, so the first line may be empty.
    text.get(start..)?.lines().find(|line| !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use domain::check::FailedTest;

    use super::*;

    fn build_repository_facts(
        declared: &[(&str, &str)],
        paths: &[&str],
        added: &[(&str, &str)],
    ) -> RepositoryFacts {
        let declared = declared
            .iter()
            .map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned())));
        let paths = paths.iter().map(|path| ((*path).to_owned(), None));
        let files: Vec<ChangedFile> = added
            .iter()
            .map(|(path, text)| ChangedFile::sample(path, Some(""), Some(text)))
            .collect();
        RepositoryFacts::new(declared.chain(paths).collect(), &files)
    }

    fn describe_missing_setup(output: &str, facts: &RepositoryFacts) -> Option<(bool, String)> {
        let tests = super::super::report::parse_output(output);
        let found = find_missing(output, tests.as_ref(), facts)?;
        Some((found.is_all, found.hint.commands.join(" && ")))
    }

    #[test]
    fn every_pattern_can_be_read() {
        for pattern in [
            &NO_TOOLCHAIN,
            &NOT_INSTALLED,
            &PYTHON_MODULE,
            &NODE_MODULE,
            &RUBY_MODULE,
            &PROGRAM,
            &DECLARATION,
            &IMPORT,
            &PACKAGE,
        ] {
            assert!(pattern.is_sound());
        }
    }

    #[test]
    fn absent_declared_package_needs_setup() {
        let node = build_repository_facts(
            &[
                ("package.json", r#"{"dependencies":{"express":"4"}}"#),
                ("package-lock.json", "{}"),
            ],
            &["src/app.js"],
            &[],
        );
        for output in [
            "Error: Cannot find module 'express'\nRequire stack:\n- /w/src/app.js\n",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'express' imported from /w/src/app.js\n",
            "Cannot find module 'express/lib/router' from 'src/app.js'\n",
            "src/app.ts(1,1): error TS2307: Cannot find module 'express' or its corresponding type declarations.\n",
            "Error: Failed to resolve import \"express\" from \"src/app.js\". Does the file exist?\n",
            "sh: 1: jest: not found\n",
        ] {
            assert_eq!(
                describe_missing_setup(output, &node),
                Some((true, "npm ci".to_owned())),
                "{output}"
            );
        }
        let python = build_repository_facts(
            &[("requirements.txt", "PyYAML\nrequests>=2\n")],
            &["shop/cart.py", "tests/test_cart.py"],
            &[],
        );
        let venv = "python -m venv .venv && .venv/bin/pip install -r requirements.txt";
        for output in [
            "E   ModuleNotFoundError: No module named 'requests'\n=== short test summary info ===\nERROR tests/test_cart.py\n!!!!! Interrupted: 1 error during collection !!!!!\n=== 1 error in 0.05s ===\n",
            "ModuleNotFoundError: No module named 'requests.adapters'\n",
            "/usr/bin/python3: No module named pytest\n",
        ] {
            assert_eq!(
                describe_missing_setup(output, &python),
                Some((true, venv.to_owned())),
                "{output}"
            );
        }
        let ruby = build_repository_facts(&[("Gemfile", "gem 'rack'\n")], &[], &[]);
        assert_eq!(
            describe_missing_setup("cannot load such file -- rack (LoadError)\n", &ruby)
                .unwrap()
                .1,
            "bundle install"
        );
    }

    #[test]
    fn undeclared_new_import_is_change_mistake() {
        let python = |added: &str| {
            build_repository_facts(
                &[("requirements.txt", "requests\n")],
                &["shop/cart.py"],
                &[("shop/cart.py", added)],
            )
        };
        let output = |module: &str| format!("ModuleNotFoundError: No module named '{module}'\n");
        assert_eq!(
            describe_missing_setup(&output("leftpad"), &python("import leftpad\n")),
            None
        );
        assert_eq!(
            describe_missing_setup(&output("leftpad"), &python("from leftpad.core import pad\n")),
            None
        );
        assert!(
            describe_missing_setup(&output("requests"), &python("import requests\n")).is_some(),
            "declared at the base"
        );
        assert!(
            describe_missing_setup(&output("yaml"), &python("x = 1\n")).is_some(),
            "the base imports it"
        );
        assert_eq!(
            describe_missing_setup(&output("cart"), &python("import cart\n")),
            None,
            "the repository has it"
        );
        let node = build_repository_facts(
            &[("package.json", "{}")],
            &["src/app.js"],
            &[("src/app.js", "const pad = require('left-pad');\n")],
        );
        assert_eq!(
            describe_missing_setup("Error: Cannot find module 'left-pad'\nRequire stack:\n", &node),
            None
        );
        assert_eq!(
            describe_missing_setup("Error: Cannot find module './cart'\n", &node),
            None
        );
        let cargo = build_repository_facts(&[("Cargo.toml", "[dependencies]\nserde = \"1\"\n")], &[], &[]);
        assert_eq!(
            describe_missing_setup("error: no matching package named `nope` found\n", &cargo),
            None
        );
        assert!(describe_missing_setup("error: no matching package named `serde` found\n", &cargo).is_some());
    }

    #[test]
    fn toolchains_that_nobody_chose_are_for_setup() {
        let nothing = build_repository_facts(&[], &[], &[]);
        for output in [
            "error: rustup could not choose a version of cargo to run, because one wasn't specified explicitly, and no default is configured.\nhelp: run 'rustup default stable'\n",
            "error: toolchain '1.99.0-x86_64-unknown-linux-gnu' is not installed\n",
            "pyenv: version `3.12.1' is not installed (set by /w/.python-version)\n",
            "pyenv: python: command not found\n",
            "N/A: version \"v22\" is not yet installed.\n",
            "No version is set for command node\n",
            "mise ERROR node@22 is not installed\n",
            "Volta error: Could not download node@22\n",
            "Internal Error: Error when performing the request\n",
            "rbenv: version `3.3.0' is not installed (set by /w/.ruby-version)\n",
            "go: download go1.99 for linux/amd64: toolchain not available\n",
            "go: go.mod requires go >= 1.99 (running go 1.20; GOTOOLCHAIN=local)\n",
            "The JAVA_HOME environment variable is not defined correctly\n",
            "error: No interpreter found for Python 3.13\n",
        ] {
            assert!(
                describe_missing_setup(output, &nothing).is_some_and(|(is_all, _)| is_all),
                "{output}"
            );
        }
    }

    #[test]
    fn registries_out_of_reach_are_for_setup() {
        let nothing = build_repository_facts(&[], &["pom.xml"], &[]);
        for output in [
            "error: failed to get `serde` as a dependency of package `shop v0.1.0`\n",
            "go: github.com/a/b@v1.0.0: module lookup disabled by GOPROXY=off\n",
            "[ERROR] Failed to execute goal on project shop: Could not resolve dependencies for project acme:shop:jar:1\n",
            "Could not find rack-2.2 in locally installed gems\n",
            "> Could not resolve all files for configuration ':testCompileClasspath'.\n",
            "PHP Fatal error:  Uncaught Error: Failed opening required '/w/vendor/autoload.php'\n",
            "error NETSDK1004: Assets file '/w/obj/project.assets.json' not found\n",
        ] {
            assert!(describe_missing_setup(output, &nothing).is_some(), "{output}");
        }
    }

    #[test]
    fn ran_tests_keep_outcome_with_hint() {
        let node = build_repository_facts(
            &[("package.json", r#"{"dependencies":{"express":"4"}}"#)],
            &[],
            &[],
        );
        let output = "Error: Cannot find module 'express'\nTest Suites: 1 failed, 1 passed, 2 total\nTests:       3 passed, 3 total\n";
        assert_eq!(
            describe_missing_setup(output, &node),
            Some((false, "npm install".to_owned()))
        );
        let failing = TestReport {
            failed: 1,
            failing: vec![FailedTest {
                id: "a".to_owned(),
                message: "expected 1".to_owned(),
            }],
            ..TestReport::default()
        };
        let found = find_missing("Cannot find module 'express'\n", Some(&failing), &node).unwrap();
        assert!(!found.is_all);
    }

    #[test]
    fn words_about_modules_are_no_cause() {
        for output in [
            "3 passed\n",
            "AssertionError: 1 != 2\n",
            "the module is not found in the cart\n",
        ] {
            assert!(!is_suspected(output), "{output}");
        }
    }
}
