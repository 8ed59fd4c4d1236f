//! The service as a whole: connect, start everything, and stop it in order.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context;
use bootstrap::{health::Health, http, rules::RulesStore};
use futures::{FutureExt as _, future::BoxFuture};
use queue::Queue;
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    Config,
    api::{self, ApiState, Tokens},
    collector::Collector,
    instructors::Instructors,
    outside::Outside,
    poller::Poller,
    router::Router,
    server::Webhooks,
    sweeper::Sweeper,
};

const CONNECT_PAUSE: Duration = Duration::from_secs(2);
const CONNECT_LIMIT: Duration = Duration::from_secs(60);
const PING_INTERVAL: Duration = Duration::from_secs(5);
const DRAIN_LIMIT: Duration = Duration::from_secs(15);

/// What lives as long as the service.
pub(crate) struct Service {
    health: Health,
    rules: Arc<RulesStore>,
    outside: Arc<Outside>,
    tokens: Arc<Tokens>,
    queue: Arc<OnceLock<Queue>>,
    router: Arc<OnceLock<Router>>,
    shutdown: CancellationToken,
}

impl Service {
    pub(crate) fn new(config: &Config, shutdown: CancellationToken) -> anyhow::Result<Self> {
        let jira = jira::Reader::with_instances(Some(&config.jira_reader), &config.jira_sites());
        let jira = jira.context("jira_reader or an instance of jira")?;
        let github = github::Reader::with_instances(&config.github_reader, &config.github_servers());
        let github = github.context("github_reader or an instance of github")?;
        Ok(Self {
            health: Health::new(),
            rules: Arc::new(RulesStore::open(&config.rules)?),
            outside: Arc::new(Outside::new(jira, github)),
            tokens: Arc::new(Tokens::new(&config.ingest.api_tokens)?),
            queue: Arc::default(),
            router: Arc::default(),
            shutdown: shutdown.child_token(),
        })
    }

    /// Health answers at once, everything else 503 until the queue is connected.
    pub(crate) async fn run(self, config: Config, listener: TcpListener) -> anyhow::Result<()> {
        let mut tasks = JoinSet::new();
        let app = self.app(&config);
        let limits = config.ingest.limits();
        let http = tokio::spawn(http::serve(listener, app, limits, self.shutdown.clone()));
        let result = match self.connect(&config.nats).await {
            Ok(Some(queue)) => self.work(&config, queue, &mut tasks).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        self.health.set_ready(false);
        self.shutdown.cancel();
        let drain = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_LIMIT, drain).await.is_err() {
            tracing::warn!("some work did not end in time and is cut; nothing is lost");
        }
        // Longer than the rest where it has a lame-duck period; it ends by itself.
        http.await.context("the http server died")?;
        result
    }

    fn app(&self, config: &Config) -> axum::Router {
        let state = ApiState {
            router: Arc::clone(&self.router),
            tokens: Arc::clone(&self.tokens),
            shutdown: self.shutdown.clone(),
            streams: Arc::new(Semaphore::new(api::EVENT_STREAMS)),
        };
        let webhooks = Webhooks::new(&config.ingest, Arc::clone(&self.queue)).router();
        api::router(state).merge(webhooks).merge(self.health.router())
    }

    /// `None` at shutdown.
    async fn connect(&self, settings: &queue::Settings) -> anyhow::Result<Option<Queue>> {
        let deadline = Instant::now() + CONNECT_LIMIT;
        loop {
            let tried = tokio::select! {
                () = self.shutdown.cancelled() => return Ok(None),
                tried = Box::pin(connect_once(settings)) => tried,
            };
            match tried {
                Ok(queue) => return Ok(Some(queue)),
                Err(error @ queue::Error::Unavailable(_)) if Instant::now() < deadline => {
                    tracing::warn!(%error, "nats is not reachable, trying again");
                }
                Err(error) => return Err(error).context("nats cannot be used"),
            }
            tokio::select! {
                () = self.shutdown.cancelled() => return Ok(None),
                () = tokio::time::sleep(CONNECT_PAUSE) => {}
            }
        }
    }

    async fn work(
        &self,
        config: &Config,
        queue: Queue,
        tasks: &mut JoinSet<anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let router = Router {
            queue: queue.clone(),
            outside: Arc::clone(&self.outside),
            rules: Arc::clone(&self.rules),
            own_accounts: Arc::new(config.ingest.own_accounts.clone()),
            instructors: Arc::new(Instructors::new(&config.ingest.jira_trigger_group)),
        };
        self.spawn_loops(config, &router, tasks);
        // Both cells are empty: this runs once.
        let _ = self.router.set(router);
        let _ = self.queue.set(queue);
        self.health.set_ready(true);
        tracing::info!("ready");
        tokio::select! {
            () = self.shutdown.cancelled() => Ok(()),
            ended = tasks.join_next() => match ended {
                Some(Ok(result)) => result,
                Some(Err(panic)) => Err(panic).context("a part of the service died"),
                None => Ok(()),
            },
        }
    }

    fn spawn_loops(&self, config: &Config, router: &Router, tasks: &mut JoinSet<anyhow::Result<()>>) {
        let (settings, queue, stop) = (&config.ingest, &router.queue, &self.shutdown);
        let poller = Poller::new(router.clone(), Duration::from_secs(settings.poll_interval_s));
        let interval = Duration::from_secs(settings.sweep_interval_s);
        let sweeper = Sweeper::new(queue.clone(), interval, settings.journal_days);
        let collector = Collector::new(queue.clone(), settings.object_grace_h);
        let parts: [BoxFuture<'static, ()>; 5] = [
            Box::pin(keep_rules(Arc::clone(&self.rules), stop.clone())),
            Box::pin(poller.run(stop.clone())),
            Box::pin(sweeper.run(stop.clone())),
            Box::pin(collector.run(stop.clone())),
            Box::pin(watch_queue(queue.clone(), self.health.clone(), stop.clone())),
        ];
        for part in parts {
            tasks.spawn(part.map(Ok));
        }
        let (slots, routed, stop) = (settings.router_slots, router.clone(), self.shutdown.clone());
        tasks.spawn(again("router", self.shutdown.clone(), move || {
            let (deliveries, routed, stop) = (routed.queue.deliveries(), routed.clone(), stop.clone());
            async move {
                let handler = move |delivery| {
                    let routed = routed.clone();
                    async move { Box::pin(routed.handle(delivery)).await }
                };
                deliveries.consume(slots, stop, handler).await
            }
        }));
        let (triggers, stop) = (router.queue.triggers(), self.shutdown.clone());
        tasks.spawn(again("waker", self.shutdown.clone(), move || {
            let (triggers, stop) = (triggers.clone(), stop.clone());
            async move { triggers.run_waker(stop).await }
        }));
    }
}

/// Runs a loop that ends by itself at shutdown; after an error it starts again.
async fn again<F, Fut>(name: &'static str, shutdown: CancellationToken, run: F) -> anyhow::Result<()>
where
    F: Fn() -> Fut + Send,
    Fut: Future<Output = Result<(), queue::Error>> + Send,
{
    while !shutdown.is_cancelled() {
        if let Err(error) = Box::pin(run()).await {
            tracing::warn!(part = name, %error, "starting again");
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(CONNECT_PAUSE) => {}
        }
    }
    Ok(())
}

async fn keep_rules(rules: Arc<RulesStore>, shutdown: CancellationToken) {
    rules.run(shutdown).await;
}

/// Ready means that a delivery can be stored.
async fn watch_queue(queue: Queue, health: Health, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(PING_INTERVAL) => {}
        }
        let ping = tokio::time::timeout(PING_INTERVAL, queue.ping()).await;
        let answers = matches!(ping, Ok(Ok(())));
        if answers != health.is_ready() && !shutdown.is_cancelled() {
            tracing::warn!(
                ready = answers,
                "readiness changed: nats {}",
                if answers { "answers" } else { "is silent" }
            );
            health.set_ready(answers);
        }
    }
}

async fn connect_once(settings: &queue::Settings) -> Result<Queue, queue::Error> {
    let queue = Queue::connect(settings, "ingest").await?;
    queue.ensure_topology().await?;
    Ok(queue)
}
