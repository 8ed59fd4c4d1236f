//! Tests that one caller cannot take resources from others.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use proto::executor::{KeepAliveRequest, ListToolsRequest, OpenWorkspaceRequest, TakeSpansRequest};
use tokio::{
    io::AsyncReadExt,
    net::{TcpSocket, TcpStream},
};

use super::*;

/// Generous time limit for a served call, on a machine that may have other work.
const SOON: Duration = Duration::from_secs(60);
/// Shorter than the time limit of a connection without its preface.
const BEFORE_PREFACE_LIMIT: Duration = Duration::from_secs(5);

async fn another_client(world: &World) -> ExecutorServiceClient<Channel> {
    ExecutorServiceClient::connect(format!("http://{}", world.address))
        .await
        .unwrap()
}

/// Asserts that another caller is served over its own connection.
async fn is_served(world: &World) {
    let token = world.status_token();
    let mut client = another_client(world).await;
    let asked = client.list_tools(add_bearer_token(&token, ListToolsRequest {}));
    let answer = tokio::time::timeout(SOON, asked).await.unwrap().unwrap();
    assert!(!answer.into_inner().tools.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn check_63_call_without_grant_refused_early() {
    let world = World::start(1).await;
    let mut client = world.client.clone();
    let (id, fence) = ("any".to_owned(), Some(RunFence::new(1, 5, 1).into()));
    let never = tokio_stream::pending::<OpenWorkspaceRequest>();
    let opened = tokio::time::timeout(SOON, client.open_workspace(never))
        .await
        .expect("at once");
    let keep = KeepAliveRequest {
        workspace_id: id.clone(),
        fence,
    };
    let close = CloseWorkspaceRequest {
        workspace_id: id.clone(),
        fence,
    };
    let snapshot = SnapshotWorkspaceRequest {
        workspace_id: id,
        fence,
        commit_time_s: 0,
    };
    let refusals = [
        opened.err(),
        client.list_tools(ListToolsRequest {}).await.err(),
        client.call_tool(CallToolRequest::default()).await.err(),
        client.watch_status(WatchStatusRequest {}).await.err(),
        client.keep_alive(keep).await.err(),
        client.close_workspace(close).await.err(),
        client.snapshot_workspace(snapshot).await.err(),
        client.take_spans(TakeSpansRequest::default()).await.err(),
    ];
    for (number, refused) in refusals.into_iter().enumerate() {
        assert_eq!(
            refused.map(|status| status.code()),
            Some(Code::Unauthenticated),
            "call {number}"
        );
    }
    let gate = world.token(
        &build_run_id(1),
        None,
        RunFence::new(1, 5, 1),
        GrantAudience::Gate,
    );
    let refused = client
        .list_tools(add_bearer_token(&gate, ListToolsRequest {}))
        .await
        .unwrap_err();
    assert_eq!(
        refused.code(),
        Code::Unauthenticated,
        "a grant for another audience"
    );
    println!("| 63 calls without a grant | any | held |");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_64_oversized_message_is_refused() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let large = json!({ "path": "a", "content": "x".repeat(5 << 20) });
    let refused = session.start("1", "write_file", &large).await.err().unwrap();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    let long = format!("{}{}", session.token, "x".repeat(32 * 1024));
    let refused = session
        .client
        .clone()
        .list_tools(add_bearer_token(&long, ListToolsRequest {}))
        .await;
    assert!(refused.is_err(), "headers of 32 KiB");
    is_served(&world).await;
    assert!(session.shell("2", "cat README.md").await.contains("# Shop"));
    println!("| 64 large messages and headers | any | held |");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_64_stream_flood_leaves_others_served() {
    let world = World::start(1).await;
    let greedy = another_client(&world).await;
    let token = world.status_token();
    let open = Arc::new(AtomicUsize::new(0));
    let mut streams = tokio::task::JoinSet::new();
    for _ in 0..10_000 {
        let (mut client, request) = (greedy.clone(), add_bearer_token(&token, WatchStatusRequest {}));
        let open = Arc::clone(&open);
        streams.spawn(async move {
            let stream = client.watch_status(request).await;
            open.fetch_add(usize::from(stream.is_ok()), Ordering::Relaxed);
            std::future::pending::<()>().await;
            drop(stream);
        });
    }
    // The server limits the streams of one connection, so further calls wait at the caller.
    let deadline = tokio::time::Instant::now() + SOON;
    while open.load(Ordering::Relaxed) < 512 {
        assert!(tokio::time::Instant::now() < deadline, "{open:?} are open");
        tokio::task::yield_now().await;
    }
    is_served(&world).await;
    assert_eq!(open.load(Ordering::Relaxed), 512);
    println!("| 64 ten thousand streams | any | held |");
}

#[tokio::test(flavor = "multi_thread")]
async fn excess_connections_of_address_are_closed() {
    let world = World::start(1).await;
    let mut held: Vec<TcpStream> = Vec::new();
    for _ in 0..80 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        held.push(socket.connect(world.address).await.unwrap());
    }
    // None has sent its preface, so the oldest lose their places to the newest.
    let (mut oldest, mut received) = (held.remove(0), Vec::new());
    let closed = tokio::time::timeout(BEFORE_PREFACE_LIMIT, oldest.read_to_end(&mut received)).await;
    assert!(closed.is_ok(), "closed before the time limit of its preface");
    is_served(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn check_24_health_answers_during_fork_bomb() {
    for (level, without) in [
        ("L1 with namespaces", vec![]),
        ("L1", vec![executor::ConfinementMechanism::Namespaces]),
    ] {
        let world = World::start_as(1, |_, settings| {
            settings.without = without;
            settings.limits.processes = 300;
        })
        .await;
        let session = world.open(1).await;
        // The number is limited, because without namespaces the kernel does not limit root.
        let bomb = "import os, time\nfor _ in range(1500):\n    try:\n        if os.fork() == 0: time.sleep(60); os._exit(0)\n    \
                    except OSError: print('refused')\ntime.sleep(60)\n";
        let bomb = json!({ "command": format!("python3 -c \"{bomb}\"") });
        let mut running = session.start("1", "run_command", &bomb).await.unwrap();
        let result = tokio::spawn(async move {
            while let Some(message) = running.message().await.unwrap() {
                if let call_tool_response::Event::Result(result) = message.event.unwrap() {
                    return result.content;
                }
            }
            panic!("no result")
        });
        let mut slowest = Duration::ZERO;
        while !result.is_finished() {
            let asked = tokio::time::Instant::now();
            isolation::check_health(&world).await;
            slowest = slowest.max(asked.elapsed());
        }
        let text = result.await.unwrap();
        assert!(
            text.contains("more than 300 processes") || text.contains("refused"),
            "{text}"
        );
        // Takes about a second on an idle machine; this one may have other work, or stand still for some seconds.
        assert!(slowest < Duration::from_secs(45), "{slowest:?}");
        println!(
            "| 24 health during a fork bomb | {level} | held, slowest answer {} ms |",
            slowest.as_millis()
        );
    }
}
