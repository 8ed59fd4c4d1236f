//! Hosts behind the proxy of the company.

use hyper::StatusCode;
use testkit::ForwardProxy;

use crate::rig::{Echo, Plan, build_grant};

// A name that the rig's resolver does not know: only the proxy of the company resolves it.
const BEYOND: &str = "beyond.example";

async fn start_proxy() -> ForwardProxy {
    ForwardProxy::start(&[BEYOND, "open.example"], Some(("egress", "pass word")))
        .await
        .unwrap()
}

fn plan_behind(proxy: &ForwardProxy, password: &str) -> Plan {
    Plan::default().behind(webproxy::Settings {
        url: proxy.url(),
        username: "egress".to_owned(),
        password: Some(password.to_owned().into()),
        no_proxy: webproxy::BypassList::parse("direct.example").unwrap(),
        ..webproxy::Settings::default()
    })
}

#[tokio::test]
async fn tunnel_passes_company_proxy_by_name() {
    let (echo, proxy) = (Echo::start().await, start_proxy().await);
    let rig = plan_behind(&proxy, "pass word").start().await;
    let target = format!("{BEYOND}:{}", echo.address.port());
    rig.connect(&build_grant(&[&target]), &target).await.unwrap();
    let passed = proxy.passed_to(BEYOND);
    assert_eq!(passed.len(), 1, "{passed:?}");
    assert_eq!(
        (passed[0].method.as_str(), passed[0].port),
        ("CONNECT", echo.address.port())
    );
}

#[tokio::test]
async fn private_or_listed_host_avoids_company_proxy() {
    let (echo, proxy) = (Echo::start().await, start_proxy().await);
    let rig = plan_behind(&proxy, "pass word")
        .name("inside.example", &[&["10.1.2.3"]])
        .name("direct.example", &[&["127.0.0.1"]])
        .start()
        .await;
    let inside = "inside.example:443";
    let refusal = rig.refusal(&build_grant(&[inside]), inside).await;
    assert!(refusal.contains("not public"), "{refusal}");
    let direct = format!("direct.example:{}", echo.address.port());
    rig.connect(&build_grant(&[&direct]), &direct).await.unwrap();
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
}

#[tokio::test]
async fn refusal_of_company_proxy_is_no_refusal_of_ours() {
    let (echo, proxy) = (Echo::start().await, start_proxy().await);
    let rig = plan_behind(&proxy, "wrong").start().await;
    let target = echo.target();
    let (status, text) = rig
        .connect(&build_grant(&[&target]), &target)
        .await
        .map(drop)
        .unwrap_err();
    assert_eq!(status, StatusCode::BAD_GATEWAY, "{text}");
    assert!(text.contains("network's proxy"), "{text}");
    assert_eq!(proxy.requests()[0].refused, Some(407));
    assert_eq!(rig.refusals(&build_grant(&[])).await, "");
}

#[tokio::test]
async fn plain_http_passes_company_proxy() {
    let proxy = start_proxy().await;
    let rig = plan_behind(&proxy, "pass word").start().await;
    // The name is not known to the proxy, so its own answer comes back.
    let mut client = rig.client(&build_grant(&["unknown.example:80"])).await;
    let answer = client.get("http://unknown.example/index").await;
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    let seen = proxy.requests();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(
        (seen[0].method.as_str(), seen[0].path.as_str(), seen[0].refused),
        ("GET", "/index", Some(502))
    );
}
