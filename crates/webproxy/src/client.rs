//! HTTP clients that take the way of the process.

use reqwest::{Certificate, ClientBuilder, Proxy};

use crate::route::{OutboundProxy, OutboundRoute, find_installed_proxy};

/// Makes a client take the way of this process, and trust its additional authorities.
///
/// # Errors
/// The additional authorities cannot be read.
pub fn configure_client(builder: ClientBuilder) -> reqwest::Result<ClientBuilder> {
    find_installed_proxy().configure_client(builder)
}

impl OutboundProxy {
    /// Makes a client take this way, and trust its additional authorities.
    ///
    /// # Errors
    /// The additional authorities cannot be read.
    pub fn configure_client(&self, builder: ClientBuilder) -> reqwest::Result<ClientBuilder> {
        let builder = match self.authorities() {
            Some(pem) => builder.tls_certs_merge(Certificate::from_pem_bundle(pem)?),
            None => builder,
        };
        if self.is_direct() {
            // The library would read the variables of the environment itself, with other rules.
            return Ok(builder.no_proxy());
        }
        let routes = self.clone();
        Ok(builder.proxy(Proxy::custom(move |url| match routes.route(url) {
            OutboundRoute::Proxy(server) => Some(server.address_with_credentials()),
            OutboundRoute::Direct(_) => None,
        })))
    }
}
