//! Servers whose owner is killed by a signal that it cannot handle.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a plain process watches another one, which prints the ids of its servers"
)]

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{NatsServer, RedisServer};

/// Variable that is set in the process of the owner.
const OWNER: &str = "JOURNEYMAN_TEST_OWNER";
/// Time limit for the servers to end, which only a failing test reaches.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// Name of the test that the owner runs.
const OWNER_TEST: &str = "killed_owner_tests::owner_of_both_servers_waits";

/// Starts both servers and waits to be killed. Without the variable it does nothing.
#[tokio::test]
async fn owner_of_both_servers_waits() {
    if std::env::var_os(OWNER).is_none() {
        return;
    }
    let (nats, redis) = (
        NatsServer::start().await.unwrap(),
        RedisServer::start().await.unwrap(),
    );
    println!("\npids {} {}", nats.pid(), redis.pid());
    std::future::pending::<()>().await;
}

#[test]
fn killed_owner_leaves_no_server_behind() {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", OWNER_TEST, "--nocapture"])
        .env(OWNER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let pids = lines.find_map(|line| Some(line.unwrap().strip_prefix("pids ")?.to_owned()));
    owner.kill().unwrap();
    owner.wait().unwrap();
    let pids = pids.expect("the owner started both servers");
    let deadline = Instant::now() + GONE_WITHIN;
    let is_alive = |pid: &str| {
        let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while pids.split(' ').any(is_alive) {
        assert!(Instant::now() < deadline, "{pids} still run");
        std::thread::sleep(Duration::from_millis(20));
    }
}
