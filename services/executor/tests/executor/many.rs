//! What a process of its own keeps after many commands.

use std::{
    fs,
    process::{Child, Command},
};

use super::*;

const COMMANDS: u32 = 1000;

/// Killed and reaped when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Descriptors and mounts of the process.
fn held(process: &Process) -> (usize, usize) {
    let folder = PathBuf::from(format!("/proc/{}", process.0.id()));
    let mounts = fs::read_to_string(folder.join("mountinfo")).unwrap();
    (
        fs::read_dir(folder.join("fd")).unwrap().count(),
        mounts.lines().count(),
    )
}

/// Its children, zombies among them.
fn children(process: &Process) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.0.id())).unwrap();
    let of_task = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
    tasks
        .map(|task| of_task(task.unwrap()).split_whitespace().count())
        .sum()
}

async fn settles(what: &str, holds: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A process with the settings of this world's executor, in which the client reaches it.
async fn start() -> (World, Process) {
    let mut keys = String::new();
    let mut world = World::start_as(1, |_, settings| {
        let lines = settings
            .grant_keys
            .iter()
            .map(|(id, key)| format!("{id:?} = {key:?}\n"));
        keys = lines.collect();
    })
    .await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let (file, data) = (
        world.folder.path().join("own.toml"),
        world.folder.path().join("own"),
    );
    let text = format!(
        "[executor]\nlisten = \"{address}\"\ndata_dir = {data:?}\nslots = 1\ndisk_floor_mib = 0\nlauncher = {:?}\n\
         [executor.grant_keys]\n{keys}[telemetry]\nlog_filter = \"error\"\n",
        env!("CARGO_BIN_EXE_launcher")
    );
    fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_executor"));
    let process = Process(command.arg("--config").arg(file).spawn().unwrap());
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    world.client = loop {
        match ExecutorServiceClient::connect(format!("http://{address}")).await {
            Ok(client) => break client,
            Err(error) => assert!(tokio::time::Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    (world, process)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_commands_leave_no_descriptor_mount_or_process_and_one_launcher_waits() {
    let (world, process) = start().await;
    let session = world.open(1).await;
    let run = async |number: u32| {
        let input = json!({ "command": "sleep 60 & echo done" });
        assert!(
            session
                .ok(&number.to_string(), "run_command", input)
                .await
                .content
                .contains("done")
        );
    };
    for number in 0..20 {
        run(number).await;
    }
    settles("one launcher waits", || children(&process) == 1).await;
    let before = held(&process);
    for number in 20..COMMANDS {
        run(number).await;
    }
    settles("one launcher waits after all of them", || children(&process) == 1).await;
    settles("descriptors and mounts are as before", || {
        held(&process) == before
    })
    .await;
    session.close().await;
    settles("the launcher goes with its workspace", || children(&process) == 0).await;
    println!("| 34 a thousand commands: no descriptor, mount, process | any | held |");
}
