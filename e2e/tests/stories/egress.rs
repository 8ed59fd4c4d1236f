//! Packages that a repository's setup installs, and credentials that it never sees.

use std::sync::{Arc, Mutex};

use domain::StopReason;
use e2e::{Options, ServiceMode, TestWorld};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{comment_with, complete_ticket, end_of, list_ticket_comments};

const TOKEN: &str = "registry-token-5c1d20e7";
/// Content of every package of the registry.
pub(crate) const PACKAGE: &str = "RATE = 1.19";

/// Private registry that requires a token.
pub(crate) struct PackageRegistry {
    url: String,
    /// Head of each request, in order.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    _serving: AbortOnDropHandle<()>,
}

impl PackageRegistry {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/repository/", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&asked);
        let serving = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let head = answer_package_request(connection).await;
                received.lock().unwrap().push(head);
            }
        });
        Self {
            url,
            asked,
            _serving: AbortOnDropHandle::new(serving),
        }
    }
}

async fn answer_package_request(connection: TcpStream) -> String {
    let mut connection = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && connection.read_line(&mut head).await.is_ok_and(|count| count > 0) {}
    let is_known = head
        .to_lowercase()
        .contains(&format!("authorization: bearer {TOKEN}\r\n"));
    let (status, body) = if is_known {
        ("200 OK", PACKAGE)
    } else {
        ("401 Unauthorized", "")
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(answer.as_bytes()).await.unwrap();
    head
}

/// Starts a world with this setup whose proxy knows the registry.
async fn start_registry_world(
    registry: &PackageRegistry,
    (mode, tls): (ServiceMode, bool),
    setup: &str,
) -> TestWorld {
    let options = Options {
        mode,
        tls,
        ..Options::default()
    };
    Box::pin(start_with(registry, setup, options)).await
}

/// Starts a world with this setup and these options whose proxy knows the registry.
pub(crate) async fn start_with(registry: &PackageRegistry, setup: &str, options: Options) -> TestWorld {
    let options = Options {
        rules: format!("executor:\n  network: [packages.example]\n  setup:\n    - |\n      {setup}\n"),
        settings: vec![
            ("EGRESS__PRIVATE_NETWORKS", "127.0.0.0/8".to_owned()),
            ("EGRESS__MIRRORS__TEAM__URL", registry.url.clone()),
            ("EGRESS__MIRRORS__TEAM__TOKEN", TOKEN.to_owned()),
        ],
        ..options
    };
    Box::pin(TestWorld::start(options)).await.unwrap()
}

/// Renders a line of a setup that fetches a URL through the standard proxy variables.
pub(crate) fn render_fetch(url: &str) -> String {
    format!(
        "python3 -c \"import os, urllib.request as r; print(r.urlopen(os.path.expandvars('{url}')).read().decode())\""
    )
}

async fn assert_package_install(mode: ServiceMode, tls: bool) {
    let registry = PackageRegistry::start().await;
    let setup = format!(
        "{} > rates.txt && grep -q '{PACKAGE}' rates.txt && rm rates.txt && ! env | grep -q 'registry-[t]oken'",
        render_fetch("$JOURNEYMAN_MIRRORS/team/rates-1.0.py")
    );
    let world = start_registry_world(&registry, (mode, tls), &setup).await;
    let key = complete_ticket(&world).await;
    let asked = registry.asked.lock().unwrap().clone();
    assert!(
        asked.len() == 1 && asked[0].starts_with("GET /repository/rates-1.0.py HTTP/1.1"),
        "{asked:?}"
    );
    let run = world.run(&key, 0).await.unwrap();
    let journal = serde_json::to_string(&world.client.runs().journal(&run).await.unwrap()).unwrap();
    assert!(!journal.contains(TOKEN) && !list_ticket_comments(&world, &key).concat().contains(TOKEN));
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_installs_private_package_without_credential() {
    assert_package_install(ServiceMode::InProcess, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_install_private_package() {
    assert_package_install(ServiceMode::Processes, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn private_package_installs_through_tls_proxy() {
    assert_package_install(ServiceMode::Processes, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_of_closed_host_is_commented() {
    let registry = PackageRegistry::start().await;
    let world = start_registry_world(
        &registry,
        (ServiceMode::InProcess, false),
        &render_fetch("http://elsewhere.example/"),
    )
    .await;
    let key = world.ask().unwrap();
    assert_ne!(end_of(&world, &key, 0).await, StopReason::Completed);
    let comment = comment_with(&world, &key, "elsewhere.example:80").await;
    assert!(
        comment.contains("packages.example") || comment.contains("not open"),
        "{comment}"
    );
    assert!(world.model.calls().is_empty(), "no model was asked");
    world.stop().await.unwrap();
}
