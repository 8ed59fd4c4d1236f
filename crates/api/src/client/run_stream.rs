//! Live streams of journals.
//!
//! The stream of one run reconnects after a broken connection and continues after the last received entry.

use std::{pin::Pin, sync::Arc, time::Duration};

use domain::{Fact, JournalEntry, LiveOutput, RunId, address::percent_encode};
use eventsource_stream::{Event, EventStreamError, Eventsource};
use futures::{Stream, TryStreamExt, stream};
use reqwest::Method;
use serde::Deserialize;

use super::{
    connection::{ClientConnection, parse_event_data, refuse_problem},
    runs::RunClient,
};
use crate::Error;

// Waits before the attempts after a broken connection, about 32 s in total; a received entry resets them.
const PAUSES: [Duration; 8] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(8),
    Duration::from_secs(8),
];

/// A new entry in the journal of any run.
#[derive(Debug, Deserialize)]
pub struct RunJournalEntry {
    /// Id of the run.
    pub run: RunId,
    /// The new entry.
    pub entry: JournalEntry,
}

/// Event of a run while a client follows it.
#[derive(Debug)]
pub enum RunEvent {
    /// A new entry of its journal.
    Entry(Box<JournalEntry>),
    /// New output of a running tool.
    Output(LiveOutput),
}

impl RunClient {
    /// Streams the new entries of every run.
    ///
    /// # Errors
    /// Those of the API with their texts. The stream ends with an error when the connection is lost.
    pub async fn events(&self) -> Result<impl Stream<Item = Result<RunJournalEntry, Error>> + use<>, Error> {
        // No time limit, because the stream has no end. No reconnect either: its events carry no id after which
        // another stream could continue.
        let answer = self
            .connection
            .send(self.connection.request(Method::GET, "/v1/events"))
            .await?;
        let events = refuse_problem(answer).await?.bytes_stream().eventsource();
        Ok(events
            .map_err(Error::Events)
            .and_then(async |event| parse_event_data(&event.data)))
    }

    /// Streams a run's journal live, from its first entry to the end of the run.
    ///
    /// # Errors
    /// Those of the API with their texts. The stream ends with an error when the connection is lost
    /// permanently.
    pub async fn follow(
        &self,
        run: &RunId,
    ) -> Result<impl Stream<Item = Result<JournalEntry, Error>> + use<>, Error> {
        let path = format!("/v1/runs/{}/events", percent_encode(&run.to_string()));
        let events = self.followed(path, None).await?;
        // The API sends output only when it is requested, so this filter normally drops nothing.
        Ok(events.try_filter_map(async |event| {
            Ok(match event {
                RunEvent::Entry(entry) => Some(*entry),
                RunEvent::Output(_) => None,
            })
        }))
    }

    /// Streams a run's journal live, without the entries up to the position `last`, and with the output of tools between
    /// them. Output during a broken connection is lost.
    ///
    /// # Errors
    /// Those of the API with their texts. The stream ends with an error when the connection is lost
    /// permanently.
    pub async fn follow_with_output(
        &self,
        run: &RunId,
        last: Option<u64>,
    ) -> Result<impl Stream<Item = Result<RunEvent, Error>> + use<>, Error> {
        let path = format!("/v1/runs/{}/events?output=true", percent_encode(&run.to_string()));
        self.followed(path, last).await
    }

    async fn followed(
        &self,
        path: String,
        seen: Option<u64>,
    ) -> Result<impl Stream<Item = Result<RunEvent, Error>> + use<>, Error> {
        let mut following = JournalFollower {
            connection: Arc::clone(&self.connection),
            path,
            seen,
            events: None,
            failures: 0,
            is_over: false,
        };
        // The first connection is made here, so that an unknown run or token fails this call and not the
        // stream.
        following.connect().await?;
        Ok(stream::try_unfold(following, async |mut following| {
            let next = following.next().await?;
            Ok(next.map(|event| (event, following)))
        }))
    }
}

type SseEvents = Pin<Box<dyn Stream<Item = Result<Event, EventStreamError<reqwest::Error>>> + Send>>;

struct JournalFollower {
    connection: Arc<ClientConnection>,
    path: String,
    // Position of the last received entry.
    seen: Option<u64>,
    events: Option<SseEvents>,
    // Attempts since the last received entry.
    failures: usize,
    is_over: bool,
}

impl JournalFollower {
    async fn connect(&mut self) -> Result<(), Error> {
        // The request has no time limit, because the stream lasts as long as the run.
        let mut request = self.connection.request(Method::GET, &self.path);
        // Server-sent events continue after the id in this header.
        if let Some(seen) = self.seen {
            request = request.header("last-event-id", seen);
        }
        let answer = self.connection.send(request).await?;
        let events = refuse_problem(answer).await?.bytes_stream().eventsource();
        self.events = Some(Box::pin(events));
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<RunEvent>, Error> {
        while !self.is_over {
            let broken = match &mut self.events {
                // After a failed attempt the connection is missing, and the loop first connects again.
                None => self.connect().await.err(),
                Some(events) => match events.try_next().await {
                    Ok(Some(event)) => return self.understand(&event).map(Some),
                    Ok(None) => Some(Error::BrokenOff),
                    Err(error) => Some(Error::Events(error)),
                },
            };
            if let Some(error) = broken {
                self.pause(error).await?;
            }
        }
        Ok(None)
    }

    fn understand(&mut self, event: &Event) -> Result<RunEvent, Error> {
        // Output has no position, so it neither moves `seen` nor resets the failures.
        if event.event == "output" {
            return Ok(RunEvent::Output(parse_event_data(&event.data)?));
        }
        let entry: JournalEntry = parse_event_data(&event.data)?;
        self.failures = 0;
        self.seen = Some(entry.position);
        // The last fact of the run ends the loop. A stream that ends without it counts as broken.
        self.is_over = matches!(entry.fact, Fact::RunFinished { .. });
        Ok(RunEvent::Entry(Box::new(entry)))
    }

    /// Waits before the next attempt, or returns the error when it is permanent or the attempts are
    /// exhausted.
    async fn pause(&mut self, error: Error) -> Result<(), Error> {
        // Without events, `next` connects again after the wait.
        self.events = None;
        // Server errors may be transient. A refusal or an unreadable answer does not change by repetition.
        let passes = match &error {
            Error::Refused { status, .. } => status.is_server_error(),
            Error::Unreachable { .. } | Error::Lost(_) | Error::Events(_) | Error::BrokenOff => true,
            Error::Client(_) | Error::UnknownToken | Error::Needless(_) | Error::NotUnderstood(_) => false,
        };
        match PAUSES.get(self.failures).filter(|_| passes) {
            Some(pause) => tokio::time::sleep(*pause).await,
            None => return Err(error),
        }
        self.failures += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::{RunFence, StopReason, Timestamp};
    use secrecy::SecretString;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::Client;

    fn render_event(position: u64, fact: Fact) -> String {
        let entry = JournalEntry {
            position,
            nonce: String::new(),
            fence: RunFence::default(),
            at: Timestamp::default(),
            fact,
        };
        let data = serde_json::to_string(&entry).unwrap();
        format!("id: {position}\nevent: {}\ndata: {data}\n\n", entry.fact.name())
    }

    fn taken_over(position: u64) -> String {
        let fence = RunFence::default();
        render_event(position, Fact::TakenOver { fence })
    }

    fn render_finished_event(position: u64) -> String {
        let reason = StopReason::Completed;
        render_event(position, Fact::RunFinished { reason })
    }

    /// Serves one answer per connection, aborts the connection, and returns the received requests.
    async fn serve_answers(
        answers: Vec<(&'static str, String)>,
    ) -> (Client, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let mut asked = Vec::new();
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 4096];
                let read = stream.read(&mut head).await.unwrap();
                asked.push(String::from_utf8_lossy(&head[..read]).to_lowercase());
                // The length is greater than the body, so the client loses the connection in the middle.
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len() + 100
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            asked
        });
        (
            Client::new(&url, SecretString::from("t".to_owned())).unwrap(),
            served,
        )
    }

    fn install_crypto_provider() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }

    #[tokio::test]
    async fn follow_reconnects_after_last_received_entry() {
        install_crypto_provider();
        let broken = ("503 Service Unavailable", String::new());
        let first = ("200 OK", taken_over(0) + &taken_over(1));
        let last = ("200 OK", taken_over(2) + &render_finished_event(3));
        let (client, served) = serve_answers(vec![first, broken, last]).await;
        let run = "jira:ENG-1@1".parse().unwrap();
        let entries = client.runs().follow(&run).await.unwrap();
        let entries: Vec<JournalEntry> = entries.try_collect().await.unwrap();
        let positions: Vec<u64> = entries.iter().map(|entry| entry.position).collect();
        assert_eq!(positions, [0, 1, 2, 3]);
        let asked = served.await.unwrap();
        assert!(!asked[0].contains("last-event-id"), "{}", asked[0]);
        for again in &asked[1..] {
            assert!(again.contains("last-event-id: 1\r\n"), "{again}");
        }
    }

    #[tokio::test]
    async fn follow_retries_after_requested_pause() {
        install_crypto_provider();
        let busy = ("429 Too Many Requests\r\nretry-after: 0", String::new());
        let done = ("200 OK", taken_over(0) + &render_finished_event(1));
        let (client, served) = serve_answers(vec![busy, done]).await;
        let entries = client
            .runs()
            .follow(&"jira:ENG-1@1".parse().unwrap())
            .await
            .unwrap();
        let entries: Vec<JournalEntry> = entries.try_collect().await.unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(served.await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn follow_stops_at_client_error() {
        install_crypto_provider();
        let first = ("200 OK", taken_over(0));
        let gone = ("404 Not Found", String::new());
        let (client, served) = serve_answers(vec![first, gone]).await;
        let run = "jira:ENG-1@1".parse().unwrap();
        let entries = client.runs().follow(&run).await.unwrap();
        let ended: Result<Vec<JournalEntry>, Error> = entries.try_collect().await;
        assert!(matches!(ended, Err(Error::Refused { .. })), "{ended:?}");
        assert_eq!(served.await.unwrap().len(), 2);
    }
}
