//! Tests of registries behind the proxy.

use axum::body::Body;
use bootstrap::settings::TextList;
use egress::MirrorSettings;
use grant::Grant;
use hyper::{HeaderMap, Request, StatusCode, header};

use crate::rig::{CREDENTIAL, Plan, Registry, Rig, build_grant, read_response_text};

async fn start_mirror_rig() -> (Registry, Rig) {
    let registry = Registry::start().await;
    let rig = Plan::default().mirror("npm", registry.settings()).start().await;
    (registry, rig)
}

async fn fetch_mirror_path(rig: &Rig, path: &str) -> (StatusCode, HeaderMap, String) {
    let answer = rig.client(&build_grant(&[])).await.get(path).await;
    let (status, headers) = (answer.status(), answer.headers().clone());
    (status, headers, read_response_text(answer).await.unwrap())
}

#[tokio::test]
async fn mirror_adds_credential_and_hides_both_sides() {
    let (registry, rig) = start_mirror_rig().await;
    let mut client = rig.client(&build_grant(&[])).await;
    let request = Request::get("/mirror/npm/left-pad?write=true")
        .header(header::HOST, "bridge:8080")
        .header(header::AUTHORIZATION, "Bearer mine")
        .header(header::COOKIE, "mine=1")
        .header("x-jfrog-art-api", "mine")
        .header("x-original-url", "/admin")
        .header(header::ACCEPT_ENCODING, "gzip")
        .header(header::USER_AGENT, "npm/11");
    let answer = client.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let headers = format!("{:?}", answer.headers());
    assert!(
        !headers.contains("secret") && !headers.contains("set-cookie"),
        "{headers}"
    );
    assert!(!read_response_text(answer).await.unwrap().contains("secret"));
    let seen = &registry.seen()[0];
    assert_eq!(seen.uri, "/acme/npm/left-pad?write=true");
    assert_eq!(
        seen.headers
            .get_all(header::AUTHORIZATION)
            .iter()
            .collect::<Vec<_>>(),
        [CREDENTIAL]
    );
    assert!(!format!("{:?}", seen.headers).contains("mine"));
    assert!(!seen.headers.contains_key("x-original-url"));
    assert_eq!(seen.headers[header::ACCEPT_ENCODING], "identity");
    assert_eq!(seen.headers[header::USER_AGENT], "npm/11");
}

#[tokio::test]
async fn mirror_sends_configured_user_and_password() {
    let registry = Registry::start().await;
    let settings = MirrorSettings {
        token: None,
        user: Some("ada".to_owned()),
        password: Some("registry-secret".into()),
        ..registry.settings()
    };
    let rig = Plan::default().mirror("npm", settings).start().await;
    let (status, _, _) = fetch_mirror_path(&rig, "/mirror/npm/left-pad").await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn registry_addresses_become_the_clients_mirror_address() {
    let (registry, rig) = start_mirror_rig().await;
    let (_, headers, body) = fetch_mirror_path(&rig, "/mirror/npm/left-pad").await;
    let expected =
        r#"{"tarball":"http://bridge:8080/mirror/npm/left-pad.tgz","home":"https://left-pad.example/"}"#;
    assert_eq!(body, expected);
    assert_eq!(headers[header::CONTENT_LENGTH], expected.len().to_string());
    let (_, headers, body) = fetch_mirror_path(&rig, "/mirror/npm/left-pad.tgz").await;
    assert_eq!(body, registry.base(), "bytes stay as they are");
    assert_eq!(headers[header::CONTENT_TYPE], "application/gzip");
    for (path, location) in [
        ("moved", "http://bridge:8080/mirror/npm/left-pad"),
        ("relative", "http://bridge:8080/mirror/npm/left-pad?x=1"),
    ] {
        let (status, headers, _) = fetch_mirror_path(&rig, &format!("/mirror/npm/{path}")).await;
        assert_eq!(status, StatusCode::FOUND);
        assert_eq!(headers[header::LOCATION], location);
    }
}

#[tokio::test]
async fn redirect_outside_mirror_is_left_to_client() {
    let (registry, rig) = start_mirror_rig().await;
    let (status, headers, _) = fetch_mirror_path(&rig, "/mirror/npm/elsewhere").await;
    let target = format!("http://{}/public/file", registry.target());
    assert_eq!(
        (status, headers[header::LOCATION].to_str().unwrap()),
        (StatusCode::FOUND, &*target)
    );
    assert_eq!(registry.seen().len(), 1);
    let (status, _, words) = fetch_mirror_path(&rig, &target).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{words}");
    assert_eq!(registry.seen().len(), 1);
}

#[tokio::test]
async fn text_too_large_to_rewrite_passes_unchanged() {
    let registry = Registry::start().await;
    let mut plan = Plan::default().mirror("npm", registry.settings());
    plan.settings.download_mib = 100;
    let rig = plan.start().await;
    let (_, _, body) = fetch_mirror_path(&rig, "/mirror/npm/large").await;
    assert!(body == format!("{}/", registry.base()).repeat(1_200_000));
}

#[tokio::test]
async fn path_outside_mirror_base_never_reaches_registry() {
    let (registry, rig) = start_mirror_rig().await;
    let mut client = rig.client(&build_grant(&[])).await;
    for path in [
        "../other",
        "%2e%2e/other",
        "a/..%2f..%2fother",
        "..;/other",
        "%252e%252e/other",
        "..%5cother",
    ] {
        let answer = client.get(&format!("/mirror/npm/{path}")).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path}");
        let words = read_response_text(answer).await.unwrap();
        assert!(
            words.contains("/mirror/npm/ is open beneath its base alone"),
            "{words}"
        );
    }
    assert!(registry.seen().is_empty());
}

#[tokio::test]
async fn foreign_mirror_is_refused_and_not_listed() {
    let registry = Registry::start().await;
    let settings = |name: &str| MirrorSettings {
        repositories: Some(TextList(vec![name.to_owned()])),
        ..registry.settings()
    };
    let plan = Plan::default().mirror("ours", settings("acme/*"));
    let rig = plan.mirror("theirs", settings("other/shop")).start().await;
    assert_eq!(
        fetch_mirror_path(&rig, "/mirror/ours/left-pad").await.0,
        StatusCode::OK
    );
    for name in ["theirs", "none"] {
        let (status, _, words) = fetch_mirror_path(&rig, &format!("/mirror/{name}/left-pad")).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        let expected = format!(
            "egress: /mirror/{name}/ is not open to acme/shop; open: no host (executor.network in its rules); mirrors: /mirror/ours/\n"
        );
        assert_eq!(words, expected);
    }
    let other = Grant {
        repository: "other/shop".parse().unwrap(),
        ..build_grant(&[])
    };
    let answer = rig.client(&other).await.get("/mirror/theirs/left-pad").await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(registry.seen().len(), 2);
}

#[tokio::test]
async fn refused_registry_credential_is_reported_as_operators() {
    let registry = Registry::start().await;
    let settings = MirrorSettings {
        token: Some("expired".into()),
        ..registry.settings()
    };
    let rig = Plan::default().mirror("npm", settings).start().await;
    let (status, headers, words) = fetch_mirror_path(&rig, "/mirror/npm/left-pad").await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    assert_eq!(
        words,
        "egress: the proxy's credential for mirror npm is refused\n"
    );
    assert!(!headers.contains_key(header::WWW_AUTHENTICATE));
}

#[tokio::test]
async fn registry_with_private_address_is_not_requested() {
    let registry = Registry::start().await;
    let rig = Plan::default()
        .strict()
        .mirror("npm", registry.settings())
        .start()
        .await;
    let (status, _, words) = fetch_mirror_path(&rig, "/mirror/npm/left-pad").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(words.contains("not public"), "{words}");
    assert!(registry.seen().is_empty());
}
