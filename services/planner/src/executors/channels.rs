//! Channels to executors, and the requests that go over them, each with a grant.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use domain::HostPattern;
use grant::{Grant, GrantAudience, GrantSigner};
use parking_lot::Mutex;
use proto::executor::{self as wire, executor_service_client::ExecutorServiceClient};
use secrecy::{ExposeSecret, SecretString};
use tonic::{Request, Streaming, transport::Channel};

use super::connection::{CallError, ExecutorConnector, RunCaller};
use crate::telemetry;

const MESSAGE_BYTES: usize = 16 * 1024 * 1024;

pub(super) type ExecutorClient = ExecutorServiceClient<Channel>;

/// Channels to executors by address, with the key that signs the grants of requests.
pub(super) struct ExecutorChannels {
    signer: GrantSigner,
    dial: ExecutorConnector,
    channels: Mutex<HashMap<String, Channel>>,
}

impl ExecutorChannels {
    pub(super) fn new(signer: GrantSigner, dial: ExecutorConnector) -> Self {
        Self {
            signer,
            dial,
            channels: Mutex::default(),
        }
    }

    /// Resolves an address of a pool, see [`ExecutorConnector::resolve`].
    pub(super) async fn resolve(&self, address: &str) -> Option<BTreeSet<String>> {
        self.dial.resolve(address).await
    }

    /// Returns a client for one address. Its channel is shared and connects by itself.
    pub(super) fn client(&self, address: &str) -> Result<ExecutorClient, CallError> {
        let mut channels = self.channels.lock();
        let channel = match channels.get(address) {
            Some(channel) => channel.clone(),
            None => {
                let channel = self.dial.channel(address)?;
                channels.insert(address.to_owned(), channel.clone());
                channel
            }
        };
        Ok(ExecutorClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES)
            .max_encoding_message_size(MESSAGE_BYTES))
    }

    /// Drops the channel to an address, so that the next call opens a new connection.
    pub(super) fn forget(&self, address: &str) {
        self.channels.lock().remove(address);
    }

    /// Signs a grant for a call.
    pub(super) fn grant(
        &self,
        caller: &RunCaller,
        audience: GrantAudience,
        workspace: Option<&str>,
        network: Vec<HostPattern>,
    ) -> Result<SecretString, CallError> {
        let grant = Grant {
            audience,
            run: caller.run.clone(),
            repository: caller.repository.clone(),
            workspace: workspace.map(str::to_owned),
            fence: caller.fence,
            network,
        };
        self.signer
            .sign(&grant, bootstrap::read_wall_clock())
            .map_err(|refused| CallError::Refused(refused.to_string()))
    }

    /// Adds grant, deadline and trace context to a request.
    pub(super) fn request<T>(
        &self,
        caller: &RunCaller,
        workspace: Option<&str>,
        limit: Duration,
        message: T,
    ) -> Result<Request<T>, CallError> {
        let token = self.grant(caller, GrantAudience::Executor, workspace, Vec::new())?;
        let mut request = authorize_request(&token, message)?;
        request.set_timeout(limit);
        telemetry::inject_trace(request.metadata_mut());
        Ok(request)
    }

    /// Opens the stream of an executor's own status, without a deadline.
    pub(super) async fn watch_status(
        &self,
        address: &str,
    ) -> Result<Streaming<wire::WatchStatusResponse>, CallError> {
        let token = self.signer.sign_status(bootstrap::read_wall_clock());
        let token = token.map_err(|refused| CallError::Refused(refused.to_string()))?;
        let request = authorize_request(&token, wire::WatchStatusRequest {})?;
        let mut client = self.client(address)?;
        Ok(client.watch_status(request).await?.into_inner())
    }
}

/// Creates a request with a grant in its metadata.
pub(super) fn authorize_request<T>(token: &SecretString, message: T) -> Result<Request<T>, CallError> {
    let mut bearer: tonic::metadata::MetadataValue<_> =
        format!("Bearer {}", token.expose_secret())
            .parse()
            .map_err(|_| CallError::Refused("the grant is not a header value".to_owned()))?;
    // The debug output of a request must not contain the grant.
    bearer.set_sensitive(true);
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", bearer);
    Ok(request)
}
