//! The executor: holds workspaces and runs what the model asks in them, for planners that show a grant. It holds no
//! secret and knows neither queue, lease, tracker nor forge.

mod admission;
mod by_hand;
mod calls;
mod config;
mod disk;
mod drive;
mod mirror;
mod open;
mod parser;
mod pool;
mod registry;
mod sandbox;
mod service;
mod setup;
mod setup_cache;
mod store;
mod tools;
mod workspace;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use proto::executor::executor_service_server::ExecutorServiceServer;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpIncoming;

pub use by_hand::by_hand;
pub use config::{Config, Executor};
pub use parser::parser;
use registry::Registry;
pub use sandbox::{Limits, Mechanism};
use sandbox::{Sandbox, View};
use service::Service;
use store::Store;

/// How long running calls may go on once the executor shall stop.
const DRAIN_TIME: Duration = Duration::from_secs(15);
/// How long open connections may take after that.
const LINGER: Duration = Duration::from_secs(3);

/// Serves until `shutdown`: then nothing new is opened, running calls may finish for 15 s, and what is left is cut.
///
/// # Errors
/// When the data folder cannot be used, the launcher is missing, or the sandbox level is below the wanted one.
pub async fn serve(config: Config, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
    let settings = config.executor;
    let verifier = grant::Verifier::new(&settings.grant_keys).context("executor.grant_keys")?;
    anyhow::ensure!(parser::is_there(), "the program `parser` is not beside this one");
    let data_dir = prepare(settings.data_dir).await?;
    let mut hidden = absolute(&settings.hidden).context("executor.hidden")?;
    hidden.push(data_dir.clone());
    let exposed = absolute(&settings.exposed).context("executor.exposed")?;
    let view = View::of_this_machine(exposed, hidden);
    let (launcher, runner) = (settings.launcher.as_deref(), settings.runner_socket.as_deref());
    let sandbox = Sandbox::open(launcher, runner, view, settings.limits)
        .await
        .map_err(|problem| anyhow::anyhow!("executor.launcher, executor.runner_socket: {problem}"))?
        .without(&settings.without);
    // What is kept is copied by this process, and the worktree is the runner's.
    let setup_cache_mib = sandbox.runner().map_or(settings.setup_cache_mib, |_| 0);
    let (level, probe) = (sandbox.level(), sandbox.probe());
    sandbox.require(settings.min_level).map_err(anyhow::Error::msg)?;
    tracing::info!(
        ?level,
        landlock_abi = probe.offers.landlock,
        namespaces = probe.offers.namespaces,
        seccomp = probe.offers.seccomp,
        slots = settings.slots,
        "executor ready"
    );
    if !probe.offers.namespaces {
        tracing::warn!("without namespaces only the pod's network policy keeps commands from the network");
    }
    // A runner makes every worktree itself.
    let checkouts = sandbox.runner().map_or(settings.slots as usize, |_| 0);
    let floor = git::DiskFloor(settings.disk_floor_mib << 20);
    let store = Store::new(&data_dir, checkouts, setup_cache_mib << 20, floor);
    let registry = Arc::new(Registry::new(&data_dir, settings.slots, sandbox, store));
    let reaper = tokio::spawn({
        let registry = Arc::clone(&registry);
        async move { registry.reap().await }
    });
    let served = serve_grpc(Arc::clone(&registry), verifier, listener, shutdown).await;
    registry.stop().await;
    reaper.await?;
    served
}

fn absolute(paths: &[PathBuf]) -> std::io::Result<Vec<PathBuf>> {
    paths.iter().map(std::path::absolute).collect()
}

async fn serve_grpc(
    registry: Arc<Registry>,
    verifier: grant::Verifier,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<ExecutorServiceServer<Service>>().await;
    let service = Service {
        registry: Arc::clone(&registry),
        verifier,
    };
    let service = ExecutorServiceServer::new(service);
    let drained = CancellationToken::new();
    let server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(15)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .add_service(health_service)
        .add_service(service)
        .serve_with_incoming_shutdown(
            // Without it Nagle's algorithm and delayed acks add 40 ms to every call.
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            drained.clone().cancelled_owned(),
        );
    let stop = async {
        shutdown.cancelled().await;
        health.set_not_serving::<ExecutorServiceServer<Service>>().await;
        registry.drain();
        let deadline = tokio::time::Instant::now() + DRAIN_TIME;
        while registry.is_busy() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        registry.stop().await;
        drained.cancel();
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        served = server => served.context("serving gRPC"),
        () = stop => Ok(()),
    }
}

/// Makes the folders; workspaces of an earlier process are gone with it.
async fn prepare(data_dir: PathBuf) -> anyhow::Result<PathBuf> {
    let prepared = tokio::task::spawn_blocking(move || {
        for name in ["workspaces", "ready", setup_cache::UNFINISHED] {
            let folder = data_dir.join(name);
            disk::remove(&folder)?;
            std::fs::create_dir_all(&folder)?;
        }
        for name in ["mirrors", setup_cache::FOLDER] {
            std::fs::create_dir_all(data_dir.join(name))?;
        }
        data_dir.canonicalize()
    });
    prepared.await?.context("executor.data_dir")
}
