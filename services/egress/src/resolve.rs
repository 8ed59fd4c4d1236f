//! Name resolution: each name is resolved once, all its addresses are checked, and these addresses are dialed.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures::future::{BoxFuture, FutureExt};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use webproxy::AddressRule;

/// Number of addresses of a name that the proxy tries. It checks all of them.
const MAX_ADDRESSES: usize = 16;

/// Future of a name's addresses, or of the resolver's error.
pub type LookUp = BoxFuture<'static, io::Result<Vec<IpAddr>>>;

/// Resolver of host names. Tests replace it.
pub trait HostResolver: Send + Sync {
    /// Resolves a host to all its addresses.
    fn look_up(&self, host: &str) -> LookUp;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl HostResolver for SystemResolver {
    fn look_up(&self, host: &str) -> LookUp {
        let host = host.to_owned();
        async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}

/// Reason why a name has no address to dial.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    /// One of its addresses is closed. A legitimate name does not mix public and internal addresses.
    #[error("the name leads to an address that is not public")]
    NotPublic,
    /// The name has no address.
    #[error("the name cannot be resolved")]
    Unknown(#[source] io::Error),
}

/// Resolver that returns an answer only if all its addresses are open.
#[derive(Clone)]
pub(crate) struct CheckedResolver {
    resolver: Arc<dyn HostResolver>,
    rule: Arc<AddressRule>,
    /// Host of the company's proxy, which may be in any network.
    proxy: Option<Arc<str>>,
}

impl CheckedResolver {
    /// The HTTP client resolves `proxy` without a check of its addresses.
    pub(crate) fn new(resolver: Arc<dyn HostResolver>, rule: AddressRule, proxy: Option<String>) -> Self {
        Self {
            resolver,
            rule: Arc::new(rule),
            proxy: proxy.map(Arc::from),
        }
    }

    /// Resolves a host to addresses, all of them open.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub(crate) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let found = self.resolver.look_up(host).await.map_err(ResolveError::Unknown)?;
        if found.is_empty() {
            return Err(ResolveError::Unknown(io::ErrorKind::NotFound.into()));
        }
        if !found.iter().all(|address| self.rule.opens(*address)) {
            tracing::warn!(host, addresses = ?found, "name leads to an address that is not public");
            return Err(ResolveError::NotPublic);
        }
        Ok(found.into_iter().take(MAX_ADDRESSES).collect())
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let checked = self.clone();
        Box::pin(async move {
            let found = if checked.proxy.as_deref() == Some(name.as_str()) {
                checked.resolver.look_up(name.as_str()).await?
            } else {
                checked.addresses(name.as_str()).await?
            };
            // reqwest replaces port 0 by the port of the URL.
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}
