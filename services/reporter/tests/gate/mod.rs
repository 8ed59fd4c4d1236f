//! Tests of the git gate against callers that hold resources.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use testkit::{
    poll_until,
    tls::{TestAuthority, TlsFront},
};

use crate::rig::{Rig, RigOptions, run_git};

/// Only a failing test waits this long.
const NEVER: Duration = Duration::from_secs(120);
const MIB: usize = 1024 * 1024;

/// Sends a POST with 8 MiB announced, and as much of its body as the gate accepts at once.
async fn half_sent(address: SocketAddr, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /git/acme/shop.git/git-upload-pack HTTP/1.1\r\nhost: gate\r\ncontent-length: {}\r\n{headers}\r\n",
        8 * MIB
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let body = vec![b'x'; MIB];
    let mut sent = 0;
    while sent < 7 * MIB {
        match timeout(Duration::from_millis(5), stream.write(&body)).await {
            Ok(Ok(written)) => sent += written,
            Ok(Err(_)) | Err(_) => break,
        }
    }
    stream
}

/// Returns the resident memory of this process, which is also the reporter's, in bytes.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[tokio::test(flavor = "multi_thread")]
async fn half_sent_requests_without_grant_are_refused() {
    let mut rig = Rig::start().await;
    let before = resident_bytes();
    let mut held = Vec::new();
    for number in 0..200 {
        let headers = match number % 3 {
            0 => "",
            1 => "authorization: Bearer garbage\r\n",
            _ => "authorization: Basic eDp5\r\n",
        };
        held.push(half_sent(rig.address, headers).await);
    }
    timeout(NEVER, rig.clone()).await.expect("a clone succeeds");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 128 * MIB, "grew by {} MiB", grown / MIB);
    let mut answer = String::new();
    let reading = held[199].read_to_string(&mut answer);
    // The rest of the body may be reset before the response is read.
    let _ = timeout(NEVER, reading).await.expect("the connection is closed");
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 401"),
        "{answer}"
    );
    rig.stop().await;
}

/// Requests everything at a commit, and reads nothing of the response.
async fn never_reading(rig: &Rig, grant: &str, commit: &str) -> TcpStream {
    let want = format!("want {commit}\n");
    let body = format!("{:04x}{want}00000009done\n", want.len() + 4);
    let request = format!(
        "POST /git/acme/large.git/git-upload-pack HTTP/1.1\r\nhost: gate\r\nauthorization: Bearer {grant}\r\n\
         content-type: application/x-git-upload-pack-request\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    // The first byte shows that the clone has its slot.
    assert_eq!(timeout(NEVER, stream.peek(&mut [0])).await.unwrap().unwrap(), 1);
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_clones_lose_slots_at_deadline() {
    let mut rig = Rig::start_with(RigOptions {
        clone_limit_s: 4,
        ..RigOptions::default()
    })
    .await;
    // More than sockets and pipes can buffer, and hard to compress.
    let noise: String = std::iter::repeat_with(fastrand::alphanumeric)
        .take(24 * MIB)
        .collect();
    rig.github
        .create_repository("acme/large", &[("noise.txt", &noise)])
        .unwrap();
    let grant = rig.grant_of(1, "acme/large");
    let url = rig.gate_url().replace("shop", "large");
    let with = |grant: &str| format!("http.extraHeader=Authorization: Bearer {grant}");
    let heads = run_git(&["-c", &with(&grant), "ls-remote", &url, "refs/heads/main"]).await;
    let commit = heads.split_whitespace().next().unwrap().to_owned();
    let _held = [
        never_reading(&rig, &grant, &commit).await,
        never_reading(&rig, &grant, &commit).await,
    ];
    let other = with(&rig.grant_of(2, "acme/large"));
    let at_once = ["-c", &other, "ls-remote", &url];
    timeout(NEVER, run_git(&at_once))
        .await
        .expect("another run is served");
    // The run waits for one of its two slots, which the deadline frees.
    let own = with(&grant);
    let later = ["-c", &own, "ls-remote", &url];
    timeout(NEVER, run_git(&later))
        .await
        .expect("the places are free again");
    rig.stop().await;
}

/// Builds a request for the digest of the references of `acme/shop`.
fn request_digest(rig: &Rig) -> reqwest::RequestBuilder {
    reqwest::Client::new()
        .get(format!("{}/digest", rig.gate_url()))
        .header(git::WANTED_BRANCH, "main")
}

/// Sends the request with a grant. Returns the status and the answer.
async fn read_digest(rig: &Rig, grant: Option<&str>) -> (u16, String) {
    let request = match grant {
        Some(grant) => request_digest(rig).bearer_auth(grant),
        None => request_digest(rig),
    };
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn digest_needs_grant_for_its_repository() {
    let mut rig = Rig::start().await;
    for (grant, status) in [
        (None, 401),
        (Some("garbage".to_owned()), 401),
        (Some(rig.grant_for("acme/other")), 403),
        (Some(rig.grant_for("acme/shop")), 200),
    ] {
        assert_eq!(read_digest(&rig, grant.as_deref()).await.0, status, "{grant:?}");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn digest_is_that_of_fetched_mirror() {
    let mut rig = Rig::start().await;
    let grant = rig.grant_for("acme/shop");
    let folder = tempfile::tempdir().unwrap();
    let header = format!("http.extraHeader=Authorization: Bearer {grant}");
    let mut seen = Vec::new();
    for round in ["first", "second"] {
        let place = folder.path().join(round);
        // A change of the remote is in the digest within the age that the gate allows.
        let look = async || {
            let (status, digest) = read_digest(&rig, Some(&grant)).await;
            assert_eq!(status, 200, "{digest}");
            (!seen.contains(&digest)).then_some(digest)
        };
        let digest = poll_until("the digest is new", NEVER, look).await.unwrap();
        let url = rig.gate_url();
        run_git(&[
            "-c",
            &header,
            "clone",
            "--quiet",
            "--mirror",
            &url,
            place.to_str().unwrap(),
        ])
        .await;
        let fetched = git::BareRepository::open(&place).unwrap();
        assert_eq!(fetched.reference_digest().unwrap(), digest, "{round}");
        seen.push(digest);
        rig.github
            .commit("acme/shop", "topic", "A further branch", &[("new.py", round)])
            .unwrap();
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reported_commit_is_fetched_at_once() {
    let mut rig = Rig::start().await;
    let grant = rig.grant_for("acme/shop");
    assert_eq!(read_digest(&rig, Some(&grant)).await.0, 200);
    let read_main = || {
        let mirror = git::BareRepository::open(&rig.mirror_path()).unwrap();
        mirror.branch_head("main").unwrap().unwrap().to_string()
    };
    let mut head = String::new();
    for round in ["first", "second"] {
        // The mirror is fetched now, so a request without the commit would receive it as it is.
        head = rig
            .github
            .commit("acme/shop", "main", "Move the base", &[("new.py", round)])
            .unwrap();
        let request = request_digest(&rig).header(git::REPORTED_COMMIT, head.as_str());
        let answer = request.bearer_auth(&grant).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), read_main()), (200, head.clone()));
    }
    let absent = "5".repeat(40);
    let request = request_digest(&rig).header(git::REPORTED_COMMIT, absent.as_str());
    let answer = request.bearer_auth(&grant).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), read_main()),
        (200, head),
        "a rewritten base is served"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_certificate_authority_is_named_as_cause() {
    let authority = TestAuthority::new().unwrap();
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let front = TlsFront::bind(&authority, free).await.unwrap();
    let rig = Rig::start_with(RigOptions {
        git_url: Some(format!("{}/git", front.url())),
        ..RigOptions::default()
    });
    let mut rig = rig.await;
    let _served = front.serve(rig.github.address());
    let refs = format!("{}/info/refs?service=git-upload-pack", rig.gate_url());
    let answer = reqwest::Client::new()
        .get(refs)
        .bearer_auth(rig.grant_for("acme/shop"));
    let answer = answer.send().await.unwrap();
    assert_eq!(answer.status(), 503);
    let words = answer.text().await.unwrap();
    assert!(words.contains("certificate"), "{words}");
    rig.stop().await;
}
