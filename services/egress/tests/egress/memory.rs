//! Memory of the proxy while clients request texts that grow when they are rewritten.

use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper::{Request, StatusCode, header};

use crate::rig::{Plan, Registry, build_grant};

/// Largest growth of the process, in MiB: texts in memory, and the parts of the clients and the registry, which run
/// in this process, too.
const MOST: u64 = 120;

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn build_mirror_request(host: &str) -> Request<Body> {
    let request = Request::get("/mirror/npm/addresses").header(header::HOST, host);
    request.body(Body::empty()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_host_headers_cost_no_memory() {
    if !testkit::enter_own_process("memory::long_host_headers_cost_no_memory") {
        return;
    }
    let registry = Registry::start().await;
    let mut plan = Plan::default().mirror("npm", registry.settings());
    plan.settings.download_mib = 1000;
    plan.settings.mirror_hosts = bootstrap::settings::TextList(vec!["Mirror.Example".to_owned()]);
    let rig = plan.start().await;
    let before = peak_mib();
    let granted = build_grant(&[]);
    for host in [
        &*"a".repeat(30_000),
        &*"a".repeat(256),
        "evil.example",
        "user@localhost",
        "10.0.0.1:3128",
        "169.254.169.254",
        "",
    ] {
        let mut client = rig.client(&granted).await;
        let answer = client.send(build_mirror_request(host)).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{host}");
    }
    let longest = format!("{}:3128", "a".repeat(250));
    let asking = ["127.0.0.1:4000", "[::1]:3128", "localhost", "mirror.example"]
        .map(str::to_owned)
        .into_iter()
        .chain(std::iter::repeat_n(longest, 16))
        .map(|host| {
            let client = rig.client(&granted);
            async move {
                let mut client = client.await;
                let answer = client.send(build_mirror_request(&host)).await;
                assert_eq!(answer.status(), StatusCode::OK, "{host}");
                let announced: usize = answer.headers()[header::CONTENT_LENGTH]
                    .to_str()
                    .unwrap()
                    .parse()
                    .unwrap();
                let (mut body, mut length) = (answer.into_body(), 0);
                while let Some(frame) = body.frame().await {
                    length += frame.unwrap().into_data().unwrap().len();
                }
                assert_eq!(length, announced);
                assert_eq!(length, 40_000 * format!("http://{host}/mirror/npm/ ").len());
            }
        });
    futures::future::join_all(asking).await;
    let grown = peak_mib() - before;
    assert!(grown < MOST, "{grown} MiB");
    #[expect(clippy::print_stdout, reason = "a row of the sandbox check")]
    {
        println!("| 45 egress memory: long Host headers over large texts, {grown} MiB | any | held |");
    }
}
