//! Tests of the runner as a separate process: its callers, and its end.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test panics on what it does not expect, and prints its rows of a table"
)]

use std::{
    fs,
    io::Read,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::Instant;

/// Runner that is killed with its whole PID namespace when dropped.
struct Runner {
    process: Child,
    folder: TempDir,
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Runner {
    /// Starts it as process 1 of new user and PID namespaces, as in a container. This test's user is 0 there.
    fn as_first_process() -> Self {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--pid", "--fork", "--kill-child"]);
        unshare.arg(env!("CARGO_BIN_EXE_launcher"));
        Self::start(unshare, 0)
    }

    fn start(mut command: Command, serves: u32) -> Self {
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (socket, files) = (folder.path().join("socket"), folder.path().join("files"));
        let process = command
            .arg("runner")
            .args([&socket, &files])
            .arg(serves.to_string())
            .stdin(Stdio::null())
            .stderr(fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let runner = Self { process, folder };
        let deadline = Instant::now() + Duration::from_secs(60);
        while UnixStream::connect(runner.socket()).is_err() {
            assert!(
                Instant::now() < deadline,
                "the runner does not start: {}",
                runner.log()
            );
            std::thread::yield_now();
        }
        runner
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Returns the process id of the listening process, the only child of `unshare`.
    fn first_process(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.process.id());
        fs::read_to_string(children).unwrap().trim().parse().unwrap()
    }

    fn exec(&self, work: &Path, script: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_executor"));
        command
            .args(["exec", "--runner"])
            .arg(self.socket())
            .args(["--without", "namespaces", "--dir"])
            .arg(work)
            .args(["--", "bash", "-c", script])
            .stdin(Stdio::null());
        command
    }
}

fn read_output_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn runner_serves_other_pid_namespace() {
    let runner = Runner::as_first_process();
    let work = TempDir::new().unwrap();
    let script = "echo it works; grep SigBlk /proc/self/status";
    let output = runner.exec(work.path(), script).output().unwrap();
    let text = read_output_text(&output);
    assert!(text.contains("it works"), "{text} {}", runner.log());
    assert!(
        text.contains("SigBlk:\t0000000000000000"),
        "commands can be asked to stop: {text}"
    );
}

#[test]
fn refused_runner_connection_is_logged() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("| 3 refusals of the runner are logged | L2 | not run: another user takes root |");
        return;
    }
    let runner = Runner::start(Command::new(env!("CARGO_BIN_EXE_launcher")), 12_345);
    let connect = format!(
        "import socket; socket.socket(socket.AF_UNIX).connect({:?})",
        runner.socket()
    );
    let mut other = Command::new("/usr/bin/python3");
    let connected = other.args(["-c", &connect]).uid(65_534).gid(65_534).status();
    assert!(connected.unwrap().success());
    let wanted = "refused a connection of user 65534: only user 12345 is served";
    let deadline = Instant::now() + Duration::from_secs(60);
    while !runner.log().contains(wanted) {
        assert!(Instant::now() < deadline, "{}", runner.log());
        std::thread::yield_now();
    }
}

#[test]
fn runner_as_init_stops_on_sigterm() {
    let mut runner = Runner::as_first_process();
    let work = TempDir::new().unwrap();
    let script = "trap '' TERM; echo started; setsid sleep 613 & sleep 613";
    let mut executor = runner
        .exec(work.path(), script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut started = [0; 7];
    executor
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut started)
        .unwrap();
    let asked = Instant::now();
    let signalled = Command::new("kill")
        .arg(runner.first_process().to_string())
        .status();
    assert!(signalled.unwrap().success());
    runner.process.wait().unwrap();
    let took = asked.elapsed();
    // Far below the ten minutes of the command, which ignores the signal.
    assert!(took < Duration::from_secs(60), "{took:?}: {}", runner.log());
    assert!(runner.log().contains("asked to stop"), "{}", runner.log());
    executor.wait().unwrap();
}
