//! `journeyman console`: web pages, as a client of the API.

use std::{
    io::ErrorKind,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use bootstrap::ServiceConfig;
use clap::Args;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{EXIT_INTERRUPTED, find_settings_file, print_result};
use crate::access;

/// Serve the console: pages about tickets, runs and decisions, for users who log in
#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Settings file; its [console] contains the API and the login provider [default: journeyman.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Base URL of the API [default: that of the `journeyman up` in .journeyman/, else console.api]
    #[arg(long, value_name = "URL", env = "JOURNEYMAN_API")]
    api: Option<String>,
    /// Address for browsers; put TLS in front of any other address than loopback [default: console.listen, 127.0.0.1:7405]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

pub(super) async fn run_command(asked: Arguments) -> anyhow::Result<ExitCode> {
    let file = find_settings_file(asked.config);
    let mut config: pages::Config = bootstrap::settings::load_process_settings(file.as_deref())?;
    if let Some(url) = asked.api.or_else(access::local_url) {
        config.console.api = url;
    }
    if config.console.api.is_empty() {
        bail!("no API: start `journeyman up` here, or give --api URL");
    }
    config.console.listen = asked.listen.or(config.console.listen);
    config.check()?;
    bootstrap::install_process_proxy(file.as_deref())?;
    let telemetry = bootstrap::telemetry::install_logging("console", &config.telemetry)?;
    let [shutdown, at_once] = bootstrap::listen_for_signals();
    let address = config.listen();
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    print_result(&format!(
        "console at http://{}, a client of {}",
        listener.local_addr()?,
        config.console.api
    ));
    let served = bootstrap::serve_app::<pages::ConsoleApp>(config, listener, shutdown);
    // The second signal ends the server at once, with open requests.
    let ended = at_once.run_until_cancelled(Box::pin(served)).await;
    telemetry.shutdown().await;
    match ended {
        Some(ended) => ended.map(|()| ExitCode::SUCCESS),
        None => Ok(ExitCode::from(EXIT_INTERRUPTED)),
    }
}

/// Socket of a console in the process of `journeyman up`, reserved before the API starts.
pub(super) struct ReservedConsole {
    config: pages::Config,
    listener: TcpListener,
    address: SocketAddr,
}

impl ReservedConsole {
    /// Settings of the reporter that link to the pages of this console, unless the user has set them.
    pub(super) fn links(
        &self,
        environment: &[(String, String)],
        of_file: &ConsoleLinks,
    ) -> Vec<(String, String)> {
        let is_set = |name: &str| environment.iter().any(|(known, _)| known == name);
        let links = [
            ("JOURNEYMAN__REPORTER__RUN_URL", &of_file.run_url, "runs/{run}"),
            ("JOURNEYMAN__REPORTER__GUIDE_URL", &of_file.guide_url, "reviewers"),
        ];
        let missing = links
            .into_iter()
            .filter(|(name, of_file, _)| of_file.is_none() && !is_set(name));
        let missing =
            missing.map(|(name, _, page)| (name.to_owned(), format!("http://{}/{page}", self.address)));
        missing.collect()
    }

    /// Serves the console for the API at this address.
    pub(super) fn serve(mut self, url: &str) -> EmbeddedConsole {
        url.clone_into(&mut self.config.console.api);
        let oidc = self.config.console.oidc.as_ref();
        let takes_tokens = oidc.is_none_or(|oidc| oidc.token_login);
        let shutdown = CancellationToken::new();
        let served = bootstrap::serve_app::<pages::ConsoleApp>(self.config, self.listener, shutdown.clone());
        EmbeddedConsole {
            address: self.address,
            takes_tokens,
            shutdown,
            served: tokio::spawn(Box::pin(served)),
        }
    }
}

/// Page links in the settings file.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct ConsoleLinks {
    run_url: Option<String>,
    guide_url: Option<String>,
}

/// Running console in the process of `journeyman up`.
pub(super) struct EmbeddedConsole {
    address: SocketAddr,
    takes_tokens: bool,
    shutdown: CancellationToken,
    served: JoinHandle<anyhow::Result<()>>,
}

/// Binds the socket of a console, unless the settings disable it. When the default port is taken, a free port replaces it.
pub(super) async fn reserve_console(
    file: Option<&Path>,
    environment: Vec<(String, String)>,
) -> anyhow::Result<Option<ReservedConsole>> {
    let mut config: pages::Config = bootstrap::settings::load_settings(file, environment)?;
    if !config.console.in_up {
        return Ok(None);
    }
    // The settings check requires an address. The real one is known once the services run.
    config.console.api = "http://127.0.0.1".to_owned();
    config.check()?;
    let address = config.listen();
    let listener = match (TcpListener::bind(address).await, config.console.listen) {
        (Err(error), None) if error.kind() == ErrorKind::AddrInUse => {
            TcpListener::bind((address.ip(), 0)).await
        }
        (bound, _) => bound,
    };
    let listener = listener.with_context(|| format!("the console cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    Ok(Some(ReservedConsole {
        config,
        listener,
        address,
    }))
}

impl EmbeddedConsole {
    /// Address of the console and the form of its login.
    pub(super) fn announcement(&self, data: &Path) -> String {
        let token = data.join("api.json");
        if self.takes_tokens {
            format!(
                "console at http://{}, log in with the token in {}",
                self.address,
                token.display()
            )
        } else {
            format!("console at http://{}, log in with your account", self.address)
        }
    }

    /// Stops the console after active requests.
    pub(super) async fn stop(self) {
        self.shutdown.cancel();
        // An error of the console must not hide the result of the services.
        let _ = self.served.await;
    }
}
