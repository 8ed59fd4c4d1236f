//! The reporter as a service: its assembly, and its run until shutdown.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use bootstrap::{
    ServiceApp,
    health::ServiceHealth,
    http::{self, ListenerTls},
    jitter,
    rules::{ConfiguredInstances, RulesStore},
    service,
};
use domain::{CredentialEnds, limits::LimitGate};
use futures::FutureExt as _;
use git::GitProxy;
use github::GatePolicy;
use grant::GrantVerifier;
use lease::SharedLimits;
use queue::{NatsRole, Queue};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    bot_orders,
    config::{Config, Settings},
    effects::OutboundClients,
    folders::FolderTable,
    gate::GitGate,
    inspect::ChangeInspector,
    large_files::LfsLibrary,
    ledger::EffectLedger,
    message::FooterPages,
    mirror::{RemoteSettings, RepositoryMirrors},
    performer::{EffectWindows, ReportPerformer},
    pull_request_command::{CallWorker, PullRequestOpener},
    refused_notice::RefusalLog,
    scan,
    signing::CommitSigner,
    stream_maintenance::StreamUpkeep,
    worker::ReportWorker,
};

// Time over which the first polls for orders are spread: the interval between two polls.
const ORDERS_WITHIN: Duration = Duration::from_millis(500);
// Time for clones in progress to end at shutdown.
const HTTP_DRAIN: Duration = Duration::from_secs(3);

/// Reporter with its writers, rules and mirrors, ready to serve.
pub struct ReporterApp {
    config: Config,
    rules: RulesStore,
    github: github::GitHubWriter,
    jira: jira::JiraWriter,
    mirrors: Arc<RepositoryMirrors>,
    lfs: Arc<LfsLibrary>,
    verifier: GrantVerifier,
    secure: Option<ListenerTls>,
    health: ServiceHealth,
}

impl ServiceApp for ReporterApp {
    type Config = Config;

    /// Fails when the rules, a credential or the data folder cannot be used.
    async fn build(config: Config) -> anyhow::Result<Self> {
        let git = git::check_git_version()?;
        tracing::info!(%git, "git found");
        let health = ServiceHealth::new();
        let rules = RulesStore::open(
            &config.rules,
            ConfiguredInstances::of(&config.github, &config.jira, &config.folder),
        )?;
        let (github, jira) = build_writers(&config)?;
        if config.default_github().is_none() {
            let section = "github_writer";
            tracing::info!(
                section,
                "off: the section names no account, and there are folders"
            );
        }
        let folder = mirrors_folder(&config.reporter)?;
        // Created before the first fetch, because the free space of the disk is measured in it.
        std::fs::create_dir_all(&folder).context("reporter.data_dir")?;
        crate::telemetry::observe_disk(folder.clone());
        let proxy = GitProxy::new(webproxy::find_installed_proxy(), &data_dir(&config.reporter)?)
            .context("proxy.ca")?;
        let remotes = RemoteSettings {
            fetch: config.git,
            proxy,
        };
        let mirrors = Arc::new(RepositoryMirrors::new(
            folder.clone(),
            git::DiskFloor(config.reporter.disk_floor_mib << 20),
            github.clone(),
            FolderTable::new(config.folder.clone(), &data_dir(&config.reporter)?),
            (rules.clone(), remotes),
        ));
        let lfs = LfsLibrary::new(
            (Arc::clone(&mirrors), folder),
            rules.clone(),
            github.clone(),
            &config.reporter.lfs,
            Duration::from_secs(config.reporter.clone_limit_s),
        )?;
        Ok(Self {
            lfs: Arc::new(lfs),
            verifier: GrantVerifier::new(&config.reporter.grant_keys).context("reporter.grant_keys")?,
            secure: ListenerTls::of(config.tls.as_ref(), health.router())?,
            config,
            rules,
            github,
            jira,
            mirrors,
            health,
        })
    }

    /// Hands back the tickets in progress at shutdown. Fails when NATS is unreachable for 60 s, its streams
    /// differ from the topology, or the listener fails.
    async fn run(self, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self {
            config,
            rules,
            github,
            jira,
            mirrors,
            lfs,
            verifier,
            secure,
            health,
        } = self;
        let maintaining = tokio::spawn({
            let (mirrors, shutdown) = (Arc::clone(&mirrors), shutdown.clone());
            async move { mirrors.maintain(shutdown).await }
        });
        let deadline = Duration::from_secs(config.reporter.clone_limit_s);
        let router = GitGate::new((Arc::clone(&mirrors), lfs), verifier, deadline)
            .router()
            .merge(health.router());
        let limits = http::ListenerLimits {
            drain: HTTP_DRAIN,
            ..http::ListenerLimits::default()
        };
        // The listener starts before NATS is reachable: the gate needs no queue, and probes have to see the
        // process.
        let http = tokio::spawn(http::serve_https(
            listener,
            router,
            secure,
            limits,
            shutdown.clone(),
        ));
        let reloading = tokio::spawn({
            let (rules, shutdown) = (rules.clone(), shutdown.clone());
            async move { rules.run(shutdown).await }
        });
        let addresses = config.nats.addresses();
        let connecting =
            service::connect_with_retries("nats", &addresses, &shutdown, queue::Error::is_fatal, || {
                try_connect(&config.nats)
            });
        let worked = match connecting.await {
            Ok(Some(queue)) => {
                Box::pin(run_workers(
                    &config,
                    queue,
                    (github, jira),
                    mirrors,
                    rules,
                    &health,
                    &shutdown,
                ))
                .await
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        health.set_ready(false);
        reloading.abort();
        maintaining.abort();
        // After a failure the process ends, so clones in progress are not awaited.
        if worked.is_err() {
            http.abort();
            return worked;
        }
        http.await.context("the http server died")
    }
}

/// Builds the writing clients. All reporters share the rate limits that one of them meets.
fn build_writers(config: &Config) -> anyhow::Result<(github::GitHubWriter, jira::JiraWriter)> {
    // Readiness does not depend on Redis: without it, each reporter knows only the limits that it has met.
    let limits: Arc<dyn LimitGate> = Arc::new(SharedLimits::open(&config.redis)?);
    let gated = GatePolicy {
        gate: Arc::clone(&limits),
        writes_a_minute: config.reporter.github_writes_per_minute,
        writes_an_hour: config.reporter.github_writes_per_hour,
    };
    let github = github::GitHubWriter::with_instances(config.default_github(), &config.github, Some(&gated))
        .context("github_writer or an instance of github")?;
    let jira = jira::JiraWriter::with_instances(config.jira_writer.as_ref(), &config.jira, Some(&limits))
        .context("jira_writer or an instance of jira")?;
    bootstrap::expiry::publish_credential_ends(&credential_ends(config));
    // The scanner must know the credentials before the first text is written.
    let servers = config
        .github
        .values()
        .chain([&config.github_writer])
        .flat_map(github::Settings::secrets);
    let sites = config
        .jira
        .values()
        .chain(&config.jira_writer)
        .map(|jira| &jira.api_token);
    let signing = config.reporter.signing.private_key.iter();
    scan::add_configured(servers.chain(sites).chain(signing));
    bot_orders::set_words(&config.reporter.bot_words.0);
    Ok((github, jira))
}

fn credential_ends(config: &Config) -> CredentialEnds {
    jira::list_token_ends("jira_writer", config.jira_writer.as_ref(), &config.jira)
}

async fn run_workers(
    config: &Config,
    queue: Queue,
    (github, jira): (github::GitHubWriter, jira::JiraWriter),
    mirrors: Arc<RepositoryMirrors>,
    rules: RulesStore,
    health: &ServiceHealth,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let ledger = EffectLedger::new(&queue);
    let signer = CommitSigner::new(&config.reporter.signing).context("reporter.signing.private_key")?;
    if let Some(fingerprint) = signer.fingerprint() {
        tracing::info!(fingerprint, "key for signed commits");
    }
    let acronyms = &config.reporter.review_acronyms.0;
    let calls = Arc::new(CallWorker {
        opener: PullRequestOpener::with(github.clone(), has_jira(config).then(|| jira.clone()), acronyms),
        calls: queue.pull_request_calls(),
        rules: rules.clone(),
    });
    let outside = OutboundClients {
        github,
        jira,
        mirrors,
        objects: queue.objects(),
        branches: queue.branches(),
        pull_requests: queue.pull_requests(),
        identities: queue.issue_identities(),
        triggers: queue.triggers(),
        inspector: open_inspector(&config.reporter).await?,
        limits: config.reporter.limits(),
        signer,
        reports: queue.reports(),
        pages: FooterPages {
            run_url: config.reporter.run_url.clone(),
            guide_url: config.reporter.guide_url.clone(),
        },
    };
    let performer = ReportPerformer {
        outside,
        ledger: ledger.clone(),
        rules,
        refusals: RefusalLog::default(),
        windows: EffectWindows {
            unknown: Duration::from_secs(config.reporter.unknown_window_s),
            list_lag: Duration::from_secs(config.reporter.list_lag_s),
        },
        shutdown: shutdown.clone(),
    };
    let worker = ReportWorker::new(queue.clone(), ledger, performer, shutdown.clone());
    let reports = queue.reports();
    health.set_ready(true);
    tracing::info!("reporter ready");
    // Ready means that the reporter can settle reports.
    let readiness = async {
        service::track_readiness("nats", health, shutdown, async || {
            queue.probe(queue::NatsRole::Reporter).await.is_ok()
        })
        .await;
        health.set_ready(false);
        Ok(())
    };
    let working = service::keep_running("reports", shutdown, queue::Error::is_fatal, || {
        worker.run(config.reporter.slots)
    });
    let waking = service::keep_running("report waker", shutdown, queue::Error::is_fatal, || {
        reports.run_waker(shutdown.clone())
    });
    let answering = service::keep_running(
        "pull request calls",
        shutdown,
        queue::Error::is_fatal,
        async || {
            // Without a delay, reporters that start together would poll at the same moments forever.
            jitter::delay_start("pull request calls", ORDERS_WITHIN, shutdown).await;
            Arc::clone(&calls).run(shutdown.clone()).await
        },
    );
    let ends = credential_ends(config);
    let publishing = service::retry_until_ok("ends of credentials", shutdown, || {
        queue.publish_credential_ends(NatsRole::Reporter, &ends)
    });
    let publishing = publishing.map(Ok);
    let maintenance = queue.maintenance_worker(bootstrap::read_wall_clock);
    let maintaining = service::keep_running("maintenance", shutdown, queue::Error::is_fatal, async || {
        jitter::delay_start("maintenance", ORDERS_WITHIN, shutdown).await;
        maintenance.run(shutdown.clone()).await
    });
    let upkeep = StreamUpkeep::new(queue.clone(), config.ingest);
    let keeping_up = upkeep.run(shutdown.clone()).map(Ok);
    tokio::try_join!(
        working,
        waking,
        answering,
        readiness,
        publishing,
        maintaining,
        keeping_up
    )?;
    Ok(())
}

/// Returns true if the settings have a Jira, the default one or a named one.
fn has_jira(config: &Config) -> bool {
    let default = config.jira_writer.as_ref();
    default.is_some_and(|jira| !jira.is_empty()) || !config.jira.is_empty()
}

async fn open_inspector(settings: &Settings) -> anyhow::Result<ChangeInspector> {
    let program = settings.inspector.as_deref();
    let quarantines = data_dir(settings)?.join("quarantine");
    let inspector = ChangeInspector::open(program, &quarantines, settings.allow_unconfined).await;
    inspector.map_err(anyhow::Error::msg)
}

/// Returns the folder of the mirrors as an absolute path, because git runs in other working directories.
fn mirrors_folder(settings: &Settings) -> anyhow::Result<PathBuf> {
    Ok(data_dir(settings)?.join("mirrors"))
}

fn data_dir(settings: &Settings) -> anyhow::Result<PathBuf> {
    std::path::absolute(&settings.data_dir).context("reporter.data_dir")
}

async fn try_connect(settings: &queue::Settings) -> Result<Queue, queue::Error> {
    let queue = Queue::connect(settings, "reporter").await?;
    queue.ensure_topology().await?;
    Ok(queue)
}
