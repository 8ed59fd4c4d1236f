//! Puts the reporter together and runs it until shutdown.

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use bootstrap::{health::Health, http, rules::RulesStore};
use grant::Verifier;
use queue::Queue;
use tokio::{net::TcpListener, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, Settings},
    effects::Outside,
    gate::Gate,
    inspect::Inspector,
    ledger::Ledger,
    mirror::Mirrors,
    perform::{Performer, Windows},
    worker::Worker,
};

const CONNECT_INTERVAL: Duration = Duration::from_secs(2);
const CONNECT_LIMIT: Duration = Duration::from_secs(60);
/// How often NATS is asked whether it is there.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// How long clones in progress may take to end at shutdown.
const HTTP_DRAIN: Duration = Duration::from_secs(3);

/// Runs the reporter until shutdown, then gives back what it has in hand.
///
/// # Errors
/// When NATS cannot be reached for 60 s or its streams differ from what is wanted, when the rules directory or a
/// credential cannot be read, or when the socket fails.
pub async fn serve(config: Config, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
    let health = Health::new();
    let rules = RulesStore::open(&config.rules)?;
    let github = github::Writer::new(&config.github_writer).context("github_writer")?;
    let (mirrors, floor) = (
        mirrors_folder(&config.reporter)?,
        git::DiskFloor(config.reporter.disk_floor_mib << 20),
    );
    std::fs::create_dir_all(&mirrors).context("reporter.data_dir")?;
    let mirrors = Arc::new(Mirrors::new(mirrors, floor, github.clone()));
    let verifier = Verifier::new(&config.reporter.grant_keys).context("reporter.grant_keys")?;
    let deadline = Duration::from_secs(config.reporter.clone_limit_s);
    let router = Gate::new(Arc::clone(&mirrors), verifier, deadline)
        .router()
        .merge(health.router());
    let limits = http::Limits {
        drain: HTTP_DRAIN,
        ..http::Limits::default()
    };
    let http = tokio::spawn(http::serve(listener, router, limits, shutdown.clone()));
    let reloading = tokio::spawn({
        let (rules, shutdown) = (rules.clone(), shutdown.clone());
        async move { rules.run(shutdown).await }
    });
    let worked = match connect(&config.nats, &shutdown).await {
        Ok(Some(queue)) => Box::pin(work(&config, queue, github, mirrors, rules, &health, &shutdown)).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    health.set_ready(false);
    reloading.abort();
    if worked.is_err() {
        http.abort();
        return worked;
    }
    http.await.context("the http server died")
}

async fn work(
    config: &Config,
    queue: Queue,
    github: github::Writer,
    mirrors: Arc<Mirrors>,
    rules: RulesStore,
    health: &Health,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let ledger = Ledger::new(&queue);
    let outside = Outside {
        github,
        jira: config
            .jira_writer
            .as_ref()
            .map(jira::Writer::new)
            .transpose()
            .context("jira_writer")?,
        jira_url: config
            .jira_writer
            .as_ref()
            .map(|jira| jira.base_url.clone())
            .unwrap_or_default(),
        mirrors,
        objects: queue.objects(),
        branches: queue.branches(),
        pull_requests: queue.pull_requests(),
        triggers: queue.triggers(),
        inspector: inspector(&config.reporter).await?,
        limits: config.reporter.limits(),
    };
    let performer = Performer {
        outside,
        ledger: ledger.clone(),
        rules,
        windows: Windows {
            unknown: Duration::from_secs(config.reporter.unknown_window_s),
            list_lag: Duration::from_secs(config.reporter.list_lag_s),
        },
        shutdown: shutdown.clone(),
    };
    let worker = Worker::new(queue.clone(), ledger, performer, shutdown.clone());
    let reports = queue.reports();
    health.set_ready(true);
    tracing::info!("reporter ready");
    let readiness = async {
        watch_queue(&queue, health, shutdown).await;
        health.set_ready(false);
        Ok(())
    };
    tokio::try_join!(
        lasting("reports", shutdown, || worker.run(config.reporter.slots)),
        lasting("report waker", shutdown, || reports.run_waker(shutdown.clone())),
        readiness,
    )?;
    Ok(())
}

async fn inspector(settings: &Settings) -> anyhow::Result<Inspector> {
    let (program, folder) = (settings.inspector.as_deref(), mirrors_folder(settings)?);
    let inspector = Inspector::open(program, &folder, settings.allow_unconfined).await;
    inspector.map_err(anyhow::Error::msg)
}

/// Git runs in folders of its own, where a relative path would be another place.
fn mirrors_folder(settings: &Settings) -> anyhow::Result<PathBuf> {
    let data_dir = std::path::absolute(&settings.data_dir).context("reporter.data_dir")?;
    Ok(data_dir.join("mirrors"))
}

/// Ready means that a report can be settled.
async fn watch_queue(queue: &Queue, health: &Health, shutdown: &CancellationToken) {
    while shutdown
        .run_until_cancelled(tokio::time::sleep(PING_INTERVAL))
        .await
        .is_some()
    {
        let answers = shutdown.run_until_cancelled(queue.ping()).await;
        let Some(answers) = answers.map(|answered| answered.is_ok()) else {
            return;
        };
        if answers != health.is_ready() {
            tracing::warn!(ready = answers, "nats answers or is silent: readiness changed");
            health.set_ready(answers);
        }
    }
}

/// Works until shutdown; begins again when NATS went away before the work had begun.
async fn lasting<F: Future<Output = Result<(), queue::Error>>>(
    what: &'static str,
    shutdown: &CancellationToken,
    work: impl Fn() -> F,
) -> anyhow::Result<()> {
    loop {
        match Box::pin(work()).await {
            Err(error @ queue::Error::Unavailable(_)) if !shutdown.is_cancelled() => {
                tracing::warn!(what, %error, "nats went away; beginning again");
                let pause = tokio::time::sleep(CONNECT_INTERVAL);
                if shutdown.run_until_cancelled(pause).await.is_none() {
                    return Ok(());
                }
            }
            ended => return ended.context(what),
        }
    }
}

/// Connects and checks the streams, one try every 2 s for at most 60 s; `None` at shutdown.
async fn connect(settings: &queue::Settings, shutdown: &CancellationToken) -> anyhow::Result<Option<Queue>> {
    let give_up = Instant::now() + CONNECT_LIMIT;
    loop {
        let error = match shutdown
            .run_until_cancelled(Box::pin(try_connect(settings)))
            .await
        {
            None => return Ok(None),
            Some(Ok(queue)) => return Ok(Some(queue)),
            Some(Err(error)) => error,
        };
        if matches!(error, queue::Error::Topology(_)) || Instant::now() >= give_up {
            return Err(error).with_context(|| format!("nats at {}", addresses(&settings.url)));
        }
        tracing::warn!(address = %addresses(&settings.url), %error, "nats is not reachable, trying again");
        if shutdown
            .run_until_cancelled(tokio::time::sleep(CONNECT_INTERVAL))
            .await
            .is_none()
        {
            return Ok(None);
        }
    }
}

/// The addresses without the user and password that a URL may hold.
fn addresses(urls: &str) -> String {
    urls.split(',')
        .map(|url| url.rsplit(['@', '/']).next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(",")
}

async fn try_connect(settings: &queue::Settings) -> Result<Queue, queue::Error> {
    let queue = Queue::connect(settings, "reporter").await?;
    queue.ensure_topology().await?;
    Ok(queue)
}
