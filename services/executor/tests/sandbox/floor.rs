//! Checks of the requirements of each level, and of the refusal below the required level.

use super::*;

/// Returns the level from `executor doctor` with some mechanisms disabled.
fn level_with(arguments: &[&str]) -> String {
    let world = World::new();
    let mut command = world.command("doctor", Level::Full);
    let output = command.arg("--json").args(arguments).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["level"].as_str().unwrap().to_owned()
}

#[test]
fn check_01_l1_requires_seccomp_and_landlock() {
    let alone = ["--without", "namespaces"];
    for (abi, level) in [("6", "L1"), ("5", "L0"), ("1", "L0"), ("0", "L0")] {
        let arguments = [&alone[..], &["--landlock-abi", abi]].concat();
        assert_eq!(level_with(&arguments), level, "ABI {abi} without namespaces");
    }
    if has_namespaces() {
        for (abi, level) in [("6", "L1"), ("2", "L1"), ("1", "L0"), ("0", "L0")] {
            assert_eq!(
                level_with(&["--landlock-abi", abi]),
                level,
                "ABI {abi} with namespaces"
            );
        }
    }
    assert_eq!(level_with(&["--without", "seccomp"]), "L0");
    print_result_row("1 what L1 takes", "any", "held");
}

#[test]
fn check_09_every_landlock_abi_confines() {
    for abi in ["1", "2", "3", "4", "5", "6", "7"] {
        let world = World::new();
        let mut command = world.command("exec", Level::Pod);
        let script = format!(
            "cat {0:?}/file; echo x > {0:?}/new; echo y > here && cat here",
            world.path("other")
        );
        let command = command.args(["--landlock-abi", abi, "--", "bash", "-c", &script]);
        let (code, text) = read_safe_output(command.output().unwrap());
        assert!(code == 0 && text.ends_with("y\n"), "ABI {abi}: {text}");
        assert!(!world.path("other/new").exists(), "ABI {abi}");
    }
    print_result_row("9 files at every ABI of Landlock", "L0 to L1", "held");
}

#[test]
fn doctor_below_level_names_remedy() {
    let world = World::new();
    let mut command = world.command("doctor", Level::Bare);
    let (code, text) = read_safe_output(command.output().unwrap());
    assert_eq!(code, 3);
    for part in [
        "L0",
        "Landlock ABI 0 (6 or newer is needed)",
        "no seccomp",
        "executor.min_level = \"L0\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Starts an executor that must refuse to start. Returns its message.
fn refused_start(lines: &str) -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("settings.toml");
    let text = format!(
        "[executor]\nlisten = \"127.0.0.1:0\"\ndata_dir = {:?}\nlauncher = {:?}\n{lines}\n[executor.grant_keys]\n",
        folder.path().join("data"),
        env!("CARGO_BIN_EXE_launcher"),
    );
    let keys = grant::generate_key_pair();
    let user = executors_user();
    // The error is ignored: only root can change the owner.
    let _ = std::os::unix::fs::chown(folder.path(), Some(user), Some(user));
    fs::write(&file, format!("{text}{:?} = {:?}\n", keys.id, keys.public_key)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_executor"));
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(user).gid(user);
    }
    let output = command
        .arg("--config")
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success(), "it started");
    read_safe_output(output).1
}

#[test]
fn check_02_unconfined_executor_refuses_start() {
    let said = refused_start("without = [\"landlock\", \"namespaces\"]");
    for part in [
        "executor.min_level",
        "level L0",
        "L1 is required",
        "JOURNEYMAN__EXECUTOR__MIN_LEVEL=L0",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    print_result_row("2 no start below L1 by default", "any", "held");
}

#[test]
fn check_02_runner_below_l2_refused() {
    let world = World::new();
    let socket = if list_reached_levels(Needs::Level).contains(&Level::Runner) {
        world.runner()
    } else {
        print_result_row("2 no runner below L2", "L2", "not run: takes root");
        return;
    };
    let lines = format!(
        "slots = 1\nmin_level = \"L0\"\nrunner_socket = {socket:?}\nwithout = [\"landlock\", \"namespaces\"]"
    );
    let said = refused_start(&lines);
    assert!(
        said.contains("executor.runner_socket") && said.contains("must reach L2"),
        "{said}"
    );
    print_result_row("2 no runner below L2", "L2", "held");
}

/// Runs `executor doctor` as in the executor's container: without arguments, with the service's settings.
fn doctor_with_settings(world: &World, lines: &str, user: Option<u32>) -> (i32, Value) {
    let file = world.path("settings.toml");
    fs::write(
        &file,
        format!(
            "[executor]\nlauncher = {:?}\n{lines}\n",
            env!("CARGO_BIN_EXE_launcher")
        ),
    )
    .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_executor"));
    command
        .args(["doctor", "--json"])
        .env("JOURNEYMAN_CONFIG", file)
        .stdin(Stdio::null());
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let output = command.output().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (
        output.status.code().unwrap(),
        report.unwrap_or_else(|_| panic!("{said}")),
    )
}

#[test]
fn check_01_doctor_reads_service_settings() {
    let world = World::new();
    let (code, report) = doctor_with_settings(
        &world,
        "without = [\"landlock\", \"namespaces\"]\nmin_level = \"L0\"",
        None,
    );
    assert_eq!(
        (code, &report["level"], &report["min_level"]),
        (0, &"L0".into(), &"L0".into())
    );
    if list_reached_levels(Needs::Level).contains(&Level::Runner) {
        let lines = format!("min_level = \"L2\"\nrunner_socket = {:?}", world.runner());
        let (code, report) = doctor_with_settings(&world, &lines, Some(executors_user()));
        assert_eq!(
            (code, &report["level"], &report["min_level"]),
            (0, &"L2".into(), &"L2".into())
        );
    }
    print_result_row("1 doctor tells the level of the service beside it", "any", "held");
}
