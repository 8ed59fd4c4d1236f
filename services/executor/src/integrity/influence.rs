//! Files and lines of a change that can influence the results of tests, and the number of changed lines of
//! code.

use domain::check::RemovedTest;

use super::{
    code_text::keep_code,
    inline::{LinePart, divide_lines, test_lines},
    inventory::{ListedTest, list_test_cases},
    pairing::are_alike,
    paths::{FilePurpose, can_contain_tests, classify_path, detect_language},
    size::compare_lines,
};
use crate::{
    pattern::LazyPattern,
    workspace::{ChangedFile, TreeHunk},
};

/// Files without tests that test runs read, in addition to files whose role is configuration.
static SUPPORT: LazyPattern = LazyPattern::new(
    r"(?xi)(?:^|/)(?:
      (?:sitecustomize|usercustomize|conftest|noxfile)\.py | [^/]+\.pth
    | \.babelrc(?:\.\w+)? | babel\.config\.\w+ | \.swcrc | \.mocharc(?:\.\w+)? | \.taprc | \.avarc
    | (?:jest|vitest|mocha|jasmine|ava|karma|wtr|web-test-runner|playwright|cypress|tap)[.-][\w.-]*\.(?:[cm]?[jt]sx?|json|ya?ml)
    | (?:setup|global)-?(?:tests?|setup|jest|vitest)\w*\.[cm]?[jt]sx? | setupTests\.[cm]?[jt]sx?
    | \.env(?:\.\w+)? | \.npmrc | \.pnpmfile\.cjs | \.yarnrc(?:\.yml)?
    | GNUmakefile | Makefile | makefile | [Jj]ustfile | Taskfile\.ya?ml | Rakefile | CMakeLists\.txt | CTestCustom\.cmake
    | \.cargo/config(?:\.toml)? | rust-toolchain(?:\.toml)?
    | (?:spec|test|rails)_helper\.rb | bootstrap\.php | junit-platform\.properties | testng\.xml | surefire\.properties
    )$",
);

/// New files that runners import instead of the real modules.
static SHADOW: LazyPattern = LazyPattern::new(
    r"^(?:src/)?(?:_?pytest|unittest|doctest|nose2?|pluggy|hypothesis|mock|xdist|coverage|assertpy)(?:\.py|/__init__\.py)$",
);

/// Returns true for a file without tests that test runs read.
fn is_support(file: &ChangedFile) -> bool {
    match classify_path(&file.path) {
        FilePurpose::Config | FilePurpose::Expected => true,
        FilePurpose::Product | FilePurpose::Generated | FilePurpose::Docs => {
            // An existing file with such a name belongs to the project and shadows nothing new.
            SUPPORT.is_match(&file.path) || (file.before.is_none() && SHADOW.is_match(&file.path))
        }
        FilePurpose::Test | FilePurpose::Ci | FilePurpose::Lock => false,
    }
}

/// Returns the changed, new and removed files without tests that test runs read, including files that tests
/// compare with.
pub(crate) fn support_files(files: &[ChangedFile]) -> Vec<String> {
    let found = files.iter().filter(|file| is_support(file));
    found.map(|file| file.path.clone()).collect()
}

/// Returns the files with tests, or with code that only tests need, that the change removes.
pub(crate) fn removed_test_files(files: &[ChangedFile]) -> Vec<String> {
    let gone = files
        .iter()
        .filter(|file| file.after.is_none() && classify_path(&file.path) == FilePurpose::Test);
    gone.map(|file| file.path.clone()).collect()
}

/// Returns the tests that the change removes from their files, each with the test that replaces it.
pub(crate) fn removed_tests(files: &[ChangedFile]) -> Vec<RemovedTest> {
    let read = |path: &str, text: &Option<String>| {
        list_test_cases(detect_language(path), text.as_deref().unwrap_or_default())
    };
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    for file in files.iter().filter(|file| can_contain_tests(&file.path)) {
        let (before, mut after) = (read(&file.path, &file.before), read(&file.path, &file.after));
        for case in before {
            match after.iter().position(|other| other.name == case.name) {
                Some(at) => drop(after.remove(at)),
                None => gone.push((file.path.clone(), case)),
            }
        }
        new.extend(after);
    }
    let mut take = |is_it: &dyn Fn(&ListedTest) -> bool| -> Option<String> {
        let at = new.iter().position(is_it)?;
        Some(new.remove(at).name)
    };
    let replaced = gone.into_iter().map(|(path, case)| {
        // A test of the same name in another file moved; a test with the same body was renamed.
        let now = take(&|other| other.name == case.name)
            .or_else(|| take(&|other| other.body == case.body))
            .or_else(|| take(&|other| are_alike(&case, other)));
        RemovedTest {
            path,
            name: case.name,
            now: now.unwrap_or_default(),
        }
    });
    replaced.collect()
}

/// Returns true when all lines that a hunk adds and removes belong to tests. Blank lines and comments between
/// them do not count.
pub(crate) fn is_test_hunk(file: Option<&ChangedFile>, hunk: &TreeHunk) -> bool {
    let Some(file) = file else {
        return classify_path(&hunk.path.to_string_lossy()) == FilePurpose::Test;
    };
    if classify_path(&file.path) == FilePurpose::Test {
        return true;
    }
    let (Some(before), Some(after)) = (&file.before, &file.after) else {
        return false;
    };
    let (old, new) = (divide_lines(&file.path, before), divide_lines(&file.path, after));
    let part = |parts: &[LinePart], line: &usize| parts.get(line - 1).copied().unwrap_or(LinePart::Neutral);
    let added = hunk.added.iter().map(|line| part(&new, line));
    let removed = hunk.removed.iter().map(|line| part(&old, line));
    let parts: Vec<LinePart> = added.chain(removed).collect();
    parts.contains(&LinePart::Test) && !parts.contains(&LinePart::Product)
}

/// Counts the lines of product files that a change adds and removes, without blank lines and comments.
pub(crate) fn code_lines(files: &[ChangedFile]) -> u32 {
    let product = files.iter().filter(|file| {
        matches!(
            classify_path(&file.path),
            FilePurpose::Product | FilePurpose::Config | FilePurpose::Ci
        )
    });
    product.map(changed_code).fold(0, u32::saturating_add)
}

/// Counts changed lines of one file. Code that differs only in comments and blank lines has none.
fn changed_code(file: &ChangedFile) -> u32 {
    let language = detect_language(&file.path);
    let bare = |text: &Option<String>| keep_code(language, text.as_deref().unwrap_or_default());
    let stripped = ChangedFile {
        path: file.path.clone(),
        before: Some(bare(&file.before)),
        after: Some(bare(&file.after)),
    };
    let tests = [&stripped.before, &stripped.after]
        .map(|text| test_lines(&file.path, text.as_deref().unwrap_or_default()));
    let changed = compare_lines(&stripped);
    let is_product = |flags: &[bool], at: usize| !flags.get(at - 1).copied().unwrap_or_default();
    let [old, new] = tests;
    let added = changed
        .added
        .iter()
        .filter(|(at, _)| is_product(&new, *at))
        .count();
    let removed = changed
        .removed
        .iter()
        .filter(|(at, _)| is_product(&old, *at))
        .count();
    u32::try_from(added + removed).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn support_files_are_recognized_by_name() {
        let changed = |path| ChangedFile::sample(path, Some("a\n"), Some("b\n"));
        let new = |path| ChangedFile::sample(path, None, Some("b\n"));
        for path in [
            "pytest.ini",
            "sitecustomize.py",
            "a.pth",
            ".babelrc",
            "babel.config.js",
            ".swcrc",
            "jest.setup.ts",
            "vitest.workspace.ts",
            "src/setupTests.js",
            "Makefile",
            ".cargo/config.toml",
            "web/__snapshots__/a.snap",
            "tsconfig.json",
        ] {
            assert_eq!(support_files(&[changed(path)]), [path], "{path}");
        }
        assert_eq!(
            support_files(&[new("pytest.py"), new("unittest/__init__.py")]).len(),
            2
        );
        for path in [
            "pluggy/hooks.py",
            "shop/pytest.py",
            "shop/cart.py",
            "package.json",
            "README.md",
            "setup.py",
        ] {
            assert_eq!(support_files(&[changed(path)]), [""; 0], "{path}");
        }
        assert!(SUPPORT.is_sound() && SHADOW.is_sound());
    }

    #[test]
    fn removed_tests_name_their_successors() {
        let before = "def test_a():\n    assert cart() == 1\n\ndef test_b():\n    assert 2\n\ndef test_c():\n    x = 1\n    assert x\n";
        let after = "def test_d():\n    assert cart() == 1\n\ndef test_b():\n    assert 3\n";
        let moved = "def test_c():\n    x = 1\n    assert x\n";
        let found = removed_tests(&[
            ChangedFile::sample("tests/test_a.py", Some(before), Some(after)),
            ChangedFile::sample("tests/test_m.py", None, Some(moved)),
        ]);
        let found: Vec<_> = found
            .iter()
            .map(|test| (test.name.as_str(), test.now.as_str()))
            .collect();
        assert_eq!(found, [("test_a", "test_d"), ("test_c", "test_c")]);
        let gone = ChangedFile::sample("tests/test_a.py", Some(before), None);
        assert_eq!(removed_tests(std::slice::from_ref(&gone))[0].now, "");
        assert_eq!(removed_test_files(&[gone]), ["tests/test_a.py"]);
    }

    #[test]
    fn comments_and_blanks_are_no_code() {
        let module = "fn a() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n";
        let documented = "def f():\n    \"\"\"Right\n    now.\"\"\"\n    return 1\n";
        for (path, before, after) in [
            ("a.py", "x = 1\n", "# fixed\nx = 1  # now\n\n"),
            ("a.py", "def f():\n    return 1\n", documented),
            ("a.rs", "let x = 1;\n", "/* fixed\n   now */\nlet x = 1; // one\n"),
            ("a.sql", "select 1\n", "-- right\nselect 1\n"),
            ("a.js", "f('//x')\n", "f('//x') // x\n"),
            ("a.rs", "fn a() {}\n", module),
            ("README.md", "a\n", "b\n"),
            ("tests/test_a.py", "a\n", "b\n"),
            ("a.py", "r'''Doc.\n'''\nx = 1\n", "r'''Docs.\n'''\nx = 1\n"),
        ] {
            assert_eq!(
                code_lines(&[ChangedFile::sample(path, Some(before), Some(after))]),
                0,
                "{after}"
            );
        }
        for (path, before, after) in [
            ("a.py", "x = '#'\n", "x = '##'\n"),
            ("a.py", "if a:\n    b()\nc()\n", "if a:\n    b()\n    c()\n"),
            ("a.js", "f('http://x')\n", "f('http://y')\n"),
            ("a.py", "r'''Doc.\n'''\nx = 1\n", "r'''Doc.\n'''\nx = 2\n"),
            (
                "a.py",
                "S = \"\"\"\na\n\"\"\"\nx = 1\n",
                "S = \"\"\"\na\n\"\"\"\nx = 2\n",
            ),
            ("a.py", "S = \"\"\"\n# a\n\"\"\"\n", "S = \"\"\"\n# b\n\"\"\"\n"),
            ("a.sh", "a=${b#c}\n", "a=${b#d}\n"),
        ] {
            assert_eq!(
                code_lines(&[ChangedFile::sample(path, Some(before), Some(after))]),
                2,
                "{after}"
            );
        }
        assert_eq!(
            code_lines(&[ChangedFile::sample("new.py", None, Some("x = 1\n"))]),
            1
        );
    }
}
