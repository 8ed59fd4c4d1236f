//! Fetching one message at a time, and holding it while it is handled.

use std::{sync::Arc, time::Duration};

use async_nats::jetstream::{self, AckKind, consumer::PullConsumer, message::Acker};
use domain::{ErrorCause, cause::format_error_chain};
use futures::StreamExt as _;
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{connection::NatsConnection, error::Error};

/// Time for which a pull request waits at the server.
const PULL_EXPIRES: Duration = Duration::from_secs(5);
// Extra time before the pull is given up here. A restarted server does not know the request and sends no
// answer; the client's own limit is 5 s longer.
const PULL_GRACE: Duration = Duration::from_secs(1);

const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);

/// Fetches the next message; `None` if none arrived in time, or at shutdown. A message that arrives during
/// shutdown is returned at once.
pub(crate) async fn pull_message(
    connection: &Arc<NatsConnection>,
    consumer: &PullConsumer,
    shutdown: &CancellationToken,
) -> Result<Option<jetstream::Message>, Error> {
    if shutdown.is_cancelled() {
        return Ok(None);
    }
    let (sender, mut receiver) = oneshot::channel();
    let (connection, consumer) = (connection.clone(), consumer.clone());
    // A task, because a pull that is dropped halfway would lose a message that the server has already sent.
    tokio::spawn(async move {
        let stream = consumer.cached_info().stream_name.as_str();
        let pulling = request_message(&connection, &consumer);
        let pulled = failpoint::around_kind("queue.message.take", stream, pulling).await;
        if let Err(Ok(Some(message))) = sender.send(pulled) {
            give_back(&message).await;
        }
    });
    tokio::select! {
        biased;
        () = shutdown.cancelled() => {
            receiver.close();
            if let Ok(Ok(Some(message))) = receiver.try_recv() {
                give_back(&message).await;
            }
            Ok(None)
        }
        pulled = &mut receiver => pulled.unwrap_or(Ok(None)),
    }
}

async fn request_message(
    connection: &NatsConnection,
    consumer: &PullConsumer,
) -> Result<Option<jetstream::Message>, Error> {
    let failed = |cause: ErrorCause| Error::unavailable("pull", cause);
    let batch = consumer
        .batch()
        .max_messages(1)
        .expires(PULL_EXPIRES)
        .messages()
        .await;
    let mut batch = batch.map_err(|error| failed(error.into()))?;
    let waiting = timeout(PULL_EXPIRES + PULL_GRACE, batch.next());
    match connection.unless_lost(waiting).await {
        Some(Ok(message)) => message.transpose().map_err(failed),
        Some(Err(_)) => Ok(None),
        None => Err(failed("the connection was lost".into())),
    }
}

async fn give_back(message: &jetstream::Message) {
    if let Err(error) = message.double_ack_with(AckKind::Nak(None)).await {
        tracing::warn!(error = %format_error_chain(&*error), "message not given back; it comes again later");
    }
}

/// Progress reports of a message's holder within the acknowledgement wait of the server.
// Single reports may be lost, so three of them fit before the server redelivers the message.
pub const PROGRESS: u32 = 4;

/// Message in hand. A task reports progress until the message is settled or dropped. Dropping it sends
/// nothing.
pub(crate) struct HeldMessage {
    what: &'static str,
    acker: Arc<Acker>,
    heartbeat: AbortOnDropHandle<()>,
}

impl HeldMessage {
    pub(crate) fn new(what: &'static str, acker: Acker, ack_wait: Duration) -> Self {
        let acker = Arc::new(acker);
        let heartbeat =
            AbortOnDropHandle::new(tokio::spawn(report_progress(acker.clone(), ack_wait / PROGRESS)));
        Self {
            what,
            acker,
            heartbeat,
        }
    }

    /// Acknowledges the message and waits for the confirmation.
    pub(crate) async fn finish(self) -> Result<(), Error> {
        self.heartbeat.abort();
        failpoint::around_kind("queue.message.finish", self.what, self.acker.double_ack())
            .await
            .map_err(|error| Error::unavailable("acknowledge", error))
    }

    /// Returns the message, to be redelivered now or after a delay.
    pub(crate) async fn release(self, after: Option<Duration>) {
        self.heartbeat.abort();
        let given_back = self.acker.double_ack_with(AckKind::Nak(after));
        if let Err(error) = failpoint::around_kind("queue.message.release", self.what, given_back).await {
            tracing::warn!(error = %format_error_chain(&*error), "message not given back; it comes again later");
        }
    }
}

async fn report_progress(acker: Arc<Acker>, every: Duration) {
    loop {
        sleep(every).await;
        if let Err(error) = acker.ack_with(AckKind::Progress).await {
            tracing::warn!(error = %format_error_chain(&*error), "progress not reported");
        }
    }
}

/// Logs an error of a consumer and waits for a second or until shutdown.
pub(crate) async fn pause_after(error: &Error, stream: &str, shutdown: &CancellationToken) {
    tracing::warn!(error = %format_error_chain(error), stream, "no messages for now; tried again in a second");
    let _ = timeout(PAUSE_AFTER_ERROR, shutdown.cancelled()).await;
}
