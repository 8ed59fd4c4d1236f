//! The console beside the demo.

use secrecy::{ExposeSecret, SecretString};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::demo::say;

/// A console on a free loopback port.
pub(crate) struct Console {
    shutdown: CancellationToken,
    served: JoinHandle<anyhow::Result<()>>,
}

impl Console {
    /// Starts it and says where it is; the token, which dies with the demo, only for somebody who has the time to use it.
    pub(crate) async fn start(api: &str, token: Option<&SecretString>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        match token {
            Some(token) => say(&format!(
                "console at {url}, log in with {}",
                token.expose_secret()
            )),
            None => say(&format!("console at {url} (DEMO_ARGS=--stay keeps it running)")),
        }
        let config = pages::Config::of_api(api);
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(Box::pin(pages::serve(config, listener, shutdown.clone())));
        Ok(Self { shutdown, served })
    }

    /// Ends it.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        let _ = self.served.await;
    }
}
