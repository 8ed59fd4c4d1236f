//! The second process of the launcher. It confines itself and runs commands.

use std::{
    fs,
    io::{self, PipeWriter, Read, Write, stdout},
    net::{Ipv4Addr, TcpListener},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Command, ExitCode, Stdio},
};

use rustix::{
    process::{
        DumpableBehavior, Pid, Signal, WaitOptions, set_dumpable_behavior, set_parent_process_death_signal,
    },
    thread::CapabilitySet,
};

use crate::{
    confinement, group, leftovers, namespaces,
    policy::{self, KernelConfinement, LauncherPolicy, SandboxProbe},
    reachability, seccomp, sys, toolchain,
    tree::{ActivityPipe, exit_code},
    wire,
};

// Commands with many processes must leave processor time to the processes that watch and end them.
const NICENESS: i32 = 5;
/// Exit code of a command that could not be started; the same as in POSIX shells.
const NOT_STARTED: u8 = 126;

/// State of the launcher after a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LauncherState {
    /// The launcher ends.
    ForGood = 0,
    /// The launcher accepts the next command in the same namespaces.
    WaitsForNext = policy::WAITS_FOR_NEXT as isize,
}

/// Reports the exit code of a command, and whether the launcher accepts another one. Format: two bytes.
pub(crate) fn report_exit(mut control: &UnixStream, code: u8, ended: LauncherState) -> io::Result<()> {
    control.write_all(&[code, ended as u8])
}

/// Confines this process, receives commands and runs them. Without namespaces the command replaces this
/// process.
///
/// With namespaces this process is process 1 of the PID namespace and runs one command after the other as its
/// parent. A command must not be process 1 itself, because the kernel ignores most signals to that process
/// and gives it every orphan. `activity` notifies the supervising process when a command runs.
pub(crate) fn run_commands(
    policy: &LauncherPolicy,
    control: &UnixStream,
    activity: PipeWriter,
) -> Result<ExitCode, String> {
    let null = fs::File::open("/dev/null").map_err(|error| error.to_string())?;
    namespaces::prefer_to_kill();
    // The error is ignored: without the right to lower its priority, the process keeps the priority of the
    // others.
    let _ = rustix::process::nice(NICENESS);
    let uid = rustix::process::getuid().as_raw();
    if policy.confinement.namespaces {
        // Order matters: the namespaces are entered before the limits and the confinement, which forbid
        // mounting and entering.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
        namespaces::set_up_namespaces(policy, policy.uid)?;
        open_egress_listener(policy, control)?;
    } else if uid == 0 {
        drop_capabilities().map_err(|error| format!("capabilities: {error}"))?;
    }
    confinement::set_limits(policy)?;
    confinement::confine_process(policy)?;
    // Without the dumpable flag no other process of the same user can trace this one or read its memory
    // through `/proc`.
    if policy.confinement.namespaces {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| error.to_string())?;
    }
    // Standard input is the control socket, which commands must not inherit.
    rustix::stdio::dup2_stdin(&null).map_err(|error| error.to_string())?;
    if policy.confinement.namespaces {
        return serve_commands(policy, control, &ActivityPipe::new(activity));
    }
    let Some(received) = receive_command(control)? else {
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(addresses) = reach_addresses(&received.words) {
        reachability::test_addresses(addresses, fs::File::from(received.output))
            .map_err(|error| error.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = prepare_command(policy, &received)?;
    command.current_dir(&policy.directory);
    let problem = describe_start_error(&received, &command.exec());
    // The caller writes the problem to standard error, which is the place for a dialog.
    if !received.is_dialog {
        write_start_error(&received, &problem);
    }
    Err(problem)
}

/// Runs commands until the caller has no more, or until a command leaves state behind that the next one would
/// find.
fn serve_commands(
    policy: &LauncherPolicy,
    control: &UnixStream,
    activity: &ActivityPipe,
) -> Result<ExitCode, String> {
    // The directory is set once for this process: `Command::current_dir` would force the standard library to
    // fork instead of using `posix_spawn`.
    std::env::set_current_dir(&policy.directory)
        .map_err(|error| format!("{}: {error}", policy.directory.display()))?;
    let before = leftovers::list_leftovers();
    while let Some(received) = receive_command(control)? {
        activity.begin().map_err(|error| error.to_string())?;
        let code = run_one(policy, &received)?;
        drop(received);
        if !end_all() || before.is_none() || leftovers::list_leftovers() != before {
            // The exit of this process ends all namespaces, and the other process of the launcher reports the
            // exit code.
            return Ok(ExitCode::from(code));
        }
        activity.end().map_err(|error| error.to_string())?;
        report_exit(control, code, LauncherState::WaitsForNext).map_err(|error| error.to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs one command and returns its exit code.
fn run_one(policy: &LauncherPolicy, received: &ReceivedCommand) -> Result<u8, String> {
    if let Some(addresses) = reach_addresses(&received.words) {
        let output = received.output.try_clone().map_err(|error| error.to_string())?;
        return reachability::test_addresses(addresses, fs::File::from(output))
            .map(|()| 0)
            .map_err(|error| error.to_string());
    }
    Ok(match prepare_command(policy, received)?.spawn() {
        Ok(child) => reap_until(child.id()),
        Err(error) => {
            write_start_error(received, &describe_start_error(received, &error));
            NOT_STARTED
        }
    })
}

/// Returns the addresses of a reachability test, if the words request one instead of a command.
fn reach_addresses(words: &[String]) -> Option<&[String]> {
    let (first, addresses) = words.split_first()?;
    (first == policy::REACH).then_some(addresses)
}

/// Command of a frame.
struct ReceivedCommand {
    /// Program and arguments.
    words: Vec<String>,
    /// Standard output; in a dialog the socket, which is standard input too.
    output: OwnedFd,
    is_dialog: bool,
}

fn receive_command(control: &UnixStream) -> Result<Option<ReceivedCommand>, String> {
    let received =
        wire::receive_frame::<Vec<String>>(control).map_err(|error| format!("no command: {error}"))?;
    let Some((mut words, output)) = received else {
        return Ok(None);
    };
    let is_dialog = words.first().is_some_and(|first| first == policy::DIALOG);
    if is_dialog {
        words.remove(0);
    }
    Ok(Some(ReceivedCommand {
        words,
        output: output.ok_or("the command has no output")?,
        is_dialog,
    }))
}

fn prepare_command(policy: &LauncherPolicy, received: &ReceivedCommand) -> Result<Command, String> {
    let (program, args) = received.words.split_first().ok_or("the command is empty")?;
    let output = || received.output.try_clone().map_err(|error| error.to_string());
    let mut command = Command::new(program);
    command.args(args).env_clear();
    command.envs(policy.environment.iter().map(|(name, value)| (name, value)));
    command.stdout(Stdio::from(output()?));
    if received.is_dialog {
        // Standard error of this process goes to the executor, which reads it apart from the dialog.
        command.stdin(output()?).stderr(Stdio::inherit());
    } else {
        command.stdin(Stdio::null()).stderr(output()?);
    }
    Ok(command)
}

fn describe_start_error(received: &ReceivedCommand, error: &io::Error) -> String {
    format!("{}: {error}", received.words.first().map_or("", String::as_str))
}

/// Writes the reason of a failed start to the command's output, or in a dialog to standard error.
fn write_start_error(received: &ReceivedCommand, problem: &str) {
    // Errors are ignored: the reader of the output is the only recipient of this message.
    if received.is_dialog {
        let _ = writeln!(io::stderr(), "launcher: {problem}");
    } else if let Ok(output) = received.output.try_clone() {
        let _ = writeln!(fs::File::from(output), "launcher: {problem}");
    }
}

/// Listens on the loopback interface of the network namespace. The executor receives the socket over
/// `control` and accepts connections outside of the namespace.
fn open_egress_listener(policy: &LauncherPolicy, control: &UnixStream) -> Result<(), String> {
    // A socket stays in the network namespace in which it was created, also after it is sent to another
    // process.
    let Some(port) = policy.egress_port else {
        return Ok(());
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| format!("egress listener: {error}"))?;
    wire::send_frame(control, &(), Some(listener.as_fd()))
        .map_err(|error| format!("egress listener: {error}"))
}

fn reap_until(child: u32) -> u8 {
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == child => return exit_code(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return u8::MAX,
        }
    }
}

/// Kills every process of the PID namespace except this one, which is process 1.
///
/// When no child remains, the namespace is empty, because process 1 becomes the parent of every orphan.
/// Returns false when waiting fails.
fn end_all() -> bool {
    loop {
        sys::kill_everything_else();
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return error == rustix::io::Errno::CHILD,
        }
    }
}

/// Drops all capabilities. Root without capabilities only owns its files, and programs that it starts regain
/// no capability.
fn drop_capabilities() -> rustix::io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        // The error is ignored: a process without the right to drop a capability from the bounding set has no
        // capability to drop.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    namespaces::give_up_capabilities()
}

/// Tries all mechanisms of confinement on processes that end afterwards, and prints the result as JSON.
pub(crate) fn print_probe() -> Result<ExitCode, String> {
    // The limits are read first, because the trials below remove this process's access to them.
    let (memory_limit, process_limit) = (group::memory_limit(), group::process_limit());
    let cgroup = group::probe_cgroup();
    let toolchain = toolchain::find_toolchain();
    let namespaces_problem = try_namespaces().err();
    let uid = rustix::process::getuid().as_raw();
    let version = fs::read_to_string("/proc/version").unwrap_or_default();
    let landlock = confinement::try_landlock();
    let seccomp = seccomp::apply_deny_list().is_ok();
    let probe = SandboxProbe {
        offers: KernelConfinement {
            landlock,
            seccomp,
            namespaces: namespaces_problem.is_none(),
        },
        landlock_abi: landlock,
        memory_limit,
        process_limit,
        cgroup,
        namespaces_problem,
        gvisor: version.to_lowercase().contains("gvisor"),
        uid,
        toolchain,
    };
    let text = serde_json::to_string(&probe).map_err(|error| error.to_string())?;
    writeln!(stdout(), "{text}").map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `true` in new namespaces, in the same way as every command.
fn try_namespaces() -> Result<(), String> {
    let policy = LauncherPolicy {
        directory: "/".into(),
        confinement: KernelConfinement {
            namespaces: true,
            ..KernelConfinement::default()
        },
        limits: policy::CommandLimits::default(),
        visible: policy::SYSTEM.map(Into::into).to_vec(),
        ..LauncherPolicy::default()
    };
    let text = |error: io::Error| error.to_string();
    let launcher = std::env::current_exe().map_err(text)?;
    let (control, theirs) = UnixStream::pair().map_err(text)?;
    let (mut output, writer) = io::pipe().map_err(text)?;
    let mut child = Command::new(launcher)
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(writer.try_clone().map_err(text)?)
        .spawn()
        .map_err(text)?;
    wire::send_frame(&control, &policy, None).map_err(text)?;
    let asked = wire::send_frame(&control, &["/bin/true"], Some(writer.as_fd()));
    drop(writer);
    let mut answer = [0; 2];
    let answered = asked.and_then(|()| (&control).read_exact(&mut answer));
    drop(control);
    let mut problem = String::new();
    output.read_to_string(&mut problem).map_err(text)?;
    child.wait().map_err(text)?;
    if answered.is_ok() && answer == [0, LauncherState::WaitsForNext as u8] {
        Ok(())
    } else {
        Err(problem.trim().to_owned())
    }
}
