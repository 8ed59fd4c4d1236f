//! Owners of files by a repository's CODEOWNERS file, as a pure function.

use domain::is_path_covered;

/// Paths of the file in the order in which GitHub searches them.
pub(crate) const PLACES: [&str; 3] = [".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"];
/// Largest file, in bytes. GitHub ignores a larger one (limit 3 MB).
pub(crate) const MAX_BYTES: usize = 3_000_000;

/// Returns the people who own changed files, in the order of the files, without duplicates.
///
/// The last matching line decides. Teams and mail addresses are omitted: the API requests reviews by login.
pub(crate) fn find_owners(codeowners: &str, changed: &[String]) -> Vec<String> {
    let lines: Vec<(&str, Vec<&str>)> = codeowners.lines().filter_map(parse_owner_line).collect();
    let mut owners: Vec<String> = Vec::new();
    for path in changed {
        // GitHub lets the last matching line win.
        let mut fitting = lines.iter().rev();
        let Some((_, names)) = fitting.find(|(pattern, _)| pattern_covers(pattern, path)) else {
            continue;
        };
        let people = names.iter().filter_map(|name| name.strip_prefix('@'));
        for login in people.filter(|login| !login.contains('/')) {
            if !owners.iter().any(|known| known.eq_ignore_ascii_case(login)) {
                owners.push(login.to_owned());
            }
        }
    }
    owners
}

/// Parses a pattern with its owners. A pattern without owners means that its files have none.
fn parse_owner_line(text: &str) -> Option<(&str, Vec<&str>)> {
    let text = text.split(" #").next().unwrap_or_default();
    let mut words = text.split_whitespace();
    let pattern = words.next().filter(|word| !word.starts_with('#'))?;
    Some((pattern, words.collect()))
}

/// Matches a pattern of `.gitignore` without negation and ranges, which CODEOWNERS does not support.
fn pattern_covers(pattern: &str, path: &str) -> bool {
    let anchored = pattern.trim_end_matches('/').contains('/');
    let from_root = if anchored {
        pattern.trim_start_matches('/').to_owned()
    } else {
        format!("**/{pattern}")
    };
    // `docs/*` matches the files of the folder, not those of its subfolders. `docs/**/*` matches all of them.
    let is_shallow = anchored && pattern.ends_with("/*") && !pattern.ends_with("**/*");
    is_path_covered(&from_root, path) && (!is_shallow || ends_at(&from_root, path))
        // `docs/` matches the content of a folder, not a file of that name.
        && (!pattern.ends_with('/') || !ends_at(&from_root, path))
}

/// Returns true if the pattern matches the path itself, not only a folder above it.
fn ends_at(pattern: &str, path: &str) -> bool {
    let Some((above, _)) = path.rsplit_once('/') else {
        return true;
    };
    !is_path_covered(pattern, above)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_path_owners(codeowners: &str, path: &str) -> Vec<String> {
        find_owners(codeowners, &[path.to_owned()])
    }

    #[test]
    fn last_matching_line_names_the_owners() {
        let file = "# Everything\n*       @ann @org/team ann@example.com\n*.js  @bob # scripts\n/build/logs/ @dan\n\
                    docs/*  @eve\napps/ @fay\n/apps/github\n";
        for (path, expected) in [
            ("src/main.rs", vec!["ann"]),
            ("src/deep/app.js", vec!["bob"]),
            ("build/logs/today.txt", vec!["dan"]),
            ("other/build/logs/today.txt", vec!["ann"]),
            ("docs/start.md", vec!["eve"]),
            ("docs/deep/start.md", vec!["ann"]),
            ("deep/apps/x.rs", vec!["fay"]),
            ("deep/apps", vec!["ann"]),
            ("apps/github/x.rs", vec![]),
        ] {
            assert_eq!(find_path_owners(file, path), expected, "{path}");
        }
    }

    #[test]
    fn pattern_with_any_depth_covers_all_folders() {
        let file = "**/* @ann\ndocs/**/* @bob\n**/logs/* @dan\n";
        for (path, expected) in [
            ("main.rs", "ann"),
            ("src/deep/main.rs", "ann"),
            ("docs/start.md", "bob"),
            ("docs/deep/er/start.md", "bob"),
            ("logs/today.txt", "dan"),
            ("build/out/logs/today.txt", "dan"),
            ("build/logs/old/today.txt", "ann"),
        ] {
            assert_eq!(find_path_owners(file, path), [expected], "{path}");
        }
    }

    #[test]
    fn owners_are_unique_in_file_order() {
        let files = ["b.js", "a.rs", "c.js"].map(str::to_owned);
        assert_eq!(find_owners("*.rs @Ann\n*.js @bob @ann\n", &files), ["bob", "ann"]);
        assert_eq!(find_owners("", &files), Vec::<String>::new());
    }
}
