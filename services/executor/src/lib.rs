//! Executor service: holds workspaces and runs tools in them, for planners with a grant. It holds no secret
//! and has no access to queue, leases, trackers or forges.

mod admission;
mod answer;
mod by_hand;
mod calls;
mod checks;
mod config;
mod disk;
mod disk_watch;
mod drive;
mod incoming;
mod inspect;
mod integrity;
mod isolation;
mod mirror;
mod open;
mod parser;
mod pattern;
mod pool;
mod registry;
mod retrieval;
mod sandbox;
mod server;
mod service;
mod setup;
mod setup_cache;
mod spans;
mod store;
mod telemetry;
mod tools;
mod trust;
mod unready;
mod workspace;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::Context;
use bootstrap::{
    health::Health,
    tls::{self, Protocol},
};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use trust::Trust;

pub use by_hand::by_hand;
pub use checks::{Bench, Checked, checks_in, tells_of_checks};
pub use config::{Config, Executor};
use disk_watch::DiskReserve;
pub use parser::parser;
use registry::Registry;
pub use sandbox::{Limits, Mechanism};
use sandbox::{Sandbox, View};
use store::Store;
use unready::Isolation;
use workspace::KeepLimits;

// A quarter of the workspace's disk limit. Above it, unreferenced objects of the git directory are deleted.
const GIT_SHARE: u64 = 4;

/// Serves until `shutdown`. Then no new workspace is opened, running calls may finish within 15 s, and
/// remaining ones are cancelled.
///
/// # Errors
/// Fails when the data folder cannot be used, the launcher is missing, or the sandbox level is too low.
pub async fn serve(config: Config, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
    let git = git::check_git_version()?;
    tracing::info!(%git, "git found");
    let (settings, fetches) = (config.executor, config.git);
    let verifier = grant::Verifier::new(&settings.grant_keys).context("executor.grant_keys")?;
    anyhow::ensure!(
        parser::is_there(),
        "the program `parser` is not beside this one: docs/install.md says what is where"
    );
    let data_dir = prepare(settings.data_dir).await?;
    let mut hidden = absolute(&settings.hidden).context("executor.hidden")?;
    hidden.push(data_dir.clone());
    let (tls, trust) = (callers(config.tls.as_ref())?, Trust::new(config.tls.as_ref())?);
    // A command that could read the key could impersonate the executor.
    hidden.extend(
        config
            .tls
            .as_ref()
            .map(|tls| std::path::absolute(&tls.key))
            .transpose()?,
    );
    let exposed = absolute(&settings.exposed).context("executor.exposed")?;
    let view = View::of_this_machine(exposed, hidden);
    let (launcher, runner) = (settings.launcher.as_deref(), settings.runner_socket.as_deref());
    let sandbox = Sandbox::open(launcher, runner, view, settings.limits)
        .await
        .map_err(|problem| anyhow::anyhow!("executor.launcher, executor.runner_socket: {problem}"))?
        .without(&settings.without);
    // This process copies results of setup, but with a runner the worktree belongs to another user.
    let setup_cache_mib = sandbox.runner().map_or(settings.setup_cache_mib, |_| 0);
    let (level, probe) = (sandbox.level(), sandbox.probe());
    sandbox.require(settings.min_level).map_err(anyhow::Error::msg)?;
    if !settings.allow_unlimited_processes {
        sandbox.require_process_limit().map_err(anyhow::Error::msg)?;
    }
    tracing::info!(
        ?level,
        landlock_abi = probe.offers.landlock,
        namespaces = probe.offers.namespaces,
        seccomp = probe.offers.seccomp,
        memory_mib = sandbox.limits().memory_mib,
        slots = settings.slots,
        "executor ready"
    );
    if !probe.offers.namespaces {
        tracing::warn!("without namespaces only the pod's network policy keeps commands from the network");
    }
    // With a runner no checkout can be prepared, because the runner creates every worktree.
    let checkouts = sandbox.runner().map_or(settings.slots as usize, |_| 0);
    let floor = git::DiskFloor(settings.disk_floor_mib << 20);
    let store = Store::new(
        &data_dir,
        checkouts,
        setup_cache_mib << 20,
        settings.index,
        (floor, fetches),
    );
    let keep = KeepLimits {
        pack_bytes: settings.snapshot_mib << 20,
        git_bytes: (sandbox.limits().disk_mib << 20) / GIT_SHARE,
    };
    let registry = Arc::new(Registry::new(
        &data_dir,
        settings.slots,
        sandbox,
        (store, keep),
        trust,
    ));
    telemetry::follow(&registry);
    let health = Health::new();
    let _metrics = serve_metrics(settings.metrics_listen, &health, &shutdown).await?;
    let reaper = tokio::spawn({
        let registry = Arc::clone(&registry);
        async move { registry.reap().await }
    });
    // Without addresses there is no test to wait for.
    if settings.forbidden_addresses.is_empty() {
        registry.set_isolation(Isolation::Holds);
    }
    let (watched, stop) = (Arc::clone(&registry), shutdown.clone());
    let reserve = DiskReserve::of_mib(settings.disk_reserve_mib);
    let watch = |readiness: server::Readiness| async move {
        tokio::join!(
            disk_watch::watch(Arc::clone(&watched), reserve, readiness.clone(), stop.clone()),
            isolation::watch(watched, settings.forbidden_addresses, readiness, stop),
        );
    };
    let door = server::Door {
        listener,
        tls,
        health,
    };
    let served = server::serve(Arc::clone(&registry), verifier, door, shutdown, watch).await;
    registry.stop().await;
    reaper.await?;
    served
}

/// TLS configuration for the gRPC port. With certificates, only planners can connect.
fn callers(settings: Option<&tls::Settings>) -> Result<Option<tls::Server>, bootstrap::settings::Error> {
    settings
        .map(|settings| tls::Server::for_service(settings, Protocol::Http2, "planner"))
        .transpose()
}

/// Serves metrics and health on a separate port, because the gRPC port accepts only HTTP/2 from planners with
/// a grant.
async fn serve_metrics(
    address: Option<SocketAddr>,
    health: &Health,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<AbortOnDropHandle<()>>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("executor.metrics_listen: cannot listen on {address}"))?;
    let limits = bootstrap::http::Limits::default();
    let router = health.router();
    let serving = bootstrap::http::serve(listener, router, limits, shutdown.clone());
    Ok(Some(AbortOnDropHandle::new(tokio::spawn(serving))))
}

fn absolute(paths: &[PathBuf]) -> std::io::Result<Vec<PathBuf>> {
    paths.iter().map(std::path::absolute).collect()
}

/// Creates the folders of the data folder. Workspaces of an earlier process are deleted.
async fn prepare(data_dir: PathBuf) -> anyhow::Result<PathBuf> {
    let prepared = tokio::task::spawn_blocking(move || {
        let names = ["workspaces", registry::CHECKS, "ready", setup_cache::UNFINISHED];
        disk::renew(&data_dir, &names)?;
        for name in ["mirrors", setup_cache::FOLDER] {
            std::fs::create_dir_all(data_dir.join(name))?;
        }
        data_dir.canonicalize()
    });
    prepared.await?.context("executor.data_dir")
}
