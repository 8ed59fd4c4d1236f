//! Live output of running tools for current viewers. It is not stored, and a slow viewer misses parts.

use std::sync::Arc;

use domain::{LiveOutput, RunId};
use futures::{StreamExt as _, future, stream::BoxStream};

use crate::{connection::NatsConnection, error::Error, names};

/// Live output of runs. Cheap to clone.
#[derive(Clone)]
pub struct LiveChannel {
    connection: Arc<NatsConnection>,
}

impl LiveChannel {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self { connection }
    }

    /// Publishes output to the current viewers of the run.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the output is lost then.
    pub async fn tell(&self, run: &RunId, output: &LiveOutput) -> Result<(), Error> {
        let subject = names::build_live_subject(run);
        let body = serde_json::to_vec(output).map_err(|error| Error::corrupt(&subject, error))?;
        // Core NATS and not `JetStream`: the journal has the result of the tool, so no server needs to
        // store its output.
        let told = self.connection.client.publish(subject, body.into()).await;
        told.map_err(|error| Error::unavailable("tell live output", error))
    }

    /// Subscribes to the output of a run from now on. Unreadable messages are omitted.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn follow(&self, run: &RunId) -> Result<BoxStream<'static, LiveOutput>, Error> {
        let messages = self
            .connection
            .client
            .subscribe(names::build_live_subject(run))
            .await;
        let messages = messages.map_err(|error| Error::unavailable("follow live output", error))?;
        let told = messages
            .filter_map(|message| future::ready(serde_json::from_slice::<LiveOutput>(&message.payload).ok()));
        Ok(told.boxed())
    }
}
