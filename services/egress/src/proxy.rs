//! State that all sessions share.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Context;
use domain::RepositoryName;
use grant::GrantVerifier;
use tokio::net::TcpStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::Config,
    forward::HttpForwarder,
    mirror::RegistryMirror,
    problem::EgressProblem,
    request_decision::RequestTarget,
    resolve::{CheckedResolver, HostResolver},
    runs::RunTable,
    tunnel,
    upstream::{self, UpstreamRoutes},
};

/// Time limits for the parts of a connection.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimits {
    /// Resolving a name and connecting to it.
    pub connect: Duration,
    /// From the wait for a request, or for a tunnel's first bytes, to the end of its head.
    pub header: Duration,
    /// Without a byte in either direction.
    pub idle: Duration,
    /// From shutdown to the end of the requests and tunnels in progress.
    pub drain: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            header: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            drain: Duration::from_secs(15),
        }
    }
}

/// Keys, mirrors, resolver and limits, independent of the number of connections.
pub(crate) struct EgressProxy {
    pub(crate) verifier: GrantVerifier,
    pub(crate) runs: Arc<RunTable>,
    pub(crate) mirrors: BTreeMap<String, RegistryMirror>,
    checked: CheckedResolver,
    upstream: UpstreamRoutes,
    pub(crate) forwarder: HttpForwarder,
    pub(crate) limits: TimeLimits,
    pub(crate) sessions: TaskTracker,
    /// Connections end after their request in progress.
    pub(crate) shutdown: CancellationToken,
    /// All connections end at once.
    pub(crate) cut: CancellationToken,
}

impl EgressProxy {
    /// Reads keys, networks and mirrors. Opens no connection.
    ///
    /// # Errors
    /// A wrong setting, or TLS that cannot be set up.
    pub(crate) fn new(
        config: &Config,
        resolver: Arc<dyn HostResolver>,
        limits: TimeLimits,
    ) -> anyhow::Result<Self> {
        bootstrap::install_tls_provider();
        let settings = &config.egress;
        let upstream = UpstreamRoutes::new(&config.proxy)?;
        let checked = CheckedResolver::new(resolver, settings.rule()?, upstream.own_host());
        let http = reqwest::Client::builder()
            .dns_resolver(Arc::new(checked.clone()))
            // A redirect would bypass the checks of this process.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(limits.connect)
            // Shorter than the session's idle limit, so that the client still gets the error.
            .read_timeout(limits.idle * 5 / 6);
        let http = upstream.configure_client(http).context("proxy.ca")?;
        let http = http.build().context("http client")?;
        Ok(Self {
            verifier: GrantVerifier::new(&settings.grant_keys).context("egress.grant_keys")?,
            runs: Arc::new(RunTable::new(settings.upload_mib, settings.download_mib)),
            mirrors: settings.mirrors()?,
            checked,
            upstream,
            forwarder: HttpForwarder::new(http, settings.mirror_names()?),
            limits,
            sessions: TaskTracker::new(),
            shutdown: CancellationToken::new(),
            cut: CancellationToken::new(),
        })
    }

    /// Connects to the host of a tunnel, which the rules name.
    ///
    /// # Errors
    /// A refusal if an address is not public, else [`EgressProblem::Unreachable`].
    pub(crate) async fn dial(&self, target: &RequestTarget) -> Result<TcpStream, EgressProblem> {
        let limit = self.limits.connect;
        let found = self.upstream.find_server("https", target, &self.checked, limit);
        match found.await? {
            Some(server) => upstream::connect_through(server, target, limit).await,
            None => tunnel::dial_target(&self.checked, target, limit).await,
        }
    }

    /// Checks the host of a plain request before it goes to the proxy of the company. Without one, the client checks
    /// each address that it dials.
    ///
    /// # Errors
    /// A refusal if an address is not public.
    pub(crate) async fn check_plain(&self, target: &RequestTarget) -> Result<(), EgressProblem> {
        let limit = self.limits.connect;
        let found = self.upstream.find_server("http", target, &self.checked, limit);
        found.await.map(|_| ())
    }

    /// Returns the names of the mirrors that a repository may use.
    pub(crate) fn mirrors_open_to(&self, repository: &RepositoryName) -> Vec<&str> {
        let open = self
            .mirrors
            .values()
            .filter(|mirror| mirror.is_open_to(repository));
        open.map(RegistryMirror::name).collect()
    }
}
