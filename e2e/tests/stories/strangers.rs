//! Processes on the same machine without any secret: a command of the model without namespaces, or another
//! user.

use std::{os::unix::fs::PermissionsExt, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::start_default_world;

/// Time limit that only a failing story reaches.
const NEVER: Duration = Duration::from_secs(120);

/// Sends a text to a server and returns the answer up to `until`, or up to the end of the connection.
async fn exchange_text(address: &str, words: &str, until: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(words.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let reading = async {
        let mut buffer = [0; 4096];
        while !answer.contains(until) {
            match stream.read(&mut buffer).await {
                Ok(read @ 1..) => answer.push_str(&String::from_utf8_lossy(&buffer[..read])),
                Ok(_) | Err(_) => break,
            }
        }
    };
    tokio::time::timeout(NEVER, reading).await.expect("an answer");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn stranger_without_key_gets_nothing_from_servers() {
    let world = start_default_world().await;
    let address = |name: &str, scheme: &str| world.setting(name).unwrap().replace(scheme, "");
    let nats = address("NATS__URL", "nats://");
    for hello in [
        "{}",
        r#"{"user":"ingest","pass":"ingest"}"#,
        r#"{"verbose":true,"echo":true}"#,
    ] {
        let words = format!("CONNECT {hello}\r\nPUB journeyman.reports.x 2\r\n{{}}\r\nPING\r\n");
        let answer = exchange_text(&nats, &words, "-ERR").await;
        // The server gives up a stranger that says nothing for 2 s, as when the machine stands still.
        let refusals = ["Authorization Violation", "Authentication Timeout"];
        let is_refused = refusals.iter().any(|refusal| answer.contains(refusal));
        assert!(is_refused, "{answer}");
        assert!(!answer.contains("PONG"), "{answer}");
    }
    let redis = address("REDIS__URL", "redis://");
    for words in [
        "KEYS *\r\n",
        "FLUSHALL\r\n",
        "AUTH planner guess\r\n",
        "ACL LIST\r\n",
    ] {
        let answer = exchange_text(&redis, words, "\r\n").await;
        assert!(
            answer.starts_with("-NOAUTH") || answer.starts_with("-WRONGPASS"),
            "{words}: {answer}"
        );
    }
    for file in ["nats/nats.conf", "redis/redis.conf", "redis/users.acl"] {
        let path = world.logs().join("data").join(file);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains("\"SU") && !text.contains(": SU"),
            "{file} holds a seed"
        );
    }
    let key = world.ask().unwrap();
    let run = world.run(&key, 0).await.unwrap();
    world.finished(&run).await.unwrap();
    world.stop().await.unwrap();
}
