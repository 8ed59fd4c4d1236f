//! Tests of the egress of setup commands, which other commands do not have.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;

const GRANT: &str = "grant-for-the-proxy";
/// Script that sends a request through the proxy of its environment and prints the whole answer.
const ASK: &str = "exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:} && \
                   printf 'GET http://packages.example/ HTTP/1.1\\r\\n\\r\\n' >&3 && cat <&3";

/// Proxy that opens sessions like the egress proxy, and answers one request in each with its first line.
struct Proxy {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
    _serving: tokio_util::task::AbortOnDropHandle<()>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&asked);
        let serving = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(answer_connection(connection, Arc::clone(&noted)));
            }
        });
        Self {
            url,
            asked,
            _serving: tokio_util::task::AbortOnDropHandle::new(serving),
        }
    }
}

impl Proxy {
    /// Returns the first lines of the requests that came through sessions.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn read_request_head(connection: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = connection.read_u8().await else {
            break;
        };
        head.push(byte);
    }
    String::from_utf8(head).unwrap()
}

async fn answer_connection(mut connection: TcpStream, noted: Arc<Mutex<Vec<String>>>) {
    let asked = read_request_head(&mut connection).await.to_lowercase();
    let reply = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let is_granted = asked.contains(&format!("authorization: bearer {GRANT}\r\n"));
    let text = if !is_granted {
        reply("401 Unauthorized", "the grant is malformed")
    } else if asked.starts_with("get /refusals ") {
        reply("200 OK", "evil.example:443: not open (2 times)\n")
    } else if asked.starts_with("get /session ") && asked.contains("upgrade: journeyman-egress\r\n") {
        let switch =
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: journeyman-egress\r\n\r\n";
        connection.write_all(switch.as_bytes()).await.unwrap();
        let inner = read_request_head(&mut connection).await;
        noted
            .lock()
            .unwrap()
            .extend(inner.lines().next().map(str::to_owned));
        reply("200 OK", &format!("asked: {}", inner.lines().next().unwrap()))
    } else {
        reply("400 Bad Request", "")
    };
    connection.write_all(text.as_bytes()).await.unwrap();
}

/// Gives a workspace this setup command and the proxy as its egress.
fn set_egress(spec: &mut WorkspaceSpec, proxy: &Proxy, command: &str) {
    spec.egress_url = proxy.url.clone();
    spec.egress_grant = GRANT.to_owned();
    spec.setup = vec![command.to_owned()];
}

async fn open_proxied_workspace(
    world: &World,
    proxy: &Proxy,
    command: &str,
    change: impl FnOnce(&mut WorkspaceSpec),
) -> (Session, bool, String) {
    let opened = world.open_with(1, |spec| {
        set_egress(spec, proxy, command);
        change(spec);
    });
    let (session, answer) = opened.await;
    let setup = answer.setup.unwrap();
    (session, setup.failed, setup.log_tail)
}

/// Lock for tests without namespaces: the egress port of one test is on the loopback of the other's commands.
static SHARED_LOOPBACK: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Returns a world for each level that this machine reaches, with its name and its runner.
async fn start_named_worlds() -> Vec<(&'static str, World, Option<runners::Runner>)> {
    let without = || vec![executor::ConfinementMechanism::Namespaces];
    let mut worlds = vec![
        ("L1 with namespaces", World::start(1).await, None),
        ("L1", World::start_without(1, without()).await, None),
    ];
    if runners::is_root("18 the way out of setup commands") {
        for (name, without) in [("L2 with namespaces", Vec::new()), ("L2", without())] {
            let (world, runner) = runners::start_runner_world(without).await;
            worlds.push((name, world, Some(runner)));
        }
    }
    worlds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn setup_has_egress_later_commands_not() {
    let _alone = SHARED_LOOPBACK.lock().await;
    for (name, world, _runner) in start_named_worlds().await {
        let proxy = Proxy::start().await;
        let look = format!("{ASK} && env && cat /proc/self/environ && echo $HTTP_PROXY > door");
        let (session, failed, log) = open_proxied_workspace(&world, &proxy, &look, |_| {}).await;
        assert!(
            !failed && log.contains("asked: GET http://packages.example/ HTTP/1.1"),
            "{log}"
        );
        assert!(log.contains("JOURNEYMAN_MIRRORS=http://127.0.0.1:"), "{log}");
        assert!(!log.contains("grant"), "{log}");
        // Neither the next command nor the one after it in the same place has egress.
        let later = format!("env | grep -ic proxy; HTTP_PROXY=$(cat door); {ASK}");
        for call in ["c1", "c2"] {
            let later = session.shell(call, &later).await;
            assert!(
                later.contains("\n0\n") && later.contains("refused"),
                "{name}: {later}"
            );
        }
        println!("| 16-18 the way out: setup alone, and without its grant | {name} | held |");
    }
}

/// Returns a script that sends a word through the proxy.
fn build_ask_script(word: &str) -> String {
    ASK.replace("packages.example/", &format!("packages.example/{word}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn setup_outside_base_history_has_no_network() {
    let _alone = SHARED_LOOPBACK.lock().await;
    for (name, world, _runner) in start_named_worlds().await {
        let proxy = Proxy::start().await;
        let base = setups::commit_base_files(&world, &[("install.sh", &build_ask_script("base"))]);
        let head = setups::commit_beside(&world, &[("install.sh", &build_ask_script("head"))]);
        let foundation = world.base.to_string();
        let opened = world.open_with(1, |spec| {
            spec.base_commit = head.clone();
            let command = "touch prepared && [ ! -e install.sh ] || bash install.sh";
            set_egress(spec, &proxy, command);
        });
        let (session, answer) = opened.await;
        let setup = answer.setup.unwrap();
        assert!(
            setup.without_network && setup.prepared_at == foundation,
            "{setup:?}"
        );
        assert!(
            setup.log_tail.contains("is not in the history of main") && setup.log_tail.contains("refused"),
            "{}",
            setup.log_tail
        );
        assert_eq!(proxy.asked(), Vec::<String>::new(), "{name}");
        // The files are those of the head, with the result of the preparation.
        let files = session
            .shell("c1", "grep -o packages.example/head install.sh; ls")
            .await;
        assert!(
            files.contains("packages.example/head") && files.contains("prepared"),
            "{files}"
        );
        session.close().await;
        let at_base = |spec: &mut WorkspaceSpec| spec.base_commit = base;
        let opened = open_proxied_workspace(&world, &proxy, "bash install.sh", at_base);
        let (session, failed, log) = opened.await;
        assert!(!failed && log.contains("packages.example/base"), "{log}");
        session.close().await;
        println!("| 16-18 setup network: a head outside the base branch | {name} | held |");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn setup_never_runs_over_restored_files() {
    let _alone = SHARED_LOOPBACK.lock().await;
    for (name, world, _runner) in start_named_worlds().await {
        let proxy = Proxy::start().await;
        let base = setups::commit_base_files(&world, &[("install.sh", &build_ask_script("base"))]);
        let command = "bash install.sh && touch left";
        let at_base = |spec: &mut WorkspaceSpec| spec.base_commit = base.clone();
        let opened = open_proxied_workspace(&world, &proxy, command, at_base);
        let (session, failed, log) = opened.await;
        assert!(!failed, "{log}");
        let own = build_ask_script("secret").replace('\'', "'\\''");
        session
            .shell(
                "c1",
                &format!("echo '{own}' > install.sh && echo new > new.txt && rm README.md"),
            )
            .await;
        let (info, pack) = session.snapshot().await;
        session.close().await;
        let restored = world.try_restore(1, RunFence::new(1, 6, 1), pack, |spec| {
            spec.base_commit = base.clone();
            set_egress(spec, &proxy, command);
            spec.restore = Some(SnapshotRef {
                snapshot_commit: info.snapshot_commit.clone(),
                ..SnapshotRef::default()
            });
        });
        let (session, answer) = restored.await.unwrap();
        assert!(!answer.setup.unwrap().failed);
        let asked = proxy.asked();
        assert!(
            asked.len() == 2 && asked.iter().all(|line| line.contains("packages.example/base")),
            "{name}: {asked:?}"
        );
        let files = session
            .shell(
                "c2",
                "grep -o packages.example/secret install.sh; cat new.txt; ls",
            )
            .await;
        assert!(
            files.contains("packages.example/secret") && files.contains("new") && files.contains("left"),
            "{files}"
        );
        assert!(!files.contains("README.md"), "{files}");
        let (again, _) = session.snapshot().await;
        assert_eq!(again.files_changed, info.files_changed);
        session.close().await;
        println!("| 16-18 setup network: a restored snapshot | {name} | held |");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_setup_lists_proxy_refusals() {
    let (world, proxy) = (World::start(1).await, Proxy::start().await);
    let (_, failed, log) = open_proxied_workspace(&world, &proxy, "false", |_| {}).await;
    assert!(
        failed && log.contains("The egress proxy refused:\nevil.example:443: not open (2 times)\n"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_proxy_session_answers_bad_gateway() {
    let (world, proxy) = (World::start(1).await, Proxy::start().await);
    let (_, _, log) = open_proxied_workspace(&world, &proxy, ASK, |spec| {
        spec.egress_grant = "another".to_owned()
    })
    .await;
    assert!(
        log.contains("502 Bad Gateway") && log.contains("401 Unauthorized: the grant is malformed"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_egress_url_takes_no_slot() {
    let (world, mut proxy) = (World::start(1).await, Proxy::start().await);
    proxy.url = "ftp://proxy".to_owned();
    let opened = world.try_open(1, RunFence::new(1, 5, 1), |spec| {
        spec.egress_url = proxy.url.clone()
    });
    assert_eq!(opened.await.err().unwrap().code(), Code::InvalidArgument);
    world.open(2).await;
}
