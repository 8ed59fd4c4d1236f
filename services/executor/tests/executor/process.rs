//! Starts an executor in a separate process.

use std::{
    fs,
    os::unix::ffi::OsStringExt,
    path::Path,
    process::{Child, Command},
};

use super::*;

/// Child process that is killed and reaped when dropped.
pub(super) struct Process(pub(super) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a process with the settings of this world's executor and a separate folder `own`. `change` may add
/// lines to its section and change the command.
pub(super) async fn start_process(
    log_filter: &str,
    change: impl FnOnce(&Path, &mut String, &mut Command),
) -> (World, Process) {
    let mut keys = String::new();
    let mut world = World::start_as(1, |_, settings| {
        let lines = settings
            .grant_keys
            .iter()
            .map(|(id, key)| format!("{id:?} = {key:?}\n"));
        keys = lines.collect();
    })
    .await;
    let address = format!("127.0.0.1:{}", servers::free_port().unwrap());
    let folder = world.folder.path();
    let (file, data) = (folder.join("own.toml"), folder.join("own"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_executor"));
    let mut lines = String::new();
    change(folder, &mut lines, &mut command);
    let text = format!(
        "[executor]\nlisten = \"{address}\"\ndata_dir = {data:?}\ndisk_floor_mib = 0\nlauncher = {:?}\n{lines}\
         [executor.grant_keys]\n{keys}[telemetry]\nlog_filter = {log_filter:?}\n",
        env!("CARGO_BIN_EXE_launcher")
    );
    fs::write(&file, text).unwrap();
    let process = Process(command.arg("--config").arg(file).spawn().unwrap());
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    world.client = loop {
        match ExecutorServiceClient::connect(format!("http://{address}")).await {
            Ok(client) => break client,
            Err(error) => assert!(tokio::time::Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    (world, process)
}

#[test]
fn argument_without_utf8_ends_with_error() {
    let argument = std::ffi::OsString::from_vec(b"doctor\xff".to_vec());
    let mut command = Command::new(env!("CARGO_BIN_EXE_executor"));
    let ended = command.arg(argument).output().unwrap();
    assert_eq!(ended.status.code(), Some(64));
    assert_eq!(
        String::from_utf8(ended.stderr).unwrap(),
        "executor: the first argument is not UTF-8\n"
    );
}
