//! Way of git to its remotes: the proxy and the authorities, as settings of one call.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tempfile::TempPath;
use url::Url;
use webproxy::{OutboundProxy, OutboundRoute};

/// Proxy and additional authorities for calls of git. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct GitProxy {
    routes: OutboundProxy,
    authorities: Option<Arc<TempPath>>,
}

impl GitProxy {
    /// Writes the additional authorities, with those of the system, to a file in `folder`, because git takes one
    /// file. The file is removed with the last clone of the value.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(routes: OutboundProxy, folder: &Path) -> io::Result<Self> {
        let authorities = routes.write_authorities(folder)?.map(Arc::new);
        Ok(Self { routes, authorities })
    }

    /// File of the authorities; `None` for those of the system alone.
    pub(crate) fn authorities(&self) -> Option<PathBuf> {
        self.authorities.as_ref().map(|file| file.to_path_buf())
    }

    /// Settings of git for a call to a remote. They contain the password of the proxy, so they must be neither
    /// arguments nor part of a log.
    pub(crate) fn settings(&self, remote: &str) -> Vec<(String, String)> {
        let Ok(url) = Url::parse(remote) else {
            return Vec::new();
        };
        let OutboundRoute::Proxy(server) = self.routes.route(&url) else {
            return Vec::new();
        };
        let mut settings = vec![(
            "http.proxy".to_owned(),
            server.address_with_credentials().to_string(),
        )];
        if server.credentials().is_some() {
            // By default git sends each request without credentials first.
            settings.push(("http.proxyAuthMethod".to_owned(), "basic".to_owned()));
        }
        if server.has_tls()
            && let Some(file) = self.authorities()
        {
            settings.push(("http.proxySSLCAInfo".to_owned(), file.display().to_string()));
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_proxy(json: &str) -> GitProxy {
        let settings = serde_json::from_str(json).unwrap();
        let routes = OutboundProxy::without_environment(&settings).unwrap();
        GitProxy::new(routes, &std::env::temp_dir()).unwrap()
    }

    #[test]
    fn remote_behind_proxy_gets_settings() {
        let json = r#"{"url": "http://proxy.corp:3128", "username": "ada", "password": "p:w", "no_proxy": "ghe.corp"}"#;
        let proxy = build_proxy(json);
        assert_eq!(
            proxy.settings("https://github.com/acme/shop.git"),
            [
                (
                    "http.proxy".to_owned(),
                    "http://ada:p%3Aw@proxy.corp:3128/".to_owned()
                ),
                ("http.proxyAuthMethod".to_owned(), "basic".to_owned()),
            ]
        );
        for direct in [
            "https://ghe.corp/acme/shop.git",
            "http://127.0.0.1:1/git/acme/shop.git",
            "",
        ] {
            assert!(proxy.settings(direct).is_empty(), "{direct}");
        }
        assert!(!format!("{proxy:?}").contains("p:w"), "{proxy:?}");
        assert!(build_proxy("{}").settings("https://github.com/a/b").is_empty());
    }
}
