//! All five services in this process, with a real NATS and a real Redis.

use std::{
    future::Future,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use bootstrap::{ServiceConfig, install_proxy, run_app, serve_app, settings};
use ingest::{IngestApp, IngestMode};
use secrecy::SecretString;
use serde::Deserialize;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use crate::backing_servers::BackingServers;
use crate::credentials::ServiceCredentials;
use crate::derived_settings::{ServiceSections, add_derived_settings, bind_all, set_variable};

// Time limit of `/readyz`. It exceeds the minute after which the services themselves give up on an unreachable server, so
// that their error is shown.
const READY_LIMIT: Duration = Duration::from_secs(70);
// Short, because every command with temporary services waits for it.
const READY_POLL: Duration = Duration::from_millis(20);

/// Services and settings of a start.
#[derive(Debug, Default)]
pub struct StartPlan {
    /// Settings file.
    pub file: Option<PathBuf>,
    /// Settings with precedence over the file, as environment variables. Derived settings are added where missing.
    pub environment: Vec<(String, String)>,
    /// Folder for NATS, Redis, mirrors and workspaces.
    pub data: PathBuf,
    /// Listens on free ports instead of the configured ones.
    pub free_ports: bool,
    /// Parts of ingest to start. With [`ingest::IngestMode::Answers`] no other service starts, and only the settings of ingest are
    /// needed.
    ///
    /// With [`ingest::IngestMode::OnRequest`] the work uses a separate NATS and Redis, whatever the settings name.
    pub extent: IngestMode,
}

impl StartPlan {
    /// Plan of all services on free ports, without a settings file.
    pub fn on_free_ports(environment: Vec<(String, String)>, data: PathBuf) -> Self {
        Self {
            environment,
            data,
            free_ports: true,
            ..Self::default()
        }
    }

    /// True when only the API starts.
    fn only_answers(&self) -> bool {
        self.extent == IngestMode::Answers
    }
}

/// NATS, Redis, sockets, keys and settings, ready for the services.
pub struct PreparedServices {
    /// Settings of the plan and those that follow from the start.
    pub environment: Vec<(String, String)>,
    /// Additional settings of single services.
    pub credentials: ServiceCredentials,
    /// Base URL of ingest: webhooks and API.
    pub url: String,
    /// API token with the role admin.
    pub token: SecretString,
    file: Option<PathBuf>,
    extent: IngestMode,
    listeners: [TcpListener; 5],
    servers: BackingServers,
}

/// Running services. Drop aborts them; [`LocalServices::stop`] drains them.
pub struct LocalServices {
    /// Base URL of ingest: webhooks and API.
    pub url: String,
    /// API token with the role admin.
    pub token: SecretString,
    shutdown: CancellationToken,
    services: JoinSet<anyhow::Result<()>>,
    servers: BackingServers,
}

/// Settings as [`PreparedServices::new`] would complete them, without a started server.
///
/// # Errors
/// An invalid setting ([`settings::Error`], by key).
pub async fn complete_settings(
    file: Option<&Path>,
    mut environment: Vec<(String, String)>,
) -> anyhow::Result<Vec<(String, String)>> {
    let sections: ServiceSections = settings::load_settings(file, environment.clone())?;
    sections.check()?;
    // Free ports, because a running `journeyman up` may hold the configured ones.
    let listeners = bind_all(&sections, true).await?;
    add_derived_settings(
        &mut environment,
        &sections,
        file,
        Path::new(".journeyman"),
        listeners.each_ref(),
    )?;
    Ok(environment)
}

impl PreparedServices {
    /// Starts NATS and Redis unless the settings name them, binds the five sockets and generates keys.
    ///
    /// # Errors
    /// An invalid setting ([`settings::Error`], by key, before any server starts), a data folder in use by another
    /// Journeyman, or a server that fails to start.
    pub async fn new(plan: StartPlan) -> anyhow::Result<Self> {
        let only_answers = plan.only_answers();
        let StartPlan {
            file,
            mut environment,
            data,
            free_ports,
            extent,
        } = plan;
        let sections: ServiceSections = settings::load_settings(file.as_deref(), environment.clone())?;
        sections.check()?;
        install_proxy(file.as_deref(), environment.iter().cloned())?;
        std::fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
        // The lock comes before the first server, because two servers would corrupt one store.
        let mut servers = BackingServers::lock(&data)?;
        let data = std::path::absolute(&data)?;
        // The sockets are bound before any service starts, because the settings of each service contain
        // the addresses of the others.
        let listeners = bind_all(&sections, free_ports).await?;
        let token = add_derived_settings(
            &mut environment,
            &sections,
            file.as_deref(),
            &data,
            listeners.each_ref(),
        )?;
        // All settings are checked before a server starts, so that an invalid one leaves nothing behind.
        if only_answers {
            check_config::<ingest::Config>(file.as_deref(), &environment)?;
        } else {
            check_all_configs(file.as_deref(), &environment)?;
        }
        let mut credentials = ServiceCredentials::default();
        let is_apart = extent == IngestMode::OnRequest;
        if sections.nats.url.is_none() || is_apart {
            let url = servers.start_nats(&data, credentials.for_nats()).await?;
            set_variable(&mut environment, "NATS__URL", url);
            if only_answers {
                // Ingest waits for its streams, and without the reporter nothing else creates them.
                create_streams(&environment, &credentials).await?;
            }
        }
        // The API alone needs no Redis.
        if (sections.redis.url.is_none() || is_apart) && !only_answers {
            let url = servers.start_redis(&data, credentials.for_redis()).await?;
            set_variable(&mut environment, "REDIS__URL", url);
        }
        let url = format!("http://{}", listeners[0].local_addr()?);
        Ok(Self {
            environment,
            credentials,
            url,
            token,
            file,
            extent,
            listeners,
            servers,
        })
    }

    /// Settings of ingest.
    ///
    /// # Errors
    /// An invalid setting ([`settings::Error`], by key).
    pub fn ingest(&self) -> Result<ingest::Config, settings::Error> {
        let own = self.credentials.of("ingest");
        settings::load_settings(self.file.as_deref(), self.environment.iter().chain(own).cloned())
    }

    /// Starts the services of the plan in this process and waits until all of them are ready.
    ///
    /// # Errors
    /// An invalid setting ([`settings::Error`], by key), or a service that ends early.
    pub async fn serve(self) -> anyhow::Result<LocalServices> {
        let Self {
            environment,
            credentials,
            url,
            token,
            file,
            extent,
            listeners,
            servers,
        } = self;
        let [ingest, planner, executor, reporter, egress] = listeners;
        let shutdown = CancellationToken::new();
        let mut services = JoinSet::new();
        let source = SettingsSource {
            file: file.as_deref(),
            environment: &environment,
            credentials: &credentials,
            shutdown: &shutdown,
        };
        let mut health = vec![ingest.local_addr()];
        if extent != IngestMode::Answers {
            health.extend([&planner, &reporter, &egress].map(TcpListener::local_addr));
            source.spawn(&mut services, "egress", egress, serve_app::<egress::EgressApp>)?;
            source.spawn(
                &mut services,
                "reporter",
                reporter,
                serve_app::<reporter::ReporterApp>,
            )?;
            source.spawn(
                &mut services,
                "executor",
                executor,
                serve_app::<executor::ExecutorApp>,
            )?;
            source.spawn(
                &mut services,
                "planner",
                planner,
                serve_app::<planner::PlannerApp>,
            )?;
        }
        source.spawn(
            &mut services,
            "ingest",
            ingest,
            move |config, listener, shutdown| async move {
                let app = IngestApp::build_part(extent, config)?;
                run_app(app, listener, &shutdown).await
            },
        )?;
        // The value exists before the wait, so that an error below drops it and aborts the started services.
        let mut local = LocalServices {
            url,
            token,
            shutdown,
            services,
            servers,
        };
        for address in health {
            local.wait_until_ready(address?).await?;
        }
        Ok(local)
    }

    /// Stops NATS and Redis without starting a service.
    pub async fn end(mut self) {
        self.servers.stop().await;
    }

    /// Closes the sockets, so that other processes can bind the same ports, and keeps the servers running.
    pub fn release(self) -> BackingServers {
        self.servers
    }
}

impl LocalServices {
    /// Messages about leftovers of an earlier start that were removed.
    pub fn remains(&self) -> Vec<String> {
        self.servers.remains()
    }

    /// Runs [`PreparedServices::new`] and [`PreparedServices::serve`].
    ///
    /// # Errors
    /// Those of the two.
    pub async fn start(plan: StartPlan) -> anyhow::Result<Self> {
        Box::pin(PreparedServices::new(plan).await?.serve()).await
    }

    /// Waits for shutdown, or for a service that ends early.
    ///
    /// # Errors
    /// The service's own error.
    pub async fn run_until(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let ended = shutdown.run_until_cancelled(self.services.join_next()).await;
        let early = ended.flatten().map(flatten_service_result);
        // The other services are drained even after one has failed.
        let stopped = self.stop().await;
        early.unwrap_or(Ok(())).and(stopped)
    }

    /// Drains the services, then stops NATS and Redis.
    ///
    /// # Errors
    /// The first error of a service.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        let mut outcome = Ok(());
        // Every service is awaited even after an error, because the servers below may only stop after
        // the last one.
        while let Some(ended) = self.services.join_next().await {
            outcome = outcome.and(flatten_service_result(ended));
        }
        // The servers go last, because draining services still write to them.
        self.servers.stop().await;
        outcome
    }

    async fn wait_until_ready(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        // A proxy of the environment does not reach this machine's loopback.
        let client = reqwest::Client::builder().no_proxy().build()?;
        let ready = async {
            loop {
                let answer = client.get(format!("http://{address}/readyz")).send().await;
                if answer.is_ok_and(|answer| answer.status().is_success()) {
                    return;
                }
                tokio::time::sleep(READY_POLL).await;
            }
        };
        // Without this branch, a service that fails at its start would only appear as a timeout.
        tokio::select! {
            () = ready => Ok(()),
            ended = self.services.join_next() => match ended.map(flatten_service_result) {
                Some(Err(error)) => Err(error),
                Some(Ok(())) | None => bail!("a service ended before it was ready"),
            },
            () = tokio::time::sleep(READY_LIMIT) => bail!("{address} was not ready within {} s", READY_LIMIT.as_secs()),
        }
    }
}

/// Creates the streams in place of the reporter, which does not run with [`ingest::IngestMode::Answers`].
async fn create_streams(
    environment: &[(String, String)],
    credentials: &ServiceCredentials,
) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct ReporterSection {
        nats: queue::Settings,
    }
    let own = credentials.of("reporter");
    let reporter: ReporterSection = settings::load_settings(None, environment.iter().chain(own).cloned())?;
    let queue = queue::Queue::connect(&reporter.nats, "reporter").await?;
    Ok(queue.ensure_topology().await?)
}

fn flatten_service_result(ended: Result<anyhow::Result<()>, tokio::task::JoinError>) -> anyhow::Result<()> {
    ended.context("a service panicked").and_then(|served| served)
}

struct SettingsSource<'a> {
    file: Option<&'a Path>,
    environment: &'a [(String, String)],
    credentials: &'a ServiceCredentials,
    shutdown: &'a CancellationToken,
}

impl SettingsSource<'_> {
    fn spawn<C, F, Fut>(
        &self,
        services: &mut JoinSet<anyhow::Result<()>>,
        name: &'static str,
        listener: TcpListener,
        serve: F,
    ) -> anyhow::Result<()>
    where
        C: ServiceConfig,
        F: FnOnce(C, TcpListener, CancellationToken) -> Fut,
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let own = self.credentials.of(name);
        let config: C = settings::load_settings(self.file, self.environment.iter().chain(own).cloned())?;
        config.check()?;
        services.spawn(serve(config, listener, self.shutdown.clone()));
        Ok(())
    }
}

fn check_config<C: ServiceConfig>(
    file: Option<&Path>,
    environment: &[(String, String)],
) -> Result<(), settings::Error> {
    settings::load_settings::<C>(file, environment.iter().cloned())?.check()
}

fn check_all_configs(file: Option<&Path>, environment: &[(String, String)]) -> Result<(), settings::Error> {
    check_config::<ingest::Config>(file, environment)?;
    check_config::<planner::Config>(file, environment)?;
    check_config::<executor::Config>(file, environment)?;
    check_config::<reporter::Config>(file, environment)?;
    check_config::<egress::Config>(file, environment)
}
