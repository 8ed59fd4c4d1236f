//! Names to addresses: looked up once, checked, and dialed as they were checked.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures::future::{BoxFuture, FutureExt};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::AddressRule;

/// Addresses of one name that are tried at most; all of them are checked.
const MAX_ADDRESSES: usize = 16;

/// The addresses of a name, or that it has none.
pub type LookUp = BoxFuture<'static, io::Result<Vec<IpAddr>>>;

/// Looks names up.
pub trait Resolver: Send + Sync {
    /// Every address of a host.
    fn look_up(&self, host: &str) -> LookUp;
}

/// The machine's own resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn look_up(&self, host: &str) -> LookUp {
        let host = host.to_owned();
        async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}

/// Why a name has no address to dial.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    /// One of its addresses is closed: nobody who means well mixes them.
    #[error("the name leads to an address that is not public")]
    NotPublic,
    /// It has none.
    #[error("the name cannot be resolved")]
    Unknown(#[source] io::Error),
}

/// A resolver whose answers were checked.
#[derive(Clone)]
pub(crate) struct Checked {
    resolver: Arc<dyn Resolver>,
    rule: Arc<AddressRule>,
}

impl Checked {
    pub(crate) fn new(resolver: Arc<dyn Resolver>, rule: AddressRule) -> Self {
        let rule = Arc::new(rule);
        Self { resolver, rule }
    }

    /// The addresses of a host, none of them closed.
    ///
    /// # Errors
    /// [`Unresolved`].
    pub(crate) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Unresolved> {
        let found = self.resolver.look_up(host).await.map_err(Unresolved::Unknown)?;
        if found.is_empty() {
            return Err(Unresolved::Unknown(io::ErrorKind::NotFound.into()));
        }
        if !found.iter().all(|address| self.rule.opens(*address)) {
            tracing::warn!(host, addresses = ?found, "name leads to an address that is not public");
            return Err(Unresolved::NotPublic);
        }
        Ok(found.into_iter().take(MAX_ADDRESSES).collect())
    }
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let checked = self.clone();
        Box::pin(async move {
            let found = checked.addresses(name.as_str()).await?;
            // The port of the URL takes the place of this one.
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}
