//! The service as a whole: connection, start of all parts, ordered shutdown.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context;
use bootstrap::{
    ServiceApp,
    health::ServiceHealth,
    http,
    rules::{ConfiguredInstances, RulesStore},
    service,
};
use domain::{CredentialEnds, limits::LimitGate};
use futures::FutureExt as _;
use github::GatePolicy;
use lease::SharedLimits;
use queue::Queue;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    Config,
    api::{self, ApiState, ApiTokens},
    facts::{
        ChecksPatience, attachments::TicketAttachmentReader, background::BackgroundReader,
        reader::FactReader, tracker_reader::TrackerReader,
    },
    loops::{self, IngestMode},
    policy::{instructors::Instructors, own_accounts::OwnAccounts},
    router::EventRouter,
    webhook::server::WebhookHandlers,
};

// Kubernetes kills the pod 60 s after SIGTERM (terminationGracePeriodSeconds in k8s/base/ingest.yaml).
// The drain ends well before.
const DRAIN_LIMIT: Duration = Duration::from_secs(15);

/// Ingest, or a part of it, ready to serve webhooks and the API.
pub struct IngestApp {
    extent: IngestMode,
    config: Config,
    service: IngestService,
}

impl IngestApp {
    /// Builds a part of ingest, for the duration of one command.
    ///
    /// # Errors
    /// When settings turn out not to work.
    pub fn build_part(extent: IngestMode, config: Config) -> anyhow::Result<Self> {
        bootstrap::expiry::publish_credential_ends(&config.credential_ends());
        Ok(Self {
            extent,
            service: IngestService::new(&config)?,
            config,
        })
    }
}

impl ServiceApp for IngestApp {
    type Config = Config;

    async fn build(config: Config) -> anyhow::Result<Self> {
        Self::build_part(IngestMode::Whole, config)
    }

    /// Serves health checks at once, and 503 for everything else until the queue is connected. Fails when NATS
    /// stays unreachable for a minute, or its streams differ from the topology.
    async fn run(self, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self {
            extent,
            config,
            service: parts,
        } = self;
        let mut tasks = JoinSet::new();
        let app = parts.app(extent, &config, &shutdown)?;
        let limits = config.ingest.limits();
        let http = tokio::spawn(http::serve_http(listener, app, limits, shutdown.clone()));
        let addresses = config.nats.addresses();
        let connecting =
            service::connect_with_retries("nats", &addresses, &shutdown, queue::Error::is_fatal, || {
                connect_once(&config.nats)
            });
        let result = match connecting.await {
            Ok(Some(queue)) => parts.work(extent, &config, queue, &mut tasks, &shutdown).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        // Readiness goes first, so that load balancers stop sending requests before the loops end.
        parts.health.set_ready(false);
        shutdown.cancel();
        let drain = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_LIMIT, drain).await.is_err() {
            tracing::warn!("some work did not end in time and is cut; nothing is lost");
        }
        // The server ends by itself. With a lame-duck period it outlives the other tasks.
        http.await.context("the http server died")?;
        result
    }
}

/// Parts that live as long as the service.
pub(crate) struct IngestService {
    health: ServiceHealth,
    rules: Arc<RulesStore>,
    outside: Arc<TrackerReader>,
    tokens: Arc<ApiTokens>,
    queue: Arc<OnceLock<Queue>>,
    router: Arc<OnceLock<EventRouter>>,
}

impl IngestService {
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        // Readiness does not depend on Redis: without it each process knows only the rate limits that it met
        // itself.
        let limits: Arc<dyn LimitGate> = Arc::new(SharedLimits::open(&config.redis)?);
        let jira = jira::JiraReader::with_instances(config.default_jira(), &config.jira, Some(&limits));
        let jira = jira.context("jira_reader or an instance of jira")?;
        let gated = GatePolicy::by(limits);
        let github =
            github::GitHubReader::with_instances(config.default_github(), &config.github, Some(&gated));
        let github = github.context("github_reader or an instance of github")?;
        log_disabled_sources(config);
        Ok(Self {
            health: ServiceHealth::new(),
            rules: Arc::new(RulesStore::open(
                &config.rules,
                ConfiguredInstances::of(&config.github, &config.jira, &config.folder),
            )?),
            outside: Arc::new(TrackerReader::new(jira, github)),
            tokens: Arc::new(ApiTokens::new(&config.ingest.api_tokens)?),
            queue: Arc::default(),
            router: Arc::default(),
        })
    }

    fn app(
        &self,
        extent: IngestMode,
        config: &Config,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<axum::Router> {
        let state = ApiState {
            router: Arc::clone(&self.router),
            tokens: Arc::clone(&self.tokens),
            shutdown: shutdown.clone(),
            streams: Arc::default(),
            reads: Arc::default(),
            followed: Arc::default(),
            known_runs: Arc::default(),
        };
        let app = api::build_api_router(state).merge(self.health.router());
        Ok(match extent {
            IngestMode::Whole => {
                app.merge(WebhookHandlers::new(&config.ingest, Arc::clone(&self.queue))?.router())
            }
            IngestMode::OnRequest | IngestMode::Answers => app,
        })
    }

    async fn work(
        &self,
        extent: IngestMode,
        config: &Config,
        queue: Queue,
        tasks: &mut JoinSet<anyhow::Result<()>>,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<()> {
        let router = self.router_over(config, queue.clone());
        if extent == IngestMode::Whole {
            let (queue, ends, stop) = (queue.clone(), config.credential_ends(), shutdown.clone());
            tasks.spawn(publish_credential_ends(queue, ends, stop).map(Ok));
        }
        loops::spawn_loops(extent, &config.ingest, &router, shutdown, tasks);
        let watching = watch_queue(queue.clone(), self.health.clone(), shutdown.clone());
        tasks.spawn(watching.map(Ok));
        // Both cells are empty, because this runs once.
        let _ = self.router.set(router);
        let _ = self.queue.set(queue);
        self.health.set_ready(true);
        tracing::info!("ready");
        // Every task runs until shutdown. A task that ends earlier has failed, and ends the service.
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            ended = tasks.join_next() => match ended {
                Some(Ok(result)) => result,
                Some(Err(panic)) => Err(panic).context("a part of the service died"),
                None => Ok(()),
            },
        }
    }
}

impl IngestService {
    pub(crate) fn router_over(&self, config: &Config, queue: Queue) -> EventRouter {
        let own_accounts = Arc::new(OwnAccounts::new(config.ingest.own_accounts.clone()));
        let instructors = Instructors::new(
            &config.ingest.jira_trigger_group,
            &config.ingest.jira_trigger_role,
        );
        EventRouter {
            facts: FactReader::new(queue.clone(), Arc::clone(&self.outside), instructors),
            background: BackgroundReader::new(
                Arc::clone(&self.outside),
                Arc::clone(&own_accounts),
                config.github_hosts(),
            ),
            attachments: TicketAttachmentReader::new(
                Arc::clone(&self.outside),
                queue.clone(),
                config.ingest.attachments,
            ),
            queue,
            outside: Arc::clone(&self.outside),
            rules: Arc::clone(&self.rules),
            tracker: Arc::default(),
            own_accounts,
            patience: ChecksPatience {
                settle: Duration::from_secs(config.ingest.checks_settle_s),
                required: Duration::from_secs(config.ingest.checks_absent_s),
                pending: Duration::from_secs(config.ingest.checks_pending_s),
            },
            seen: None,
        }
    }
}

/// Logs disabled sources, so that missing events are not mistaken for a bug.
fn log_disabled_sources(config: &Config) {
    for (section, is_off) in [
        ("github_reader", config.default_github().is_none()),
        ("jira_reader", config.default_jira().is_none()),
    ] {
        if is_off {
            tracing::info!(
                section,
                "off: the section names no account, and tickets are elsewhere"
            );
        }
    }
}

/// Publishes the expiry times of our credentials for the API. It then waits for shutdown, because a task that ends
/// stops the service.
async fn publish_credential_ends(queue: Queue, ends: CredentialEnds, shutdown: CancellationToken) {
    let publish = || queue.publish_credential_ends(queue::NatsRole::Ingest, &ends);
    service::retry_until_ok("ends of credentials", &shutdown, publish).await;
    shutdown.cancelled().await;
}

/// Keeps readiness in sync with the queue. Ready means that a delivery can be stored.
async fn watch_queue(queue: Queue, health: ServiceHealth, shutdown: CancellationToken) {
    let answers = async || queue.probe(queue::NatsRole::Ingest).await.is_ok();
    service::track_readiness("nats", &health, &shutdown, answers).await;
}

pub(crate) async fn connect_once(settings: &queue::Settings) -> Result<Queue, queue::Error> {
    let queue = Queue::connect(settings, "ingest").await?;
    queue.check_topology(queue::NatsRole::Ingest).await?;
    Ok(queue)
}
