//! Main of every service: arguments, settings, telemetry, listener, signals, serve, drain.

use std::{future::Future, net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::{Arg, Command, value_parser};
use domain::cause::format_error_chain;
use serde::de::DeserializeOwned;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::{outbound::install_process_proxy, settings, telemetry};

// Exit code for a wrong or missing setting: `EX_USAGE` of sysexits.h.
const EXIT_SETTINGS: u8 = 64;
/// Commit of the build, from its variable `JOURNEYMAN_COMMIT`: images are built from a folder without history.
const COMMIT: &str = match option_env!("JOURNEYMAN_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
/// Settings file that is read if it exists and no other file is named.
const DEFAULT_FILE: &str = "journeyman.toml";

/// Settings of a service that [`run_service`] can start.
pub trait ServiceConfig: DeserializeOwned + Send + 'static {
    /// Address of the listener.
    fn listen(&self) -> SocketAddr;
    /// Address of a second listener for metrics and health, if the first one does not serve them.
    fn metrics_listen(&self) -> Option<SocketAddr> {
        None
    }
    /// Logging and export of telemetry.
    fn telemetry(&self) -> &telemetry::Settings;
    /// True when the service keeps its spans for its callers if no OTLP endpoint is set.
    fn keeps_spans(&self) -> bool {
        false
    }
    /// False when the service connects to no server outside of the installation, and so takes no `[proxy]`.
    fn takes_proxy() -> bool {
        true
    }
    /// Checks conditions that the types cannot express.
    ///
    /// # Errors
    /// The first wrong or missing setting, by key.
    fn check(&self) -> Result<(), settings::Error>;
}

/// Service that is built from its settings and then runs until shutdown.
pub trait ServiceApp: Sized + Send {
    /// Settings of the service.
    type Config: ServiceConfig;

    /// Checks what the service needs on its machine and builds its parts. Serves nothing and connects to no
    /// server yet.
    ///
    /// # Errors
    /// A setting that turns out not to work, or a part that the machine lacks.
    fn build(config: Self::Config) -> impl Future<Output = anyhow::Result<Self>> + Send;

    /// Serves until `shutdown`, then drains.
    ///
    /// # Errors
    /// The failure that ended the service, such as a server that stays unreachable at the start.
    fn run(
        self,
        listener: TcpListener,
        shutdown: CancellationToken,
    ) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// Builds a service and runs it with [`run_app`].
///
/// # Errors
/// Those of [`ServiceApp::build`] and [`ServiceApp::run`].
pub async fn serve_app<A: ServiceApp>(
    config: A::Config,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let app = Box::pin(A::build(config)).await?;
    run_app(app, listener, &shutdown).await
}

/// Runs a built service until `shutdown`.
///
/// The service receives a child token: its own end or failure stops no other service of the process.
///
/// # Errors
/// Those of [`ServiceApp::run`].
pub async fn run_app<A: ServiceApp>(
    app: A,
    listener: TcpListener,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    Box::pin(app.run(listener, shutdown.child_token())).await
}

/// Runs one service until SIGTERM or SIGINT; a second signal ends the process at once.
///
/// Exit codes: 0 after a drain, 64 for a wrong setting (one line on stderr names the key), 1 for any other
/// error.
pub fn run_service<A: ServiceApp>(service: &'static str, about: &'static str) -> ExitCode {
    let arguments = build_command(service, about).get_matches();
    let named = arguments.get_one::<PathBuf>("config").cloned();
    let file = named.or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists()));
    let config = match settings::load_process_settings::<A::Config>(file.as_deref()).and_then(check_config) {
        Ok(config) => config,
        Err(error) => return report_failure(service, EXIT_SETTINGS, &error.to_string()),
    };
    if A::Config::takes_proxy()
        && let Err(error) = install_process_proxy(file.as_deref())
    {
        return report_failure(service, EXIT_SETTINGS, &error.to_string());
    }
    install_tls_provider();
    match build_runtime() {
        Ok(runtime) => runtime.block_on(Box::pin(serve_until_signal::<A>(service, config))),
        Err(error) => report_failure(service, 1, &format!("cannot start the runtime: {error}")),
    }
}

fn check_config<C: ServiceConfig>(config: C) -> Result<C, settings::Error> {
    config.check().map(|()| config)
}

fn build_command(service: &'static str, about: &'static str) -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .env("JOURNEYMAN_CONFIG")
        .value_parser(value_parser!(PathBuf))
        .help("Settings file [default: journeyman.toml, when it exists]");
    Command::new(service).version(env!("CARGO_PKG_VERSION")).about(about).arg(config).after_help(
        "Every setting can come from the environment: JOURNEYMAN__SECTION__KEY=value, or \
         JOURNEYMAN__SECTION__KEY__FILE=/path for a mounted secret.\nExit codes: 0 drained, 64 wrong setting, 1 failed.",
    )
}

async fn serve_until_signal<A: ServiceApp>(service: &'static str, config: A::Config) -> ExitCode {
    let init = if config.keeps_spans() {
        telemetry::init_with_buffer
    } else {
        telemetry::install_logging
    };
    let telemetry = match init(service, config.telemetry()) {
        Ok(telemetry) => telemetry,
        Err(error) => return report_failure(service, EXIT_SETTINGS, &error.to_string()),
    };
    let address = config.listen();
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => return report_failure(service, 1, &format!("cannot listen on {address}: {error}")),
    };
    // The setting may have port 0, and then only the listener knows the port.
    let bound = listener.local_addr().unwrap_or(address);
    log_start(service, bound, config.metrics_listen());
    let served = Box::pin(serve_app::<A>(config, listener, shutdown_signal())).await;
    // Before the result is reported, so that the spans and figures of the drain are exported in any
    // case.
    telemetry.shutdown().await;
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Settings are also checked while the parts of the service start.
            let is_setting = error.chain().any(|cause| cause.is::<settings::Error>());
            let code = if is_setting { EXIT_SETTINGS } else { 1 };
            report_failure(service, code, &format_error_chain(error.as_ref()))
        }
    }
}

/// Logs the version, the commit and the listeners of the process.
fn log_start(service: &'static str, address: SocketAddr, metrics: Option<SocketAddr>) {
    tracing::info!(
        service,
        %address,
        metrics_address = metrics.map(tracing::field::display),
        version = env!("CARGO_PKG_VERSION"),
        commit = COMMIT,
        "service started"
    );
}

/// Creates a token that the first signal of [`listen_for_signals`] cancels. The second signal ends the process with code
/// 130.
pub fn shutdown_signal() -> CancellationToken {
    let [shutdown, at_once] = listen_for_signals();
    tokio::spawn(async move {
        at_once.cancelled().await;
        // 128 + SIGINT, as shells report an interrupted process.
        std::process::exit(130);
    });
    shutdown
}

/// Creates two tokens, cancelled by the first and the second SIGTERM, SIGINT or SIGHUP (a closed terminal):
/// for callers that must stop child processes.
pub fn listen_for_signals() -> [CancellationToken; 2] {
    let tokens = [CancellationToken::new(), CancellationToken::new()];
    let [first, second] = tokens.clone();
    tokio::spawn(async move {
        let (Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::interrupt()),
            signal(SignalKind::hangup()),
        ) else {
            tracing::error!("signals cannot be received");
            return;
        };
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {}, _ = hangup.recv() => {} }
        tracing::info!("shutting down");
        first.cancel();
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {}, _ = hangup.recv() => {} }
        second.cancel();
    });
    tokens
}

/// Makes ring the TLS provider of the process, for reqwest, tonic and async-nats. A second call changes
/// nothing.
pub fn install_tls_provider() {
    // The error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Creates a runtime with at least two workers, even on one core: the thread of the OTLP exporter waits for
/// the runtime.
fn build_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.max(2))
        .enable_all()
        .build()
}

fn report_failure(service: &str, code: u8, problem: &str) -> ExitCode {
    #[expect(
        clippy::print_stderr,
        reason = "telemetry may not be installed yet, and the operator needs the reason"
    )]
    {
        eprintln!("{service}: {problem}");
    }
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use std::{
        path::Path,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use super::*;

    #[derive(serde::Deserialize)]
    struct BriefConfig {
        is_broken: bool,
        telemetry: telemetry::Settings,
        #[serde(skip)]
        runs: Arc<AtomicU32>,
    }

    impl ServiceConfig for BriefConfig {
        fn listen(&self) -> SocketAddr {
            ([127, 0, 0, 1], 0).into()
        }

        fn telemetry(&self) -> &telemetry::Settings {
            &self.telemetry
        }

        fn check(&self) -> Result<(), settings::Error> {
            Ok(())
        }
    }

    /// Service that counts its runs, and stops everything that listens to its token.
    struct BriefApp(Arc<AtomicU32>);

    impl ServiceApp for BriefApp {
        type Config = BriefConfig;

        async fn build(config: BriefConfig) -> anyhow::Result<Self> {
            anyhow::ensure!(!config.is_broken, "a part is missing");
            Ok(Self(config.runs))
        }

        async fn run(self, _listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            shutdown.cancel();
            anyhow::bail!("the service failed")
        }
    }

    #[tokio::test]
    async fn app_runs_once_it_is_built() {
        for (is_broken, runs) in [(true, 0), (false, 1)] {
            let (served, counted, _) = serve_brief_app(is_broken).await;
            assert!(served.is_err());
            assert_eq!(counted, runs);
        }
    }

    #[tokio::test]
    async fn failed_service_stops_no_other_service() {
        for is_broken in [true, false] {
            let (served, _, shutdown) = serve_brief_app(is_broken).await;
            assert!(served.is_err());
            assert!(!shutdown.is_cancelled());
        }
    }

    async fn serve_brief_app(is_broken: bool) -> (anyhow::Result<()>, u32, CancellationToken) {
        let runs = Arc::default();
        let config = BriefConfig {
            is_broken,
            telemetry: telemetry::Settings::default(),
            runs: Arc::clone(&runs),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shutdown = CancellationToken::new();
        let served = serve_app::<BriefApp>(config, listener, shutdown.clone()).await;
        (served, runs.load(Ordering::Relaxed), shutdown)
    }

    #[test]
    fn every_build_of_programs_names_commit() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (file, setting) in [
            ("Dockerfile", "ENV JOURNEYMAN_COMMIT=$COMMIT"),
            ("scripts/tree.sh", "export JOURNEYMAN_COMMIT"),
            ("scripts/wheel.sh", "export JOURNEYMAN_COMMIT"),
        ] {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            let set = text.find(setting);
            let built = ["cargo build --release", "} build --quiet", "maturin build"];
            let built = built.iter().filter_map(|call| text.find(call)).min();
            assert!(set.is_some() && set < built, "{file}: {setting}");
        }
    }
}
