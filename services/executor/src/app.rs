//! The executor as a service: its assembly on this machine, and its run until shutdown.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::Context;
use bootstrap::{
    ServiceApp,
    health::ServiceHealth,
    tls::{self, TlsProtocol},
};
use grant::GrantVerifier;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    cleanup,
    config::{Config, PeerTls},
    parser,
    service::{
        disk_watch::{self, DiskReserve},
        isolation,
        readiness::NetworkIsolation,
        registry::{self, WorkspaceRegistry},
        server,
    },
    setup::cache,
    store::{DiskStore, DiskStoreLimits},
    telemetry,
    workspace::KeepLimits,
};

// A quarter of the workspace's disk limit. Above it, unreferenced objects of the git directory are deleted.
const GIT_SHARE: u64 = 4;

/// Executor with its sandbox and its data folder, ready to serve.
pub struct ExecutorApp {
    registry: Arc<WorkspaceRegistry>,
    verifier: GrantVerifier,
    tls: Option<tls::TlsServer>,
    metrics_listen: Option<SocketAddr>,
    reserve: DiskReserve,
    forbidden_addresses: Vec<String>,
}

impl ServiceApp for ExecutorApp {
    type Config = Config;

    /// Fails when the data folder cannot be used, the launcher is missing, or the sandbox level is too low.
    async fn build(config: Config) -> anyhow::Result<Self> {
        let git = git::check_git_version()?;
        tracing::info!(%git, "git found");
        let (settings, fetches) = (config.executor, config.git);
        let verifier = GrantVerifier::new(&settings.grant_keys).context("executor.grant_keys")?;
        anyhow::ensure!(
            parser::is_parser_installed(),
            "the program `parser` is not beside this one: docs/install.md says what is where"
        );
        let data_dir = prepare_data_dir(settings.data_dir.clone()).await?;
        let (tls, trust) = (
            planner_tls(config.tls.as_ref())?,
            PeerTls::new(config.tls.as_ref())?,
        );
        // A command that could read the key could impersonate the executor.
        let key = config.tls.as_ref().map(|tls| std::path::absolute(&tls.key));
        let hidden = [data_dir.clone()].into_iter().chain(key.transpose()?);
        let opened = settings.open_sandbox(settings.runner_socket.as_deref(), hidden);
        let sandbox = opened.await?.with_room(settings.slots);
        let (level, probe) = (sandbox.level(), sandbox.probe());
        tracing::info!(
            ?level,
            landlock_abi = probe.offers.landlock,
            namespaces = probe.offers.namespaces,
            seccomp = probe.offers.seccomp,
            memory_mib = sandbox.limits().memory_mib,
            checks_at_once = sandbox.room().most(),
            slots = settings.slots,
            "executor ready"
        );
        if !probe.offers.namespaces {
            tracing::warn!(
                "without namespaces only the pod's network policy keeps commands from the network"
            );
        }
        let has_runner = sandbox.runner().is_some();
        let limits = DiskStoreLimits {
            // A runner creates every worktree, so no checkout can be prepared.
            checkouts: if has_runner { 0 } else { settings.slots as usize },
            // This process copies results of setup, but with a runner the worktree belongs to another user.
            setup_bytes: if has_runner {
                0
            } else {
                settings.setup_cache_mib << 20
            },
            lfs_bytes: settings.lfs_cache_mib << 20,
            floor: git::DiskFloor(settings.disk_floor_mib << 20),
        };
        let store = DiskStore::new(&data_dir, limits, settings.index, fetches);
        let keep = KeepLimits {
            pack_bytes: settings.snapshot_mib << 20,
            git_bytes: (sandbox.limits().disk_mib << 20) / GIT_SHARE,
        };
        let registry = Arc::new(WorkspaceRegistry::new(
            &data_dir,
            settings.slots,
            sandbox,
            (store, keep),
            trust,
        ));
        telemetry::follow_registry(&registry);
        Ok(Self {
            registry,
            verifier,
            tls,
            metrics_listen: settings.metrics_listen,
            reserve: DiskReserve::of_mib(settings.disk_reserve_mib),
            forbidden_addresses: settings.forbidden_addresses,
        })
    }

    /// After the shutdown no new workspace is opened, running calls may finish within 15 s, and remaining ones
    /// are cancelled.
    async fn run(self, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self {
            registry,
            verifier,
            tls,
            metrics_listen,
            reserve,
            forbidden_addresses,
        } = self;
        let health = ServiceHealth::new();
        let _metrics = serve_metrics(metrics_listen, &health, &shutdown).await?;
        let reaper = tokio::spawn({
            let registry = Arc::clone(&registry);
            async move { registry.reap().await }
        });
        // Without addresses there is no test to wait for.
        if forbidden_addresses.is_empty() {
            registry.capacity.set_isolation(NetworkIsolation::Holds);
        }
        let (watched, stop) = (Arc::clone(&registry), shutdown.clone());
        let watch = |readiness: server::ReadinessReporter| async move {
            tokio::join!(
                disk_watch::watch_disk(Arc::clone(&watched), reserve, readiness.clone(), stop.clone()),
                isolation::watch_isolation(watched, forbidden_addresses, readiness, stop),
            );
        };
        let endpoint = server::ServerListener {
            listener,
            tls,
            health,
        };
        let served = server::serve_grpc(Arc::clone(&registry), verifier, endpoint, shutdown, watch).await;
        registry.stop().await;
        reaper.await?;
        served
    }
}

/// TLS configuration for the gRPC port. With certificates, only planners can connect.
fn planner_tls(
    settings: Option<&tls::Settings>,
) -> Result<Option<tls::TlsServer>, bootstrap::settings::Error> {
    settings
        .map(|settings| tls::TlsServer::for_service(settings, TlsProtocol::Http2, "planner"))
        .transpose()
}

/// Serves metrics and health on a separate port, because the gRPC port accepts only HTTP/2 from planners with
/// a grant.
async fn serve_metrics(
    address: Option<SocketAddr>,
    health: &ServiceHealth,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<AbortOnDropHandle<()>>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("executor.metrics_listen: cannot listen on {address}"))?;
    let limits = bootstrap::http::ListenerLimits::default();
    let router = health.router();
    let serving = bootstrap::http::serve_http(listener, router, limits, shutdown.clone());
    Ok(Some(AbortOnDropHandle::new(tokio::spawn(serving))))
}

/// Creates the folders of the data folder. Workspaces of an earlier process are deleted.
async fn prepare_data_dir(data_dir: PathBuf) -> anyhow::Result<PathBuf> {
    let prepared = tokio::task::spawn_blocking(move || {
        let names = ["workspaces", registry::CHECKS, "ready", cache::UNFINISHED];
        cleanup::renew_folders(&data_dir, &names)?;
        for name in ["mirrors", cache::FOLDER] {
            std::fs::create_dir_all(data_dir.join(name))?;
        }
        data_dir.canonicalize()
    });
    prepared.await?.context("executor.data_dir")
}
