//! State that all sessions share.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Context;
use domain::RepositoryName;
use grant::GrantVerifier;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::Settings,
    forward::HttpForwarder,
    mirror::RegistryMirror,
    resolve::{CheckedResolver, HostResolver},
    runs::RunTable,
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
    pub(crate) checked: CheckedResolver,
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
        settings: &Settings,
        resolver: Arc<dyn HostResolver>,
        limits: TimeLimits,
    ) -> anyhow::Result<Self> {
        bootstrap::install_tls_provider();
        let checked = CheckedResolver::new(resolver, settings.rule()?);
        let http = reqwest::Client::builder()
            .dns_resolver(Arc::new(checked.clone()))
            // A redirect or a proxy of the environment would bypass the checks of this process.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(limits.connect)
            // Shorter than the session's idle limit, so that the client still gets the error.
            .read_timeout(limits.idle * 5 / 6)
            .build()
            .context("http client")?;
        Ok(Self {
            verifier: GrantVerifier::new(&settings.grant_keys).context("egress.grant_keys")?,
            runs: Arc::new(RunTable::new(settings.upload_mib, settings.download_mib)),
            mirrors: settings.mirrors()?,
            checked,
            forwarder: HttpForwarder::new(http, settings.mirror_names()?),
            limits,
            sessions: TaskTracker::new(),
            shutdown: CancellationToken::new(),
            cut: CancellationToken::new(),
        })
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
