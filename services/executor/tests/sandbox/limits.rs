//! Checks of memory and disk space that belong to no process, and of fork bombs.

use super::*;

/// Asserts that a command ends because it exceeds a limit.
fn is_killed_for(level: Level, options: &[&str], script: &str, reason: &str) {
    let world = World::new();
    let (code, text) = world.exec(level, options, &["python3", "-c", script]);
    assert!(
        code == 137 && text.contains(reason),
        "{}: {code} {text}",
        level.name()
    );
}

const MEMORY: &str = "more than 200 MiB of memory";

/// Returns a script that passes chunks of 8 MiB to `write` until it is stopped.
fn build_filler_script(opened: &str) -> String {
    format!(
        "import ctypes, mmap, os, time\n{opened}\nfor number in range(100):\n    write(number, b'x' * (8 << 20)); time.sleep(0.02)\ntime.sleep(60)\n"
    )
}

#[test]
fn check_25_unnamed_file_memory_counts() {
    at_each_level("25 memory: memfd", Needs::Limits, |_, level| {
        let script =
            build_filler_script("file = os.memfd_create('x')\ndef write(number, data): os.write(file, data)");
        is_killed_for(level, &["--memory-mib", "200"], &script, MEMORY);
    });
}

#[test]
fn check_25_memory_of_private_folders_counts() {
    for level in list_reached_levels(Needs::Processes) {
        // Without namespaces only `/dev/shm` is a file system in memory.
        let folders = if level.has_namespaces() {
            "('/tmp', '/var/tmp', '/dev/shm')"
        } else {
            "('/dev/shm',)"
        };
        let name = format!("journeyman-test-{}", std::process::id());
        let script = build_filler_script(&format!(
            "import atexit\nfolders = {folders}\npaths = [f'{{folder}}/{name}' for folder in folders]\n\
             def write(number, data): open(paths[number % len(paths)], 'ab').write(data)"
        ));
        is_killed_for(level, &["--memory-mib", "200"], &script, MEMORY);
        // Without namespaces the file is in the machine's `/dev/shm`.
        let _ = fs::remove_file(Path::new("/dev/shm").join(name));
        print_result_row("25 memory: private folders, /dev/shm", level.name(), "held");
    }
}

#[test]
fn check_25_system_v_memory_counts() {
    at_each_level("25 memory: System V", Needs::Limits, |_, level| {
        // The segments are filled and detached, so they are in no process's memory. They are removed at the
        // end of the command anyway.
        let script = build_filler_script(
            "libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p; made = []\n\
             def write(number, data):\n    id = libc.shmget(0, len(data), 0o1600); made.append(id)\n    \
             at = libc.shmat(id, None, 0); ctypes.memmove(at, data, len(data)); libc.shmdt(ctypes.c_void_p(at))\n    \
             print('made', id, flush=True)",
        );
        let world = World::new();
        let (code, text) = world.exec(level, &["--memory-mib", "200"], &["python3", "-c", &script]);
        if !level.has_namespaces() {
            for id in text.lines().filter_map(|line| line.strip_prefix("made ")) {
                let _ = Command::new("ipcrm").args(["-m", id]).output();
            }
        }
        assert!(
            code == 137 && text.contains(MEMORY),
            "{}: {code} {text}",
            level.name()
        );
    });
}

#[test]
fn check_25_shared_memory_counts_once() {
    at_each_level(
        "25 memory: shared memory counts once",
        Needs::Limits,
        |world, level| {
            let script = "import mmap, os, time\nfile = os.memfd_create('x'); os.ftruncate(file, 80 << 20)\n\
                      shared = mmap.mmap(file, 80 << 20); shared[:] = b'x' * (80 << 20)\n\
                      for _ in range(4):\n    if os.fork() == 0:\n        sum(shared[::4096]); time.sleep(1.5); os._exit(0)\n\
                      for _ in range(4): os.wait()\nprint('done')";
            let (code, text) = world.exec(level, &["--memory-mib", "300"], &["python3", "-c", script]);
            assert!(
                code == 0 && text.contains("done"),
                "{}: {code} {text}",
                level.name()
            );
        },
    );
}

#[test]
fn check_26_open_deleted_files_count() {
    at_each_level("26 disk: deleted files", Needs::Limits, |_, level| {
        let script = build_filler_script(
            "file = open('big', 'wb', buffering=0); os.unlink('big')\ndef write(number, data): file.write(data)",
        );
        is_killed_for(level, &["--disk-mib", "64"], &script, "more than 64 MiB of files");
    });
}

#[test]
fn check_28_session_storm_ends_at_limit() {
    at_each_level("28 a storm of sessions", Needs::Limits, |world, level| {
        let marker = format!("62{}", std::process::id() * 10 + level as u32);
        // Each process starts a session, forks, and exits. Their number is limited, because without
        // namespaces the kernel does not limit root.
        let storm = "import os, time\nfor _ in range(400):\n    if os.fork() == 0:\n        os.setsid()\n        for _ in range(20):\n            \
                     if os.fork() > 0: time.sleep(0.05); os._exit(0)\n            os.setsid()\n        time.sleep(600)\ntime.sleep(600)\n";
        let started = Instant::now();
        let (_, text) = world.exec(
            level,
            &["--timeout-s", "1", "--processes", "300"],
            &["python3", "-c", storm, &marker],
        );
        let took = started.elapsed();
        // Either the kernel enforces the limit: it refuses the fork, and the script runs until its time limit
        // or ends with Python's message. Or the launcher enforces it and ends the command with its own
        // message.
        let is_held_by_kernel = text.contains("Resource temporarily unavailable");
        let is_ended_by_launcher =
            text.contains("killed after 1 s") || text.contains("more than 300 processes");
        let probe = &run_doctor_command(level)["probe"];
        let has_kernels_limit = level.has_namespaces()
            || probe["uid"] != 0
            || probe["cgroup"]["processes"] == true
            || probe["process_limit"].is_u64();
        assert!(
            is_ended_by_launcher || (has_kernels_limit && is_held_by_kernel),
            "{}: {text}",
            level.name()
        );
        assert!(took < Duration::from_secs(120), "{}: {took:?}", level.name());
        let lives = || {
            let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
            entries.into_iter().any(|entry| {
                let text = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                text.starts_with(b"python3\0")
                    && String::from_utf8_lossy(&text).ends_with(&format!("{marker}\0"))
            })
        };
        assert!(
            !lives(),
            "{}: the answer came before the last process was gone",
            level.name()
        );
    });
}

#[test]
fn memory_limit_stays_below_container_limit() {
    // A cgroup of version 1 or 2 represents the container. Only root can create one.
    let Some(group) = Container::make(1024) else {
        print_result_row(
            "25 below the container's limit",
            "any",
            "not run: no memory group can be made here",
        );
        return;
    };
    let world = World::new();
    let doctor = world.command("doctor", Level::Bare);
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ > \"$1\"/cgroup.procs && shift && exec \"$@\"", "-"]);
    command
        .arg(&group.0)
        .arg(doctor.get_program())
        .args(doctor.get_args())
        .arg("--json");
    let report: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(report["probe"]["memory_limit"], 1024_u64 << 20, "{report}");
    assert_eq!(report["limits"]["memory_mib"], 512, "{report}");
    print_result_row("25 below the container's limit", "any", "held");
}

/// Memory cgroup that is removed when dropped.
struct Container(PathBuf);

impl Container {
    fn make(mib: u64) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = groups
            .lines()
            .find_map(|line| Some(line.split_once(":memory:")?.1.to_owned()))?;
        let folder = Path::new("/sys/fs/cgroup/memory").join(own.trim_start_matches('/'));
        let folder = folder.join(format!("journeyman-test-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let made = Self(folder);
        fs::write(made.0.join("memory.limit_in_bytes"), (mib << 20).to_string()).ok()?;
        Some(made)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
