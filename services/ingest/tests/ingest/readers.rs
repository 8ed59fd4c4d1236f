//! Readers of a long journal concurrent with webhooks.
#![expect(clippy::print_stdout, reason = "the test prints what it measured")]

use std::time::Duration;

use domain::{Fact, RunId};
use futures::StreamExt as _;
use reqwest::{StatusCode, header::RETRY_AFTER};
use serde_json::json;
use testkit::bound_running_time;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, task::JoinSet};

use crate::harness::{self, Harness, OPERATOR, VIEWER, build_entry};

/// Entries of the journal, each of 400 kB: 40 MB.
const ENTRIES: u64 = 100;
const READERS: usize = 50;
/// Largest growth of the process in MiB, including the clients. Whole journals would take gigabytes.
const MOST_MIB: u64 = 160;
/// Running time in which an answer must come.
const PROMPTLY: Duration = Duration::from_secs(10);

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("peak");
    let kib = line
        .split_whitespace()
        .nth(1)
        .and_then(|text| text.parse::<u64>().ok());
    kib.expect("a number") / 1024
}

async fn write_journal(h: &Harness, run: &RunId) {
    let journal = h.queue.journal();
    let trigger = Box::new(harness::merge_trigger());
    let start = build_entry(0, Fact::RunStarted { trigger });
    let mut last = journal.append(run, 0, &start).await.expect("append");
    for position in 1..ENTRIES {
        let note = "x".repeat(400_000);
        let seeds = Vec::new();
        let long = build_entry(position, Fact::CodeFound { seeds, note });
        last = journal.append(run, last, &long).await.expect("append");
    }
}

/// Reads an answer and discards it.
async fn read_length(url: String, token: &'static str) -> (StatusCode, usize) {
    let client = reqwest::Client::builder().no_proxy().build().expect("client");
    let answer = client.get(url).bearer_auth(token).send().await.expect("answer");
    let status = answer.status();
    assert_eq!(
        status == StatusCode::TOO_MANY_REQUESTS,
        answer.headers().contains_key(RETRY_AFTER)
    );
    let (mut body, mut length) = (answer.bytes_stream(), 0);
    while let Some(piece) = body.next().await {
        length += piece.expect("piece").len();
    }
    (status, length)
}

async fn assert_webhooks_arrive(h: &Harness, name: &str) {
    for number in 0..10 {
        let (id, event) = (format!("{name}-{number}"), json!({}));
        let sending = h.github_event("star", &id, &event);
        let status = bound_running_time(PROMPTLY, sending).await.expect("promptly");
        assert_eq!(status, StatusCode::ACCEPTED, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_long_journals_cost_no_webhook() {
    if !testkit::enter_own_process("readers::readers_of_long_journals_cost_no_webhook") {
        return;
    }
    let h = Harness::start_with(3_600, |config| config.ingest.connections_per_address = 256).await;
    let run: RunId = "jira:ENG-1@5".parse().expect("run");
    write_journal(&h, &run).await;
    let before = peak_mib();
    let paths = ["/journal", "/timeline", "", "/journal?from=90"];

    // Greedy readers.
    let mut readers = JoinSet::new();
    for number in 0..READERS {
        let path = paths[if number % 5 == 4 { number % 4 } else { 0 }];
        let url = h.url(&format!("/v1/runs/jira:ENG-1%405{path}"));
        readers.spawn(async move { (path, read_length(url, VIEWER).await) });
    }
    assert_webhooks_arrive(&h, "greedy").await;
    let (mut whole, mut refused) = (0, 0);
    while let Some(read) = readers.join_next().await {
        match read.expect("reader") {
            (_, (StatusCode::TOO_MANY_REQUESTS, _)) => refused += 1,
            ("/journal", (StatusCode::OK, length)) => {
                assert!(length > 39_000_000, "{length}");
                whole += 1;
            }
            (path, (status, _)) => assert_eq!(status, StatusCode::OK, "{path}"),
        }
    }
    assert!(whole > 0 && refused > 0, "{whole} whole, {refused} refused");

    // Readers that send a request and never read.
    let address = h.url("");
    let address = address.trim_start_matches("http://");
    let mut silent = Vec::new();
    for _ in 0..READERS {
        let mut stream = TcpStream::connect(address).await.expect("connection");
        let head = format!(
            "GET /v1/runs/jira:ENG-1%405/journal HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {VIEWER}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("request");
        silent.push(stream);
    }
    assert_webhooks_arrive(&h, "silent").await;
    let url = h.url("/v1/runs/jira:ENG-1%405/journal");
    let read = bound_running_time(PROMPTLY, read_length(url, OPERATOR)).await;
    let (status, length) = read.expect("promptly");
    assert_eq!(status, StatusCode::OK, "another token has its turns");
    assert!(length > 39_000_000, "{length}");
    drop(silent);

    let grown = peak_mib() - before;
    assert!(grown < MOST_MIB, "{grown} MiB");
    println!("{READERS} readers of 40 MB: {whole} whole, {refused} refused, {grown} MiB");
    h.stop().await;
}
