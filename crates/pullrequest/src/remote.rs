//! Repository path in the URL of a git remote.

/// Extracts `acme/shop` from a remote's URL on the server `git_url`: over HTTP or SSH, with or without
/// `.git`; `None` for other servers.
pub fn repository_path(remote: &str, git_url: &str) -> Option<String> {
    let host = |url: &str| {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        rest.trim_end_matches('/').to_owned()
    };
    let server = host(git_url);
    let remote = match remote.split_once("://") {
        Some((_, rest)) => rest.to_owned(),
        // The short SSH form `git@github.com:acme/shop.git` has a colon before the path.
        None => remote.replacen(':', "/", 1),
    };
    // The user is dropped. An `@` after a slash is part of the path and must not hide the real host.
    let remote = match remote.split_once('@') {
        Some((user, rest)) if !user.contains('/') => rest,
        Some(_) | None => &remote,
    };
    let path = remote.strip_prefix(&server)?.strip_prefix('/')?;
    let path = path.trim_end_matches('/');
    Some(path.strip_suffix(".git").unwrap_or(path).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_url_spellings_give_repository_path() {
        for remote in [
            "https://github.com/acme/shop.git",
            "https://github.com/acme/shop/",
            "https://somebody:word@github.com/acme/shop",
            "git@github.com:acme/shop.git",
            "ssh://git@github.com/acme/shop.git",
        ] {
            let path = repository_path(remote, "https://github.com/");
            assert_eq!(path.as_deref(), Some("acme/shop"), "{remote}");
        }
        for remote in [
            "https://github.com.evil.example/acme/shop",
            "git@gitlab.com:acme/shop.git",
            "/home/me/shop",
            "https://evil.example/@github.com/acme/shop",
        ] {
            assert_eq!(repository_path(remote, "https://github.com"), None, "{remote}");
        }
        let local = repository_path("http://127.0.0.1:80/acme/shop.git", "http://127.0.0.1:80");
        assert_eq!(local.as_deref(), Some("acme/shop"));
    }
}
