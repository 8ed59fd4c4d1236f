//! The half of the launcher that confines itself and starts the command.

use std::{
    fs,
    io::{PipeWriter, Write, stdout},
    os::unix::process::CommandExt,
    process::{Command, ExitCode, Stdio},
};

use rustix::{
    process::{
        DumpableBehavior, Pid, Signal, WaitOptions, set_dumpable_behavior, set_parent_process_death_signal,
    },
    thread::{CapabilitySet, CapabilitySets, set_capabilities},
};

use crate::{
    confine, namespaces,
    policy::{self, Confinement, Policy, Probe},
    seccomp,
    supervise::read_frame,
    tree::exit_code,
};

/// Confines this process, waits to be told the command and runs it: in its place, or, as the first process of a new
/// world, as its parent. There it must not be the first itself: that one gets no signals and every orphan. `starting`
/// is closed when the command starts.
pub(crate) fn run(policy: &Policy, starting: PipeWriter) -> Result<ExitCode, String> {
    let null = fs::File::open("/dev/null").map_err(|error| error.to_string())?;
    namespaces::prefer_to_kill();
    let uid = rustix::process::getuid().as_raw();
    if policy.confinement.namespaces {
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
        namespaces::settle(policy, policy.uid)?;
    } else if uid == 0 {
        drop_capabilities().map_err(|error| format!("capabilities: {error}"))?;
    }
    confine::set_limits(policy)?;
    confine::confine(policy)?;
    if policy.confinement.namespaces {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| error.to_string())?;
    }
    let words: Option<Vec<String>> = read_frame().map_err(|error| format!("no command: {error}"))?;
    let Some(words) = words else {
        return Ok(ExitCode::SUCCESS);
    };
    rustix::stdio::dup2_stdin(&null).map_err(|error| error.to_string())?;
    drop(starting);
    let (program, args) = words.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(program);
    command.args(args).current_dir(&policy.directory);
    command.env_clear();
    command.envs(policy.environment.iter().map(|(name, value)| (name, value)));
    if !policy.confinement.namespaces {
        return Err(format!("{program}: {}", command.exec()));
    }
    let child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    Ok(reap_until(child.id()))
}

fn reap_until(child: u32) -> ExitCode {
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == child => return ExitCode::from(exit_code(status)),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return ExitCode::from(255),
        }
    }
}

/// Root without its powers is the owner of its files and nothing more; programs that it starts regain none.
fn drop_capabilities() -> rustix::io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        // Without the right to do so there is nothing to drop.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none)
}

/// Tries everything out on processes that end with it and prints how that went.
pub(crate) fn probe() -> Result<ExitCode, String> {
    let namespaces_problem = try_namespaces().err();
    let uid = rustix::process::getuid().as_raw();
    let version = fs::read_to_string("/proc/version").unwrap_or_default();
    let (landlock, landlock_abi) = confine::try_landlock();
    let seccomp = seccomp::apply().is_ok();
    let probe = Probe {
        offers: Confinement {
            landlock,
            seccomp,
            namespaces: namespaces_problem.is_none(),
        },
        landlock_abi,
        namespaces_problem,
        gvisor: version.to_lowercase().contains("gvisor"),
        uid,
    };
    let text = serde_json::to_string(&probe).map_err(|error| error.to_string())?;
    writeln!(stdout(), "{text}").map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `true` in a world of its own, by the same way as every command.
fn try_namespaces() -> Result<(), String> {
    let policy = Policy {
        directory: "/".into(),
        confinement: Confinement {
            namespaces: true,
            ..Confinement::default()
        },
        limits: crate::policy::Limits::default(),
        ..Policy::default()
    };
    let frames =
        policy::frame(&policy).and_then(|policy| Ok([policy, policy::frame(&["/bin/true"])?].concat()));
    let frames = frames.map_err(|error| error.to_string())?;
    let launcher = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(launcher)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    // Held open: its end would kill the command.
    let mut control = child.stdin.take().ok_or("no input")?;
    control.write_all(&frames).map_err(|error| error.to_string())?;
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    drop(control);
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
