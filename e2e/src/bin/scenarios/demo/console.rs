//! Console of the demo.

use crate::output::print_line;
use secrecy::{ExposeSecret, SecretString};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// Console on a free loopback port.
pub(crate) struct DemoConsole {
    shutdown: CancellationToken,
    served: JoinHandle<anyhow::Result<()>>,
}

impl DemoConsole {
    /// Starts the console and prints its URL. It prints the token only if the demo stays open; the token is
    /// valid while the demo runs.
    pub(crate) async fn start(api: &str, token: Option<&SecretString>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        match token {
            Some(token) => print_line(&format!(
                "console at {url}, log in with {}",
                token.expose_secret()
            )),
            None => print_line(&format!("console at {url} (DEMO_ARGS=--stay keeps it running)")),
        }
        let config = pages::Config::of_api(api);
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(Box::pin(pages::serve_console(config, listener, shutdown.clone())));
        Ok(Self { shutdown, served })
    }

    /// Stops the console and waits for its end.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        let _ = self.served.await;
    }
}
