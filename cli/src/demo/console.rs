//! Console of the demo, on a free loopback port.

use secrecy::{ExposeSecret, SecretString};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// Running console.
pub(super) struct DemoConsole {
    shutdown: CancellationToken,
    served: JoinHandle<anyhow::Result<()>>,
}

impl DemoConsole {
    /// Starts the console and prints its URL. It prints the token only if the demo stays open; the token is
    /// valid while the demo runs.
    pub(super) async fn start(
        api: &str,
        token: Option<&SecretString>,
        print: fn(&str),
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        match token {
            Some(token) => print(&format!(
                "console at {url}, log in with {}",
                token.expose_secret()
            )),
            None => print(&format!("console at {url} (--stay keeps it running)")),
        }
        let config = pages::Config::of_api(api);
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(Box::pin(bootstrap::serve_app::<pages::ConsoleApp>(
            config,
            listener,
            shutdown.clone(),
        )));
        Ok(Self { shutdown, served })
    }

    /// Stops the console and waits for its end.
    pub(super) async fn stop(self) {
        self.shutdown.cancel();
        // An error of the console must not hide the result of the demo.
        let _ = self.served.await;
    }
}
