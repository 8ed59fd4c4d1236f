//! Raw messages on a NATS subject, as a faulty producer publishes them.

use anyhow::Context as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Publishes bytes on a subject and waits until the server has received them.
///
/// # Errors
/// When the server cannot be reached or closes the connection.
pub async fn publish_raw(nats_url: &str, subject: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(nats_url.trim_start_matches("nats://")).await?;
    let head = format!(
        "CONNECT {{\"verbose\":false}}\r\nPUB {subject} {}\r\n",
        bytes.len()
    );
    stream
        // The server answers PING in order, so its PONG proves that it has processed the message.
        .write_all(&[head.as_bytes(), bytes, b"\r\nPING\r\n"].concat())
        .await?;
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("PONG") {
        let read = stream.read_buf(&mut seen).await.context("no answer from nats")?;
        anyhow::ensure!(read > 0, "nats closed the connection");
    }
    Ok(())
}
