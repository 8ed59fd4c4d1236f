//! Repositories that the URLs of git remotes name.

/// Returns `acme/shop` for the URL of a remote on the server with the base URL `server`, over HTTP or SSH.
///
/// The path may end in `.git`. `None` for another server, and for a path on the disk.
pub fn find_remote_repository<'a>(remote: &'a str, server: &str) -> Option<&'a str> {
    let (remote, server) = (RemoteAddress::parse(remote)?, RemoteAddress::parse(server)?);
    if !remote.is_at(&server) {
        return None;
    }
    let path = if server.path.is_empty() {
        remote.path
    } else {
        remote.path.strip_prefix(server.path)?.strip_prefix('/')?
    };
    Some(path.strip_suffix(".git").unwrap_or(path))
}

/// Parts of a URL that git accepts.
struct RemoteAddress<'a> {
    is_http: bool,
    host: &'a str,
    /// Port, unless it is the usual one.
    port: Option<&'a str>,
    path: &'a str,
}

impl<'a> RemoteAddress<'a> {
    fn parse(url: &'a str) -> Option<Self> {
        let (scheme, authority, path) = match url.split_once("://") {
            Some((scheme, rest)) => {
                let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
                (scheme, authority, path)
            }
            // The short form of SSH: `git@github.com:acme/shop.git`. A path on the disk may contain a colon too, but
            // behind a slash.
            None => {
                let (authority, path) = url.split_once(':')?;
                if authority.contains('/') {
                    return None;
                }
                ("ssh", authority, path)
            }
        };
        // An `@` in the path must not hide the real host, so the user is removed from the authority alone.
        let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
        let (host, port) = match place.rsplit_once(':') {
            // An IPv6 address in brackets contains colons too.
            Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => (host, Some(port)),
            Some(_) | None => (place, None),
        };
        let usual_port = match scheme {
            "https" => "443",
            "http" => "80",
            _ => "22",
        };
        (!host.is_empty()).then_some(Self {
            is_http: matches!(scheme, "http" | "https"),
            host,
            port: port.filter(|port| !port.is_empty() && *port != usual_port),
            path: path.trim_matches('/'),
        })
    }

    /// True for an address on the server with this base URL.
    fn is_at(&self, server: &RemoteAddress<'_>) -> bool {
        if self.is_http {
            return self.host.eq_ignore_ascii_case(server.host) && self.port == server.port;
        }
        // The port of SSH is unrelated to the port of HTTP. GitHub offers SSH at the port of HTTPS under another name.
        let plain = self.host.strip_prefix("ssh.").unwrap_or(self.host);
        [self.host, plain]
            .iter()
            .any(|host| host.eq_ignore_ascii_case(server.host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_names_repository_in_each_form() {
        for remote in [
            "https://github.com/acme/shop",
            "https://github.com/acme/shop.git",
            "https://GitHub.com:443/acme/shop/",
            "https://ann:word@github.com/acme/shop",
            "https://x-access-token:abc@github.com/acme/shop",
            "http://github.com/acme/shop",
            "git@github.com:acme/shop.git",
            "git@github.com:/acme/shop.git",
            "ssh://git@github.com/acme/shop.git",
            "ssh://git@github.com:22/acme/shop",
            "ssh://git@ssh.github.com:443/acme/shop.git",
        ] {
            for server in ["https://github.com", "https://github.com/"] {
                assert_eq!(
                    find_remote_repository(remote, server),
                    Some("acme/shop"),
                    "{remote}"
                );
            }
        }
    }

    #[test]
    fn remote_of_other_server_is_refused() {
        for remote in [
            "https://github.example/acme/shop",
            "https://github.com.example/acme/shop",
            "https://ssh.github.com/acme/shop",
            "https://github.com:8443/acme/shop",
            "https://gitlab.com/github.com/acme/shop",
            "https://evil.example/@github.com/acme/shop",
            "git@gitlab.com:acme/shop.git",
            "./git@github.com:acme/shop.git",
            "/srv/acme/shop",
            "/srv/git@github.com:acme/shop",
            "file:///srv/acme/shop",
            "",
        ] {
            assert_eq!(
                find_remote_repository(remote, "https://github.com"),
                None,
                "{remote}"
            );
        }
    }

    #[test]
    fn server_has_own_port_and_path() {
        let server = "https://ghe.example:8443";
        for remote in [
            "git@ghe.example:acme/shop.git",
            "ssh://git@ghe.example:2222/acme/shop.git",
            "https://ghe.example:8443/acme/shop",
        ] {
            assert_eq!(
                find_remote_repository(remote, server),
                Some("acme/shop"),
                "{remote}"
            );
        }
        assert_eq!(
            find_remote_repository("https://ghe.example/acme/shop", server),
            None
        );
        for server in ["http://127.0.0.1:8080/git", "http://[::1]:8080/git"] {
            let remote = format!("{server}/acme/shop.git");
            assert_eq!(
                find_remote_repository(&remote, server),
                Some("acme/shop"),
                "{remote}"
            );
        }
        let beside = "http://127.0.0.1:8080/github/acme/shop";
        assert_eq!(find_remote_repository(beside, "http://127.0.0.1:8080/git"), None);
    }
}
