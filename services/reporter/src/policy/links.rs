//! Check of symbolic links.

/// Returns true if a link at `path` may lead out of the repository or into its git directory.
///
/// `..` is accepted only at the start of the target. There it leads up from the link's own folder, which is a real
/// one. Later in the target it would lead up from the destination of another link.
pub(super) fn leaves_repository(path: &str, target: &str) -> bool {
    // A backslash separates paths on Windows, where people may check the branch out.
    if target.is_empty() || target.starts_with('/') || target.contains(['\\', '\0']) {
        return true;
    }
    let mut depth = path.split('/').count() - 1;
    let mut is_start = true;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if !is_start || depth == 0 => return true,
            ".." => depth -= 1,
            part if part.eq_ignore_ascii_case(".git") => return true,
            _ => is_start = false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_stays_inside_through_other_links() {
        for (path, target, leaves) in [
            ("a/b", "c", false),
            ("a/b", "../c", false),
            ("a/b/c", "../../d/e", false),
            ("docs/link", "./../README.md", false),
            ("a", "..", true),
            ("a/b", "../../x", true),
            ("a/d", "..", false),
            // Each of the two is harmless alone. Together they lead out.
            ("a/l", "d/../x", true),
            ("a/l", "d/x/..", true),
            ("a", "/etc/passwd", true),
            ("a", ".git/config", true),
            ("a/b", "../.GIT/hooks", true),
            ("a", "b\\c", true),
            ("a", "", true),
        ] {
            assert_eq!(leaves_repository(path, target), leaves, "{path} -> {target}");
        }
    }
}
