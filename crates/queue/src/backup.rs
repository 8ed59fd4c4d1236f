//! Backup and restore of all streams, by the server's own snapshots.
//!
//! A backup folder has one folder per stream with `backup.json` (configuration and state) and `stream.tar.s2`
//! (messages and consumers). The `nats` command writes the same files, so each can restore the other's
//! backups. Sequences are preserved, because the names of runs and the fences of tickets contain them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use async_nats::Subscriber;
use bytes::Bytes;
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    fs,
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use crate::{connection::NatsConnection, error::Error, topology};

// Size of the chunks of a snapshot. The server waits for a reply to each.
const CHUNK: usize = 128 << 10;
/// Limit of one chunk in either direction.
const CHUNK_LIMIT: Duration = Duration::from_secs(30);
const ABOUT: &str = "backup.json";
const MESSAGES: &str = "stream.tar.s2";

/// Content of `backup.json`.
#[derive(Debug, Serialize, Deserialize)]
struct StreamBackup {
    config: Value,
    state: Value,
}

/// Stream that was backed up or restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamTransfer {
    /// Name on the server.
    pub stream: String,
    /// Number of messages.
    pub messages: u64,
    /// Size in the backup, in bytes.
    pub bytes: u64,
}

/// Writes every stream to a new folder and calls `done` after each.
pub(crate) async fn back_up_streams(
    connection: &NatsConnection,
    folder: &Path,
    mut done: impl FnMut(&StreamTransfer),
) -> Result<(), Error> {
    // Journals contain code and comments, so other users of the machine get no access. The folder protects all files in it.
    fs::DirBuilder::new()
        .mode(0o700)
        .create(folder)
        .await
        .map_err(|error| map_file_error(folder, error))?;
    for stream in topology::names_for_backup() {
        let kept = back_up_stream(connection, &stream, &folder.join(&stream)).await?;
        done(&kept);
    }
    Ok(())
}

async fn back_up_stream(
    connection: &NatsConnection,
    stream: &str,
    folder: &Path,
) -> Result<StreamTransfer, Error> {
    let doing = || format!("back up stream {stream}");
    let inbox = connection.client.new_inbox();
    // Before the request, because the server sends the first chunks right after its answer.
    let chunks = connection.client.subscribe(inbox.clone()).await;
    let mut chunks = chunks.map_err(|error| Error::unavailable(doing(), error))?;
    let asked = json!({"deliver_subject": inbox, "no_consumers": false, "chunk_size": CHUNK});
    let answer = request_json(connection, &format!("$JS.API.STREAM.SNAPSHOT.{stream}"), &asked).await?;
    let about: StreamBackup =
        serde_json::from_value(answer).map_err(|error| Error::corrupt(doing(), error))?;
    fs::create_dir(folder)
        .await
        .map_err(|error| map_file_error(folder, error))?;
    let path = folder.join(MESSAGES);
    let bytes = receive_stream_snapshot(connection, &mut chunks, &path).await?;
    let text = serde_json::to_vec_pretty(&about).map_err(|error| Error::corrupt(doing(), error))?;
    let path = folder.join(ABOUT);
    // `backup.json` is written last, so that a folder without it is an incomplete backup.
    fs::write(&path, text)
        .await
        .map_err(|error| map_file_error(&path, error))?;
    Ok(StreamTransfer {
        stream: stream.to_owned(),
        messages: about.state["messages"].as_u64().unwrap_or_default(),
        bytes,
    })
}

/// Writes chunks to a file until the empty one, which ends the snapshot, and replies to each. Returns the
/// size in bytes.
async fn receive_stream_snapshot(
    connection: &NatsConnection,
    chunks: &mut Subscriber,
    path: &Path,
) -> Result<u64, Error> {
    let cut = |problem: &str| Error::unavailable("take a snapshot", problem);
    let mut file = fs::File::create(path)
        .await
        .map_err(|error| map_file_error(path, error))?;
    let mut bytes = 0;
    loop {
        let chunk = timeout(CHUNK_LIMIT, chunks.next()).await;
        let chunk = chunk.map_err(|_| cut("no chunk within 30 s"))?;
        let chunk = chunk.ok_or_else(|| cut("the connection is closed"))?;
        if chunk.payload.is_empty() {
            if let Some(status) = chunk.status.filter(|status| status.as_u16() >= 400) {
                return Err(cut(&format!("the server gave up with {status}")));
            }
            break;
        }
        file.write_all(&chunk.payload)
            .await
            .map_err(|error| map_file_error(path, error))?;
        bytes += chunk.payload.len() as u64;
        if let Some(reply) = chunk.reply {
            let taken = connection.client.publish(reply, Bytes::new()).await;
            taken.map_err(|error| Error::unavailable("take a snapshot", error))?;
        }
    }
    // On disk before `backup.json`, which marks the backup as complete.
    file.sync_all()
        .await
        .map_err(|error| map_file_error(path, error))?;
    Ok(bytes)
}

/// Restores every stream of a backup into a server that has none of them, and calls `done` after each.
pub(crate) async fn restore_streams(
    connection: &NatsConnection,
    folder: &Path,
    mut done: impl FnMut(&StreamTransfer),
) -> Result<(), Error> {
    // All parts are checked before the first stream is restored, so that an incomplete backup restores
    // nothing.
    let streams = topology::names_for_backup();
    let mut abouts = Vec::with_capacity(streams.len());
    for stream in &streams {
        let about = read_stream_backup(&folder.join(stream)).await?;
        if connection.context.get_stream(stream).await.is_ok() {
            return Err(Error::topology(
                format!(
                    "stream {stream} exists: stop every service, and restore into a server with an empty folder"
                ),
                None,
            ));
        }
        abouts.push(about);
    }
    for (stream, about) in streams.iter().zip(&abouts) {
        let kept = restore_stream(connection, stream, about, &folder.join(stream)).await?;
        done(&kept);
    }
    Ok(())
}

/// Reads the description of a stream's backup, and checks that the messages exist.
async fn read_stream_backup(folder: &Path) -> Result<StreamBackup, Error> {
    let path = folder.join(ABOUT);
    let text = fs::read(&path)
        .await
        .map_err(|error| map_file_error(&path, error))?;
    let messages = folder.join(MESSAGES);
    fs::metadata(&messages)
        .await
        .map_err(|error| map_file_error(&messages, error))?;
    serde_json::from_slice(&text).map_err(|error| Error::corrupt(path.display().to_string(), error))
}

async fn restore_stream(
    connection: &NatsConnection,
    stream: &str,
    about: &StreamBackup,
    folder: &Path,
) -> Result<StreamTransfer, Error> {
    let doing = || format!("restore stream {stream}");
    let mut config = about.config.clone();
    // A backup of three servers can be restored into one. The services raise the number of replicas again.
    config["num_replicas"] = connection.settings.replicas.into();
    let wanted = json!({"config": config, "state": about.state});
    let answer = request_json(connection, &format!("$JS.API.STREAM.RESTORE.{stream}"), &wanted).await?;
    let subject = answer["deliver_subject"].as_str();
    let subject = subject
        .ok_or_else(|| Error::corrupt(doing(), "the answer names no subject"))?
        .to_owned();
    let path = folder.join(MESSAGES);
    let mut file = fs::File::open(&path)
        .await
        .map_err(|error| map_file_error(&path, error))?;
    let (mut buffer, mut bytes) = (vec![0; CHUNK], 0);
    loop {
        let read = file
            .read(&mut buffer)
            .await
            .map_err(|error| map_file_error(&path, error))?;
        // The empty chunk at the end of the file ends the restore; its reply has the state of the stream.
        let chunk = Bytes::copy_from_slice(buffer.get(..read).unwrap_or_default());
        let answer = send_api_request(connection, &subject, chunk).await?;
        if read == 0 {
            return Ok(StreamTransfer {
                stream: stream.to_owned(),
                messages: answer["state"]["messages"].as_u64().unwrap_or_default(),
                bytes,
            });
        }
        bytes += read as u64;
    }
}

/// Sends a request to the server's API and returns its answer as JSON.
async fn request_json(connection: &NatsConnection, subject: &str, body: &Value) -> Result<Value, Error> {
    let body = serde_json::to_vec(body).map_err(|error| Error::corrupt(subject, error))?;
    send_api_request(connection, subject, body.into()).await
}

async fn send_api_request(connection: &NatsConnection, subject: &str, body: Bytes) -> Result<Value, Error> {
    let asking = timeout(CHUNK_LIMIT, connection.client.request(subject.to_owned(), body));
    let answer = asking
        .await
        .map_err(|_| Error::unavailable(subject, "no answer within 30 s"))?;
    let answer = answer.map_err(|error| Error::unavailable(subject, error))?;
    if answer.payload.is_empty() {
        return Ok(Value::Null);
    }
    let answer: Value =
        serde_json::from_slice(&answer.payload).map_err(|error| Error::corrupt(subject, error))?;
    match answer["error"]["description"].as_str() {
        Some(problem) => Err(Error::unavailable(subject, problem.to_owned())),
        None => Ok(answer),
    }
}

fn map_file_error(path: &Path, error: std::io::Error) -> Error {
    Error::unavailable(PathBuf::from(path).display().to_string(), error)
}
