//! Decision about an address that a Git LFS server names, and the resolver for it.

use std::{io, net::SocketAddr, sync::Arc};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};
use webproxy::AddressRule;

// Number of addresses of a name that are tried. All of them are checked.
const MAX_ADDRESSES: usize = 16;

/// Reason why an address is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressProblem {
    /// The address is not a URL.
    #[error("it is not a URL")]
    NotUrl,
    /// The scheme is neither HTTPS nor that of the repository.
    #[error("it is not an https URL")]
    Insecure,
    /// The address contains a user name or a password.
    #[error("it contains a user name or a password")]
    Credentials,
    /// The address is not on the public internet, and no setting opens its network.
    #[error("it is not public (reporter.lfs.private_networks opens networks)")]
    NotPublic,
    /// The server redirects again and again.
    #[error("it redirects too often")]
    TooManyRedirects,
}

/// Destination of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Origin of the repository, which git reaches anyway.
    Origin,
    /// Another origin, whose addresses are checked.
    Elsewhere,
}

/// Parses an address and decides whether it may be followed. `base` is the URL of the repository.
pub(crate) fn check_address(
    base: &Url,
    url: &Url,
    rule: &AddressRule,
) -> Result<Destination, AddressProblem> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressProblem::Credentials);
    }
    if url.origin() == base.origin() && matches!(url.scheme(), "http" | "https") {
        return Ok(Destination::Origin);
    }
    let is_secure = url.scheme() == "https" || (url.scheme() == "http" && base.scheme() == "http");
    if !is_secure {
        return Err(AddressProblem::Insecure);
    }
    // The HTTP client asks no resolver for an address.
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        Some(Host::Domain(_)) => None,
        None => return Err(AddressProblem::NotUrl),
    };
    if address.is_none_or(|address| rule.opens(address)) {
        Ok(Destination::Elsewhere)
    } else {
        Err(AddressProblem::NotPublic)
    }
}

/// Resolver that returns an answer only if all its addresses are open.
#[derive(Clone)]
pub(crate) struct CheckedResolver {
    rule: Arc<AddressRule>,
    /// Host of the company's proxy, which may be in any network.
    proxy: Option<Arc<str>>,
}

impl CheckedResolver {
    pub(crate) fn new(rule: AddressRule, proxy: Option<String>) -> Self {
        Self {
            rule: Arc::new(rule),
            proxy: proxy.map(Arc::from),
        }
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let is_proxy = resolver.proxy.as_deref() == Some(name.as_str());
            if !is_proxy && !found.iter().all(|address| resolver.rule.opens(address.ip())) {
                tracing::warn!(
                    host = name.as_str(),
                    "a store of Git LFS has an address that is not public"
                );
                return Err(io::Error::other(AddressProblem::NotPublic).into());
            }
            // reqwest replaces port 0 by the port of the URL.
            let found = found.into_iter().take(MAX_ADDRESSES);
            Ok(Box::new(found.map(|address| SocketAddr::new(address.ip(), 0))) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decide(base: &str, url: &str) -> Result<Destination, AddressProblem> {
        let rule = AddressRule::new(&["10.9.0.0/16".to_owned()]).unwrap();
        check_address(&Url::parse(base).unwrap(), &Url::parse(url).unwrap(), &rule)
    }

    #[test]
    fn addresses_are_followed_by_origin_and_network() {
        use AddressProblem::{Credentials, Insecure, NotPublic};
        use Destination::{Elsewhere, Origin};
        let (github, internal) = (
            "https://github.com/acme/shop.git",
            "http://127.0.0.1:7000/git/acme/shop.git",
        );
        for (base, url, expected) in [
            (github, "https://github.com/storage/1", Ok(Origin)),
            (github, "https://github.com:443/storage/1", Ok(Origin)),
            (github, "http://github.com/storage/1", Err(Insecure)),
            (github, "https://store.example/1?signature=x", Ok(Elsewhere)),
            (github, "http://store.example/1", Err(Insecure)),
            (github, "file:///etc/passwd", Err(Insecure)),
            (github, "https://ada:pw@github.com/1", Err(Credentials)),
            (github, "https://10.0.0.1/1", Err(NotPublic)),
            (github, "https://10.9.0.1/1", Ok(Elsewhere)),
            (github, "https://[::ffff:127.0.0.1]/1", Err(NotPublic)),
            (github, "https://169.254.169.254/latest", Err(NotPublic)),
            (internal, "http://127.0.0.1:7000/storage/1", Ok(Origin)),
            // Another port is another service.
            (internal, "http://127.0.0.1:7001/storage/1", Err(NotPublic)),
            (internal, "http://store.example/1", Ok(Elsewhere)),
        ] {
            assert_eq!(decide(base, url), expected, "{url}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fuzz_address_elsewhere_is_secure_without_credentials(text in "(https?|ftp|file)://[a-z0-9.:@/\\[\\]-]{1,40}") {
            let base = Url::parse("https://github.com/acme/shop.git").unwrap();
            if let Ok(url) = Url::parse(&text)
                && check_address(&base, &url, &AddressRule::default()).is_ok()
            {
                prop_assert_eq!(url.scheme(), "https");
                prop_assert!(url.username().is_empty() && url.password().is_none());
            }
        }
    }

    #[tokio::test]
    async fn name_of_internal_address_is_refused() {
        let resolver = CheckedResolver::new(AddressRule::default(), Some("127.0.0.1".to_owned()));
        let refused = resolver.resolve("localhost".parse().unwrap()).await;
        assert!(refused.is_err());
        assert!(
            resolver.resolve("127.0.0.1".parse().unwrap()).await.is_ok(),
            "the proxy"
        );
    }
}
