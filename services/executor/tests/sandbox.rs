//! Checks of the sandbox, one test each, at every level that this machine reaches.
//!
//! Attempts to escape touch only files that the test planted. With `--nocapture` each check prints a table
//! row: check, level, outcome.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test panics on what it does not expect, and the table is this test's result"
)]

#[path = "sandbox/devices.rs"]
mod devices;
#[path = "sandbox/floor.rs"]
mod floor;
#[path = "sandbox/limits.rs"]
mod limits;
#[path = "sandbox/network.rs"]
mod network;
#[path = "sandbox/places.rs"]
mod places;

use std::{
    fs,
    io::Write,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

/// Secret that must not appear in any output.
const CANARY: &str = "canary-7f3a91c2";

/// Combination of available mechanisms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Landlock, seccomp and namespaces.
    Full,
    /// Without namespaces, as in a restricted pod.
    Pod,
    /// Without namespaces, with a runner under another user.
    Runner,
    /// Without Landlock, with namespaces and seccomp.
    Mounts,
    /// With an old Landlock that covers only files, without namespaces.
    Files,
    /// Without any mechanism: limits and a clean environment only.
    Bare,
}

/// Guarantees on which a check depends.
#[derive(Clone, Copy)]
enum Needs {
    /// Limits and a clean environment: every level.
    Limits,
    /// Confined file access and the deny list: also L0, if the kernel supports one of them.
    Files,
    /// Isolation from other processes too: L1 and up, and L0 with namespaces.
    Processes,
    /// All guarantees of a level: L1 and up.
    Level,
}

impl Needs {
    fn are_met(self, level: Level) -> bool {
        let is_old = match self {
            Self::Limits => return true,
            Self::Files => level == Level::Mounts || level == Level::Files,
            Self::Processes => level == Level::Mounts,
            Self::Level => false,
        };
        is_old || matches!(level, Level::Full | Level::Pod | Level::Runner)
    }
}

/// Numeric id of the runner's user. Like the next one, it owns nothing on any machine.
const RUNNERS_USER: u32 = 65_534;
/// Numeric id of the user of the runner's executor, which has no access to other users' files.
const EXECUTORS_USER: u32 = 65_532;

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Full => "L1 with namespaces",
            Self::Pod => "L1",
            Self::Runner => "L2",
            Self::Mounts => "L0 with namespaces",
            Self::Files => "L0, Landlock ABI 2",
            Self::Bare => "L0, limits alone",
        }
    }

    fn has_namespaces(self) -> bool {
        matches!(self, Self::Full | Self::Mounts)
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Full => &[],
            Self::Pod | Self::Runner => &["--without", "namespaces"],
            Self::Mounts => &["--without", "landlock"],
            Self::Files => &["--without", "namespaces", "--landlock-abi", "2"],
            Self::Bare => &[
                "--without",
                "namespaces",
                "--without",
                "landlock",
                "--without",
                "seccomp",
            ],
        }
    }
}

/// A working folder, an invisible folder, and a process of the same user as a target of attacks.
struct World {
    folder: TempDir,
    victim: Child,
    runner: OnceLock<Child>,
}

impl Drop for World {
    fn drop(&mut self) {
        for child in [Some(&mut self.victim), self.runner.get_mut()]
            .into_iter()
            .flatten()
        {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Copies a program by another process. A file that this process writes would stay open in children that
/// other threads start meanwhile, and could not be executed.
fn copy_program(from: &str, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["work", "other", "tmp", "home/.ssh"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("other/file"), CANARY).unwrap();
        fs::write(folder.path().join("home/.ssh/id"), CANARY).unwrap();
        let victim = Command::new("sleep")
            .arg("600")
            .env("TOKEN", CANARY)
            .spawn()
            .unwrap();
        Self {
            folder,
            victim,
            runner: OnceLock::new(),
        }
    }

    /// Returns the socket of a runner under another user, started on first use.
    fn runner(&self) -> PathBuf {
        let socket = self.path("runner/socket");
        self.runner.get_or_init(|| {
            let folder = self.path("runner");
            fs::create_dir(&folder).unwrap();
            for path in [self.folder.path(), &self.path("work"), &self.path("tmp"), &folder] {
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            for (path, user) in [
                (self.path("work"), RUNNERS_USER),
                (folder.clone(), RUNNERS_USER),
                (self.path("tmp"), executors_user()),
            ] {
                std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
            }
            let program = self.path("launcher");
            copy_program(env!("CARGO_BIN_EXE_launcher"), &program);
            let mut command = Command::new(program);
            let served = executors_user().to_string();
            command
                .arg("runner")
                .args([&socket, &folder.join("work")])
                .arg(served);
            command.uid(RUNNERS_USER).gid(RUNNERS_USER).spawn().unwrap()
        });
        let deadline = Instant::now() + Duration::from_secs(60);
        while UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < deadline, "the runner does not start");
            std::thread::yield_now();
        }
        socket
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, task: &str, level: Level) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_executor"));
        command
            .arg(task)
            .args(["--launcher", env!("CARGO_BIN_EXE_launcher")])
            .args(level.arguments());
        if level == Level::Runner {
            command.arg("--runner").arg(self.runner());
            command.uid(executors_user()).gid(executors_user());
        }
        command
            .args(list_unused_toolchains())
            .env("HOME", self.path("home"))
            .env("TOKEN", CANARY);
        // A killed executor leaves its scratch folder behind, so that folder must be inside the world.
        command.env("TMPDIR", self.path("tmp"));
        let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
        let rustup = rustup.or_else(|| Some(std::env::home_dir()?.join(".rustup")));
        command.envs(rustup.map(|folder| ("RUSTUP_HOME", folder)));
        if task != "doctor" {
            command.arg("--dir").arg(self.path("work"));
        }
        command.stdin(Stdio::null());
        command
    }

    fn exec(&self, level: Level, options: &[&str], program: &[&str]) -> (i32, String) {
        let mut command = self.command("exec", level);
        read_safe_output(command.args(options).arg("--").args(program).output().unwrap())
    }

    fn shell(&self, level: Level, script: &str) -> String {
        let (code, text) = self.exec(level, &[], &["bash", "-c", script]);
        assert_eq!(code, 0, "{}: {text}", level.name());
        text
    }

    fn tool(&self, name: &str, input: &Value) -> (i32, String) {
        self.tool_at(Level::Full, name, input)
    }

    fn tool_at(&self, level: Level, name: &str, input: &Value) -> (i32, String) {
        let mut command = self.command("tool", level);
        read_safe_output(command.args([name, &input.to_string()]).output().unwrap())
    }

    /// Runs attempts in Python inside the sandbox. Returns the name of each, whether it was allowed, and a
    /// detail.
    fn attempts(&self, level: Level, script: &str) -> Vec<(String, bool, String)> {
        let file = self.path("work/attempts.py");
        let values = format!(
            "VICTIM = {}\nOTHER = {:?}\n",
            self.victim.id(),
            self.path("other")
        );
        fs::write(&file, [PRELUDE, &values, script].concat()).unwrap();
        let (code, text) = self.exec(level, &[], &["python3", "attempts.py"]);
        assert_eq!(code, 0, "{text}");
        let parse = |line: &str| {
            let mut parts = line.splitn(3, ' ');
            let name = parts.next()?.to_owned();
            let allowed = parts.next()? == "allowed";
            Some((name, allowed, parts.next().unwrap_or_default().to_owned()))
        };
        let found: Vec<_> = text.lines().filter_map(parse).collect();
        assert!(!found.is_empty(), "{text}");
        found
    }

    /// Asserts that every attempt is refused.
    fn all_denied(&self, level: Level, script: &str) {
        for (name, allowed, detail) in self.attempts(level, script) {
            assert!(!allowed, "{}: {name} was allowed: {detail}", level.name());
        }
    }

    fn victim_is_well(&mut self) {
        assert!(self.victim.try_wait().unwrap().is_none(), "the victim died");
    }
}

/// Returns the toolchain folders of the home folder that this test does not use.
fn list_unused_toolchains() -> Vec<std::ffi::OsString> {
    let home = std::env::home_dir().unwrap();
    let folders = [".rustup", ".pyenv", ".nvm"].map(|name| home.join(name));
    let there = folders.into_iter().filter(|folder| folder.is_dir());
    there
        .flat_map(|folder| ["--expose".into(), folder.into()])
        .collect()
}

/// Returns root's id where another user cannot start the built programs.
fn executors_user() -> u32 {
    let mut look = Command::new("test");
    look.arg("-x")
        .arg(env!("CARGO_BIN_EXE_executor"))
        .current_dir("/");
    let can = look.uid(EXECUTORS_USER).gid(EXECUTORS_USER).status();
    if can.is_ok_and(|status| status.success()) {
        EXECUTORS_USER
    } else {
        0
    }
}

/// Asserts that the output does not contain the secret.
fn read_safe_output(output: Output) -> (i32, String) {
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains(CANARY), "the canary came out: {text}");
    (output.status.code().unwrap_or(-1), text)
}

fn print_result_row(check: &str, level: &str, outcome: &str) {
    println!("| {check} | {level} | {outcome} |");
}

/// Runs a check at each level that this machine reaches and that has its guarantees, and prints its rows.
fn at_each_level(check: &str, needs: Needs, run: impl Fn(&mut World, Level)) {
    for level in list_reached_levels(needs) {
        run(&mut World::new(), level);
        print_result_row(check, level.name(), "held");
    }
}

/// Returns the levels that this machine reaches.
///
/// # Panics
/// Panics below `JOURNEYMAN_MIN_TEST_LEVEL` (L1 by default): otherwise checks that run nowhere would all
/// pass.
fn list_reached_levels(needs: Needs) -> Vec<Level> {
    static REACHED: OnceLock<Vec<Level>> = OnceLock::new();
    let reached = REACHED.get_or_init(|| {
        let all = [
            Level::Full,
            Level::Pod,
            Level::Runner,
            Level::Mounts,
            Level::Files,
            Level::Bare,
        ];
        let reached: Vec<Level> = all.into_iter().filter(|level| is_reached(*level)).collect();
        let wanted = std::env::var_os("JOURNEYMAN_MIN_TEST_LEVEL").unwrap_or_else(|| "L1".into());
        let wanted = wanted.to_string_lossy();
        let is_enough = |level: &Level| level.name().split([' ', ',']).next() >= Some(&*wanted);
        assert!(
            reached.iter().any(is_enough),
            "JOURNEYMAN_MIN_TEST_LEVEL: no sandbox of level {wanted} or better works here"
        );
        reached
    });
    reached
        .iter()
        .copied()
        .filter(|level| needs.are_met(*level))
        .collect()
}

fn is_reached(level: Level) -> bool {
    match level {
        Level::Full => run_doctor_command(level)["level"] == "L1" && has_namespaces(),
        Level::Pod => run_doctor_command(level)["level"] == "L1",
        // Only root can start a process under another user.
        Level::Runner => {
            fs::metadata("/proc/self").unwrap().uid() == 0 && run_doctor_command(level)["level"] == "L2"
        }
        Level::Mounts => has_namespaces(),
        Level::Files => run_doctor_command(level)["probe"]["offers"]["landlock"] == 2,
        Level::Bare => true,
    }
}

fn run_doctor_command(level: Level) -> Value {
    let world = World::new();
    let output = world.command("doctor", level).arg("--json").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn has_namespaces() -> bool {
    run_doctor_command(Level::Full)["probe"]["offers"]["namespaces"] == true
}

const PRELUDE: &str = r#"
import ctypes, errno, os, platform, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
X = platform.machine() == "x86_64"
NR = dict(unshare=272 if X else 97, mount=165 if X else 40, setns=308 if X else 268, bpf=321 if X else 280,
          perf=298 if X else 241, keyctl=250 if X else 219, userfaultfd=323 if X else 282, io_uring=425,
          vm_readv=310 if X else 270, ptrace=101 if X else 117, prlimit=302 if X else 261,
          pidfd_open=434, pidfd_getfd=438, pidfd_signal=424, setpriority=141 if X else 140,
          sched=144 if X else 119, clone=56 if X else 220, ioprio=251 if X else 30, clone3=435, fsopen=430, open_tree=428)
def call(name, *args):
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = libc.syscall(ctypes.c_long(NR[name]), *args)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
def attempt(name, work):
    try:
        print(name, "allowed", repr(work())[:80], flush=True)
    except (OSError, RuntimeError) as error:
        print(name, "denied", errno.errorcode.get(getattr(error, "errno", 0), error), flush=True)
def read(path):
    with open(path, "rb") as file:
        data = file.read(64)
    if not data:
        raise OSError(errno.ENODATA, "covered")
    return len(data)
def write(path):
    with open(path, "w") as file:
        return file.write("x")
"#;

#[test]
fn check_01_doctor_fails_below_required_level() {
    let world = World::new();
    for level in list_reached_levels(Needs::Level) {
        let report = run_doctor_command(level);
        assert!(report["probe"]["landlock_abi"].as_u64().unwrap() >= 6, "{report}");
        assert_eq!(report["probe"]["offers"]["namespaces"], level == Level::Full);
        assert!(report["probe"]["uid"].is_u64() && report["limits"]["memory_mib"].is_u64());
        let second = if level == Level::Runner { 0 } else { 3 };
        for (floor, code) in [("L0", 0), ("L1", 0), ("L2", second), ("L3", 3)] {
            let status = world
                .command("doctor", level)
                .args(["--min-level", floor])
                .output()
                .unwrap()
                .status;
            assert_eq!(status.code(), Some(code), "{floor}");
        }
        for mechanism in ["seccomp", "landlock"] {
            let mut command = world.command("doctor", level);
            command.args(["--without", mechanism, "--min-level", "L1"]);
            assert_eq!(
                command.output().unwrap().status.code(),
                Some(3),
                "without {mechanism}"
            );
        }
        print_result_row(
            "1 doctor tells the level, below the floor it fails",
            level.name(),
            "held",
        );
    }
}

#[test]
fn check_28_cgroup_ends_with_command() {
    for level in list_reached_levels(Needs::Level) {
        let group = run_doctor_command(level)["probe"]["cgroup"].clone();
        let Some(folder) = group["folder"].as_str() else {
            print_result_row("28 control group", level.name(), "none can be written here");
            continue;
        };
        let world = World::new();
        let leave = format!(
            "grep ^0:: /proc/self/cgroup; setsid sleep 600 & for f in {folder} {folder}/*/; do \
             echo $$ > $f/cgroup.procs; done; grep ^0:: /proc/self/cgroup"
        );
        let text = world.shell(level, &leave);
        let groups: Vec<_> = text.lines().filter(|line| line.starts_with("0::")).collect();
        assert!(groups.len() == 2 && groups[0] == groups[1], "{text}");
        let name = groups[0].rsplit('/').next().unwrap();
        assert!(name.starts_with("journeyman-"), "{text}");
        let deadline = Instant::now() + Duration::from_secs(60);
        while Path::new(folder).join(name).exists() {
            assert!(Instant::now() < deadline, "the group stays");
            std::thread::yield_now();
        }
        let limits = [("memory", "memory"), ("processes", "processes")];
        let limits = limits.map(|(key, name)| if group[key] == true { name } else { "" });
        print_result_row(
            "28 control group",
            level.name(),
            &format!("held; it limits: {}", limits.join(" ").trim()),
        );
    }
}

#[test]
fn check_02_reported_level_is_actual() {
    at_each_level("2 reported is real", Needs::Level, |world, level| {
        let text = world.shell(
            level,
            "grep -E 'NoNewPrivs|^Seccomp:|CapEff' /proc/self/status; readlink /proc/self/ns/pid",
        );
        assert!(
            text.contains("NoNewPrivs:\t1") && text.contains("Seccomp:\t2"),
            "{text}"
        );
        assert!(text.contains("CapEff:\t0000000000000000"), "{text}");
        let ours = fs::read_link("/proc/self/ns/pid").unwrap();
        assert_eq!(
            !text.contains(ours.to_str().unwrap()),
            level.has_namespaces(),
            "{text}"
        );
    });
}

#[test]
fn checks_03_to_06_processes_are_isolated() {
    at_each_level(
        "3-6 read, signal, trace, limit another process",
        Needs::Processes,
        |world, level| {
            world.all_denied(
                level,
                r#"
for name in ("environ", "maps", "mem", "root/etc/hostname", "cwd/x"):
    attempt("read_" + name, lambda: read(f"/proc/{VICTIM}/{name}"))
attempt("kill", lambda: os.kill(VICTIM, 15))
def by_pidfd():
    fd = call("pidfd_open", VICTIM, 0)
    return call("pidfd_signal", fd, 15, None, 0)
attempt("pidfd_signal", by_pidfd)
attempt("pidfd_getfd", lambda: call("pidfd_getfd", call("pidfd_open", VICTIM, 0), 1, 0))
attempt("ptrace_attach", lambda: call("ptrace", 16, VICTIM, None, None))
attempt("ptrace_seize", lambda: call("ptrace", 0x4206, VICTIM, None, None))
attempt("vm_readv", lambda: call("vm_readv", VICTIM, None, 0, None, 0, 0))
attempt("prlimit", lambda: call("prlimit", VICTIM, 7, (ctypes.c_uint64 * 2)(3, 3), None))
attempt("setpriority", lambda: call("setpriority", 0, VICTIM, 19))
attempt("ioprio", lambda: call("ioprio", 1, VICTIM, 0))
# Of its group and its user; as it is already, should it be allowed.
for which in (1, 2):
    attempt(f"setpriority_{which}", lambda: call("setpriority", which, 0, 0))
    attempt(f"ioprio_{which}", lambda: call("ioprio", which + 1, 0, 0))
attempt("affinity", lambda: os.sched_setaffinity(VICTIM, os.sched_getaffinity(VICTIM)))
attempt("sched", lambda: call("sched", VICTIM, 5, (ctypes.c_int * 1)(0)))
"#,
            );
            world.victim_is_well();
        },
    );
}

#[test]
fn checks_07_08_arguments_and_descriptors_clean() {
    at_each_level("7-8 arguments and descriptors", Needs::Files, |world, level| {
        let text = world.shell(
            level,
            "cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' ' '; env",
        );
        assert!(!text.contains("TOKEN="), "{text}");
        let mut inner = world.command("exec", level);
        inner.args(["--", "bash", "-c", "ls /proc/self/fd"]);
        let mut words = vec![inner.get_program().to_owned()];
        words.extend(inner.get_args().map(ToOwned::to_owned));
        let mut outer = Command::new("bash");
        outer
            .args(["-c", "exec 9</etc/hostname; exec \"$@\"", "-"])
            .args(words)
            .env("HOME", world.path("home"));
        if level == Level::Runner {
            outer.uid(executors_user()).gid(executors_user());
        }
        let (_, text) = read_safe_output(outer.stdin(Stdio::null()).output().unwrap());
        // The third descriptor belongs to the listing itself.
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    });
}

const OTHER: &str = r#"
attempt("read", lambda: read(OTHER + "/file"))
attempt("list", lambda: os.listdir(OTHER)[0])
attempt("write", lambda: write(OTHER + "/file"))
attempt("create", lambda: write(OTHER + "/new"))
attempt("unlink", lambda: os.unlink(OTHER + "/file"))
attempt("rename", lambda: os.rename(OTHER + "/file", "taken"))
attempt("link", lambda: os.link(OTHER + "/file", "linked"))
attempt("home", lambda: read(os.path.dirname(OTHER) + "/home/.ssh/id"))
attempt("system", lambda: read("/etc/shadow"))
attempt("etc", lambda: write("/etc/journeyman-test"))
"#;

#[test]
fn check_09_workspaces_and_credentials_are_unreachable() {
    at_each_level(
        "9 another workspace, credentials",
        Needs::Files,
        |world, level| {
            world.all_denied(level, OTHER);
            assert_eq!(fs::read_to_string(world.path("other/file")).unwrap(), CANARY);
        },
    );
}

#[test]
fn check_10_other_workspace_metadata_is_protected() {
    let script = "attempt('chmod', lambda: os.chmod(OTHER + '/file', 0o777))\nattempt('utime', lambda: \
                  os.utime(OTHER + '/file'))\nattempt('stat', lambda: os.stat(OTHER + '/file').st_size)\n";
    for level in list_reached_levels(Needs::Files) {
        let world = World::new();
        let open: Vec<String> = world
            .attempts(level, script)
            .into_iter()
            .filter(|(_, allowed, _)| *allowed)
            .map(|(name, ..)| name)
            .collect();
        match level {
            Level::Full | Level::Mounts => assert!(open.is_empty(), "{open:?}"),
            // The metadata of another user's files is readable where their folders permit it.
            Level::Runner => assert_eq!(open, ["stat"]),
            Level::Pod | Level::Files | Level::Bare => {}
        }
        let outcome = if open.is_empty() {
            "held".to_owned()
        } else {
            format!("open, documented: {}", open.join(", "))
        };
        print_result_row("10 modes and times of another workspace", level.name(), &outcome);
    }
}

#[test]
fn checks_11_to_14_file_tools_contained() {
    let world = World::new();
    let work = world.path("work");
    std::os::unix::fs::symlink(world.path("other"), work.join("out")).unwrap();
    std::os::unix::fs::symlink("/proc/self/root", work.join("magic")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", work.join("zero")).unwrap();
    let _socket = UnixListener::bind(work.join("socket")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(work.join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    fs::File::create(work.join("sparse"))
        .unwrap()
        .set_len(10 << 30)
        .unwrap();
    fs::create_dir(work.join("folder")).unwrap();
    let long = "a/".repeat(2500);
    let started = Instant::now();
    for path in [
        "out/file",
        "magic/etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/../other/file",
        "zero",
        "socket",
        "pipe",
        "sparse",
        "folder",
        "../other/file",
        "/etc/passwd",
        "a\0b",
        &long,
        ".git/config",
        "\u{fffd}",
    ] {
        for (tool, input) in [
            ("read_file", json!({ "path": path })),
            (
                "edit_file",
                json!({ "path": path, "edits": "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE" }),
            ),
        ] {
            let (code, text) = world.tool(tool, &input);
            assert_eq!(code, 1, "{tool} {path:?}: {text}");
        }
    }
    for path in ["out/file", "out/new", "magic/tmp/x", "../x", "pipe", "folder"] {
        let (code, text) = world.tool("write_file", &json!({ "path": path, "content": "x" }));
        assert_eq!(code, 1, "{path}: {text}");
    }
    assert!(started.elapsed() < Duration::from_secs(300));
    assert!(!world.path("other/new").exists());
    print_result_row(
        "11-14 links, magic links, pipes, devices, strange paths in file tools",
        "any",
        "held",
    );
}

#[test]
fn check_19_loopback_server_works_inside() {
    at_each_level("19 loopback inside", Needs::Limits, |world, level| {
        let text = world.shell(level, "python3 -c 'import socket,threading\ns=socket.create_server((\"127.0.0.1\",0))\nthreading.Thread(target=lambda: s.accept()[0].sendall(b\"hello\")).start()\nprint(socket.create_connection(s.getsockname()).recv(9))'");
        assert!(text.contains("hello"), "{text}");
    });
}

#[test]
fn check_20_dangerous_syscalls_are_denied() {
    at_each_level(
        "20 io_uring, bpf, perf, keyctl, userfaultfd, mount, namespaces",
        Needs::Files,
        |world, level| {
            world.all_denied(level, r#"
for name in ("io_uring", "bpf", "perf", "keyctl", "userfaultfd", "mount", "setns", "clone3", "fsopen", "open_tree"):
    attempt(name, lambda: call(name, 0, 0, 0, 0, 0))
# Mounts, groups, names, IPC, users, processes, network.
for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
    attempt(f"unshare_{flag:x}", lambda: call("unshare", flag))
    def split():
        child = call("clone", flag | 17, 0, 0, 0, 0)
        if child == 0:
            os._exit(0)
        return os.waitpid(child, 0)
    attempt(f"clone_{flag:x}", split)
"#);
        },
    );
}

#[test]
fn checks_21_to_23_build_calls_work() {
    at_each_level(
        "21-23 multiprocessing, git, private folders, rename",
        Needs::Limits,
        |world, level| {
            let text = world.shell(level, "set -e; python3 -c 'import multiprocessing as m; m.Lock(); print(m.Pool(2).map(abs, [-1, 2]))'
git status --short; git log --format=%s; git diff
echo x > $HOME/x; echo y > $TMPDIR/y; python3 -c 'import os, shutil; shutil.move(os.environ[\"TMPDIR\"] + \"/y\", \"moved\")'; cat moved
mkfifo p; (echo through > p &) ; cat p; ls / > /dev/null || true
for tool in node go java; do command -v $tool > /dev/null && $tool --version > /dev/null 2>&1 && echo $tool; done; true");
            assert!(
                text.contains("[1, 2]") && text.contains("As it was") && text.contains("through"),
                "{text}"
            );
            assert_eq!(fs::read_to_string(world.path("work/moved")).unwrap(), "y\n");
        },
    );
}

#[test]
fn check_21_installed_toolchains_work_inside() {
    let programs = [
        (
            "node",
            "n.js",
            "const c = require('cluster');\nif (c.isPrimary) c.fork().on('exit', code => console.log('done', code));\nelse process.exit(0);\n",
            "node n.js",
        ),
        (
            "java",
            "A.java",
            "class A { public static void main(String[] a) { System.out.println(\"done \" + 0); } }\n",
            "java A.java",
        ),
        (
            "cargo",
            "src/lib.rs",
            "#[test]\nfn t() {}\n",
            "printf '[package]\\nname = \"p\"\\n' > Cargo.toml; cargo test -q --offline && echo done 0",
        ),
        (
            "python3",
            "p.py",
            "import multiprocessing as m\nif __name__ == '__main__':\n    for way in ('fork', 'spawn', 'forkserver'):\n        \
             with m.get_context(way).Pool(2) as pool:\n            assert pool.map(abs, [-1, 2]) == [1, 2]\n    print('done 0')\n",
            "python3 p.py",
        ),
        (
            "go",
            "a_test.go",
            "package a\nimport \"testing\"\nfunc TestA(t *testing.T) {}\n",
            "go mod init a; go test ./... && echo done 0",
        ),
    ];
    for level in list_reached_levels(Needs::Level) {
        let world = World::new();
        let (mut worked, mut missing) = (Vec::new(), Vec::new());
        for (name, file, text, script) in programs {
            let mut look = Command::new(name);
            look.arg("--version").current_dir("/");
            if level == Level::Runner {
                look.uid(RUNNERS_USER).gid(RUNNERS_USER);
            }
            if !look.output().is_ok_and(|output| output.status.success()) {
                missing.push(name);
                continue;
            }
            if !world.path("work/src").exists() {
                world.shell(level, "mkdir src");
            }
            fs::write(world.path("work").join(file), text).unwrap();
            let answer = world.shell(level, script);
            assert!(answer.contains("done 0"), "{name}: {answer}");
            worked.push(name);
        }
        let outcome = format!("held: {}; not here: {}", worked.join(", "), missing.join(", "));
        print_result_row("21 toolchains", level.name(), &outcome);
    }
}

#[test]
fn check_24_a_fork_bomb_is_contained() {
    at_each_level("24 fork bomb", Needs::Limits, |world, level| {
        let started = Instant::now();
        let bomb = "import os, time\nfor i in range(3000):\n    try:\n        if os.fork() == 0:\n            time.sleep(600); os._exit(0)\n    except OSError:\n        print('refused'); raise SystemExit(7)\ntime.sleep(600)\n";
        let (code, text) = world.exec(level, &["--processes", "600"], &["python3", "-c", bomb]);
        assert!(
            code != 0 && (text.contains("refused") || text.contains("more than 600 processes")),
            "{code} {text}"
        );
        assert!(started.elapsed() < Duration::from_secs(300));
        world.victim_is_well();
    });
}

#[test]
fn check_25_memory_limit_ends_command() {
    at_each_level("25 memory", Needs::Limits, |world, level| {
        let hog = "import time\nheld = []\nfor i in range(40):\n    held.append(b'x' * (32 << 20)); time.sleep(0.02)\ntime.sleep(30)\n";
        let (code, text) = world.exec(level, &["--memory-mib", "200"], &["python3", "-c", hog]);
        assert!(
            code == 137 && text.contains("more than 200 MiB of memory"),
            "{code} {text}"
        );
    });
}

#[test]
fn check_26_disk_limit_ends_command() {
    at_each_level("26 disk", Needs::Limits, |world, level| {
        let filler = "import time\nfile = open('big', 'wb')\nfor i in range(200):\n    file.write(b'x' * (1 << 20)); file.flush(); time.sleep(0.05)\ntime.sleep(30)\n";
        let (code, text) = world.exec(level, &["--disk-mib", "16"], &["python3", "-c", filler]);
        assert!(
            code == 137 && text.contains("more than 16 MiB of files"),
            "{code} {text}"
        );
    });
}

#[test]
fn checks_27_31_no_core_input_terminal() {
    at_each_level(
        "27, 31 core files, input, terminal",
        Needs::Files,
        |world, level| {
            let text = world.shell(level, "ulimit -c; cat | wc -c; (exec 3</dev/tty) 2>/dev/null && echo terminal; python3 -c 'import fcntl; fcntl.ioctl(1, 0x5412, b\"x\")' 2>&1 | tail -1");
            assert!(
                text.starts_with("0\n0\n") && !text.contains("terminal\n") && text.contains("not permitted"),
                "{text}"
            );
        },
    );
}

#[test]
fn checks_28_to_30_no_process_survives() {
    at_each_level(
        "28-30 time limit, daemons, a killed executor",
        Needs::Limits,
        |world, level| {
            let marker = format!("61{}", std::process::id() * 10 + level as u32);
            let daemon = format!("(setsid setsid sleep {marker} > /dev/null 2>&1 &) ; echo started; ");
            world.shell(level, &daemon);
            wait_until_gone(&marker, "the command ended");
            let script = daemon.clone() + "sleep 60";
            let (_, text) = world.exec(level, &["--timeout-s", "1"], &["bash", "-c", &script]);
            assert!(text.contains("killed after 1 s"), "{text}");
            wait_until_gone(&marker, "the time was up");
            let mut command = world.command("exec", level);
            let mut child = command
                .args(["--", "bash", "-c", &script])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut first = [0; 7];
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            wait_until_gone(&marker, "the executor was killed");
        },
    );
}

/// Waits until no process has the marker among its arguments. The processes with one would run for days.
fn wait_until_gone(marker: &str, after: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let lives = || {
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        entries.into_iter().any(|entry| {
            let text = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            text.starts_with(b"sleep\0") && String::from_utf8_lossy(&text).contains(marker)
        })
    };
    while lives() {
        assert!(Instant::now() < deadline, "alive after {after}");
        std::thread::yield_now();
    }
}

#[test]
fn check_32_binary_output_is_capped() {
    let world = World::new();
    let (code, text) = world.tool(
        "run_command",
        &json!({ "command": "yes | head -c 50000000; printf '\\xff\\x1b[31m'" }),
    );
    assert!(
        code == 0 && text.len() < 80 * 1024 && text.contains("bytes left out"),
        "{code} {}",
        text.len()
    );
    print_result_row("32 output cap, invalid UTF-8", "any", "held");
}

#[test]
fn check_34_many_commands_leave_nothing_behind() {
    at_each_level("34 nothing accumulates", Needs::Limits, |world, level| {
        let count = |path: &str| fs::read_to_string(path).unwrap().lines().count();
        let before = count("/proc/self/mountinfo");
        for _ in 0..20 {
            world.shell(level, "true");
        }
        assert_eq!(count("/proc/self/mountinfo"), before);
        assert_eq!(fs::read_dir(world.path("work")).unwrap().count(), 0);
    });
}

#[test]
fn checks_35_to_41_repository_git_inert() {
    for shape in ["folder", "file", "link"] {
        let world = World::new();
        let work = world.path("work");
        let sentinel = world.path("sentinel");
        let run = format!("touch {}", sentinel.display());
        if shape == "folder" {
            plant_git(&work, &run);
        } else if shape == "file" {
            fs::write(
                work.join(".git"),
                format!("gitdir: {}\n", world.path("other").display()),
            )
            .unwrap();
        } else {
            std::os::unix::fs::symlink(world.path("other"), work.join(".git")).unwrap();
        }
        fs::write(
            work.join(".gitattributes"),
            "* filter=evil diff=evil merge=evil\n",
        )
        .unwrap();
        fs::write(
            work.join(".gitmodules"),
            "[submodule \"x\\r\"]\n\tpath = sub\n\turl = ../other\n\tupdate = !touch x\n",
        )
        .unwrap();
        std::os::unix::fs::symlink(world.path("other"), work.join("out")).unwrap();
        fs::write(work.join("a.txt"), "a\n").unwrap();
        for (tool, input) in [
            ("diff", json!({})),
            ("write_file", json!({ "path": "b.txt", "content": "b\n" })),
            ("search_content", json!({ "pattern": "canary|a" })),
            ("search_files", json!({ "pattern": "**/*" })),
            ("list_directory", json!({})),
            ("outline", json!({})),
            ("create_branch", json!({ "branch_name": "feat/x" })),
            (
                "run_command",
                json!({ "command": "git status; git diff; git log --stat" }),
            ),
        ] {
            let (code, text) = world.tool(tool, &input);
            assert_eq!(code, 0, "{shape} {tool}: {text}");
        }
        for (tool, input) in [("commit_changes", json!({ "message": "x" })), ("undo", json!({}))] {
            // Without a run there is no branch and no undo step, so a refusal is fine.
            world.tool(tool, &input);
        }
        assert!(
            !sentinel.exists(),
            "{shape}: something of the planted git folder ran"
        );
    }
    print_result_row(
        "35-39, 41 a planted .git: 31 settings, 13 hooks, filters, submodules",
        "any",
        "held",
    );
}

fn plant_git(work: &Path, run: &str) {
    let init = Command::new("git")
        .args(["init", "-q"])
        .arg(work)
        .status()
        .unwrap();
    assert!(init.success());
    let config = work.join(".git/config");
    for (section, keys) in [
        (
            "core",
            "fsmonitor sshCommand pager editor gitProxy askPass alternateRefsCommand",
        ),
        ("filter \"evil\"", "clean smudge process"),
        ("diff \"evil\"", "textconv command"),
        ("diff", "external"),
        ("merge \"evil\"", "driver"),
        ("gpg", "program"),
        ("gpg \"ssh\"", "program defaultKeyCommand"),
        ("credential", "helper"),
        ("sequence", "editor"),
        ("interactive", "diffFilter"),
        ("pager", "status diff log"),
        ("alias", "status diff log"),
        ("remote \"origin\"", "uploadpack receivepack vcs"),
        ("uploadpack", "packObjectsHook"),
        ("submodule \"x\"", "update"),
    ] {
        let lines = keys
            .split(' ')
            .map(|key| format!("\t{key} = !{run}\n\t{key} = {run}\n"));
        let text = format!("[{section}]\n{}", lines.collect::<String>());
        let mut file = fs::File::options().append(true).open(&config).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
    for hook in [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "pre-merge-commit",
        "pre-rebase",
        "post-checkout",
        "post-merge",
        "pre-push",
        "pre-auto-gc",
        "post-rewrite",
        "post-index-change",
        "reference-transaction",
    ] {
        let path = work.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{run}\n")).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    fs::create_dir_all(work.join(".git/objects/info")).unwrap();
    fs::write(work.join(".git/objects/info/alternates"), "/nonexistent\n").unwrap();
}

#[test]
fn runner_holds_files_for_one_user() {
    if !list_reached_levels(Needs::Level).contains(&Level::Runner) {
        print_result_row("L2 files at the runner", "L2", "not reachable here");
        return;
    }
    let world = World::new();
    let tool = |name: &str, input: Value| {
        let (code, text) = world.tool_at(Level::Runner, name, &input);
        assert_eq!(code, 0, "{name}: {text}");
        text
    };
    tool("write_file", json!({ "path": "src/a.txt", "content": "one\n" }));
    let file = world.path("work/src/a.txt");
    assert_eq!(fs::metadata(&file).unwrap().uid(), RUNNERS_USER);
    // The model can use folders and files that only their owner may enter and read.
    world.shell(
        Level::Runner,
        "umask 077; mkdir -p locked/in; echo deep > locked/in/b.txt; chmod 600 src/a.txt",
    );
    tool(
        "edit_file",
        json!({ "path": "src/a.txt", "edits": "<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE" }),
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    assert!(tool("read_file", json!({ "path": "locked/in/b.txt" })).contains("deep"));
    assert!(tool("search_content", json!({ "pattern": "deep" })).contains("locked/in/b.txt:1"));
    let mode = fs::metadata(world.path("work/locked/in")).unwrap().mode();
    assert_eq!(mode & 0o755, 0o755, "the executor can look into it");
    assert!(tool("list_directory", json!({ "path": "locked" })).contains("d in"));
    let out = world.path("work/out");
    std::os::unix::fs::symlink(world.path("other"), &out).unwrap();
    let (code, text) = world.tool_at(
        Level::Runner,
        "write_file",
        &json!({ "path": "out/new", "content": "x" }),
    );
    assert!(code == 1 && !world.path("other/new").exists(), "{text}");
    let (socket, hello) = (world.runner(), r#"{"version":1,"wants":"Probe"}"#);
    let ask = |user: u32| {
        let mut script = Command::new("python3");
        let text = format!(
            "import socket, struct\ns = socket.socket(socket.AF_UNIX); s.connect({socket:?})\nh = b'{hello}'\ntry:\n    \
             s.sendall(struct.pack('<I', len(h)) + h); print(len(s.recv(9)))\nexcept OSError:\n    print(0)"
        );
        let output = script.args(["-c", &text]).uid(user).gid(user).output().unwrap();
        read_safe_output(output).1.trim().to_owned()
    };
    assert_eq!(ask(executors_user()), "9");
    assert_eq!([ask(RUNNERS_USER), ask(1)], ["0", "0"]);
    print_result_row("L2 files at the runner, other users are refused", "L2", "held");
}

#[test]
fn check_04_broadcast_signal_stays_inside() {
    at_each_level("4 kill -1 inside", Needs::Processes, |world, level| {
        let (_, text) = world.exec(level, &[], &["bash", "-c", "kill -9 -1; echo still here"]);
        assert!(text.contains("still here"), "{text}");
        world.victim_is_well();
    });
}
