//! Tests of the limits on bytes, sessions and time.

use domain::{RunId, TicketKey};
use grant::Grant;
use hyper::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{
    Echo, LATER, Plan, Registry, SOON, build_client_hello, build_grant, read_remaining_bytes,
    read_response_text, read_to_limit,
};
use std::time::Duration;

const MIB: usize = 1024 * 1024;
const NEVER: Duration = Duration::from_secs(3600);

fn other_run(grant: &Grant) -> Grant {
    Grant {
        run: RunId::new(TicketKey::jira("ENG-2").unwrap(), 1),
        ..grant.clone()
    }
}

#[tokio::test]
async fn exhausted_upload_quota_ends_all_run_sessions() {
    let echo = Echo::start().await;
    let mut plan = Plan::default();
    plan.settings.download_mib = 100;
    let rig = plan.start().await;
    let granted = build_grant(&[&echo.target()]);
    let mut first = rig.connect(&granted, &echo.target()).await.unwrap();
    let mut second = rig.connect(&granted, &echo.target()).await.unwrap();
    for tunnel in [&mut first, &mut second] {
        let hello = build_client_hello("open.example");
        tunnel.write_all(&hello).await.unwrap();
        tunnel.read_exact(&mut vec![0; hello.len()]).await.unwrap();
    }
    let (mut reading, mut writing) = tokio::io::split(first);
    let write = async move {
        let _ = writing.write_all(&vec![7; 3 * MIB]).await;
    };
    let ((), _) = tokio::join!(write, read_remaining_bytes(&mut reading));
    let _ = second.write_all(b"more").await;
    assert!(read_remaining_bytes(&mut second).await.is_empty());
    assert!(echo.heard().len() <= MIB, "{}", echo.heard().len());
    let refusal = rig.refusal(&granted, &echo.target()).await;
    assert!(
        refusal.contains("the run has sent the 1 MiB that it may"),
        "{refusal}"
    );
    let noted = rig.refusals(&granted).await;
    assert_eq!(noted.lines().count(), 1);
    assert!(
        noted.ends_with("is cut off: the run has sent the 1 MiB that it may, 3 times\n"),
        "{noted}"
    );
    assert!(rig.connect(&other_run(&granted), &echo.target()).await.is_ok());
}

#[tokio::test]
async fn what_is_asked_for_counts_as_sent() {
    let registry = Registry::start().await;
    let rig = Plan::default().start().await;
    let granted = build_grant(&[&registry.target()]);
    let mut client = rig.client(&granted).await;
    let query = "x".repeat(20_000);
    let mut answers = Vec::new();
    for _ in 0..60 {
        let answer = client
            .get(&format!("http://{}/public/file?{query}", registry.target()))
            .await;
        answers.push(answer.status());
        drop(read_response_text(answer).await);
    }
    assert_eq!(answers[51], StatusCode::OK);
    assert_eq!(answers[59], StatusCode::FORBIDDEN);
    assert_eq!(registry.seen().len(), 52, "a query is cut off with the quota");
}

#[tokio::test]
async fn exhausted_download_quota_ends_the_run() {
    let (echo, registry) = (Echo::start().await, Registry::start().await);
    let mut plan = Plan::default();
    plan.settings.upload_mib = 100;
    let rig = plan.start().await;
    let granted = build_grant(&[&echo.target(), &registry.target()]);
    let mut tunnel = rig.tunnel(&granted, &echo.target()).await;

    let mut client = rig.client(&granted).await;
    let answer = client
        .get(&format!("http://{}/public/megabytes", registry.target()))
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(read_response_text(answer).await.is_err(), "the body breaks off");
    let _ = tunnel.write_all(b"more").await;
    assert!(read_remaining_bytes(&mut tunnel).await.is_empty());
    let refusal = rig.refusal(&granted, &echo.target()).await;
    assert!(
        refusal.contains("the run has received the 1 MiB that it may"),
        "{refusal}"
    );
    let noted = rig.refusals(&granted).await;
    assert!(
        noted.contains(&registry.target()) && noted.contains(&echo.target()),
        "{noted}"
    );
}

#[tokio::test]
async fn run_refusals_are_listed_up_to_fifty() {
    let rig = Plan::default().start().await;
    let granted = build_grant(&["open.example"]);
    let mut client = rig.client(&granted).await;
    for number in 0..60 {
        drop(read_response_text(client.get(&format!("http://host-{number}.example/")).await).await);
        drop(read_response_text(client.get("http://host-0.example/?again").await).await);
    }
    let noted = rig.refusals(&granted).await;
    assert_eq!(noted.lines().count(), 50);
    assert_eq!(
        noted.lines().next().unwrap(),
        "host-0.example:80 is not open to acme/shop, 61 times"
    );
    assert_eq!(
        noted.lines().nth(1).unwrap(),
        "host-1.example:80 is not open to acme/shop, once"
    );
    assert_eq!(rig.refusals(&other_run(&granted)).await, "");
}

#[tokio::test]
async fn run_has_sixty_four_reusable_session_slots() {
    let rig = Plan::default()
        .limits(|limits| limits.header = NEVER)
        .start()
        .await;
    let granted = build_grant(&["open.example"]);
    let mut sessions = Vec::new();
    for _ in 0..64 {
        sessions.push(rig.session(&granted).await);
    }
    let token = rig.token(&granted, bootstrap::read_wall_clock());
    let answer = rig.open(&token).await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        read_response_text(answer).await.unwrap(),
        "egress: the run has 64 connections open, the most that it may\n"
    );
    assert_eq!(
        rig.open(&rig.token(&other_run(&granted), bootstrap::read_wall_clock()))
            .await
            .status(),
        StatusCode::SWITCHING_PROTOCOLS
    );
    let mut last = sessions.pop().unwrap();
    last.shutdown().await.unwrap();
    read_remaining_bytes(&mut last).await;
    let again = async {
        while rig.open(&token).await.status() != StatusCode::SWITCHING_PROTOCOLS {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_tunnel_without_a_byte_is_closed() {
    let echo = Echo::start().await;
    let rig = Plan::default().limits(|limits| limits.idle = LATER).start().await;
    let granted = build_grant(&[&echo.target()]);
    let mut tunnel = rig.connect(&granted, &echo.target()).await.unwrap();
    let hello = build_client_hello("open.example");
    tunnel.write_all(&hello).await.unwrap();
    tunnel.read_exact(&mut vec![0; hello.len()]).await.unwrap();
    assert!(read_to_limit(&mut tunnel).await.is_empty());
}

#[tokio::test]
async fn silent_host_is_answered_before_session_idles() {
    let registry = Registry::start().await;
    let rig = Plan::default()
        .limits(|limits| limits.idle = SOON * 3)
        .start()
        .await;
    let mut client = rig.client(&build_grant(&[&registry.target()])).await;
    let answer = client
        .get(&format!("http://{}/public/silent", registry.target()))
        .await;
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    let expected = format!("egress: {} did not answer in time\n", registry.target());
    assert_eq!(read_response_text(answer).await.unwrap(), expected);
}

#[tokio::test]
async fn unfinished_head_ends_its_connection() {
    let rig = Plan::default()
        .limits(|limits| limits.header = LATER)
        .start()
        .await;
    let granted = build_grant(&["open.example"]);
    let mut outside = tokio::net::TcpStream::connect(rig.address).await.unwrap();
    outside.write_all(b"GET /session HTTP/1.1\r\n").await.unwrap();
    read_to_limit(&mut outside).await;
    let mut inside = rig.session(&granted).await;
    inside
        .write_all(b"GET http://open.example/ HTTP/1.1\r\n")
        .await
        .unwrap();
    read_to_limit(&mut inside).await;
    assert_eq!(rig.names.asked(), 0);
}

#[tokio::test]
async fn oversized_head_ends_its_connection() {
    let rig = Plan::default().start().await;
    let mut inside = rig.session(&build_grant(&["open.example"])).await;
    let long = format!("GET http://open.example/ HTTP/1.1\r\nX: {}", "x".repeat(40_000));
    let _ = inside.write_all(long.as_bytes()).await;
    let answer = read_remaining_bytes(&mut inside).await;
    assert!(answer.starts_with(b"HTTP/1.1 431 "), "{answer:?}");
    assert_eq!(rig.names.asked(), 0);
}

#[tokio::test]
async fn tunnel_without_hello_never_reaches_its_host() {
    let echo = Echo::start().await;
    let rig = Plan::default()
        .limits(|limits| limits.header = LATER)
        .start()
        .await;
    let mut tunnel = rig
        .connect(&build_grant(&[&echo.target()]), &echo.target())
        .await
        .unwrap();
    tunnel
        .write_all(&build_client_hello("open.example")[..100])
        .await
        .unwrap();
    assert!(read_to_limit(&mut tunnel).await.is_empty());
    assert!(echo.heard().is_empty());
}

#[tokio::test]
async fn stopping_proxy_finishes_tunnels_and_accepts_none() {
    let echo = Echo::start().await;
    let rig = Plan::default()
        .limits(|limits| limits.drain = NEVER)
        .start()
        .await;
    let idle = rig.session(&build_grant(&[])).await;
    let mut tunnel = rig
        .connect(&build_grant(&[&echo.target()]), &echo.target())
        .await
        .unwrap();
    let hello = build_client_hello("open.example");
    tunnel.write_all(&hello).await.unwrap();
    rig.stop.cancel();
    let mut idle = idle;
    assert!(
        read_remaining_bytes(&mut idle).await.is_empty(),
        "what waits for a request ends"
    );
    tunnel.read_exact(&mut vec![0; hello.len()]).await.unwrap();
    for _ in 0..200 {
        tunnel.write_all(b"more").await.unwrap();
        tunnel.read_exact(&mut [0; 4]).await.unwrap();
    }
    tunnel.shutdown().await.unwrap();
    assert!(read_remaining_bytes(&mut tunnel).await.is_empty());
    rig.server.await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(rig.address).await.is_err());
}

#[tokio::test]
async fn stopping_proxy_ends_within_its_drain_limit() {
    let (echo, registry) = (Echo::start().await, Registry::start().await);
    let mut plan = Plan::default().limits(|limits| limits.drain = SOON);
    plan.settings.download_mib = 1_000_000;
    let rig = plan.start().await;
    let granted = build_grant(&[&echo.target(), &registry.target()]);
    let mut tunnel = rig.tunnel(&granted, &echo.target()).await;
    let mut client = rig.client(&granted).await;
    // The client does not read this body, and no buffer holds all of it, so the response never ends.
    let stalled = client
        .get(&format!("http://{}/public/endless", registry.target()))
        .await;
    rig.stop.cancel();
    rig.server.await.unwrap().unwrap();
    assert!(read_remaining_bytes(&mut tunnel).await.is_empty());
    assert!(read_response_text(stalled).await.is_err());
}
