//! Glob patterns for paths in rules.

/// Returns true when a pattern matches a path or one of its parent folders.
///
/// `*` and `?` match letters within one name, `**` matches any number of folders. Pattern and path are
/// relative to the root.
pub fn is_path_covered(pattern: &str, path: &str) -> bool {
    let pattern = split_path(pattern);
    !pattern.is_empty() && is_folder_match(&pattern, &split_path(path))
}

/// Returns true when a pattern matches a whole name, in which `/` is a letter. `*` and `?` match letters.
pub(crate) fn is_name_covered(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    is_letter_match(&pattern, &name)
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

fn is_folder_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        // A pattern that names a folder covers everything below it.
        (None, _) => true,
        // `**` also matches no folder: `**/*.proto` covers a file at the root.
        (Some((&"**", rest)), _) => (0..=path.len()).any(|skipped| is_folder_match(rest, &path[skipped..])),
        (Some((wanted, rest)), Some((part, inner))) => {
            let (wanted, part): (Vec<char>, Vec<char>) = (wanted.chars().collect(), part.chars().collect());
            is_letter_match(&wanted, &part) && is_folder_match(rest, inner)
        }
        (Some(_), None) => false,
    }
}

fn is_letter_match(pattern: &[char], name: &[char]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, name) => name.is_none(),
        (Some(('*', rest)), _) => (0..=name.len()).any(|skipped| is_letter_match(rest, &name[skipped..])),
        (Some(('?', rest)), Some((_, inner))) => is_letter_match(rest, inner),
        (Some((wanted, rest)), Some((letter, inner))) => wanted == letter && is_letter_match(rest, inner),
        (Some(_), None) => false,
    }
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
}
