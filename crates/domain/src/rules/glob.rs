//! Glob patterns for paths in rules.

/// Returns true when a pattern matches a path or one of its parent folders.
///
/// `*` and `?` match letters within one name, `**` matches any number of folders. Pattern and path are
/// relative to the root.
pub fn is_path_covered(pattern: &str, path: &str) -> bool {
    let mut pattern = split_path(pattern);
    if pattern.is_empty() {
        return false;
    }
    // A pattern that names a folder covers everything below it.
    pattern.push("**");
    is_sequence_match(
        &pattern,
        &split_path(path),
        |part| *part == "**",
        |part, name| is_name_covered(part, name),
    )
}

/// Returns true when a pattern matches a whole name, in which `/` is a letter. `*` and `?` match letters.
pub(crate) fn is_name_covered(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    is_sequence_match(
        &pattern,
        &name,
        |letter| *letter == '*',
        |wanted, letter| *wanted == '?' || wanted == letter,
    )
}

/// Returns the names of a path with `.` and `..` resolved.
fn split_path(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            // A path such as `core/../api/a` must not match `core/**`.
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

/// Returns true when a pattern matches a whole sequence. `is_any` recognizes a part of the pattern that matches any number
/// of elements, `is_one` a part that matches this element.
// Others choose the names, so the time is limited to the product of both lengths. For that, only the last part with any
// number of elements is tried with more of them: an earlier one with more would leave less for the rest of the pattern.
fn is_sequence_match<P, E>(
    pattern: &[P],
    sequence: &[E],
    is_any: impl Fn(&P) -> bool,
    is_one: impl Fn(&P, &E) -> bool,
) -> bool {
    let (mut part, mut element) = (0, 0);
    // Part of the pattern after the last one with any number of elements, and the first element after those.
    let mut last_any: Option<(usize, usize)> = None;
    while let Some(found) = sequence.get(element) {
        match pattern.get(part) {
            Some(wanted) if is_any(wanted) => {
                part += 1;
                last_any = Some((part, element));
            }
            Some(wanted) if is_one(wanted, found) => {
                part += 1;
                element += 1;
            }
            Some(_) | None => {
                let Some((next_part, end)) = last_any else {
                    return false;
                };
                part = next_part;
                element = end + 1;
                last_any = Some((part, element));
            }
        }
    }
    pattern.iter().skip(part).all(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_covers_folders_and_single_names() {
        for (pattern, path) in [
            ("core", "core/src/Task.java"),
            ("core/", "./core/a"),
            ("core/**", "core/a/b"),
            ("services/*/api", "services/shop/api/x.ts"),
            ("**/*.proto", "api/v1/shop.proto"),
            ("**/*.proto", "shop.proto"),
            ("src/?.rs", "src/a.rs"),
            ("**", "any/thing"),
        ] {
            assert!(is_path_covered(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("core", "core-api/a"),
            ("core", "api/core/a"),
            ("core/**", "core/../api/a"),
            ("services/*/api", "services/a/b/api/x"),
            ("**/*.proto", "shop.proto.md"),
            ("src/?.rs", "src/ab.rs"),
            ("", "any"),
        ] {
            assert!(!is_path_covered(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn repeated_letters_match_in_bounded_time() {
        let names = "a".repeat(200);
        let pattern = "*a".repeat(30);
        assert!(is_name_covered(&pattern, &names));
        assert!(!is_name_covered(&format!("{pattern}b"), &names));
        let (path, folders) = ("a/".repeat(200), "**/a/".repeat(30));
        assert!(is_path_covered(&folders, &path));
        assert!(!is_path_covered(&format!("{folders}b"), &path));
    }

    #[test]
    fn last_star_takes_as_many_letters_as_needed() {
        for (pattern, name, is_covered) in [
            ("*ab", "aab", true),
            ("*ab*cd", "xabyabcd", true),
            ("a*b?c", "abbxbyc", true),
            ("a*b?c", "abbxbc", false),
            ("**", "", true),
            ("*", "any/thing", true),
            ("", "", true),
            ("?", "", false),
            ("a", "ab", false),
        ] {
            assert_eq!(is_name_covered(pattern, name), is_covered, "{pattern} {name}");
        }
        for (pattern, path, is_covered) in [
            ("**/a/b", "a/x/a/b/c", true),
            ("a/**/b/*.rs", "a/b/b/x.rs", true),
            ("a/**/b/*.rs", "a/b/c/x.rs", false),
            ("core/**", "core", true),
        ] {
            assert_eq!(is_path_covered(pattern, path), is_covered, "{pattern} {path}");
        }
    }
}
